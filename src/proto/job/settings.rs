//! The list of everything that a submitter may say about a job. A row here is all that a new
//! setting needs: the hash, JSON, the command line, graphs, batches, periodic jobs and the builder
//! of the client are derived from it.
//!
//! A row is written `FIELD as METHOD(ARGUMENTS): TYPE = DEFAULT => { PROPERTIES }`, after its
//! documentation. `FIELD` is its name in the hash and in JSON. `METHOD` is the builder's method and
//! the word that people write: `--word`, and the key of TOML files. The properties are fields of
//! [`Setting`](super::spec::Setting).

/// Passes the list to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! job_settings {
    ($macro:ident) => {
        $macro! {
            /// The id; a random UUID without one
            id as id(id: &str): Option<JobId> = None => {
                value_name: "ID",
                absent: &[
                    (Entrance::Script, OF_ITS_JOBS),
                    (Entrance::GraphDefaults, EACH_ITS_OWN),
                    (Entrance::GraphCallback, "each end of the graph makes another job"),
                    (Entrance::PeriodicJob, "each firing has its own, made of name and time"),
                ],
            }
            /// The text to run
            script as script(text: &str): String = String::new() => {
                bound: |spec, bounds| match spec.script.len() as u64 {
                    // The script that it names has the text.
                    0 if spec.uses.is_some() => None,
                    0 => Some("is missing".to_owned()),
                    size if size > bounds.script_size_max => {
                        Some(format!("is longer than {} bytes", bounds.script_size_max))
                    }
                    _ => None,
                },
                absent: &[
                    (Entrance::Script, "it is the text that is published"),
                    (Entrance::CommandLine, "it is FILE, --eval or standard input"),
                    (Entrance::GraphDefaults, EACH_ITS_OWN),
                ],
            }
            /// A published script, NAME or NAME@VERSION, that gives the text and the settings that the job leaves open:
            /// hero script list
            uses as uses(script: &str): Option<ScriptUse> = None => {
                value_name: "NAME[@VERSION]",
                absent: &[
                    (Entrance::GraphDefaults, EACH_ITS_OWN),
                    (Entrance::Script, "a script names no other"),
                ],
            }
            /// The SHA-256 that the text of the published script must have: another one is rejected; Hero sets it
            script_digest as script_digest(digest: &str): Option<ContentHash> = None => {
                value_name: "SHA256",
                absent: &[
                    (Entrance::GraphDefaults, EACH_ITS_OWN),
                    (Entrance::Script, "it follows from the text"),
                ],
            }
            /// A name for lists and searches, by default of the submitted file; several jobs may have the same
            name as name(text: &str): Option<JobName> = None => {
                value_name: "TEXT",
                absent: &[(Entrance::GraphDefaults, EACH_ITS_OWN)],
            }
            /// A word for lists and searches: letters, digits and _ - . : / =, at most 8 of 64 characters
            tags as tag(word: &str): Tags = Tags::default() => { value_name: "TAG" }
            /// The name of the submitter
            caller_id as caller_id(name: &str): String = String::new() => {
                word: "caller", value_name: "TEXT",
                fault: |spec| {
                    let reason = || "has control characters".to_owned();
                    spec.caller_id.chars().any(char::is_control).then(reason)
                },
                absent: &[(Entrance::Script, OF_ITS_JOBS)],
            }
            /// The name of the set of objects that a script of osis works on; other scripts find it in the variable
            /// `HERO_CONTEXT_ID`
            context_id as context_id(name: &str): String = String::new() => {
                word: "context", value_name: "TEXT",
                fault: |spec| {
                    let reason = || "has control characters".to_owned();
                    spec.context_id.chars().any(char::is_control).then(reason)
                },
            }
            /// The script type; without it the file's extension tells: .rhai osis, .py python, .sh bash,
            /// .js node, .v and .vsh v, .hero heroscript, or as the configuration says
            script_type as script_type(name: &str): Option<ScriptType> = None => {
                word: "type", short: Some('t'), value_name: "TYPE",
            }
            /// The extension of the script's file, one of its type's, such as .mjs; by default the extension of the
            /// submitted file, or the type's first
            extension as extension(text: &str): String = String::new() => { value_name: "TEXT" }
            /// The group of actors that may run it; any group without one
            group as group(name: &str): Option<Group> = None => {
                short: Some('g'), value_name: "GROUP",
            }
            /// The one instance that may run it, of the group `default` unless another is given
            instance as instance(number: u16): Option<Instance> = None => {
                short: Some('i'), value_name: "NUMBER",
            }
            /// The actors that may run it, by their labels: an expression such as `role = "web" and release >= 12`, of
            /// comparisons, `in (…)`, `and`, `or`, `not` and parentheses; not beside a group or an instance, which are
            /// labels too
            r#where as r#where(expression: &str): Option<Selector> = None => {
                field: "where", word: "where", value_name: "EXPRESSION",
                bound: |spec, _| spec.where_conflict(),
            }
            /// The actors that may run it if no actor of its instance or group is alive: none (the default unless its
            /// type has another), group (any actor of the group) or type (any actor of the script type)
            fallback as fallback(farthest: &str): Option<Fallback> = None => {
                value_name: "none|group|type",
            }
            /// The priority: 0 urgent, 1 normal (the default), 2 background
            priority as priority(level: u8): Priority = Priority::Normal => {
                value_name: "0|1|2",
            }
            /// The timeout of one attempt, such as 30s; by default `job.timeout`, 1m
            timeout as timeout(time: Duration): Option<Duration> = None => {
                value_name: "DURATION",
                bound: |spec, bounds| longer(spec.timeout, bounds.timeout_max, "job.timeout_max"),
            }
            /// The number of attempts after the first; by default `job.retries`, 0
            retries as retries(number: u32): Option<u32> = None => { value_name: "NUMBER" }
            /// The waits before retries: 10s..5m doubles from the first to the longest, 10s stays the
            /// same; by default 1s..15m (`job.retry_backoff`). Each wait varies by a fifth
            backoff as backoff(delays: &str): Option<RetryDelays> = None => {
                value_name: "DURATION[..DURATION]",
            }
            /// The exit codes that are retried, such as 1,64-78: after any other, the job fails at once;
            /// by default all. A job that names 75 and ends with it is postponed: it loses no attempt, until
            /// `job.postponed_max` (24h) after its first one
            retry_if as retry_if(codes: &str): Option<ExitCodes> = None => { value_name: "CODES" }
            /// The exit codes that are never retried, such as 65: after one of them the job fails at once. By default
            /// none; a script says the same with `hero.discard`
            discard_if as discard_if(codes: &str): Option<ExitCodes> = None => { value_name: "CODES" }
            /// The memory limit of each process of the script, such as 512MiB, and without --job-memory of the job as a
            /// whole; its type sets the upper bound
            memory as memory(size: &str): Option<MemorySize> = None => { value_name: "SIZE" }
            /// The memory limit of the job as a whole, all its processes together, such as 2GiB; its type sets the
            /// upper bound. Its machine needs control groups, else the job's log says that nothing holds it
            job_memory as job_memory(size: &str): Option<MemorySize> = None => { value_name: "SIZE" }
            /// The limit of processor time of each process of the script, such as 30s; its type sets the upper bound
            cpu as cpu_time(time: Duration): Option<Duration> = None => { value_name: "DURATION" }
            /// The network of the script: none, all, or TCP ports of any host such as 443,53, where 53 looks up names;
            /// rejected unless `ports_max` or `network_max` of its type's sandbox allows it
            network as network(text: &str): Option<NetworkAccess> = None => {
                value_name: "none|all|PORTS",
            }
            /// Runs beside other jobs of its instance
            concurrent as concurrent(concurrent: bool): bool = true => {
                negated: "Run jobs with this option one at a time on each actor",
            }
            /// The file for its log, inside `job.log_dir` of the actor's machine
            log_path as log_path(path: &str): Option<String> = None => {
                value_name: "PATH",
                fault: |spec| {
                    let path = spec.log_path.as_deref().unwrap_or_default();
                    let reason = || "has control characters".to_owned();
                    path.chars().any(char::is_control).then(reason)
                },
            }
            /// An environment variable of the script
            env_vars as env(name: &str, value: &str): BTreeMap<String, String> = BTreeMap::new() => {
                value_name: "NAME=VALUE",
            }
            /// The arguments of a script that is a process; in Rhai the array `args`
            args as arg(text: &str): Vec<String> = Vec::<String>::new() => {
                word: "args",
                absent: &[(Entrance::CommandLine, "they stand after --, at the end")],
            }
            /// The parameters of the script: a JSON object, in Rhai the map `params`, elsewhere in
            /// the variable `HERO_PARAMS`
            params as param(name: &str, value: Value): Params = Params::new() => {
                word: "params",
                absent: &[
                    (Entrance::CommandLine, "they are --param and --params"),
                    (Entrance::Script, "they are declared, by name, with a type"),
                ],
            }
            /// A secret of the actor's machine, a file of its `secrets.dir`, /etc/hero/secrets, that `[secrets.allow]` of
            /// hero.toml gives its type: NAME in the variable NAME, VARIABLE=NAME, or `file:NAME` in the folder `HERO_SECRET_DIR`; the job holds the name alone
            secrets as secret(text: &str): Vec<SecretUse> = Vec::<SecretUse>::new() => {
                value_name: "[VARIABLE=]NAME",
            }
            /// A job that must finish before this one starts
            prerequisites as after(id: &str): Vec<JobId> = Vec::new() => {
                value_name: "ID",
                bound: |spec, _| {
                    let named = spec.prerequisites.len() + spec.after_any.len();
                    let most = JobSpec::PREREQUISITES_MAX;
                    (named > most).then(|| format!("name more than {most} jobs"))
                },
                absent: WITHOUT_PREREQUISITES,
            }
            /// A job that must end, finished or failed, before this one starts
            after_any as after_any(id: &str): Vec<JobId> = Vec::new() => {
                value_name: "ID",
                absent: WITHOUT_PREREQUISITES,
            }
            /// Counts its failure for nothing in its graph or atomic batch, whose jobs after it run then as well
            may_fail as may_fail(may_fail: bool): bool = false => {
                absent: &[
                    (Entrance::CommandLine, "only a job of a graph or batch may fail"),
                    (Entrance::GraphCallback, "a callback counts for nothing"),
                    (Entrance::PeriodicJob, "it is of no graph"),
                    (Entrance::Script, OF_ITS_JOBS),
                ],
            }
            /// The names of prerequisites in the script, beside their ids
            prerequisite_names as prerequisite_name(name: &str, id: &str):
                BTreeMap<String, JobId> = BTreeMap::new() =>
            {
                absent: &[
                    (Entrance::Script, OF_ITS_JOBS),
                    (Entrance::CommandLine, "only the jobs of a graph have names"),
                    (Entrance::Graph, "they are the names in after and after_any"),
                    (Entrance::GraphDefaults, EACH_ITS_OWN),
                    (Entrance::GraphCallback, STARTED_BY_GRAPH),
                    (Entrance::PeriodicJob, STARTED_BY_TIME),
                ],
            }
            /// The earliest time to start: RFC 3339 with Z or an offset, such as
            /// 2026-12-24T18:00:00+01:00
            run_at as run_at(time: Timestamp): Option<Timestamp> = None => {
                word: "at", value_name: "TIME",
                absent: &[
                    (Entrance::Script, OF_ITS_JOBS),
                    (Entrance::GraphCallback, STARTED_BY_GRAPH),
                    (Entrance::PeriodicJob, "its schedule says when it starts"),
                ],
            }
            /// The time after its submission, or after `run_at`, within which it must start, such as 2h: if its actor
            /// takes it later, it ends as expired without having run
            expires as expires(time: Duration): Option<Duration> = None => { value_name: "DURATION" }
            /// The key that deduplicates: while a job with this key has not ended, submitting
            /// another gives its id and creates nothing
            unique_key as unique_key(key: &str): Option<UniqueKey> = None => {
                value_name: "KEY",
                absent: &[(Entrance::GraphDefaults, EACH_ITS_OWN)],
            }
            /// The time from its submission until a finished job gives its unique key back
            unique_for as unique_for(time: Duration): Option<Duration> = None => {
                value_name: "DURATION",
            }
            /// The properties that make two jobs duplicates: key (the unique key, the default), script (script, type,
            /// group, arguments, parameters, variables) or params (type, group, name, parameters)
            unique_by as unique_by(what: &str): Option<UniqueBy> = None => {
                value_name: "key|script|params",
            }
            /// The action if another job holds its unique key: return (its id, the default), replace (that job, if it has
            /// not started) or reject (this job)
            on_duplicate as on_duplicate(what: &str): Option<OnDuplicate> = None => {
                value_name: "return|replace|reject",
                absent: &[
                    (Entrance::Graph, "a graph is submitted as a whole or not at all"),
                    (Entrance::GraphDefaults, "a graph is submitted as a whole or not at all"),
                    (Entrance::PeriodicJob, "its overlap says that"),
                ],
            }
            /// Waits for this time, such as 2s, and takes the place of a job with its unique key that has not started:
            /// of jobs that come in quick succession the last one runs
            debounce as debounce(time: Duration): Option<Duration> = None => {
                value_name: "DURATION",
                absent: WITHOUT_DEBOUNCE,
            }
            /// The longest time from the first of the jobs that replaced each other until one of them runs, such as 1m
            debounce_max as debounce_max(time: Duration): Option<Duration> = None => {
                value_name: "DURATION",
                absent: WITHOUT_DEBOUNCE,
            }
            /// A word, such as the name of a customer: a limit of the configuration with `per = "key"` counts the
            /// jobs of each word apart
            limit_key as limit_key(key: &str): Option<LimitKey> = None => { value_name: "KEY" }
            /// A word, such as the name of a customer, whose jobs are on the same shard, so that they can wait for each
            /// other; no effect with one shard
            shard_key as shard_key(key: &str): Option<ShardKey> = None => {
                value_name: "KEY",
                absent: &[
                    (Entrance::GraphCallback, "it is on the shard of its graph"),
                    (Entrance::PeriodicJob, "all periodic jobs are on the home shard"),
                ],
            }
            /// Its place in a trace, a `traceparent` of W3C's trace context, 00-TRACE-SPAN-FLAGS; on the command line by
            /// default the environment variable `TRACEPARENT`. The script gets it in this variable
            traceparent as traceparent(text: &str): Option<TraceParent> = None => {
                value_name: "TEXT",
                absent: &[
                    (Entrance::PeriodicJob, "each firing is a trace of its own"),
                    (Entrance::Script, OF_ITS_JOBS),
                ],
            }
            /// The retention of the ended job, such as 7d; by default `job.retention`, 24h, and 7d if it failed
            retention as retention(time: Duration): Option<Duration> = None => {
                value_name: "DURATION",
                bound: |spec, bounds| longer(spec.retention, bounds.retention_max, "job.retention_max"),
            }
            /// The action for an output over `job.output_size_max`: truncate (keep its end) or fail (the job)
            output_overflow as output_overflow(fate: &str): Option<OutputOverflow> = None => {
                value_name: "truncate|fail",
            }
            /// A notification of the configuration, a table `[notify.NAME]` of hero.toml, that tells of this job also if its filters exclude it
            notify as notify(name: &str): Vec<NotifyName> = Vec::<NotifyName>::new() => {
                value_name: "NAME",
            }
            /// The time after its submission, or after `run_at`, within which it is expected to end, such as 2h: a job that
            /// takes longer is marked as late, told to notifications, and runs on
            expect_within as expect_within(time: Duration): Option<Duration> = None => {
                value_name: "DURATION",
            }
            /// The time of an attempt, such as 10m, after which it is marked as slow, told to notifications, and runs on
            slow_after as slow_after(time: Duration): Option<Duration> = None => {
                value_name: "DURATION",
            }
            /// Confirms the submission, and pushes the reply at the end, only once Redis has synchronised them with its
            /// disk, or its replicas have them (`redis.ack`)
            durable as durable(durable: bool): bool = false => {}
            /// Its signature, KEY TIME SIGNATURE: the name of the key, the time until which it may start, and 64 bytes in
            /// Base64, where `require_signature` of its type asks for one. It signs the id too
            signature as signature(text: &str): Option<JobSignature> = None => {
                value_name: "TEXT",
                absent: &[
                    (Entrance::CommandLine, "--sign makes it"),
                    (Entrance::Graph, "hero submit --sign makes it"),
                    (Entrance::GraphDefaults, EACH_ITS_OWN),
                    (Entrance::GraphCallback, "its id is not known before the end of the graph"),
                    (Entrance::PeriodicJob, "each firing has an id of its own"),
                ],
            }
            /// Pushes a reply when the job ends
            reply as reply(reply: bool): bool = true => {
                negated: "Do not store a reply for a waiting program; hero job wait still works",
                // The protocol knows `0` alone.
                read: |spec, text| {
                    spec.reply = !matches!(text, "0" | "false");
                    Ok(())
                },
                write: |spec| (!spec.reply).then(|| "0".to_owned()),
                absent: &[
                    (Entrance::PeriodicJob, "nobody waits for a firing"),
                    (Entrance::Script, OF_ITS_JOBS),
                ],
            }
            /// The format of the reply that a program reads from Redis: json (the default), or plain, the bare output
            /// or error
            reply_format as reply_format(format: &str): Option<ReplyFormat> = None => {
                value_name: "json|plain",
                absent: &[(Entrance::PeriodicJob, "nobody waits for a firing")],
            }
        }
    };
}
pub use crate::job_settings;

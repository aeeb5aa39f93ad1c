//! Checks the range of each value, and the relations between several of them.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::amqp::AmqpConfig;
use super::api::ApiConfig;
use super::artifacts::ArtifactsConfig;
use super::command::{NOT_EXTENSION, is_extension};
use super::connection::RedisConfig;
use super::error::{Fault, KeyPath};
use super::limits::LimitConfig;
use super::notify::check_notifications;
use super::schema::{ActorConfig, Config, JobConfig, Migration, SupervisorConfig};
use super::types::{EngineKind, RhaiLimits, TypeConfig};
use super::unit::TASKS;
use crate::proto::keys::Keys;
use crate::proto::target::ScriptType;
use crate::proto::units::{format_duration, format_size};

/// Checks a whole configuration, all files merged.
///
/// # Errors
/// The first [`Fault`] found.
pub(super) fn check(config: &Config) -> Result<(), Fault> {
    config.redis.check()?;
    let refused_for = KeyPath::of(&["redis", "refused_for"]);
    duration(refused_for, config.redis.refused_for, Duration::ZERO..=TEN_YEARS)?;
    config.log.check()?;
    check_supervisor(&config.supervisor)?;
    check_migration(&config.supervisor, &config.redis)?;
    check_job(&config.job)?;
    check_actor(&config.actor)?;
    config.check.check()?;
    config.api.check()?;
    check_api(&config.api)?;
    config.amqp.check(&config.types)?;
    check_amqp(&config.amqp)?;
    config.osis.check()?;
    let of_osis = |name| KeyPath::of(&["osis", name]);
    size(of_osis("object_size_max"), config.osis.object_size_max, 1..=64 << 20)?;
    number(of_osis("objects_max"), config.osis.objects_max, 1..=1_000_000_000_000)?;
    config.sal.check()?;
    config.secrets.check()?;
    check_artifacts(&config.artifacts)?;
    size(KeyPath::of(&["sal", "download_size_max"]), config.sal.download_size_max, 1..=1 << 40)?;
    for (name, script_type) in &config.types {
        check_type(&KeyPath::of(&["type", name.as_str()]), script_type)?;
    }
    for (name, limit) in &config.limits {
        check_limit(&KeyPath::of(&["limit", name.as_str()]), limit, config)?;
    }
    check_notifications(&config.notify)?;
    for (name, notify) in &config.notify {
        let key = |word| KeyPath::of(&["notify", name.as_str(), word]);
        duration(key("every"), notify.every, Duration::ZERO..=DAY)?;
        duration(key("timeout"), notify.timeout, MILLISECOND..=Duration::from_mins(1))?;
    }
    config.check_units()
}

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// Redis counts milliseconds since 1970 in 64 bits; ten years stay far from that limit.
const TEN_YEARS: Duration = Duration::from_hours(3650 * 24);
const MILLISECOND: Duration = Duration::from_millis(1);
/// The longest string that Redis holds.
const REDIS_STRING_MAX: u64 = 512 << 20;

fn check_supervisor(supervisor: &SupervisorConfig) -> Result<(), Fault> {
    let key = |name| KeyPath::of(&["supervisor", name]);
    let tenth = Duration::from_millis(10);
    duration(key("sweep_interval"), supervisor.sweep_interval, tenth..=HOUR)?;
    duration(key("wait_warning"), supervisor.wait_warning, Duration::ZERO..=TEN_YEARS)?;
    check_folder(key("cron_dir"), &supervisor.cron_dir)
}

fn check_migration(supervisor: &SupervisorConfig, redis: &RedisConfig) -> Result<(), Fault> {
    const QUEUES_MAX: usize = 256;
    let key = |name| KeyPath::of(&["supervisor", name]);
    let (queues, circles) = (&supervisor.legacy_queues, &supervisor.rhailib_circles);
    let keys = Keys::new(redis.namespace.clone());
    if redis.url.is_cluster() && !circles.is_empty() {
        let message = "cannot be served with a redis+cluster url: the keys of rhailib \
                       (rhai_tasks:…) have no namespace, so they are on other nodes; keep Hero and \
                       rhailib on one Redis until its programs submit jobs";
        return Err(Fault::new(key("rhailib_circles"), message));
    }
    if queues.len() > QUEUES_MAX || circles.len() > QUEUES_MAX {
        let name = if queues.len() > QUEUES_MAX { "legacy_queues" } else { "rhailib_circles" };
        return Err(Fault::new(key(name), format!("must be at most {QUEUES_MAX}")));
    }
    for (place, queue) in queues.iter().enumerate() {
        let legacy = &queue.legacy;
        if !keys.is_legacy_pattern(legacy) {
            let shown: String = legacy.chars().take(80).flat_map(char::escape_debug).collect();
            let message = format!("has `{shown}`, which is not of the form {}", Keys::LEGACY_FORM);
            return Err(Fault::new(key("legacy_queues"), message));
        }
        if queues[..place].iter().any(|before| before.legacy == *legacy) {
            return Err(Fault::new(key("legacy_queues"), format!("has `{legacy}` twice")));
        }
    }
    for (place, circle) in circles.iter().enumerate() {
        if circles[..place].iter().any(|before| before.circle == circle.circle) {
            let message = format!("has `{}` twice", circle.circle);
            return Err(Fault::new(key("rhailib_circles"), message));
        }
    }
    if supervisor.migration == Migration::Dual && queues.is_empty() {
        let message = "must be \"canonical\", or supervisor.legacy_queues must name a queue";
        return Err(Fault::new(key("migration"), message));
    }
    Ok(())
}

fn check_job(job: &JobConfig) -> Result<(), Fault> {
    let key = |name| KeyPath::of(&["job", name]);
    duration(key("timeout"), job.timeout, MILLISECOND..=TEN_YEARS)?;
    duration(key("timeout_max"), job.timeout_max, MILLISECOND..=TEN_YEARS)?;
    not_above(key("timeout"), job.timeout, key("timeout_max"), job.timeout_max)?;
    number(key("retries"), job.retries, 0..=1000)?;
    duration(key("retry_backoff"), job.retry_backoff, Duration::ZERO..=TEN_YEARS)?;
    duration(key("retry_backoff_max"), job.retry_backoff_max, Duration::ZERO..=TEN_YEARS)?;
    let (wait, wait_max) = (job.retry_backoff, job.retry_backoff_max);
    not_above(key("retry_backoff"), wait, key("retry_backoff_max"), wait_max)?;
    duration(key("postponed_max"), job.postponed_max, Duration::ZERO..=TEN_YEARS)?;
    number(key("crash_limit"), job.crash_limit, 1..=1000)?;
    duration(key("retention"), job.retention, SECOND..=TEN_YEARS)?;
    duration(key("retention_failed"), job.retention_failed, SECOND..=TEN_YEARS)?;
    duration(key("retention_max"), job.retention_max, SECOND..=TEN_YEARS)?;
    not_above(key("retention"), job.retention, key("retention_max"), job.retention_max)?;
    size(key("script_size_max"), job.script_size_max, 1..=REDIS_STRING_MAX)?;
    size(key("output_size_max"), job.output_size_max, 1..=REDIS_STRING_MAX)?;
    size(key("output_inline_max"), job.output_inline_max, 0..=REDIS_STRING_MAX)?;
    size(key("inputs_size_max"), job.inputs_size_max, 1..=REDIS_STRING_MAX)?;
    size(key("files_size_max"), job.files_size_max, 0..=64 << 20)?;
    size(key("log_size_max"), job.log_size_max, 1..=1 << 40)?;
    duration(key("kill_grace"), job.kill_grace, Duration::ZERO..=HOUR)?;
    size(key("cache_size_max"), job.cache_size_max, 1..=1 << 50)?;
    check_folder(key("cache_dir"), &job.cache_dir)?;
    check_folder(key("log_dir"), &job.log_dir)
}

fn check_artifacts(artifacts: &ArtifactsConfig) -> Result<(), Fault> {
    let key = |name| KeyPath::of(&["artifacts", name]);
    if let Some(dir) = &artifacts.dir {
        check_folder(key("dir"), dir)?;
    }
    size(key("max_size"), artifacts.max_size, 1..=1 << 40)?;
    duration(key("retention"), artifacts.retention, Duration::ZERO..=TEN_YEARS)
}

fn check_folder(key: KeyPath, folder: &Path) -> Result<(), Fault> {
    use std::path::Component::{CurDir, Normal, RootDir};
    let is_plain = folder.components().all(|part| matches!(part, RootDir | CurDir | Normal(_)));
    let has_nul = folder.as_os_str().as_encoded_bytes().contains(&0);
    if folder.is_absolute() && is_plain && !has_nul {
        return Ok(());
    }
    Err(Fault::new(key, "must be an absolute path without .."))
}

fn check_actor(actor: &ActorConfig) -> Result<(), Fault> {
    let key = |name| KeyPath::of(&["actor", name]);
    number(key("tasks"), actor.tasks, TASKS)?;
    duration(key("heartbeat"), actor.heartbeat, Duration::from_millis(10)..=HOUR)?;
    duration(key("lease"), actor.lease, Duration::from_millis(30)..=DAY)?;
    // One heartbeat may be late or lost before the actor counts as dead.
    if actor.heartbeat * 2 >= actor.lease {
        let message = format!(
            "must be less than half of actor.lease ({}), not {}",
            format_duration(actor.lease),
            format_duration(actor.heartbeat)
        );
        return Err(Fault::new(key("heartbeat"), message).or(key("lease")));
    }
    duration(key("drain_timeout"), actor.drain_timeout, Duration::ZERO..=DAY)?;
    number(key("fair_every"), actor.fair_every, 0..=10_000)?;
    size(key("memory_min"), actor.memory_min, 0..=1 << 50)
}

fn check_api(api: &ApiConfig) -> Result<(), Fault> {
    let key = |name| KeyPath::of(&["api", name]);
    size(key("body_size_max"), api.body_size_max, 1024..=REDIS_STRING_MAX)?;
    number(key("batch_max"), api.batch_max, 1..=10_000)?;
    number(key("connections_max"), api.connections_max, 1..=100_000)?;
    duration(key("client_timeout"), api.client_timeout, SECOND..=HOUR)
}

fn check_amqp(amqp: &AmqpConfig) -> Result<(), Fault> {
    let key = |name| KeyPath::of(&["amqp", name]);
    number(key("dispatchers"), amqp.dispatchers, 1..=64)?;
    number(key("prefetch"), amqp.prefetch, 1..=10_000)?;
    number(key("max_retries"), amqp.max_retries, 0..=1000)?;
    size(key("message_size_max"), amqp.message_size_max, 1024..=64 << 20)?;
    duration(key("consumer_timeout"), amqp.consumer_timeout, SECOND..=DAY)?;
    let (relational, logs) = (&amqp.relational, &amqp.logs);
    let key_of = |table, name| KeyPath::of(&["amqp", table, name]);
    let of = |name| key_of("relational", name);
    number(of("connections"), relational.connections, 1..=1000)?;
    duration(of("timeout"), relational.timeout, Duration::from_millis(100)..=HOUR)?;
    size(of("result_size_max"), relational.result_size_max, 1024..=64 << 20)?;
    let of = |name| key_of("logs", name);
    number(of("records_max"), logs.records_max, 1..=1_000_000_000_000)?;
    duration(of("keep"), logs.keep, Duration::ZERO..=TEN_YEARS)?;
    check_folder(of("spool_dir"), &logs.spool_dir)?;
    size(of("spool_size_max"), logs.spool_size_max, 64 << 10..=1 << 40)?;
    amqp.retry_delays.iter().try_for_each(|delay| {
        duration(key("retry_delays"), delay.0, Duration::from_millis(10)..=DAY)
    })
}

fn check_limit(table: &KeyPath, limit: &LimitConfig, config: &Config) -> Result<(), Fault> {
    const NUMBER_MAX: u32 = 10_000;
    let within = |key: &str, value: u32| {
        if (1..=NUMBER_MAX).contains(&value) {
            return Ok(());
        }
        let message = format!(
            "must be from 1 to {NUMBER_MAX}, not {value}; to hold jobs back altogether, pause \
             their queues"
        );
        Err(Fault::new(table.then(key), message))
    };
    if limit.running.is_none() && limit.rate.is_none() {
        return Err(Fault::new(
            table.clone(),
            "needs running, such as 4, or rate, such as \"10/s\"",
        ));
    }
    if let Some(running) = limit.running {
        within("running", running)?;
    }
    if let Some(rate) = limit.rate {
        within("rate", rate.number)?;
        duration(table.then("rate"), rate.period, MILLISECOND..=DAY)?;
    }
    if let Some(script_type) = limit.script_type.as_ref()
        && !config.types.contains_key(script_type)
    {
        let known: Vec<&str> = config.types.keys().map(ScriptType::as_str).collect();
        let message = format!("must be a configured script type: {}", known.join(", "));
        return Err(Fault::new(table.then("type"), message));
    }
    Ok(())
}

fn check_type(table: &KeyPath, script_type: &TypeConfig) -> Result<(), Fault> {
    match script_type.engine {
        EngineKind::Osis | EngineKind::Sal => {
            check_modules(table, &script_type.modules, 0)?;
            check_limits(&table.then("limits"), &script_type.limits)
        }
        EngineKind::HeroScript => {
            check_modules(table, &script_type.modules, 1)?;
            check_limits(&table.then("limits"), &script_type.limits)
        }
        EngineKind::Command => {
            check_command(table, script_type)?;
            script_type.sandbox.check(&table.then("sandbox"))
        }
    }
}

fn check_modules(table: &KeyPath, modules: &[PathBuf], least: usize) -> Result<(), Fault> {
    /// The most folders of one type.
    const MODULES_MAX: usize = 16;
    let key = table.then("modules");
    if !(least..=MODULES_MAX).contains(&modules.len()) {
        let message = format!("must have from {least} to {MODULES_MAX} folders");
        return Err(Fault::new(key, message));
    }
    modules.iter().enumerate().try_for_each(|(index, folder)| {
        check_folder(key.then(index), folder).map_err(|fault| fault.or(key.clone()))
    })
}

fn check_command(table: &KeyPath, script_type: &TypeConfig) -> Result<(), Fault> {
    const WORDS_MAX: usize = 256;
    let fault = |key: &str, message| Err(Fault::new(table.then(key), message).or(table.clone()));
    let command = &script_type.command;
    if command.first().is_none_or(String::is_empty) {
        return fault(
            "command",
            "must begin with a program, such as [\"/bin/bash\", \"{script}\"]",
        );
    }
    if command.len() > WORDS_MAX || command.iter().any(|word| word.contains('\0')) {
        return fault("command", "must have at most 256 words without a NUL");
    }
    let is_compiled = !script_type.options.compile.is_empty();
    if !is_compiled && !command.iter().any(|word| word.contains("{script}")) {
        if command.iter().any(|word| word.contains("{binary}")) {
            return script_type.options.check(table, command);
        }
        return fault("command", "must have {script} somewhere: it stands for the script's file");
    }
    if !script_type.extension.is_empty() && !is_extension(&script_type.extension) {
        return fault("extension", NOT_EXTENSION);
    }
    script_type.options.check(table, command)
}

fn check_limits(table: &KeyPath, limits: &RhaiLimits) -> Result<(), Fault> {
    // Nested ones take stack: the thread of a script has 1 KiB for each.
    const ELEMENTS_MAX: usize = 1_000_000;
    // TOML has no larger numbers.
    number(table.then("operations"), limits.operations, 0..=i64::MAX.unsigned_abs())?;
    // Calls nest on the thread's own stack, which bounds them.
    number(table.then("depth"), limits.depth, 1..=512)?;
    size(table.then("string_size_max"), limits.string_size_max, 1..=1 << 30)?;
    number(table.then("array_len_max"), limits.array_len_max, 1..=ELEMENTS_MAX)?;
    number(table.then("map_len_max"), limits.map_len_max, 1..=ELEMENTS_MAX)?;
    size(table.then("memory"), limits.memory, 16 << 20..=1 << 40)
}

fn duration(key: KeyPath, value: Duration, legal: RangeInclusive<Duration>) -> Result<(), Fault> {
    within(key, value, legal, format_duration)
}

fn size(key: KeyPath, value: u64, legal: RangeInclusive<u64>) -> Result<(), Fault> {
    within(key, value, legal, format_size)
}

fn number<N>(key: KeyPath, value: N, legal: RangeInclusive<N>) -> Result<(), Fault>
where
    N: PartialOrd + Copy + ToString,
{
    within(key, value, legal, |value| value.to_string())
}

fn within<V: PartialOrd + Copy>(
    key: KeyPath,
    value: V,
    legal: RangeInclusive<V>,
    show: impl Fn(V) -> String,
) -> Result<(), Fault> {
    if legal.contains(&value) {
        return Ok(());
    }
    let (least, most) = (show(*legal.start()), show(*legal.end()));
    Err(Fault::new(key, format!("must be from {least} to {most}, not {}", show(value))))
}

fn not_above(
    key: KeyPath,
    value: Duration,
    key_max: KeyPath,
    value_max: Duration,
) -> Result<(), Fault> {
    if value <= value_max {
        return Ok(());
    }
    let message = format!(
        "must be at most {key_max} ({}), not {}",
        format_duration(value_max),
        format_duration(value)
    );
    Err(Fault::new(key, message).or(key_max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_needs_a_bound_and_zero_is_rejected() {
        let none = "to hold jobs back altogether, pause their queues";
        for (text, message) in [
            (
                "running = 0",
                format!("2:11: limit.x.running must be from 1 to 10000, not 0; {none}"),
            ),
            ("rate = \"0/s\"", format!("2:8: limit.x.rate must be from 1 to 10000, not 0; {none}")),
            ("rate = \"5/2d\"", "2:8: limit.x.rate must be from 1ms to 1d, not 2d".to_owned()),
            (
                "per = \"caller\"",
                "1:1: limit.x needs running, such as 4, or rate, such as \"10/s\"".to_owned(),
            ),
            (
                "type = \"pyton\"\nrunning = 1",
                "2:8: limit.x.type must be a configured script type: bash, heroscript, node, osis, python, \
                 sal, v"
                    .to_owned(),
            ),
        ] {
            let text = format!("[limit.x]\n{text}");
            assert_eq!(refusal(&text), format!("hero.toml:{message}"), "{text}");
        }
        for text in ["[limit.X]\nrunning = 1", "[limit.x]\nper = \"job\"", "[limit.x]\nrate = 5"] {
            assert!(Config::from_toml("hero.toml".as_ref(), text).is_err(), "{text}");
        }
        let legal = "[limit.x]\nper = \"key\"\nrunning = 10000\nrate = \"1/d\"";
        assert!(Config::from_toml("hero.toml".as_ref(), legal).is_ok());
    }

    fn refusal(text: &str) -> String {
        Config::from_toml("hero.toml".as_ref(), text).expect_err(text).to_string()
    }

    #[test]
    fn the_defaults_are_legal() {
        assert_eq!(check(&Config::default()), Ok(()));
    }

    #[test]
    fn values_out_of_range_are_rejected_with_their_place() {
        for (text, message) in [
            ("[actor]\ntasks = 0", "2:9: actor.tasks must be from 1 to 1024, not 0"),
            ("[actor]\n\ntasks = 1025", "3:9: actor.tasks must be from 1 to 1024, not 1025"),
            ("actor.lease = \"2d\"", "1:15: actor.lease must be from 30ms to 1d, not 2d"),
            ("job = { timeout = \"0s\" }", "1:19: job.timeout must be from 1ms to 3650d, not 0s"),
            (
                "[job]\nretention_max = \"1h\"",
                "2:17: job.retention must be at most job.retention_max (1h), not 1d",
            ),
            ("[job]\nretention = \"0s\"", "2:13: job.retention must be from 1s to 3650d, not 0s"),
            ("[job]\ncrash_limit = 0", "2:15: job.crash_limit must be from 1 to 1000, not 0"),
            (
                "[job]\nscript_size_max = \"1GiB\"",
                "2:19: job.script_size_max must be from 1B to 512MiB, not 1GiB",
            ),
            (
                "[job]\ninputs_size_max = \"0B\"",
                "2:19: job.inputs_size_max must be from 1B to 512MiB, not 0B",
            ),
            ("[job]\nlog_dir = \"logs\"", "2:11: job.log_dir must be an absolute path without .."),
            (
                "[job]\nlog_dir = \"/a/../b\"",
                "2:11: job.log_dir must be an absolute path without ..",
            ),
            (
                "[type.osis.limits]\ndepth = 0",
                "2:9: type.osis.limits.depth must be from 1 to 512, not 0",
            ),
            (
                "[supervisor]\nsweep_interval = \"0s\"",
                "2:18: supervisor.sweep_interval must be from 10ms to 1h, not 0s",
            ),
            (
                "[redis]\nnamespace = \"a:b\"",
                "2:13: redis.namespace: must be 1 to 64 of A-Z, a-z, 0-9, _, . and -, or the same \
                 in braces for Redis Cluster",
            ),
            (
                "[redis]\nurl = \"redis+cluster://a\"\nnamespace = \"prod\"",
                "3:13: redis.namespace must be in braces with a redis+cluster url, so that one node \
                 has all keys: write namespace = \"{prod}\"",
            ),
            (
                "[redis]\nurl = \"redis+cluster://a\"",
                "2:7: redis.namespace must be in braces with a redis+cluster url, so that one node \
                 has all keys: write namespace = \"{hero}\"",
            ),
            (
                "[redis]\nurl = \"redis+cluster://a/1\"",
                "2:7: redis.url names a database, but a cluster has only one: the form is \
                 redis+cluster://HOST:PORT,HOST:PORT/",
            ),
            (
                "[redis]\npassword_file = \"secret\"",
                "2:17: redis.password_file must be an absolute path",
            ),
        ] {
            assert_eq!(refusal(text), format!("hero.toml:{message}"), "{text}");
        }
    }

    #[test]
    fn contradictions_point_at_the_key_that_the_file_sets() {
        for (text, message) in [
            (
                "[actor]\nheartbeat = \"8s\"",
                "2:13: actor.heartbeat must be less than half of actor.lease (15s), not 8s",
            ),
            (
                "[actor]\nlease = \"10s\"",
                "2:9: actor.heartbeat must be less than half of actor.lease (10s), not 5s",
            ),
            (
                "[job]\ntimeout_max = \"10s\"",
                "2:15: job.timeout must be at most job.timeout_max (10s), not 1m",
            ),
            (
                "[job]\nretry_backoff = \"1h\"",
                "2:17: job.retry_backoff must be at most job.retry_backoff_max (15m), not 1h",
            ),
        ] {
            assert_eq!(refusal(text), format!("hero.toml:{message}"), "{text}");
        }
    }

    #[test]
    fn commands_need_a_program_and_the_script() {
        let program = "must begin with a program, such as [\"/bin/bash\", \"{script}\"]";
        let script = "must have {script} somewhere: it stands for the script's file";
        let ending = "must be a dot and 1 to 15 letters or digits, such as \".py\"";
        for (keys, message) in [
            ("command = []", format!("3:11: type.x.command {program}")),
            ("command = [\"\", \"{script}\"]", format!("3:11: type.x.command {program}")),
            ("command = [\"x\"]", format!("3:11: type.x.command {script}")),
            (
                "command = [\"{script}\"]\nextension = \"../x\"",
                format!("4:13: type.x.extension {ending}"),
            ),
        ] {
            let text = format!("[type.x]\nengine = \"command\"\n{keys}");
            assert_eq!(refusal(&text), format!("hero.toml:{message}"), "{text}");
        }
    }

    #[test]
    fn legacy_names_are_checked_with_their_place() {
        let queue = |legacy: &str| format!("{{ legacy = \"{legacy}\", type = \"osis\" }}");
        let queues = |list: &str| format!("[supervisor]\nlegacy_queues = [{list}]");
        let w1 = queue("hero:work_queue:w1");
        assert!(Config::from_toml("hero.toml".as_ref(), &queues(&w1)).is_ok());
        let circles = |list: &str| format!("[supervisor]\nrhailib_circles = [{list}]");
        let main = "{ circle = \"main\", type = \"osis\" }";
        assert!(Config::from_toml("hero.toml".as_ref(), &circles(main)).is_ok());
        for (text, message) in [
            (
                queues(&queue("hero:work_queue:a b")),
                "2:17: supervisor.legacy_queues has `hero:work",
            ),
            (queues(&queue("hero:q:work:type:osis")), "2:17: supervisor.legacy_queues has `hero:q"),
            (
                queues(&format!("{w1}, {w1}")),
                "2:17: supervisor.legacy_queues has `hero:work_queue:w1` twice",
            ),
            (circles("{ circle = \"a b\", type = \"osis\" }"), "circle `a b` is not legal"),
            (
                circles(&format!("{main}, {main}")),
                "2:19: supervisor.rhailib_circles has `main` twice",
            ),
            ("supervisor.migration = \"dual\"".to_owned(), "1:24: supervisor.migration must be"),
        ] {
            let said = refusal(&text);
            assert!(said.contains(message), "{text}: {said}");
        }
    }

    #[test]
    fn a_key_of_tls_is_rejected_without_tls() {
        let text = "[redis]\ntls_ca_file = \"/ca.pem\"";
        let message = "redis.tls_ca_file is for TLS, but redis.url does not begin with rediss";
        assert_eq!(refusal(text), format!("hero.toml:2:15: {message}"));
    }
}

"""The types and methods of Hero's API. Written by tools/api_types.py from docs/openrpc.json: do not edit.

Client.api is a Methods, AsyncClient.api an AsyncMethods: one method for each of the API, `job.get` as `job_get`.
"""

# ruff: noqa: A002, E501
from __future__ import annotations

from typing import Any, Awaitable, Callable, Dict, List, Literal, Mapping, Optional, TypedDict, Union

class _ActorDocumentRequired(TypedDict):
    actor: str
    """Its name, TYPE:GROUP:INSTANCE."""
    script_type: str
    """The script type of its jobs."""
    group: str
    """Its group."""
    instance: int
    """Its instance."""
    pid: int
    """Its process id."""
    hostname: str
    """The name of its machine."""
    started_at: str
    """The start of the actor: RFC 3339, UTC."""
    version: str
    """Its version of Hero."""
    capabilities: List[str]
    """Its engine and the modules of it."""
    last_heartbeat: str
    """The time of this presence: RFC 3339, UTC."""
    tasks: int
    """The number of jobs that it can run at once."""
    running: int
    """The number of jobs that it runs now."""
    state: ActorState
    """Its state."""


class ActorDocument(_ActorDocumentRequired, total=False):
    """A live actor."""
    pid_since: Optional[int]
    """When its process started, in the kernel's ticks since the boot of its machine: another process may get its id
    later."""
    machine: str
    """The id of its machine's current boot, which tells machines of one name apart; empty in the presence of
    foreign programs."""
    boot_id: Optional[str]
    """The boot of the actor; none in the presence of foreign programs."""
    beat: str
    """A random text of this heartbeat: it tells the presence of a process from the presence of its copy on a cloned
    machine; empty in the presence of foreign programs."""
    holding: Optional[str]
    """The overload of its machine: it claims no jobs because of it, though it is ready."""
    oom_kills: Optional[int]
    """The processes that the kernel of its machine has killed for lack of memory since the machine started; absent
    where the kernel does not report it."""
    after_oom_kill: Optional[str]
    """When it took the name over from a process that was killed for lack of memory: RFC 3339, UTC."""
    labels: Dict[str, Any]
    """Its labels, which `where` of jobs asks for; empty in the presence of foreign programs and older versions."""
    folders_left: int
    """The folders of jobs that its process could not remove."""
    load_hundredths: Optional[int]
    """The load of its machine over the last minute, in hundredths; absent where the kernel does not report it."""
    memory_available: Optional[int]
    """The memory of its machine that is available, in bytes; absent where the kernel does not report it."""
    settings: str
    """The digest of its settings in force, as `hero check` computes it from the files; empty in the presence of
    foreign programs and older versions."""
    settings_at: str
    """When it read them: RFC 3339, UTC; empty as the digest is."""


class ActorsOfType(TypedDict):
    """The live actors of a script type."""
    script_type: str
    """The script type."""
    live: int
    ready: int
    """The number that is not draining."""
    draining: int
    holding: int
    """Ready, but they claim no jobs, as their machine is overloaded or full."""
    running: int
    tasks: int


class AuditList(TypedDict):
    """Changes."""
    records: List[AuditRecord]
    """The changes, the newest first."""


AuditRecord = TypedDict("AuditRecord", {'at': 'str', 'who': 'str', 'what': 'str', 'to': 'str', 'from': 'str', 'through': 'str'}, total=False)


class Backfilled(TypedDict):
    """The firings of a period."""
    firings: List[BackfilledFiring]
    """The firings, in their order."""


class BackfilledFiring(TypedDict):
    """One firing of a backfill."""
    due: str
    """The due time, in RFC 3339."""
    outcome: Literal['submitted', 'fired', 'exists', 'left_out']
    """Its outcome: submitted; fired, if it fired at its time and that is left out; exists, if it was backfilled
    before; `left_out`, if another job holds its unique key."""
    job_id: str
    """Its job or graph, or the job for which it is left out."""


class BatchJob(TypedDict, total=False):
    """The settings of a job, and its files."""
    id: str
    """The id; a random UUID without one."""
    script: str
    """The text to run."""
    uses: str
    """A published script, NAME or NAME@VERSION, that gives the text and the settings that the job leaves open: hero
    script list."""
    script_digest: str
    """The SHA-256 that the text of the published script must have: another one is rejected; Hero sets it."""
    name: str
    """A name for lists and searches, by default of the submitted file; several jobs may have the same."""
    tags: List[str]
    """A word for lists and searches: letters, digits and _ - . : / =, at most 8 of 64 characters."""
    caller_id: str
    """The name of the submitter."""
    context_id: str
    """The name of the set of objects that a script of osis works on; other scripts find it in the variable
    `HERO_CONTEXT_ID`."""
    script_type: str
    """The script type; without it the file's extension tells: .rhai osis, .py python, .sh bash, .js node, .v and
    .vsh v, .hero heroscript, or as the configuration says."""
    extension: str
    """The extension of the script's file, one of its type's, such as .mjs; by default the extension of the
    submitted file, or the type's first."""
    group: str
    """The group of actors that may run it; any group without one."""
    instance: int
    """The one instance that may run it, of the group `default` unless another is given."""
    where: str
    """The actors that may run it, by their labels: an expression such as `role = "web" and release >= 12`, of
    comparisons, `in (…)`, `and`, `or`, `not` and parentheses; not beside a group or an instance, which are labels
    too."""
    fallback: Literal['type', 'group', 'none']
    """The actors that may run it if no actor of its instance or group is alive: none (the default unless its type
    has another), group (any actor of the group) or type (any actor of the script type)."""
    priority: int
    """The priority: 0 urgent, 1 normal (the default), 2 background."""
    timeout: float
    """The timeout of one attempt, such as 30s; by default `job.timeout`, 1m; in seconds."""
    retries: int
    """The number of attempts after the first; by default `job.retries`, 0."""
    backoff: str
    """The waits before retries: 10s..5m doubles from the first to the longest, 10s stays the same; by default
    1s..15m (`job.retry_backoff`). Each wait varies by a fifth."""
    retry_if: str
    """The exit codes that are retried, such as 1,64-78: after any other, the job fails at once; by default all. A
    job that names 75 and ends with it is postponed: it loses no attempt, until `job.postponed_max` (24h) after its
    first one."""
    discard_if: str
    """The exit codes that are never retried, such as 65: after one of them the job fails at once. By default none;
    a script says the same with `hero.discard`."""
    memory: str
    """The memory limit of each process of the script, such as 512MiB, and without --job-memory of the job as a
    whole; its type sets the upper bound."""
    job_memory: str
    """The memory limit of the job as a whole, all its processes together, such as 2GiB; its type sets the upper
    bound. Its machine needs control groups, else the job's log says that nothing holds it."""
    cpu: float
    """The limit of processor time of each process of the script, such as 30s; its type sets the upper bound; in
    seconds."""
    network: str
    """The network of the script: none, all, or TCP ports of any host such as 443,53, where 53 looks up names;
    rejected unless `ports_max` or `network_max` of its type's sandbox allows it."""
    concurrent: bool
    """Runs beside other jobs of its instance."""
    log_path: str
    """The file for its log, inside `job.log_dir` of the actor's machine."""
    env_vars: Dict[str, str]
    """An environment variable of the script."""
    args: List[str]
    """The arguments of a script that is a process; in Rhai the array `args`."""
    params: Dict[str, Any]
    """The parameters of the script: a JSON object, in Rhai the map `params`, elsewhere in the variable
    `HERO_PARAMS`."""
    secrets: List[str]
    """A secret of the actor's machine, a file of its `secrets.dir`, /etc/hero/secrets, that `[secrets.allow]` of
    hero.toml gives its type: NAME in the variable NAME, VARIABLE=NAME, or `file:NAME` in the folder
    `HERO_SECRET_DIR`; the job holds the name alone."""
    prerequisites: List[str]
    """A job that must finish before this one starts."""
    after_any: List[str]
    """A job that must end, finished or failed, before this one starts."""
    may_fail: bool
    """Counts its failure for nothing in its graph or atomic batch, whose jobs after it run then as well."""
    prerequisite_names: Dict[str, str]
    """The names of prerequisites in the script, beside their ids."""
    run_at: str
    """The earliest time to start: RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00."""
    expires: float
    """The time after its submission, or after `run_at`, within which it must start, such as 2h: if its actor takes
    it later, it ends as expired without having run; in seconds."""
    unique_key: str
    """The key that deduplicates: while a job with this key has not ended, submitting another gives its id and
    creates nothing."""
    unique_for: float
    """The time from its submission until a finished job gives its unique key back; in seconds."""
    unique_by: Literal['key', 'script', 'params']
    """The properties that make two jobs duplicates: key (the unique key, the default), script (script, type, group,
    arguments, parameters, variables) or params (type, group, name, parameters)."""
    on_duplicate: Literal['return', 'replace', 'reject']
    """The action if another job holds its unique key: return (its id, the default), replace (that job, if it has
    not started) or reject (this job)."""
    debounce: float
    """Waits for this time, such as 2s, and takes the place of a job with its unique key that has not started: of
    jobs that come in quick succession the last one runs; in seconds."""
    debounce_max: float
    """The longest time from the first of the jobs that replaced each other until one of them runs, such as 1m; in
    seconds."""
    limit_key: str
    """A word, such as the name of a customer: a limit of the configuration with `per = "key"` counts the jobs of
    each word apart."""
    shard_key: str
    """A word, such as the name of a customer, whose jobs are on the same shard, so that they can wait for each
    other; no effect with one shard."""
    traceparent: str
    """Its place in a trace, a `traceparent` of W3C's trace context, 00-TRACE-SPAN-FLAGS; on the command line by
    default the environment variable `TRACEPARENT`. The script gets it in this variable."""
    retention: float
    """The retention of the ended job, such as 7d; by default `job.retention`, 24h, and 7d if it failed; in
    seconds."""
    output_overflow: Literal['truncate', 'fail']
    """The action for an output over `job.output_size_max`: truncate (keep its end) or fail (the job)."""
    notify: List[str]
    """A notification of the configuration, a table `[notify.NAME]` of hero.toml, that tells of this job also if its
    filters exclude it."""
    expect_within: float
    """The time after its submission, or after `run_at`, within which it is expected to end, such as 2h: a job that
    takes longer is marked as late, told to notifications, and runs on; in seconds."""
    slow_after: float
    """The time of an attempt, such as 10m, after which it is marked as slow, told to notifications, and runs on; in
    seconds."""
    durable: bool
    """Confirms the submission, and pushes the reply at the end, only once Redis has synchronised them with its
    disk, or its replicas have them (`redis.ack`)."""
    signature: str
    """Its signature, KEY TIME SIGNATURE: the name of the key, the time until which it may start, and 64 bytes in
    Base64, where `require_signature` of its type asks for one. It signs the id too."""
    reply: bool
    """Pushes a reply when the job ends."""
    reply_format: Literal['json', 'plain']
    """The format of the reply that a program reads from Redis: json (the default), or plain, the bare output or
    error."""
    caller: str
    """Another name of caller_id."""
    context: str
    """Another name of context_id."""
    after: List[str]
    """Another name of prerequisites."""
    delay: str
    """The time from its submission until it may start, such as 10m; not beside run_at."""
    inputs: Dict[str, str]
    """Files for its script, in Base64, by their names."""
    stdin: str
    """The standard input of its script, in Base64."""


class _BrokerPresenceRequired(TypedDict):
    unit: str
    host: str
    pid: int
    dispatchers: int
    """The dispatchers that it should have, and those that consume."""
    consuming: int
    """See `dispatchers`."""
    in_work: int
    """The messages that are being served."""
    messages: Dict[str, Dict[str, int]]
    """The messages since its start, by routing key and end: `job`, `done`, `retried`, `dead`."""
    answers: int
    """Answers that were published, and those that were dropped."""
    answers_dropped: int
    """See `answers`."""
    spooled: int
    """Log events that wait in its spool."""
    log_events_lost: int
    """Log events that are neither published nor kept."""
    dead_letters: Dict[str, int]
    """The dead letters in RabbitMQ, by the queue that has them, of the queues that it consumes."""
    outages: Dict[str, int]
    """The seconds since RabbitMQ, Redis or MariaDB went away, by name."""
    at_us: int
    """When this was noted, in microseconds of Redis's clock."""
    seen_ago_s: int
    """The seconds since then."""
    is_alive: bool
    """False if its heartbeat is late."""


class BrokerPresence(_BrokerPresenceRequired, total=False):
    """The state of one process with the role `broker`."""
    node: Optional[str]
    """The node of the matrix whose brokers it runs."""
    lost_ago_s: Optional[int]
    """The seconds since the last of these was lost."""


class CallbackJob(TypedDict):
    """The job of a callback."""
    callback: str
    """The callback: `on_success`, `on_failure` or `on_end`."""
    id: str
    """The id of the job."""
    status: str
    """Its state."""


class ChangedPeriodicJob(TypedDict):
    """A periodic job that was added, changed or deleted."""
    name: str
    """Its name."""


class _CheckReasonRequired(TypedDict):
    state: CheckState
    """The state that it causes."""
    reason: str
    """One sentence."""


class CheckReason(_CheckReasonRequired, total=False):
    """A reason for a state other than `ok`: a problem, or why there is nothing to judge."""
    kind: Optional[str]
    """The kind of the problem."""
    subject: Optional[str]
    """The part of the system that has it."""
    remedy: Optional[str]
    """The remedy, a line or more."""


class CheckVerdict(TypedDict):
    """The verdict with its reasons, the worst first."""
    state: CheckState
    """The worst state of its reasons."""
    reasons: List[CheckReason]
    """Its reasons; none for `ok`."""
    summary: str
    """One line for `ok`."""
    figures: str
    """The figures of monitoring plugins, with the thresholds of `[check]`."""


class ClockStep(TypedDict):
    """A step of Redis's clock against the time since a supervisor's machine started."""
    at: str
    """When it was noticed, by Redis's clock after it: RFC 3339, UTC."""
    seconds: int
    """By how much the clock was set forward, in seconds; negative if it was set back."""


class _ClonedJobRequired(TypedDict):
    id: str
    """The id of the copy."""


class ClonedJob(_ClonedJobRequired, total=False):
    """A copy of a job."""
    job: Optional[Job]
    """With `dry_run`: the copy as it would be submitted."""


class ConfiguredNotification(TypedDict):
    """A notification of the configuration."""
    name: str
    """Its name, `[notify.NAME]`."""
    ways: List[str]
    """The ways by which it tells: `webhook`, `mail`, `command`, `journal`."""
    on: List[str]
    """The events that it tells, such as `failed`, `held` or `cron_late`."""


class ConfiguredWebhook(TypedDict):
    """A webhook of the configuration."""
    name: str
    """Its name, `[hook.NAME]`."""
    path: str
    """Its path at the addresses of the API."""
    verify: str
    """The proof of its sender: `github`, `gitlab`, `stripe`, `slack`, `hmac-sha256` or `path`."""
    uses: str
    """The published script that it submits."""


class _CronInForceRequired(TypedDict):
    changed: List[str]
    """The files whose periodic jobs have changed since the supervisor read them; at most five."""
    refused: List[str]
    """The mistakes that keep periodic jobs out of force; at most five."""


class CronInForce(_CronInForceRequired, total=False):
    """The periodic jobs of files that a supervisor fires."""
    jobs: Optional[Dict[str, str]]
    """The digest of each periodic job, by its name; absent if the names are too long for a presence."""
    unheard: List[str]
    """The periodic jobs that name a notification which the supervisor's configuration does not have, also jobs in
    Redis; at most five."""
    unknown: List[str]
    """The notifications whose `crons` name periodic jobs that there are not, neither in files nor in Redis; at most
    five."""


class Deleted(TypedDict):
    """A number of deleted things."""
    deleted: int
    """The number of those that were deleted."""


class DeletedScript(TypedDict):
    """A script that was deleted."""
    name: str
    """Its name."""


class DeliveryList(TypedDict):
    """The notifications and their latest deliveries."""
    configured: List[ConfiguredNotification]
    """The notifications that are configured here."""
    held: List[HeldMessage]
    """Messages that are held until the `every` of a notification has passed."""
    deliveries: List[DeliveryRecord]
    """The ends of deliveries, the newest first."""
    failing: List[DeliveryRecord]
    """The latest attempt of each notification whose latest attempt failed."""


class _DeliveryRecordRequired(TypedDict):
    at: str
    """The time, RFC 3339."""
    notification: str
    """The notification."""
    id: str
    """The id of the message, the same in each attempt."""
    state: str
    """The state: `delivered`, `retrying` or `failed`."""
    title: str
    """The title of the message."""
    attempts: int
    """The attempts."""


class DeliveryRecord(_DeliveryRecordRequired, total=False):
    """The end of a delivery, or its latest attempt."""
    error: str
    """The reason for which the last attempt failed."""


class DependentsPage(TypedDict):
    """A page of dependents."""
    dependents: List[str]
    """Their ids."""
    next: Optional[int]
    """The `cursor` of the next page; null at the end."""


class Documented(TypedDict):
    """Functions of scripts."""
    functions: List[FunctionDocument]
    """The functions."""


class Drained(TypedDict):
    """Paused queues with running jobs."""
    paused: List[str]
    """The queues or the rule that were not paused before."""
    running: int
    """The number of jobs of the queues that run."""


class EditedValues(TypedDict, total=False):
    """New values of jobs. Omitted values stay as they are."""
    priority: Optional[int]
    """The priority: 0 urgent, 1 normal, 2 background."""
    group: Optional[str]
    """The group that may run them; empty for any group. A job for one instance is then for none."""
    run_at: Optional[str]
    """The earliest time to start."""
    changes: Dict[str, Any]
    """Further settings: members as in a job to submit, such as a corrected `script`; null removes one."""


class ErrorGroupDocument(TypedDict):
    """Failures of one kind."""
    kind: str
    """The error without numbers, ids, paths and quoted texts."""
    jobs: int
    """The number of jobs."""
    cancelled: bool
    """True if these jobs were stopped or replaced."""
    types: Dict[str, int]
    """The script types of the jobs, each with their number."""
    last_job: str
    """The latest of the jobs."""
    last_error: str
    """The error of that job, cut."""
    last_at: Optional[str]
    """The end of that job, in RFC 3339."""


class ErrorGroupsDocument(TypedDict):
    """Failures, by the kind of their error."""
    groups: List[ErrorGroupDocument]
    """The kinds, the most frequent first."""
    kinds: int
    """The number of all kinds that were found: `groups` has the first of them."""
    jobs: int
    """The number of jobs of all kinds."""
    searched: int
    """The number of failed jobs that were searched, the latest."""
    complete: bool
    """True if all failed jobs were searched that can match."""


class _FileContentRequired(TypedDict):
    name: str
    """The name of the file."""
    size: int
    """Its size in bytes."""


class FileContent(_FileContentRequired, total=False):
    """The content of a file, or where to get it."""
    content: Optional[str]
    """The content in Base64, of a file of up to 1 MiB."""
    path: Optional[str]
    """The path of a larger file below the address of the API: GET it, whole or by ranges."""


class _FindingDocumentRequired(TypedDict):
    line: int
    """The line, from 1; 0 if the program that checks the script names none."""
    column: int
    """The column, from 1; 0 if it is not known, and then the message has the place too."""
    message: str
    """The mistake."""


class FindingDocument(_FindingDocumentRequired, total=False):
    """A mistake in a script."""
    file: Optional[str]
    """The file of an imported module that has it; absent for the script itself."""


class Findings(TypedDict):
    """The mistakes of a script."""
    errors: List[FindingDocument]
    """The mistakes; none if the script is good."""


class FiringDocument(TypedDict):
    """One firing of a periodic job."""
    due: str
    """The due time, in RFC 3339."""
    fired_at: str
    """The time at which a supervisor fired it, in RFC 3339."""
    late_s: float
    """The seconds from one to the other."""
    outcome: Literal['fired', 'left_out', 'failed', 'missed']
    """Its outcome: fired, `left_out`, failed or missed."""
    job_id: Optional[str]
    """Its job; for one that was left out, the job that had not ended."""
    status: Optional[str]
    """The state of that job, batch or graph, if it is still kept."""
    why: Optional[str]
    """The reason for which it was left out (overlap or `unique_key`), failed or was missed; the job that it
    replaced; `run now` or `backfill` beside its schedule; the machines without a job, as they were absent."""
    batch_id: Optional[str]
    """Its batch or graph, in place of a job."""


class FiringList(TypedDict):
    """Firings of a periodic job."""
    firings: List[FiringDocument]
    """The firings, the newest first."""


class FleetMemberDocument(TypedDict):
    """A machine or actor of a job for every one."""
    machine: str
    """The name of the machine."""
    host: str
    """Its host name."""
    actor: Optional[str]
    """The actor, of a job for every actor."""
    id: Optional[str]
    """Its job; null if it is absent and the job has no `expires`, or was rejected."""
    seen_at: str
    """When an actor of the machine was seen last: RFC 3339, UTC."""
    live: bool
    """True if it is live."""
    drains: bool
    """True if it is live and drains: its job waits until it is resumed."""


class ForgottenMachine(TypedDict):
    """A forgotten machine."""
    forgotten: str
    """Its name."""
    host: str
    """Its host name."""
    actors: List[str]
    """The actors that were forgotten: those that are not live."""
    live: bool
    """True if others of it are live, so that it stays."""


class FunctionDocument(TypedDict):
    """A function of scripts."""
    name: str
    """Its name, after its type if it has one."""
    group: str
    """The group of its documentation."""
    signatures: List[str]
    """Its signatures."""
    says: str
    """Its summary."""
    example: str
    """An example."""


class GraphChange(TypedDict):
    """The result of an operation on the jobs of a graph or batch."""
    done: int
    """The jobs that were retried, stopped or deleted."""
    told: int
    """Running jobs whose actors were told to stop them."""
    problems: List[GraphProblem]
    """The jobs that stay as they are, at most 100, and the reason."""
    left: int
    """The number of jobs that stay as they are."""


class _GraphDocumentRequired(TypedDict):
    id: str
    """Its id."""
    kind: GraphKind
    """The kind of its submission."""
    state: GraphState
    """Its state: `running` until all jobs have ended, then `finished`, `failed` if a job failed, else `cancelled`
    if a job was stopped."""
    jobs: int
    """The number of its jobs."""
    finished: int
    """Jobs that finished, or failed and may fail."""
    failed: int
    """Jobs that failed."""
    cancelled: int
    """Jobs that were stopped, or deleted before their end."""
    waiting: int
    """Jobs that have not ended."""
    caller_id: str
    """The name of its submitter, from its first job."""
    created_at: str
    """The time of its submission, in RFC 3339."""
    paused: bool
    """True while these jobs have started and no other starts."""


class GraphDocument(_GraphDocumentRequired, total=False):
    """A graph or batch."""
    name: Optional[str]
    """Its name."""
    ended_at: Optional[str]
    """The time when its last job ended."""
    callbacks: Dict[str, str]
    """The callbacks that were started at its last end: `on_success`, `on_failure`, `on_end`, each with the id of
    its job."""
    callback_jobs: List[CallbackJob]
    """The jobs of these callbacks with their states, where one graph or batch is asked for; without a job that was
    deleted or has expired."""
    at_a_time: Optional[int]
    """The number of its jobs that run at once, if it has a bound."""
    stop_after: Optional[Union[int, str]]
    """The failures after which its other jobs are stopped: a number, or a share of all jobs such as `5%`."""
    stopped: Optional[str]
    """The error of its jobs that did not start, once it was stopped after failures."""
    pause_after: Optional[str]
    """The number of its jobs that start before the others, and the length of the pause of the others, such as `1
    10m`, or `1 tell`."""
    goes_on_at: Optional[str]
    """When the others start, or started: RFC 3339. Without it, once its first jobs have ended well and the pause is
    over, or it is told to go on."""
    every: Optional[Every]
    """`machine` or `actor` if its jobs are copies of one job for every one of them."""


class _GraphJobToSubmitRequired(TypedDict):
    name: str
    """Its name, unique in the graph."""
    job: JobSettings
    """The job."""


class GraphJobToSubmit(_GraphJobToSubmitRequired, total=False):
    """A job of a graph."""
    after: List[str]
    """The jobs that must finish first: names in the graph, or ids of other jobs."""
    after_any: List[str]
    """The jobs that must end first, finished or failed."""
    inputs: Dict[str, str]
    """Files for its script, in Base64, by their names."""
    stdin: Optional[str]
    """The standard input of its script, in Base64."""


class GraphProblem(TypedDict):
    """A job of a graph or batch that stays as it is."""
    id: str
    """The id of the job."""
    problem: str
    """The reason."""


class _GraphToSubmitRequired(TypedDict):
    jobs: List[GraphJobToSubmit]
    """The jobs."""


class GraphToSubmit(_GraphToSubmitRequired, total=False):
    """The jobs of a graph."""
    name: Optional[str]
    """A name for lists and searches."""
    id: Optional[str]
    """The id of the graph; a random UUID without one."""
    on_success: Optional[JobSettings]
    """The job that starts once all jobs have finished. It gets the id, name, state and counts of the graph as
    variables, `HERO_GRAPH_ID` and so on."""
    on_failure: Optional[JobSettings]
    """The job that starts once all jobs have ended, and not all finished."""
    on_end: Optional[JobSettings]
    """The job that starts once all jobs have ended."""
    notify: List[str]
    """The notifications that tell of its end, by one message with the numbers of its jobs."""
    at_a_time: Optional[int]
    """The number of its jobs that run at once; no bound without it."""
    stop_after: Optional[Union[int, str]]
    """The failures that stop its jobs that have not started: a number, or a share of all jobs such as `5%`; no
    bound without it."""
    pause_after: Optional[str]
    """The number of its jobs, up to 100, that start before the others, and how long these pause once the first have
    ended well, up to 30d, such as `1 10m`; `1 tell` pauses until `graph.tell`. No pause without it."""


class HeldMessage(TypedDict):
    """A message that gathers events until it may be sent."""
    notification: str
    """The notification."""
    events: int
    """The number of events that it tells so far."""
    due: str
    """The time when it is sent, RFC 3339."""


class Id(TypedDict):
    """The id of a job."""
    id: str
    """The id of the job."""


class Info(TypedDict):
    """The program that answers."""
    version: str
    """The version of Hero."""
    redis: str
    """The address of Redis, without a password."""
    namespace: str
    """The prefix of all keys."""
    types: List[str]
    """The script types that the caller may use."""
    not_sandboxed: List[str]
    """The types among them whose scripts are not sandboxed."""


class _JobRequired(TypedDict):
    id: str
    """The id; a random UUID without one."""
    script: str
    """The text to run."""
    priority: int
    """The priority: 0 urgent, 1 normal (the default), 2 background."""
    status: JobStatus


class Job(_JobRequired, total=False):
    """A job. A field that it does not have is left out."""
    uses: str
    """A published script, NAME or NAME@VERSION, that gives the text and the settings that the job leaves open: hero
    script list."""
    script_digest: str
    """The SHA-256 that the text of the published script must have: another one is rejected; Hero sets it."""
    name: str
    """A name for lists and searches, by default of the submitted file; several jobs may have the same."""
    tags: List[str]
    """A word for lists and searches: letters, digits and _ - . : / =, at most 8 of 64 characters."""
    caller_id: str
    """The name of the submitter."""
    context_id: str
    """The name of the set of objects that a script of osis works on; other scripts find it in the variable
    `HERO_CONTEXT_ID`."""
    script_type: str
    """The script type; without it the file's extension tells: .rhai osis, .py python, .sh bash, .js node, .v and
    .vsh v, .hero heroscript, or as the configuration says."""
    extension: str
    """The extension of the script's file, one of its type's, such as .mjs; by default the extension of the
    submitted file, or the type's first."""
    group: str
    """The group of actors that may run it; any group without one."""
    instance: int
    """The one instance that may run it, of the group `default` unless another is given."""
    where: str
    """The actors that may run it, by their labels: an expression such as `role = "web" and release >= 12`, of
    comparisons, `in (…)`, `and`, `or`, `not` and parentheses; not beside a group or an instance, which are labels
    too."""
    fallback: Literal['type', 'group', 'none']
    """The actors that may run it if no actor of its instance or group is alive: none (the default unless its type
    has another), group (any actor of the group) or type (any actor of the script type)."""
    timeout: float
    """The timeout of one attempt, such as 30s; by default `job.timeout`, 1m; in seconds."""
    retries: int
    """The number of attempts after the first; by default `job.retries`, 0."""
    backoff: str
    """The waits before retries: 10s..5m doubles from the first to the longest, 10s stays the same; by default
    1s..15m (`job.retry_backoff`). Each wait varies by a fifth."""
    retry_if: str
    """The exit codes that are retried, such as 1,64-78: after any other, the job fails at once; by default all. A
    job that names 75 and ends with it is postponed: it loses no attempt, until `job.postponed_max` (24h) after its
    first one."""
    discard_if: str
    """The exit codes that are never retried, such as 65: after one of them the job fails at once. By default none;
    a script says the same with `hero.discard`."""
    memory: str
    """The memory limit of each process of the script, such as 512MiB, and without --job-memory of the job as a
    whole; its type sets the upper bound."""
    job_memory: str
    """The memory limit of the job as a whole, all its processes together, such as 2GiB; its type sets the upper
    bound. Its machine needs control groups, else the job's log says that nothing holds it."""
    cpu: float
    """The limit of processor time of each process of the script, such as 30s; its type sets the upper bound; in
    seconds."""
    network: str
    """The network of the script: none, all, or TCP ports of any host such as 443,53, where 53 looks up names;
    rejected unless `ports_max` or `network_max` of its type's sandbox allows it."""
    concurrent: bool
    """Runs beside other jobs of its instance."""
    log_path: str
    """The file for its log, inside `job.log_dir` of the actor's machine."""
    env_vars: Dict[str, str]
    """An environment variable of the script."""
    args: List[str]
    """The arguments of a script that is a process; in Rhai the array `args`."""
    params: Dict[str, Any]
    """The parameters of the script: a JSON object, in Rhai the map `params`, elsewhere in the variable
    `HERO_PARAMS`."""
    secrets: List[str]
    """A secret of the actor's machine, a file of its `secrets.dir`, /etc/hero/secrets, that `[secrets.allow]` of
    hero.toml gives its type: NAME in the variable NAME, VARIABLE=NAME, or `file:NAME` in the folder
    `HERO_SECRET_DIR`; the job holds the name alone."""
    prerequisites: List[str]
    """A job that must finish before this one starts."""
    after_any: List[str]
    """A job that must end, finished or failed, before this one starts."""
    may_fail: bool
    """Counts its failure for nothing in its graph or atomic batch, whose jobs after it run then as well."""
    prerequisite_names: Dict[str, str]
    """The names of prerequisites in the script, beside their ids."""
    run_at: str
    """The earliest time to start: RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00."""
    expires: float
    """The time after its submission, or after `run_at`, within which it must start, such as 2h: if its actor takes
    it later, it ends as expired without having run; in seconds."""
    unique_key: str
    """The key that deduplicates: while a job with this key has not ended, submitting another gives its id and
    creates nothing."""
    unique_for: float
    """The time from its submission until a finished job gives its unique key back; in seconds."""
    unique_by: Literal['key', 'script', 'params']
    """The properties that make two jobs duplicates: key (the unique key, the default), script (script, type, group,
    arguments, parameters, variables) or params (type, group, name, parameters)."""
    on_duplicate: Literal['return', 'replace', 'reject']
    """The action if another job holds its unique key: return (its id, the default), replace (that job, if it has
    not started) or reject (this job)."""
    debounce: float
    """Waits for this time, such as 2s, and takes the place of a job with its unique key that has not started: of
    jobs that come in quick succession the last one runs; in seconds."""
    debounce_max: float
    """The longest time from the first of the jobs that replaced each other until one of them runs, such as 1m; in
    seconds."""
    limit_key: str
    """A word, such as the name of a customer: a limit of the configuration with `per = "key"` counts the jobs of
    each word apart."""
    shard_key: str
    """A word, such as the name of a customer, whose jobs are on the same shard, so that they can wait for each
    other; no effect with one shard."""
    traceparent: str
    """Its place in a trace, a `traceparent` of W3C's trace context, 00-TRACE-SPAN-FLAGS; on the command line by
    default the environment variable `TRACEPARENT`. The script gets it in this variable."""
    retention: float
    """The retention of the ended job, such as 7d; by default `job.retention`, 24h, and 7d if it failed; in
    seconds."""
    output_overflow: Literal['truncate', 'fail']
    """The action for an output over `job.output_size_max`: truncate (keep its end) or fail (the job)."""
    notify: List[str]
    """A notification of the configuration, a table `[notify.NAME]` of hero.toml, that tells of this job also if its
    filters exclude it."""
    expect_within: float
    """The time after its submission, or after `run_at`, within which it is expected to end, such as 2h: a job that
    takes longer is marked as late, told to notifications, and runs on; in seconds."""
    slow_after: float
    """The time of an attempt, such as 10m, after which it is marked as slow, told to notifications, and runs on; in
    seconds."""
    durable: bool
    """Confirms the submission, and pushes the reply at the end, only once Redis has synchronised them with its
    disk, or its replicas have them (`redis.ack`)."""
    signature: str
    """Its signature, KEY TIME SIGNATURE: the name of the key, the time until which it may start, and 64 bytes in
    Base64, where `require_signature` of its type asks for one. It signs the id too."""
    reply: bool
    """Pushes a reply when the job ends."""
    reply_format: Literal['json', 'plain']
    """The format of the reply that a program reads from Redis: json (the default), or plain, the bare output or
    error."""
    graph_id: str
    """The graph or batch that it belongs to."""
    unique_scope: str
    """The caller and the context of its unique key; without them the key is shared by all jobs."""
    bounds: Dict[str, Any]
    """The bounds of the token that submitted it, or the first job above it: its children stay within them."""
    prerequisites_at: str
    """Its prerequisites were created before this time: a later job with the same id is not a prerequisite."""
    created_at: str
    """The time when it was stored."""
    updated_at: str
    """The time of its last change of state."""
    started_at: str
    """The start of its last attempt."""
    first_started_at: str
    """The start of its first attempt, if another one follows or followed that."""
    finished_at: str
    """The time when it became terminal."""
    dependents: List[str]
    """Jobs that wait for it, or did: the first of them."""
    dependents_more: int
    """The number of further dependents."""
    parent: str
    """The job whose script submitted it."""
    generation: int
    """The generations from a job that no script submitted down to it."""
    children: List[str]
    """The jobs that its script has submitted."""
    attempt: int
    """Attempts so far, the running one included."""
    crashes: int
    """The number of actors that died running it."""
    postponed: int
    """The number of times that its script asked to be run again later."""
    actor: str
    """The actor that runs it, or ran it last."""
    boot_id: str
    """The boot of that actor."""
    error: str
    """The reason why it ended in `error`, or why its last attempt failed."""
    exit_code: int
    """The exit code, where a process ran."""
    hostname: str
    """The machine of the actor, if the job ended in `error`."""
    kept_state: str
    """The state that its script has kept for the next attempt, as JSON."""
    kept_state_at: str
    """The time at which its script kept it."""
    wait: str
    """The event, the jobs or the time that it waits for while it is scheduled, as JSON."""
    waits: int
    """The number of waits that its script has asked for."""
    event: str
    """The event that ended its last wait, as JSON."""
    wait_ended_at: str
    """The time when its last wait ended."""
    told_events: str
    """Events that it was told before it waits for them, as JSON."""
    session: int
    """The seconds without a call after which the session that it is ends; 0 if it is no session."""
    session_calls: int
    """The calls that the session has had."""
    session_call: str
    """The call that the session serves, as JSON."""
    attempts: List[JobAttempt]
    """The latest attempts, the running one included."""
    cron: str
    """The periodic job whose firing it is."""
    fell_back_from: str
    """The queue that it was sent to first."""
    held_by: str
    """The limit that holds it."""
    stopped_by: str
    """The person or program that stopped it, and its machine or address."""
    late_at: str
    """When it had not ended within its expect_within."""
    slow_at: str
    """When its latest slow attempt had run for longer than its slow_after."""
    debounced_since: str
    """The submission of the first of the jobs that replaced each other, by debounce."""
    delayed_since: str
    """The time from which its delay is counted."""
    graph_callback: str
    """The callback of its graph or batch that it is: on_success, on_failure or on_end."""
    progress: float
    """The progress that the script reported, from 0 to 1."""
    progress_text: str
    """The step that the script reported."""
    unfinished_line: str
    """The text after the last line of its log, while it runs, that has no line end yet."""
    signal: int
    """The signal that ended its process."""
    limit: str
    """The limit of resources that ended it."""
    cpu_time: float
    """The processor time of its last attempt, in seconds."""
    memory_peak: int
    """The peak memory of its last attempt, in bytes."""
    log_missing: int
    """The lines of its log that Redis refused."""
    output_truncated: int
    """The bytes that were cut off at the start of its output."""
    input_files: List[str]
    """The names of the files that it is given; `-` is its standard input."""
    output_files: List[str]
    """The names of the files that its script left."""
    files_not_kept: str
    """The files that its script left and that are not kept, and why."""
    queue_place: str
    """The place in its queue while it waits there, such as 12 of 340 in type:bash, behind 3 more urgent."""
    waits_for: str
    """What it waits for before an actor starts it, and what to do about it."""
    trees: Dict[str, Any]
    """Its prerequisites and its dependents, each with theirs, in `branches`; `more` counts those left out."""
    output_encoding: str
    """base64, if the output is not UTF-8 and is given as Base64."""
    output: str
    """The output, once it finished."""


class _JobAttemptRequired(TypedDict):
    started_at: str
    """Its start."""
    ended: AttemptOutcome
    """The kind of its end."""


class JobAttempt(_JobAttemptRequired, total=False):
    """One attempt to run a job. Times are RFC 3339."""
    attempt: Optional[int]
    """Its number. Numbers begin again when a person retries the job."""
    ended_at: Optional[str]
    """The time of its end."""
    actor: Optional[str]
    """The actor that ran it."""
    hostname: Optional[str]
    """The machine of the actor."""
    error: Optional[str]
    """The reason why it failed, cut after some hundred bytes."""
    script: Optional[str]
    """The script that it ran, if the script was corrected after it; the first 16 KiB."""


class _JobChangeResultRequired(TypedDict):
    id: str
    """The id of the job."""
    result: str
    """Its new state, or the change: `stopped`, `told to stop`, `deleted`; of an event `told` or `kept`."""


class JobChangeResult(_JobChangeResultRequired, total=False):
    """A job and the change."""
    jobs: Optional[List[ResultOfJob]]
    """After a stop with `children`: the jobs that were stopped or told to stop, the named job first unless it had
    ended."""
    run_at: Optional[str]
    """After an edit: when the job may start, if it waits for a time."""
    waits_for: Optional[str]
    """After an event that is kept: what the job waits for now, if its script waits."""


class JobFile(TypedDict):
    """One file of a job."""
    name: str
    """Its name; `-` for standard input."""
    size: int
    """Its size in bytes."""
    kind: FileSide
    """Its side: `input`, `output` or `stdin`."""


class _JobOfGraphDocumentRequired(TypedDict):
    id: str
    """The id of the job."""
    outcome: GraphJobOutcome
    """Its outcome."""
    place: int
    """Its place in the graph, from 0: prerequisites come before their dependents."""


class JobOfGraphDocument(_JobOfGraphDocumentRequired, total=False):
    """A job of a graph or batch, as JSON."""
    name: Optional[str]
    """Its name."""
    status: Optional[JobStatus]
    """Its state; absent if it was deleted or has expired."""
    error: Optional[str]
    """Its error, the first 200 characters."""
    held_by: Optional[str]
    """The limit that holds it: `@graph=ID` for the window of the graph, `@paused=ID` for its pause."""
    exit_code: Optional[int]
    """The exit code of its last attempt, if its script is a process that has ended."""
    last_line: Optional[str]
    """The last line of its log, the first 200 characters, if it is a copy for a machine or actor."""


class JobPage(TypedDict):
    """A page of jobs."""
    jobs: List[ListedJob]
    """The jobs. There may be less than a page with more to come."""
    next: Optional[str]
    """The cursor of the next page, if there may be one."""
    searched: int
    """The number of jobs that were searched for this page."""
    complete: bool
    """True if there are no others: the search has reached the end. A search ends after two seconds with what it has
    found; `next` goes on from there."""


class JobSettings(TypedDict, total=False):
    """The settings of a job to submit, named as the fields of its hash."""
    id: str
    """The id; a random UUID without one."""
    script: str
    """The text to run."""
    uses: str
    """A published script, NAME or NAME@VERSION, that gives the text and the settings that the job leaves open: hero
    script list."""
    script_digest: str
    """The SHA-256 that the text of the published script must have: another one is rejected; Hero sets it."""
    name: str
    """A name for lists and searches, by default of the submitted file; several jobs may have the same."""
    tags: List[str]
    """A word for lists and searches: letters, digits and _ - . : / =, at most 8 of 64 characters."""
    caller_id: str
    """The name of the submitter."""
    context_id: str
    """The name of the set of objects that a script of osis works on; other scripts find it in the variable
    `HERO_CONTEXT_ID`."""
    script_type: str
    """The script type; without it the file's extension tells: .rhai osis, .py python, .sh bash, .js node, .v and
    .vsh v, .hero heroscript, or as the configuration says."""
    extension: str
    """The extension of the script's file, one of its type's, such as .mjs; by default the extension of the
    submitted file, or the type's first."""
    group: str
    """The group of actors that may run it; any group without one."""
    instance: int
    """The one instance that may run it, of the group `default` unless another is given."""
    where: str
    """The actors that may run it, by their labels: an expression such as `role = "web" and release >= 12`, of
    comparisons, `in (…)`, `and`, `or`, `not` and parentheses; not beside a group or an instance, which are labels
    too."""
    fallback: Literal['type', 'group', 'none']
    """The actors that may run it if no actor of its instance or group is alive: none (the default unless its type
    has another), group (any actor of the group) or type (any actor of the script type)."""
    priority: int
    """The priority: 0 urgent, 1 normal (the default), 2 background."""
    timeout: float
    """The timeout of one attempt, such as 30s; by default `job.timeout`, 1m; in seconds."""
    retries: int
    """The number of attempts after the first; by default `job.retries`, 0."""
    backoff: str
    """The waits before retries: 10s..5m doubles from the first to the longest, 10s stays the same; by default
    1s..15m (`job.retry_backoff`). Each wait varies by a fifth."""
    retry_if: str
    """The exit codes that are retried, such as 1,64-78: after any other, the job fails at once; by default all. A
    job that names 75 and ends with it is postponed: it loses no attempt, until `job.postponed_max` (24h) after its
    first one."""
    discard_if: str
    """The exit codes that are never retried, such as 65: after one of them the job fails at once. By default none;
    a script says the same with `hero.discard`."""
    memory: str
    """The memory limit of each process of the script, such as 512MiB, and without --job-memory of the job as a
    whole; its type sets the upper bound."""
    job_memory: str
    """The memory limit of the job as a whole, all its processes together, such as 2GiB; its type sets the upper
    bound. Its machine needs control groups, else the job's log says that nothing holds it."""
    cpu: float
    """The limit of processor time of each process of the script, such as 30s; its type sets the upper bound; in
    seconds."""
    network: str
    """The network of the script: none, all, or TCP ports of any host such as 443,53, where 53 looks up names;
    rejected unless `ports_max` or `network_max` of its type's sandbox allows it."""
    concurrent: bool
    """Runs beside other jobs of its instance."""
    log_path: str
    """The file for its log, inside `job.log_dir` of the actor's machine."""
    env_vars: Dict[str, str]
    """An environment variable of the script."""
    args: List[str]
    """The arguments of a script that is a process; in Rhai the array `args`."""
    params: Dict[str, Any]
    """The parameters of the script: a JSON object, in Rhai the map `params`, elsewhere in the variable
    `HERO_PARAMS`."""
    secrets: List[str]
    """A secret of the actor's machine, a file of its `secrets.dir`, /etc/hero/secrets, that `[secrets.allow]` of
    hero.toml gives its type: NAME in the variable NAME, VARIABLE=NAME, or `file:NAME` in the folder
    `HERO_SECRET_DIR`; the job holds the name alone."""
    prerequisites: List[str]
    """A job that must finish before this one starts."""
    after_any: List[str]
    """A job that must end, finished or failed, before this one starts."""
    may_fail: bool
    """Counts its failure for nothing in its graph or atomic batch, whose jobs after it run then as well."""
    prerequisite_names: Dict[str, str]
    """The names of prerequisites in the script, beside their ids."""
    run_at: str
    """The earliest time to start: RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00."""
    expires: float
    """The time after its submission, or after `run_at`, within which it must start, such as 2h: if its actor takes
    it later, it ends as expired without having run; in seconds."""
    unique_key: str
    """The key that deduplicates: while a job with this key has not ended, submitting another gives its id and
    creates nothing."""
    unique_for: float
    """The time from its submission until a finished job gives its unique key back; in seconds."""
    unique_by: Literal['key', 'script', 'params']
    """The properties that make two jobs duplicates: key (the unique key, the default), script (script, type, group,
    arguments, parameters, variables) or params (type, group, name, parameters)."""
    on_duplicate: Literal['return', 'replace', 'reject']
    """The action if another job holds its unique key: return (its id, the default), replace (that job, if it has
    not started) or reject (this job)."""
    debounce: float
    """Waits for this time, such as 2s, and takes the place of a job with its unique key that has not started: of
    jobs that come in quick succession the last one runs; in seconds."""
    debounce_max: float
    """The longest time from the first of the jobs that replaced each other until one of them runs, such as 1m; in
    seconds."""
    limit_key: str
    """A word, such as the name of a customer: a limit of the configuration with `per = "key"` counts the jobs of
    each word apart."""
    shard_key: str
    """A word, such as the name of a customer, whose jobs are on the same shard, so that they can wait for each
    other; no effect with one shard."""
    traceparent: str
    """Its place in a trace, a `traceparent` of W3C's trace context, 00-TRACE-SPAN-FLAGS; on the command line by
    default the environment variable `TRACEPARENT`. The script gets it in this variable."""
    retention: float
    """The retention of the ended job, such as 7d; by default `job.retention`, 24h, and 7d if it failed; in
    seconds."""
    output_overflow: Literal['truncate', 'fail']
    """The action for an output over `job.output_size_max`: truncate (keep its end) or fail (the job)."""
    notify: List[str]
    """A notification of the configuration, a table `[notify.NAME]` of hero.toml, that tells of this job also if its
    filters exclude it."""
    expect_within: float
    """The time after its submission, or after `run_at`, within which it is expected to end, such as 2h: a job that
    takes longer is marked as late, told to notifications, and runs on; in seconds."""
    slow_after: float
    """The time of an attempt, such as 10m, after which it is marked as slow, told to notifications, and runs on; in
    seconds."""
    durable: bool
    """Confirms the submission, and pushes the reply at the end, only once Redis has synchronised them with its
    disk, or its replicas have them (`redis.ack`)."""
    signature: str
    """Its signature, KEY TIME SIGNATURE: the name of the key, the time until which it may start, and 64 bytes in
    Base64, where `require_signature` of its type asks for one. It signs the id too."""
    reply: bool
    """Pushes a reply when the job ends."""
    reply_format: Literal['json', 'plain']
    """The format of the reply that a program reads from Redis: json (the default), or plain, the bare output or
    error."""
    caller: str
    """Another name of caller_id."""
    context: str
    """Another name of context_id."""
    after: List[str]
    """Another name of prerequisites."""
    delay: str
    """The time from its submission until it may start, such as 10m; not beside run_at."""


class JobsOfType(TypedDict):
    """The jobs of a script type, counted."""
    script_type: str
    waiting_for_prerequisites: int
    """Jobs that wait for prerequisites."""
    scheduled: int
    due: int
    """Scheduled jobs whose time has come."""
    waits: int
    """Scheduled jobs whose scripts wait."""
    dead_letters: int
    last_hour: Optional[LastHour]
    """The counters of the last hour. `None` until a supervisor has sampled them."""
    held: int
    """The jobs that limits hold."""


class LastFiringDocument(TypedDict):
    """The last firing of a periodic job."""
    due: str
    """The due time, in RFC 3339."""
    job_id: Optional[str]
    """Its job."""
    status: Optional[str]
    """The state of the job, batch or graph, if it is still kept; `failed` if it had none."""
    batch_id: Optional[str]
    """Its batch or graph, in place of a job."""


class LastHour(TypedDict):
    """The counters of a script type since its first sample of the last hour."""
    finished: int
    failed: int
    """Jobs that ended in `error`."""
    dead: int
    since_s: float
    """The time since that sample: an hour, less for a new type, more if no supervisor was live."""


class _LimitDocumentRequired(TypedDict):
    name: str
    """Its name; `@TYPE/GROUP/INSTANCE` for the serial lane of an actor, `@graph=ID` for the window of a graph or
    batch, `@paused=ID` for its pause."""
    value: Optional[str]
    """The type, group, caller or key that is counted here, if the limit counts separately; a long or unusual one as
    `#` and its hash."""
    per: Optional[str]
    """The property that it counts by."""
    type: Optional[str]
    """It limits only jobs of this script type."""
    group: Optional[str]
    """It limits only jobs of this group."""
    caller: Optional[str]
    """It limits only jobs of this caller."""
    key: Optional[str]
    """It limits only jobs with this limit key."""
    running_max: Optional[int]
    """The maximum number of jobs that run at once."""
    rate: Optional[str]
    """The maximum number of jobs that start within a time."""
    configured: bool
    """True if the configuration that was read has it."""
    running: int
    """Jobs that run under it."""
    held: int
    """Jobs that it holds."""
    started: Optional[int]
    """Jobs that started within the time of its rate."""


class LimitDocument(_LimitDocumentRequired, total=False):
    """A limit, or one of the values that it counts separately."""
    fair: Optional[str]
    """The property of jobs that it shares its slots by."""
    shard: Optional[int]
    """The shard that counts so, if there are several."""


class LimitList(TypedDict):
    """The limits."""
    limits: List[LimitDocument]
    """Each limit, and each value that it counts separately."""


class ListJobs(TypedDict, total=False):
    """The place of a page of jobs."""
    status: Optional[str]
    """Only jobs in this state: waiting (not started yet), queued (in a queue), held (by a limit), running,
    finished, failed, cancelled (stopped), replaced (by a later job with their unique key) or expired (failed, as
    they did not start in time); or created, waiting_for_prerequisites, scheduled, dispatched, started and error
    (the last three ends and failed together), as JSON has them. Several with commas."""
    script_type: Optional[str]
    """Only jobs of this script type."""
    limit: Optional[int]
    """The size of the page, up to 1000; 50 without it."""
    cursor: Optional[str]
    """The `next` of the page before."""
    queue: Optional[str]
    """Only jobs of this queue, as hero queue list prints it: type:bash:group:gpu, with :prio:0 or :prio:2 at its
    end for urgent jobs and those in the background."""
    caller: Optional[str]
    """Only jobs of this caller."""
    name: Optional[str]
    """Only jobs whose name contains this text."""
    tags: List[str]
    """Only jobs with this tag; with several, those that have all."""
    error: Optional[str]
    """Only jobs whose error contains this text: those that failed, and those that wait to be retried; others only
    with their state."""
    kind: Optional[str]
    """Only jobs whose error is of this kind: as hero job errors prints it, without numbers, ids, paths and quoted
    texts, or an error of the kind."""
    failed_because: Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]
    """Only jobs that failed because of this: timeout, expired, prerequisite, crashed, invalid, signature_expired,
    unsigned or script; or that ended because they were stopped or replaced: stopped, replaced."""
    cancelled: Optional[bool]
    """Only jobs that were stopped or replaced; with false, only others."""
    late: Optional[bool]
    """Only jobs that did not end within their expect_within; with false, only others."""
    held: Optional[bool]
    """Only jobs that a limit holds; with false, only others."""
    text: Optional[str]
    """Only jobs whose id begins with this text, or whose name, tags or error contain it."""
    actor: Optional[str]
    """Only jobs that ran last on this actor: TYPE:GROUP:INSTANCE or its unit."""
    host: Optional[str]
    """Only jobs that ran last, and ended, on this machine."""
    parent: Optional[str]
    """Only jobs that the script of this job submitted."""
    since: Optional[str]
    """Only jobs submitted since then: 24h (ago), 09:00, yesterday 18:00, friday, 2026-12-24, or RFC 3339; however
    long ago they ran or failed. Without a zone, the API and the page read UTC."""
    until: Optional[str]
    """Only jobs submitted until then: with 2d, two days ago or earlier."""
    ended_since: Optional[str]
    """Only jobs that ended since then."""
    ended_until: Optional[str]
    """Only jobs that ended until then."""
    dead: Optional[bool]
    """Only dead letters: jobs that used up their attempts, or took down too many actors."""


class _ListedFilesRequired(TypedDict):
    id: str
    """The id of the job."""
    files: List[JobFile]
    """Its files, those that its script left first."""


class ListedFiles(_ListedFilesRequired, total=False):
    """The files of a job."""
    files_not_kept: Optional[str]
    """The files that its script left and that are not kept, and why."""


class ListedGraphs(TypedDict):
    """A page of graphs and batches."""
    graphs: List[GraphDocument]
    """The graphs and batches. A caller with bounds gets its own alone; there may be less than a page with more to
    come."""
    next: Optional[int]
    """The cursor of the next page, if there may be one."""


class _ListedJobRequired(TypedDict):
    id: str
    """The id; a random UUID without one."""


class ListedJob(_ListedJobRequired, total=False):
    """A job in a list."""
    name: str
    """A name for lists and searches, by default of the submitted file; several jobs may have the same."""
    tags: List[str]
    """A word for lists and searches: letters, digits and _ - . : / =, at most 8 of 64 characters."""
    graph_id: str
    """The graph or batch that it belongs to."""
    cron: str
    """The periodic job whose firing it is."""
    uses: str
    """A published script, NAME or NAME@VERSION, that gives the text and the settings that the job leaves open: hero
    script list."""
    script_type: str
    """The script type; without it the file's extension tells: .rhai osis, .py python, .sh bash, .js node, .v and
    .vsh v, .hero heroscript, or as the configuration says."""
    group: str
    """The group of actors that may run it; any group without one."""
    instance: int
    """The one instance that may run it, of the group `default` unless another is given."""
    where: str
    """The actors that may run it, by their labels: an expression such as `role = "web" and release >= 12`, of
    comparisons, `in (…)`, `and`, `or`, `not` and parentheses; not beside a group or an instance, which are labels
    too."""
    priority: int
    """The priority: 0 urgent, 1 normal (the default), 2 background."""
    caller_id: str
    """The name of the submitter."""
    context_id: str
    """The name of the set of objects that a script of osis works on; other scripts find it in the variable
    `HERO_CONTEXT_ID`."""
    attempt: int
    """Attempts so far, the running one included."""
    wait: str
    """The event, the jobs or the time that it waits for while it is scheduled, as JSON."""
    session: int
    """The seconds without a call after which the session that it is ends; 0 if it is no session."""
    session_calls: int
    """The calls that the session has had."""
    crashes: int
    """The number of actors that died running it."""
    actor: str
    """The actor that runs it, or ran it last."""
    hostname: str
    """The machine of the actor, if the job ended in `error`."""
    held_by: str
    """The limit that holds it."""
    stopped_by: str
    """The person or program that stopped it, and its machine or address."""
    created_at: str
    """The time when it was stored."""
    run_at: str
    """The earliest time to start: RFC 3339 with Z or an offset, such as 2026-12-24T18:00:00+01:00."""
    started_at: str
    """The start of its last attempt."""
    finished_at: str
    """The time when it became terminal."""
    late_at: str
    """When it had not ended within its expect_within."""
    slow_at: str
    """When its latest slow attempt had run for longer than its slow_after."""
    progress: float
    """The progress that the script reported, from 0 to 1."""
    progress_text: str
    """The step that the script reported."""
    exit_code: int
    """The exit code, where a process ran."""
    cpu_time: float
    """The processor time of its last attempt, in seconds."""
    memory_peak: int
    """The peak memory of its last attempt, in bytes."""
    parent: str
    """The job whose script submitted it."""
    error: str
    """The reason why it ended in `error`, or why its last attempt failed."""
    status: JobStatus


class ListedSession(TypedDict):
    """A session in the list."""
    id: str
    """Its id."""
    status: JobStatus
    """Its state: `started`, or another if no actor has started it yet."""
    script_type: Optional[str]
    """Its script type."""
    name: Optional[str]
    """Its name."""
    caller_id: Optional[str]
    """Its caller."""
    started_at: Optional[str]
    """When it was started."""
    idle: Optional[int]
    """The seconds without a call after which it ends."""
    calls: int
    """The calls that it has had."""


class LiveActors(TypedDict):
    """The live actors."""
    actors: List[ActorDocument]
    """The actors, by name."""


class _LogPartRequired(TypedDict):
    id: str
    """The id of the job."""
    lines: List[LoggedLine]
    """The lines."""
    next: Optional[str]
    """The value of `after` for the next part: set if there may be more already."""
    ended: bool
    """True if the job has ended or was deleted: without `next` these are its last lines."""


class LogPart(_LogPartRequired, total=False):
    """Lines of a job's log."""
    unfinished_line: str
    """The text after the last line that has no line end yet, such as a question; left out if there is none."""


class _LoggedLineRequired(TypedDict):
    id: str
    """Its place in the log."""
    fd: int
    """1 for standard output, 2 for standard error, 3 for progress."""
    line: str
    """The text, without its line end."""


class LoggedLine(_LoggedLineRequired, total=False):
    """A line of a log."""
    progress: Optional[float]
    """The progress from 0 to 1, if the line is about it."""
    time: Optional[str]
    """The time when it was written, in UTC."""
    output: bool
    """True for a line of the job's output, which has it as well."""


class MachineActorDocument(TypedDict):
    """An actor of a machine."""
    actor: str
    """Its name, TYPE:GROUP:INSTANCE."""
    live: bool
    """True if it is live."""
    state: Optional[ActorState]
    """Its state; null if it is not live."""
    running: int
    """The number of jobs that it runs."""
    tasks: int
    """The number of jobs that it can run at once."""
    seen_at: str
    """When it was seen last: RFC 3339, UTC."""


class _MachineChangeRequired(TypedDict):
    machine: str
    """The name of the machine."""
    host: str
    """Its host name."""
    actors: List[str]
    """Its live actors, which got the order."""
    running: int
    """The number of their jobs that still run."""
    unserved: List[str]
    """The script types that no other live actor serves: their jobs wait."""
    has_all_supervisors: bool
    """True if no live supervisor is on another machine."""


class MachineChange(_MachineChangeRequired, total=False):
    """An order to the actors of a machine."""
    not_told: List[str]
    """The shards that do not answer, each with the reason."""
    unanswered: List[str]
    """The actors that have not reported that they drain: they may claim jobs."""
    silent: List[str]
    """The actors without a heartbeat, though they have not shut down: their jobs may still run."""


class MachineDocument(TypedDict):
    """A machine that actors live on, or were seen on."""
    machine: str
    """Its name: the label `machine` of its actors."""
    host: str
    """Its host name."""
    live: bool
    """True if an actor of it is live."""
    seen_at: str
    """When an actor of it was seen last: RFC 3339, UTC."""
    running: int
    """The number of jobs that its live actors run."""
    tasks: int
    """The number of jobs that they can run at once."""
    load: Optional[float]
    """Its load over the last minute, by the latest heartbeat of a live actor."""
    memory_available: Optional[int]
    """Its available memory in bytes, by the same."""
    labels: Dict[str, Any]
    """The labels of its actors; of one in which they differ the value of a live one."""
    actors: List[MachineActorDocument]
    """Its actors, by name."""


class MachineList(TypedDict):
    """The machines."""
    machines: List[MachineDocument]
    """The machines, by host name."""


class _ManyChangedDocumentRequired(TypedDict):
    done: int
    """The number of jobs that were changed."""
    told: int
    """The number of these that still run: their actors were told to stop them."""
    left: int
    """The number of jobs that stay as they are."""
    problems: List[UnchangedJob]
    """The jobs that stay as they are, with their reasons; at most 1000."""
    more: bool
    """True if more jobs match."""
    remaining: int
    """The number of jobs that match from there on."""
    remaining_complete: bool
    """False if they were not all counted: then there are at least so many."""
    found: int
    """The number of jobs that the call has found by its filter."""


class ManyChangedDocument(_ManyChangedDocumentRequired, total=False):
    """The result of a change of many jobs."""
    reason: Optional[str]
    """Why the first of these does."""
    next: Optional[str]
    """The `cursor` of the filter with which the next call goes on, if more jobs may match."""
    jobs: Optional[List[ListedJob]]
    """With `dry_run`: the jobs that would be changed."""


class NamespaceHealth(TypedDict):
    """The problems of a snapshot."""
    state: HealthState
    """The state of the namespace."""
    problems: List[Problem]
    """The problems, the worst first, with notes at the end."""


class _NotifiedActorsRequired(TypedDict):
    told: List[str]
    """The actors."""


class NotifiedActors(_NotifiedActorsRequired, total=False):
    """Actors that were told something."""
    not_told: List[str]
    """The shards that do not answer, each with the reason."""


class ObjectPage(TypedDict):
    """A page of objects."""
    objects: List[Dict[str, Any]]
    """The objects, each with its `id`, `version`, `created_at` and `modified_at`."""
    next: Optional[str]
    """The value of `after` for the next page, if there may be one."""


class _OutputResultRequired(TypedDict):
    output: str
    """The output: text, or Base64."""


class OutputResult(_OutputResultRequired, total=False):
    """The output of a job."""
    output_encoding: Optional[str]
    """`base64` if the output is not UTF-8."""


class Paused(TypedDict):
    """Paused queues."""
    paused: List[str]
    """The queues or the rule that were not paused before."""


class _PeriodicJobDocumentRequired(TypedDict):
    name: str
    """Its name."""
    file: str
    """The file that declares it; `redis` if a command added it."""
    added_by: Optional[str]
    """The person or program that added or changed it last, if it is in Redis."""
    added_at: Optional[str]
    """The time of that, in RFC 3339."""
    schedule: str
    """Its schedule, as the file has it."""
    time_zone: str
    """The time zone of the schedule."""
    script_type: Optional[str]
    """The script type of its jobs."""
    catch_up: str
    """The treatment of missed firings."""
    overlap: str
    """The treatment of a firing while the last job has not ended."""
    spread: Optional[SpreadDocument]
    """The longest delay of its firings, in seconds, and the delay that its name gives them."""
    calendar: Optional[str]
    """The calendar of the days on which it does not fire."""
    enabled: bool
    """False if a person has disabled it."""
    disabled_at: Optional[str]
    """The time at which it was disabled, in RFC 3339."""
    disabled_by: Optional[str]
    """The person or program that disabled it."""
    not_in_force: Optional[str]
    """Why no live supervisor fires it as it stands here, if none does."""
    next: Optional[str]
    """The time of its next firing, in RFC 3339, if it is enabled and in force."""
    last: Optional[LastFiringDocument]
    """Its last firing."""
    fired: int
    """The number of firings."""
    left_out: int
    """The number of firings left out because the last job had not ended."""
    missed: int
    """The number of firings that were missed, as no supervisor ran, and are not made up for."""
    succeeded_at: Optional[str]
    """The end of its last job that finished, in RFC 3339."""
    failed_at: Optional[str]
    """The end of its last job that failed, or its last firing that had no job, in RFC 3339."""
    failed_id: Optional[str]
    """The job that failed last."""
    failed_why: Optional[str]
    """The start of its error."""
    duration_s: Optional[float]
    """The duration of its last job that ended, in seconds."""
    overdue_at: Optional[str]
    """The time from which it is overdue, in RFC 3339: its second firing after its last success, and the duration of
    its last job."""
    overdue: bool
    """Set if that has passed without a success."""
    every: Optional[Every]
    """The receivers of the copies of its job: each firing is a batch."""
    graph_jobs: Optional[int]
    """The number of jobs of its graph; null if its firings are no graphs."""


class PeriodicJobDocument(_PeriodicJobDocumentRequired, total=False):
    """A periodic job."""
    at_a_time: Optional[int]
    """The number of its jobs that run at once."""
    stop_after: Optional[Union[int, str]]
    """The failures after which its other jobs are stopped."""
    pause_after: Optional[str]
    """The jobs that start before the others, which pause."""


class _PeriodicJobHistoryDocumentRequired(TypedDict):
    name: str
    """Its name."""
    file: str
    """The file that declares it; `redis` if a command added it."""
    added_by: Optional[str]
    """The person or program that added or changed it last, if it is in Redis."""
    added_at: Optional[str]
    """The time of that, in RFC 3339."""
    schedule: str
    """Its schedule, as the file has it."""
    time_zone: str
    """The time zone of the schedule."""
    script_type: Optional[str]
    """The script type of its jobs."""
    catch_up: str
    """The treatment of missed firings."""
    overlap: str
    """The treatment of a firing while the last job has not ended."""
    spread: Optional[SpreadDocument]
    """The longest delay of its firings, in seconds, and the delay that its name gives them."""
    calendar: Optional[str]
    """The calendar of the days on which it does not fire."""
    enabled: bool
    """False if a person has disabled it."""
    disabled_at: Optional[str]
    """The time at which it was disabled, in RFC 3339."""
    disabled_by: Optional[str]
    """The person or program that disabled it."""
    not_in_force: Optional[str]
    """Why no live supervisor fires it as it stands here, if none does."""
    next: Optional[str]
    """The time of its next firing, in RFC 3339, if it is enabled and in force."""
    last: Optional[LastFiringDocument]
    """Its last firing."""
    fired: int
    """The number of firings."""
    left_out: int
    """The number of firings left out because the last job had not ended."""
    missed: int
    """The number of firings that were missed, as no supervisor ran, and are not made up for."""
    succeeded_at: Optional[str]
    """The end of its last job that finished, in RFC 3339."""
    failed_at: Optional[str]
    """The end of its last job that failed, or its last firing that had no job, in RFC 3339."""
    failed_id: Optional[str]
    """The job that failed last."""
    failed_why: Optional[str]
    """The start of its error."""
    duration_s: Optional[float]
    """The duration of its last job that ended, in seconds."""
    overdue_at: Optional[str]
    """The time from which it is overdue, in RFC 3339: its second firing after its last success, and the duration of
    its last job."""
    overdue: bool
    """Set if that has passed without a success."""
    every: Optional[Every]
    """The receivers of the copies of its job: each firing is a batch."""
    graph_jobs: Optional[int]
    """The number of jobs of its graph; null if its firings are no graphs."""
    upcoming: List[str]
    """The times of the next firings, in RFC 3339, if it is enabled."""
    script: str
    """The script of its jobs; empty for a graph."""
    settings: Any
    """The other settings of its jobs, named as the fields of a job."""
    history: List[FiringDocument]
    """Its latest firings, the newest first; at most 20."""
    graph: Any
    """The graph of each firing, with the members of `graph.submit`; null if it is none."""


class PeriodicJobHistoryDocument(_PeriodicJobHistoryDocumentRequired, total=False):
    """A periodic job with its next and latest firings."""
    at_a_time: Optional[int]
    """The number of its jobs that run at once."""
    stop_after: Optional[Union[int, str]]
    """The failures after which its other jobs are stopped."""
    pause_after: Optional[str]
    """The jobs that start before the others, which pause."""


class PeriodicJobList(TypedDict):
    """The periodic jobs."""
    cron: List[PeriodicJobDocument]
    """The periodic jobs, by name."""
    problems: List[str]
    """The mistakes of the files whose jobs are left out."""


class _PlaceStatsDocumentRequired(TypedDict):
    name: str
    """The host name, or the name of the actor or of the jobs."""
    finished: int
    """Jobs that finished."""
    failed: int
    """Jobs that failed. Those that were stopped or replaced are none of them."""
    cancelled: int
    """Jobs that were stopped or replaced."""
    failed_percent: Optional[float]
    """The share of jobs that failed, of those that failed or finished, in per cent."""
    wait: TimesDocument
    """The times that jobs waited for their last attempt, from their submission, or from the time for which they or
    their attempt were due. A wait for prerequisites is part of it."""
    run: TimesDocument
    """The times that last attempts ran."""


class PlaceStatsDocument(_PlaceStatsDocumentRequired, total=False):
    """The ended jobs of a machine, an actor or a name."""
    memory_peak: Optional[int]
    """The largest peak memory of a last attempt, in bytes, if a process ran."""


class Pong(TypedDict):
    """The answer of an actor."""
    actor: str
    """The actor."""
    seconds: float
    """The time that the answer took, in seconds."""


class Problem(TypedDict):
    """One thing that is wrong, or worth knowing."""
    kind: ProblemKind
    """Its kind: programs know it by this."""
    severity: Severity
    """Its severity."""
    subject: str
    """The part of the system that has it."""
    text: str
    """One sentence with its numbers, lower case, without a full stop."""
    remedy: str
    """The remedy, a line or more."""


class PublishedDocument(TypedDict):
    """The end of a publication."""
    name: str
    """The name of the script."""
    version: int
    """Its latest version."""
    created: bool
    """False if the latest version was the same already."""


class Purged(TypedDict):
    """A number of ended jobs."""
    purged: int
    """The number of jobs that ended."""


class _QueueDocumentRequired(TypedDict):
    queue: str
    """Its name."""
    script_type: str
    """The script type of its jobs."""
    priority: Optional[int]
    """Its priority: 0 urgent, 1 normal, 2 background."""
    depth: int
    """Entries in its list."""
    held: int
    """Jobs that a limit holds."""
    oldest_wait_s: Optional[float]
    """The wait of the job that was dispatched first and that an actor may claim, in seconds."""
    held_by: Optional[str]
    """The limit that holds the first of the held jobs."""
    type_throughput_per_s: Optional[float]
    """Jobs of its type that ended per second, when last sampled."""
    paused: bool
    """True if it is paused."""


class QueueDocument(_QueueDocumentRequired, total=False):
    """A work queue."""
    where: Optional[str]
    """The expression that its jobs have, of a queue for one."""


class QueueList(TypedDict):
    """The queues."""
    queues: List[QueueDocument]
    """Every queue that may hold jobs or is paused, by name."""
    pauses: List[str]
    """The rules that pause queues as a whole, also those that come later."""
    unserved: List[UnservedList]
    """The lists that programs pushed to and nobody serves. For callers without bounds."""


class _RanInSessionRequired(TypedDict):
    id: str
    """The id of the session."""
    exit_code: int
    """The exit code: 0 if the script succeeded."""
    output: str
    """The text that it wrote to standard output and standard error, or its Base64."""


class RanInSession(_RanInSessionRequired, total=False):
    """The answer to a script that ran in a session."""
    output_encoding: Optional[str]
    """`base64` if the output is not UTF-8."""
    output_truncated: int
    """The bytes that were cut off at the start of the output, which has up to 128 KiB."""
    result: Optional[str]
    """The value that it reported by `{"output": …}`, such as `hero.output`: a text as it is, any other as JSON."""


class RedisDocument(TypedDict):
    """A server of Redis, as far as its user may read its state."""
    address: str
    """Its address, without a password."""
    version: Optional[str]
    """Its version."""
    role: Optional[str]
    """`master` or `slave`."""
    replicas: int
    """The number of its replicas."""
    memory_used_bytes: int
    """The memory in use."""
    memory_max_bytes: int
    """Its `maxmemory`; 0 for no limit."""
    eviction_policy: Optional[str]
    """Its `maxmemory-policy`."""
    durable: Optional[bool]
    """True if it keeps every write, but for the last second."""
    appends: Optional[bool]
    """True if it appends every write to a file."""
    fsync: Optional[str]
    """Its `appendfsync`."""
    save_points: Optional[str]
    """Its `save`."""
    dangers: List[str]
    """Dangers for accepted jobs, a sentence each with the remedy."""


class Refused(TypedDict):
    """A rejected job of a batch."""
    line: int
    """Its place in the call, from 1."""
    error: str
    """The reason."""


class _ResultOfJobRequired(TypedDict):
    id: str
    """The id of the job."""


class ResultOfJob(_ResultOfJobRequired, total=False):
    """A job that was changed with others, or stays as it is."""
    result: Optional[str]
    """Its new state, or the change."""
    problem: Optional[str]
    """The reason why it stays as it is."""


class Resumed(TypedDict):
    """Resumed queues."""
    resumed: List[str]
    """The queues and rules that were paused."""


class Retried(TypedDict):
    """Jobs that run again."""
    jobs: List[ResultOfJob]
    """The jobs, the named job first."""


class ScriptDocument(TypedDict):
    """A version of a published script."""
    name: str
    """Its name."""
    version: int
    """Its version, from 1."""
    digest: str
    """The SHA-256 of its text."""
    script_type: str
    """Its type."""
    description: str
    """Its description."""
    parameters: Any
    """The parameters that it declares, as a schema of JSON Schema; null if it takes any."""
    settings: Dict[str, Any]
    """The settings of its jobs that do not say otherwise, named as the fields of a job."""
    published_by: str
    """The person or program that published it."""
    published_at: str
    """The time of that, in RFC 3339."""
    file: Optional[str]
    """The file of the configuration that declares it; null if it was published by a command."""
    rolled_back_to: Optional[int]
    """The version whose text it has again, after a rollback."""


class ScriptList(TypedDict):
    """The published scripts."""
    scripts: List[ScriptDocument]
    """The latest version of each, by name."""


class ScriptTextDocument(TypedDict):
    """A version of a published script with its text."""
    name: str
    """Its name."""
    version: int
    """Its version, from 1."""
    digest: str
    """The SHA-256 of its text."""
    script_type: str
    """Its type."""
    description: str
    """Its description."""
    parameters: Any
    """The parameters that it declares, as a schema of JSON Schema; null if it takes any."""
    settings: Dict[str, Any]
    """The settings of its jobs that do not say otherwise, named as the fields of a job."""
    published_by: str
    """The person or program that published it."""
    published_at: str
    """The time of that, in RFC 3339."""
    file: Optional[str]
    """The file of the configuration that declares it; null if it was published by a command."""
    rolled_back_to: Optional[int]
    """The version whose text it has again, after a rollback."""
    script: str
    """Its text."""


class ScriptVersions(TypedDict):
    """The versions of a script."""
    versions: List[ScriptDocument]
    """The versions that are kept, the newest first."""


class _ServedQueueRequired(TypedDict):
    queue: str
    """Its name."""
    script_type: str
    """The script type of its jobs."""
    priority: Optional[int]
    """Its priority: 0 urgent, 1 normal, 2 background."""
    depth: int
    """Entries in its list."""
    held: int
    """Jobs that a limit holds."""
    oldest_wait_s: Optional[float]
    """The wait of the job that was dispatched first and that an actor may claim, in seconds."""
    held_by: Optional[str]
    """The limit that holds the first of the held jobs."""
    type_throughput_per_s: Optional[float]
    """Jobs of its type that ended per second, when last sampled."""
    paused: bool
    """True if it is paused."""
    actors: int
    """The ready actors that claim from it."""


class ServedQueue(_ServedQueueRequired, total=False):
    """A queue with the number of ready actors that claim from it."""
    where: Optional[str]
    """The expression that its jobs have, of a queue for one."""


class SessionList(TypedDict):
    """The sessions."""
    sessions: List[ListedSession]
    """The sessions of the caller that have not ended; of an operator, all within its bounds."""
    complete: bool
    """True if these are all: a search ends after two seconds with what it has found."""


class ShardDocument(TypedDict):
    """A shard with its server."""
    shard: int
    """Its number."""
    is_first_of_server: bool
    """True if no shard before it is on the same server."""
    address: str
    """Its address, without a password."""
    version: Optional[str]
    """Its version."""
    role: Optional[str]
    """`master` or `slave`."""
    replicas: int
    """The number of its replicas."""
    memory_used_bytes: int
    """The memory in use."""
    memory_max_bytes: int
    """Its `maxmemory`; 0 for no limit."""
    eviction_policy: Optional[str]
    """Its `maxmemory-policy`."""
    durable: Optional[bool]
    """True if it keeps every write, but for the last second."""
    appends: Optional[bool]
    """True if it appends every write to a file."""
    fsync: Optional[str]
    """Its `appendfsync`."""
    save_points: Optional[str]
    """Its `save`."""
    dangers: List[str]
    """Dangers for accepted jobs, a sentence each with the remedy."""


class ShownGraph(TypedDict):
    """A graph or batch with a page of its jobs."""
    graph: GraphDocument
    """The graph or batch."""
    jobs: List[JobOfGraphDocument]
    """Its jobs: those that failed, the cancelled, those that have not ended, the finished."""
    next: Optional[int]
    """The cursor of the next page, if there may be one."""
    waits_for: List[str]
    """Reasons, other than prerequisites, for which the first of its jobs that have not ended wait; empty for a
    caller with bounds."""


class SpreadDocument(TypedDict):
    """The delay of the firings of a periodic job."""
    most_s: int
    """The longest, in seconds."""
    own_s: Optional[int]
    """The value of this periodic job, in seconds; null if each machine has one of its own."""


class StartedSession(TypedDict):
    """A session that was started."""
    id: str
    """The id of the session, which is a job."""
    status: JobStatus
    """Its state: `started`, or another if no actor has started it yet."""


StatsDocument = TypedDict("StatsDocument", {'seconds': 'Optional[float]', 'from': 'Optional[str]', 'to': 'Optional[str]', 'types': 'List[TypeStatsDocument]', 'by': 'Optional[StatsBy]', 'places': 'List[PlaceStatsDocument]', 'searched': 'Optional[int]', 'complete': 'Optional[bool]'}, total=False)


class _StatusDocumentRequired(TypedDict):
    at: str
    """The time of Redis when it was read: RFC 3339, UTC."""
    paused: List[str]
    """The rules that pause queues: `*` for all, `type:T:*`, `type:*:group:G:*`, `type:T:group:G:*`."""
    redis: RedisDocument
    """The server of Redis; with several shards, of the home shard."""
    refuses_writes: bool
    """True if a server of Redis refuses every write, so that no daemon can renew its presence."""
    supervisors: List[SupervisorPresence]
    """The live supervisors."""
    brokers: List[BrokerPresence]
    """The brokers of RabbitMQ of the last day; none for a caller with bounds."""
    actors: List[ActorsOfType]
    """The script types with live actors."""
    queues: List[ServedQueue]
    """The queues that hold jobs, are paused or have an actor."""
    types: List[JobsOfType]
    """The script types, with their jobs counted."""
    check: CheckVerdict
    """The verdict by the thresholds of `[check]`."""


class StatusDocument(_StatusDocumentRequired, total=False):
    """The state of a namespace."""
    shards: List[ShardDocument]
    """All shards, if there are several."""


class _SubmittedBatchRequired(TypedDict):
    id: Optional[str]
    """The id of the batch, for the methods of graphs; null if it has no job."""
    batch_id: Optional[str]
    """The same, by its older name."""
    ids: List[str]
    """The ids of the accepted jobs, repeated ones among them, in the order of the batch."""
    refused: List[Refused]
    """The rejected jobs."""
    repeated: int
    """The number of accepted jobs that were submitted before with the same id and content."""
    unserved: List[UnservedJobs]
    """The jobs that no live actor claims now; for callers that see all actors."""


class SubmittedBatch(_SubmittedBatchRequired, total=False):
    """The jobs of a batch that were accepted, and the others."""
    every: List[FleetMemberDocument]
    """The machines or actors, of a job for every one."""
    opening: Optional[str]
    """With `more`: what the next call needs to add jobs; left out if there is no batch yet, since no job was
    accepted."""


class SubmittedGraph(TypedDict):
    """The jobs of a submitted graph."""
    id: str
    """The id of the graph."""
    graph_id: str
    """The same, by its older name."""
    jobs: Dict[str, str]
    """The ids of the jobs, by their names."""
    unserved: List[UnservedJobs]
    """The jobs that no live actor claims now; for callers that see all actors."""


class SubmittedId(TypedDict):
    """The id of a submitted job."""
    id: str
    """The id of the job."""
    created: bool
    """False if no job was stored: the id names the job that holds its unique key, or one that was submitted before
    with this id and the same content."""


class _SupervisorPresenceRequired(TypedDict):
    unit: str
    pid: int
    hostname: str
    started_at: str
    """The start of the supervisor: RFC 3339, UTC."""
    version: str
    last_heartbeat: str
    """The time of this presence: RFC 3339, UTC."""
    redis: str
    """`ok`, or the duty that fails and its error; [`RECOVERING`] before others."""
    types: List[str]
    """The script types that are configured; empty if an older version wrote it."""


class SupervisorPresence(_SupervisorPresenceRequired, total=False):
    """The presence of a supervisor, refreshed with every heartbeat."""
    cron: Optional[CronInForce]
    """The periodic jobs of files that it fires; absent if an older version wrote it."""
    clock_step: Optional[ClockStep]
    """The latest step of Redis's clock that it has noticed within the last hour; absent if there was none."""
    settings: str
    """The digest of its settings in force; empty if an older version wrote it."""
    settings_at: str
    """When it read them: RFC 3339, UTC; empty if an older version wrote it."""


class Switched(TypedDict):
    """A periodic job that was enabled or disabled."""
    name: str
    """Its name."""
    enabled: bool
    """Set if it is enabled now."""
    changed: bool
    """Set if that changed it."""


class TestResult(TypedDict):
    """The result of a test."""
    id: str
    """The id of the message."""
    delivery: Optional[DeliveryRecord]
    """Its delivery; none if no supervisor has tried it in time."""


class TimesDocument(TypedDict):
    """Times of attempts."""
    number: int
    """The number of attempts."""
    mean_s: Optional[float]
    """The mean, in seconds."""
    p95_s: Optional[float]
    """A time in seconds that at least 95 of 100 were not above. It is an upper bound, by the buckets of a histogram
    and the sum of the times, and may be above the longest of them."""


class TypeCount(TypedDict):
    """The objects of one type in one context."""
    context: str
    """The context."""
    type: str
    """The type."""
    objects: int
    """The number of objects."""


class TypeCounts(TypedDict):
    """Numbers of objects."""
    types: List[TypeCount]
    """Each type of each context."""
    next: Optional[str]
    """The value of `after` for the next page, if there may be one."""


class TypeStatsDocument(TypedDict):
    """The counters of a script type."""
    script_type: str
    """The script type."""
    submitted: int
    """Jobs submitted."""
    finished: int
    """Jobs that finished."""
    failed: int
    """Jobs that failed. Those that were stopped or replaced are none of them."""
    cancelled: int
    """Jobs that were stopped."""
    replaced: int
    """Jobs that a later one with their unique key replaced."""
    failed_percent: Optional[float]
    """The share of jobs that failed, of those that failed or finished, in per cent."""
    wait: TimesDocument
    """The times that attempts waited."""
    run: TimesDocument
    """The times that attempts ran."""


class UnchangedJob(TypedDict):
    """A job that stays as it is."""
    id: str
    """The id of the job, as it was given."""
    problem: str
    """The reason."""


class UnservedJobs(TypedDict):
    """Jobs of one target that no live actor claims."""
    jobs: int
    """The number of these jobs."""
    reason: str
    """The reason, and where to look."""


class UnservedList(TypedDict):
    """A list that has no queue's name, or is of an unknown type."""
    list: str
    """Its name."""
    length: Optional[int]
    """The number of ids in it; null if it is no list."""


class WebhookList(TypedDict):
    """The webhooks and their latest deliveries."""
    hooks: List[ConfiguredWebhook]
    """The webhooks that are configured here."""
    deliveries: List[AuditRecord]
    """The records of deliveries, each with its verdict, the newest first. Of refused ones each supervisor keeps one
    a minute."""


class WebhookTest(TypedDict, total=False):
    """The result of a test."""
    job: Optional[Dict[str, Any]]
    """The settings of the job that it would submit; none if it would skip the delivery."""
    skipped: Optional[str]
    """The condition that the delivery does not meet."""


ActorState = Literal['ready', 'draining', 'foreign']
"""The state of an actor. ready: It claims jobs. draining: It claims no more jobs; running ones end. foreign: It
belongs to a foreign program, which does not report."""

AttemptOutcome = Literal['running', 'finished', 'error', 'crashed', 'given_back', 'postponed']
"""The kind of an attempt's end. running: It has not ended. finished: The job finished. error: The script failed,
ran out of time or was stopped. crashed: Its actor died, or exceeded the timeout as a foreign actor. given_back: Its
actor stopped and gave the job back. postponed: Its script asked to be run again later."""

ChangeWord = Literal['retry', 'stop', 'delete', 'edit']
"""The word of a change."""

ChangedSettings = Dict[str, Any]
"""Members of a job, named as the fields of its hash."""

CheckState = Literal['ok', 'warning', 'critical', 'unknown']
"""The state of a check; its number is the exit code of monitoring plugins."""

Every = Literal['machine', 'actor']
"""The receivers of the copies of a job. machine: Every machine with an actor of the type. actor: Every actor of the
type."""

EveryOrNone = Literal['machine', 'actor', 'none']
"""The receivers that a periodic job gets, or none. machine: Every machine with an actor of the type. actor: Every
actor of the type. none: None: each firing submits one job."""

FileSide = Literal['input', 'output', 'stdin']
"""The side of a job that a file is on. input: Its submitter gave it. output: Its script left it. stdin: Its
submitter gave it as standard input."""

GraphJobOutcome = Literal['waiting', 'finished', 'failed', 'cancelled']
"""The outcome of a job of a graph. waiting: It has not ended. finished: It finished, or failed and may fail.
failed: It ended in an error. cancelled: It was stopped, or deleted before its end."""

GraphKind = Literal['graph', 'batch']
"""The kind of a joint submission. graph: As a graph: they wait for each other by name. batch: As a batch."""

GraphOrder = Literal['go']
"""An order to a graph or batch. go: Start the jobs that wait for the end of its pause."""

GraphState = Literal['running', 'finished', 'failed', 'cancelled']
"""The state of a graph. running: Some of its jobs have not ended. finished: All have finished. failed: All have
ended, and some failed. cancelled: All have ended, none failed, and some were cancelled."""

HealthState = Literal['ok', 'warning', 'critical']
"""The state of the whole namespace: the severity of its worst problem. ok: Nothing is wrong; notes may be there.
warning: A warning is the worst. critical: Something is critical."""

JobStatus = Literal['created', 'waiting_for_prerequisites', 'scheduled', 'dispatched', 'started', 'finished', 'error']
"""The state of a job. Only the server-side scripts change it, and only as [`JobStatus::may_become`] allows.
created: Stored, not started. waiting_for_prerequisites: Waits for its prerequisites. scheduled: Waits for its time:
a `run_at`, or the backoff before a retry. dispatched: Waits in its queue. started: Runs. finished: Succeeded.
Terminal. error: Failed, was stopped, or could not run. Terminal."""

ProblemKind = Literal['few_supervisors', 'supervisor_fails', 'cron_changed', 'cron_refused', 'cron_unheard', 'cron_unknown', 'cron_overdue', 'redis_replica', 'redis_refuses_writes', 'redis_emptied', 'redis_old', 'redis_unknown', 'redis_cannot_append', 'redis_cannot_save', 'redis_forgets', 'redis_named_alone', 'redis_memory', 'wrong_type', 'clock_differs', 'clock_stepped', 'queue_depth', 'queue_without_actor', 'queue_of_unknown_type', 'list_unserved', 'ids_without_hash', 'queue_wait', 'queue_held', 'queue_held_long', 'queue_paused', 'jobs_failed', 'dead_letters', 'dead_letters_kept', 'failures_rise', 'jobs_due', 'actors_hold', 'actor_oom_killed', 'actor_silent', 'folders_left', 'machine_clones', 'broker_gone', 'broker_outage', 'broker_dispatchers', 'amqp_dead_letters', 'log_events_lost', 'notification_fails', 'versions_differ']
"""The kind of a problem. few_supervisors: Too few supervisors are live. supervisor_fails: A supervisor cannot do
its duties. cron_changed: A file of periodic jobs has changed since a supervisor read it. cron_refused: A periodic
job is not in force because of a mistake. cron_unheard: A periodic job names a notification that a supervisor does
not have. cron_unknown: A notification names a periodic job that does not exist. cron_overdue: A periodic job has
not succeeded for twice its interval. redis_replica: Redis is a replica, which refuses writes. redis_refuses_writes:
Redis refuses every write. redis_emptied: Redis has lost all keys of the namespace. redis_old: Redis is too old.
redis_unknown: Redis does not report its state. redis_cannot_append: Redis cannot write its append-only file.
redis_cannot_save: Redis cannot write its snapshot. redis_forgets: Redis may lose accepted jobs. redis_named_alone:
Redis is a node of a cluster that is named alone. redis_memory: Redis uses much of its memory. wrong_type: A key of
the namespace is used by another program. clock_differs: The clock of a machine differs from Redis's. clock_stepped:
The clock of Redis was set. queue_depth: A queue is deep. queue_without_actor: A queue has jobs and no actor.
queue_of_unknown_type: A queue has jobs of a script type that is not configured, and no actor. list_unserved:
Programs pushed ids to a list that nobody serves. ids_without_hash: Programs pushed ids whose hashes are not there.
queue_wait: The first job of a queue waits for long. queue_held: Limits hold jobs of a queue. queue_held_long:
Limits or a pause hold jobs of a queue for long. queue_paused: A queue is paused. jobs_failed: Jobs failed in the
last hour. dead_letters: Jobs became dead letters in the last hour. dead_letters_kept: Dead letters are kept.
failures_rise: The share of failures has risen. jobs_due: Scheduled jobs are due, and nobody dispatches them.
actors_hold: Actors claim no jobs, as their machines are overloaded or full. actor_oom_killed: An actor was killed
for lack of memory. actor_silent: An actor has no heartbeat, though it has not shut down. folders_left: Actors
cannot remove folders of jobs. machine_clones: Machines have the same machine id. broker_gone: A broker of RabbitMQ
does not renew its presence. broker_outage: A broker has no RabbitMQ, Redis or MariaDB. broker_dispatchers:
Dispatchers of a broker do not consume. amqp_dead_letters: A queue of RabbitMQ has dead letters. log_events_lost: A
broker has lost log events. notification_fails: A notification cannot be delivered. versions_differ: Daemons have
other versions than this program."""

Severity = Literal['note', 'warning', 'critical']
"""The severity of a problem. note: Worth knowing, and not wrong. warning: Wrong; look at it soon. critical: Wrong;
look at it now."""

StatsBy = Literal['host', 'actor', 'name']
"""The places by which ended jobs are counted. host: The machine that ran the job. actor: The actor that ran it.
name: The name of the job."""


class Methods:
    """The methods of the API."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def actor_drain(self, *, actor: str) -> NotifiedActors:
        """Lets an actor claim no more jobs; running jobs end, the process stays."""
        answer: NotifiedActors = self._call("actor.drain", _given({"actor": actor}))
        return answer

    def actor_list(self, *, script_type: Optional[str] = None, where: Optional[str] = None) -> LiveActors:
        """Lists the live actors."""
        answer: LiveActors = self._call("actor.list", _given({"script_type": script_type, "where": where}))
        return answer

    def actor_ping(self, *, actor: str, wait: Optional[float] = None) -> Pong:
        """Asks a live actor for an answer."""
        answer: Pong = self._call("actor.ping", _given({"actor": actor, "wait": wait}))
        return answer

    def actor_resume(self, *, actor: str) -> NotifiedActors:
        """Lets a drained actor claim jobs again."""
        answer: NotifiedActors = self._call("actor.resume", _given({"actor": actor}))
        return answer

    def actor_stop(self, *, actor: str) -> NotifiedActors:
        """Drains an actor, then ends its process."""
        answer: NotifiedActors = self._call("actor.stop", _given({"actor": actor}))
        return answer

    def audit_list(self, *, since: Optional[str] = None, until: Optional[str] = None, who: Optional[str] = None, what: Optional[str] = None, limit: Optional[int] = None) -> AuditList:
        """Lists the changes that people and programs made, the newest first: who, what, to what, from where,
        when."""
        answer: AuditList = self._call("audit.list", _given({"since": since, "until": until, "who": who, "what": what, "limit": limit}))
        return answer

    def batch_submit(self, *, jobs: List[BatchJob], all_or_none: Optional[bool] = None, name: Optional[str] = None, id: Optional[str] = None, on_success: Optional[JobSettings] = None, on_failure: Optional[JobSettings] = None, on_end: Optional[JobSettings] = None, notify: Optional[List[str]] = None, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, every: Optional[Every] = None, pause_after: Optional[str] = None, more: Optional[bool] = None, opening: Optional[str] = None) -> SubmittedBatch:
        """Submits many jobs: each is accepted or rejected by itself, or all or none."""
        answer: SubmittedBatch = self._call("batch.submit", _given({"jobs": jobs, "all_or_none": all_or_none, "name": name, "id": id, "on_success": on_success, "on_failure": on_failure, "on_end": on_end, "notify": notify, "at_a_time": at_a_time, "stop_after": stop_after, "every": every, "pause_after": pause_after, "more": more, "opening": opening}))
        return answer

    def cron_add(self, *, name: str, schedule: str, time_zone: Optional[str] = None, catch_up: Optional[Literal['skip', 'once', 'all', None]] = None, overlap: Optional[Literal['skip', 'allow', 'replace', None]] = None, spread: Optional[str] = None, calendar: Optional[str] = None, job: Optional[JobSettings] = None, every: Optional[EveryOrNone] = None, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, pause_after: Optional[str] = None, graph: Optional[GraphToSubmit] = None) -> ChangedPeriodicJob:
        """Adds a periodic job to those in Redis, which every supervisor fires beside those in files."""
        answer: ChangedPeriodicJob = self._call("cron.add", _given({"name": name, "schedule": schedule, "time_zone": time_zone, "catch_up": catch_up, "overlap": overlap, "spread": spread, "calendar": calendar, "job": job, "every": every, "at_a_time": at_a_time, "stop_after": stop_after, "pause_after": pause_after, "graph": graph}))
        return answer

    def cron_backfill(self, *, name: str, since: str, until: Optional[str] = None, only_missing: Optional[bool] = None) -> Backfilled:
        """Submits the jobs of a periodic job for its firings in a period of the past."""
        answer: Backfilled = self._call("cron.backfill", _given({"name": name, "since": since, "until": until, "only_missing": only_missing}))
        return answer

    def cron_delete(self, *, name: str) -> ChangedPeriodicJob:
        """Deletes a periodic job in Redis, with its history; its jobs stay."""
        answer: ChangedPeriodicJob = self._call("cron.delete", _given({"name": name}))
        return answer

    def cron_disable(self, *, name: str) -> Switched:
        """Disables a periodic job: it does not fire until it is enabled."""
        answer: Switched = self._call("cron.disable", _given({"name": name}))
        return answer

    def cron_edit(self, *, name: str, schedule: Optional[str] = None, time_zone: Optional[str] = None, catch_up: Optional[Literal['skip', 'once', 'all', None]] = None, overlap: Optional[Literal['skip', 'allow', 'replace', None]] = None, spread: Optional[str] = None, calendar: Optional[str] = None, job: Optional[ChangedSettings] = None, every: Optional[EveryOrNone] = None, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, pause_after: Optional[str] = None, graph: Optional[GraphToSubmit] = None) -> ChangedPeriodicJob:
        """Changes a periodic job in Redis: given settings replace its own."""
        answer: ChangedPeriodicJob = self._call("cron.edit", _given({"name": name, "schedule": schedule, "time_zone": time_zone, "catch_up": catch_up, "overlap": overlap, "spread": spread, "calendar": calendar, "job": job, "every": every, "at_a_time": at_a_time, "stop_after": stop_after, "pause_after": pause_after, "graph": graph}))
        return answer

    def cron_enable(self, *, name: str) -> Switched:
        """Lets a disabled periodic job fire again."""
        answer: Switched = self._call("cron.enable", _given({"name": name}))
        return answer

    def cron_get(self, *, name: str) -> PeriodicJobHistoryDocument:
        """Shows a periodic job with its next and latest firings."""
        answer: PeriodicJobHistoryDocument = self._call("cron.get", _given({"name": name}))
        return answer

    def cron_history(self, *, name: str, limit: Optional[int] = None) -> FiringList:
        """Lists the latest firings of a periodic job, the newest first: at most 100 are kept."""
        answer: FiringList = self._call("cron.history", _given({"name": name, "limit": limit}))
        return answer

    def cron_list(self) -> PeriodicJobList:
        """Lists the periodic jobs: when each is due next, and how its last firing ended."""
        answer: PeriodicJobList = self._call("cron.list", _given({}))
        return answer

    def cron_run(self, *, name: str) -> Id:
        """Runs a periodic job now, besides its schedule: returns the id of its job, or of its batch."""
        answer: Id = self._call("cron.run", _given({"name": name}))
        return answer

    def dead_delete(self, *, status: Optional[str] = None, script_type: Optional[str] = None, ids: Optional[List[str]] = None, all: Optional[bool] = None, dry_run: Optional[bool] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> ManyChangedDocument:
        """Deletes dead letters: those that are named, or, with the scope admin, all that match a filter."""
        answer: ManyChangedDocument = self._call("dead.delete", _given({"status": status, "script_type": script_type, "ids": ids, "all": all, "dry_run": dry_run, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    def dead_list(self, *, status: Optional[str] = None, script_type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> JobPage:
        """Lists dead letters, the newest first, page by page."""
        answer: JobPage = self._call("dead.list", _given({"status": status, "script_type": script_type, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    def dead_retry(self, *, status: Optional[str] = None, script_type: Optional[str] = None, ids: Optional[List[str]] = None, all: Optional[bool] = None, dry_run: Optional[bool] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> ManyChangedDocument:
        """Runs dead letters again: those that are named, or all that match a filter."""
        answer: ManyChangedDocument = self._call("dead.retry", _given({"status": status, "script_type": script_type, "ids": ids, "all": all, "dry_run": dry_run, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    def graph_delete(self, *, id: str) -> GraphChange:
        """Deletes a graph or batch with all its jobs, unless one of them runs."""
        answer: GraphChange = self._call("graph.delete", _given({"id": id}))
        return answer

    def graph_edit(self, *, id: str, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, pause_after: Optional[str] = None) -> GraphDocument:
        """Changes how many jobs of a graph or batch run at once, how many failures stop the others, and after how
        many jobs the others pause, also while it runs."""
        answer: GraphDocument = self._call("graph.edit", _given({"id": id, "at_a_time": at_a_time, "stop_after": stop_after, "pause_after": pause_after}))
        return answer

    def graph_get(self, *, id: str, outcome: Optional[GraphJobOutcome] = None, limit: Optional[int] = None, cursor: Optional[int] = None) -> ShownGraph:
        """Returns a graph or batch with a page of its jobs: failed, cancelled, waiting, finished."""
        answer: ShownGraph = self._call("graph.get", _given({"id": id, "outcome": outcome, "limit": limit, "cursor": cursor}))
        return answer

    def graph_list(self, *, limit: Optional[int] = None, cursor: Optional[int] = None) -> ListedGraphs:
        """Lists graphs and batches, the newest first, page by page."""
        answer: ListedGraphs = self._call("graph.list", _given({"limit": limit, "cursor": cursor}))
        return answer

    def graph_retry(self, *, id: str, from_: Optional[str] = None, changes: Optional[Dict[str, Dict[str, Any]]] = None) -> GraphChange:
        """Runs those jobs of a graph or batch again that failed or were stopped, with corrected scripts and
        settings."""
        answer: GraphChange = self._call("graph.retry", _given({"id": id, "from": from_, "changes": changes}))
        return answer

    def graph_stop(self, *, id: str) -> GraphChange:
        """Stops all jobs of a graph or batch that have not ended."""
        answer: GraphChange = self._call("graph.stop", _given({"id": id}))
        return answer

    def graph_submit(self, *, jobs: List[GraphJobToSubmit], name: Optional[str] = None, id: Optional[str] = None, on_success: Optional[JobSettings] = None, on_failure: Optional[JobSettings] = None, on_end: Optional[JobSettings] = None, notify: Optional[List[str]] = None, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, pause_after: Optional[str] = None) -> SubmittedGraph:
        """Submits jobs that wait for each other by name: all or none."""
        answer: SubmittedGraph = self._call("graph.submit", _given({"jobs": jobs, "name": name, "id": id, "on_success": on_success, "on_failure": on_failure, "on_end": on_end, "notify": notify, "at_a_time": at_a_time, "stop_after": stop_after, "pause_after": pause_after}))
        return answer

    def graph_tell(self, *, id: str, order: GraphOrder) -> GraphDocument:
        """Continues a graph or batch that pauses after its first jobs."""
        answer: GraphDocument = self._call("graph.tell", _given({"id": id, "order": order}))
        return answer

    def graph_wait(self, *, id: str, wait: Optional[float] = None) -> GraphDocument:
        """Waits until all jobs of a graph or batch have ended and returns it; if the wait ends first, as it is
        then."""
        answer: GraphDocument = self._call("graph.wait", _given({"id": id, "wait": wait}))
        return answer

    def hook_list(self, *, limit: Optional[int] = None) -> WebhookList:
        """Lists the webhooks of the configuration and their latest deliveries, the newest first."""
        answer: WebhookList = self._call("hook.list", _given({"limit": limit}))
        return answer

    def hook_test(self, *, name: str, body: str, headers: Optional[Dict[str, str]] = None) -> WebhookTest:
        """Returns the job that a webhook would submit for a delivery, without its proof and without submitting
        it."""
        answer: WebhookTest = self._call("hook.test", _given({"name": name, "body": body, "headers": headers}))
        return answer

    def job_change_many(self, *, change: ChangeWord, ids: Optional[List[str]] = None, filter: Optional[ListJobs] = None, with_dependents: Optional[bool] = None, changes: Optional[Dict[str, Any]] = None, edit: Optional[EditedValues] = None, dry_run: Optional[bool] = None, yes: Optional[bool] = None, children: Optional[bool] = None, uncounted: Optional[bool] = None) -> ManyChangedDocument:
        """Retries, stops, deletes or edits many jobs: those that are named, or all that match a filter."""
        answer: ManyChangedDocument = self._call("job.change_many", _given({"change": change, "ids": ids, "filter": filter, "with_dependents": with_dependents, "changes": changes, "edit": edit, "dry_run": dry_run, "yes": yes, "children": children, "uncounted": uncounted}))
        return answer

    def job_clear(self, *, yes: bool) -> Deleted:
        """Deletes every job that is not running."""
        answer: Deleted = self._call("job.clear", _given({"yes": yes}))
        return answer

    def job_clone(self, *, id: str, changes: Optional[Dict[str, Any]] = None, dry_run: Optional[bool] = None) -> ClonedJob:
        """Submits a copy of a job, with changes, and returns its id."""
        answer: ClonedJob = self._call("job.clone", _given({"id": id, "changes": changes, "dry_run": dry_run}))
        return answer

    def job_create(self, *, job: JobSettings, inputs: Optional[Dict[str, str]] = None, stdin: Optional[str] = None) -> SubmittedId:
        """Stores a job without starting it; job.start does that."""
        answer: SubmittedId = self._call("job.create", _given({"job": job, "inputs": inputs, "stdin": stdin}))
        return answer

    def job_delete(self, *, id: str) -> JobChangeResult:
        """Deletes a job that is not running, with its log."""
        answer: JobChangeResult = self._call("job.delete", _given({"id": id}))
        return answer

    def job_dependents(self, *, id: str, limit: Optional[int] = None, cursor: Optional[int] = None) -> DependentsPage:
        """Lists the ids of the jobs that wait for a job, or did, as they were submitted, page by page."""
        answer: DependentsPage = self._call("job.dependents", _given({"id": id, "limit": limit, "cursor": cursor}))
        return answer

    def job_edit(self, *, id: str, priority: Optional[int] = None, group: Optional[str] = None, run_at: Optional[str] = None, changes: Optional[Dict[str, Any]] = None) -> JobChangeResult:
        """Changes the priority, the group, the earliest time, the script or other settings of a job that has not
        started."""
        answer: JobChangeResult = self._call("job.edit", _given({"id": id, "priority": priority, "group": group, "run_at": run_at, "changes": changes}))
        return answer

    def job_errors(self, *, status: Optional[str] = None, script_type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> ErrorGroupsDocument:
        """Groups the latest failed jobs that job.list finds by the kind of their error."""
        answer: ErrorGroupsDocument = self._call("job.errors", _given({"status": status, "script_type": script_type, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    def job_file(self, *, id: str, name: str) -> FileContent:
        """Returns a file of a job."""
        answer: FileContent = self._call("job.file", _given({"id": id, "name": name}))
        return answer

    def job_files(self, *, id: str) -> ListedFiles:
        """Lists the files of a job: those that its script left, and those that it was given."""
        answer: ListedFiles = self._call("job.files", _given({"id": id}))
        return answer

    def job_get(self, *, id: str, trees: Optional[bool] = None, dead: Optional[bool] = None) -> Job:
        """Returns a job with all its fields."""
        answer: Job = self._call("job.get", _given({"id": id, "trees": trees, "dead": dead}))
        return answer

    def job_list(self, *, status: Optional[str] = None, script_type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> JobPage:
        """Lists jobs, the latest change first, page by page: all, or those that the filters find."""
        answer: JobPage = self._call("job.list", _given({"status": status, "script_type": script_type, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    def job_log(self, *, id: str, after: Optional[str] = None, since: Optional[str] = None, limit: Optional[int] = None, last: Optional[bool] = None) -> LogPart:
        """Returns lines of a job's log."""
        answer: LogPart = self._call("job.log", _given({"id": id, "after": after, "since": since, "limit": limit, "last": last}))
        return answer

    def job_output(self, *, id: str) -> OutputResult:
        """Returns the output of a finished job."""
        answer: OutputResult = self._call("job.output", _given({"id": id}))
        return answer

    def job_retry(self, *, id: str, with_dependents: Optional[bool] = None, changes: Optional[Dict[str, Any]] = None) -> Retried:
        """Runs an ended job again, with a corrected script or other settings if they are given."""
        answer: Retried = self._call("job.retry", _given({"id": id, "with_dependents": with_dependents, "changes": changes}))
        return answer

    def job_run(self, *, job: JobSettings, wait: Optional[float] = None, inputs: Optional[Dict[str, str]] = None, stdin: Optional[str] = None) -> Job:
        """Submits a job, waits for its end and returns it; if the wait ends first, as it is then."""
        answer: Job = self._call("job.run", _given({"job": job, "wait": wait, "inputs": inputs, "stdin": stdin}))
        return answer

    def job_start(self, *, id: str) -> JobChangeResult:
        """Starts a created job."""
        answer: JobChangeResult = self._call("job.start", _given({"id": id}))
        return answer

    def job_stop(self, *, id: str, children: Optional[bool] = None) -> JobChangeResult:
        """Stops a job, waiting or running, and the jobs below it if asked."""
        answer: JobChangeResult = self._call("job.stop", _given({"id": id, "children": children}))
        return answer

    def job_submit(self, *, job: JobSettings, inputs: Optional[Dict[str, str]] = None, stdin: Optional[str] = None) -> SubmittedId:
        """Submits a job and returns its id; if a job with its unique key has not ended, that job's id. A submission
        that is repeated with the same id and the same content returns that job."""
        answer: SubmittedId = self._call("job.submit", _given({"job": job, "inputs": inputs, "stdin": stdin}))
        return answer

    def job_tell(self, *, id: str, event: str, data: Any = None) -> JobChangeResult:
        """Tells a job an event that its script waits for; one that it does not wait for yet is kept for its next
        wait."""
        answer: JobChangeResult = self._call("job.tell", _given({"id": id, "event": event, "data": data}))
        return answer

    def job_wait(self, *, id: str, wait: Optional[float] = None) -> Job:
        """Waits for the end of a job and returns it; if the wait ends first, as it is then."""
        answer: Job = self._call("job.wait", _given({"id": id, "wait": wait}))
        return answer

    def limit_list(self) -> LimitList:
        """Lists the limits, the jobs that run under each and the jobs that it holds."""
        answer: LimitList = self._call("limit.list", _given({}))
        return answer

    def machine_drain(self, *, machine: str, wait: Optional[float] = None) -> MachineChange:
        """Lets no live actor of a machine claim more jobs, and waits for those that run."""
        answer: MachineChange = self._call("machine.drain", _given({"machine": machine, "wait": wait}))
        return answer

    def machine_forget(self, *, machine: str) -> ForgottenMachine:
        """Forgets a machine without a live actor, until one is seen on it again."""
        answer: ForgottenMachine = self._call("machine.forget", _given({"machine": machine}))
        return answer

    def machine_list(self, *, script_type: Optional[str] = None, where: Optional[str] = None) -> MachineList:
        """Lists the machines that actors live on, or were seen on in the last days."""
        answer: MachineList = self._call("machine.list", _given({"script_type": script_type, "where": where}))
        return answer

    def machine_resume(self, *, machine: str) -> MachineChange:
        """Lets the live actors of a machine claim jobs again."""
        answer: MachineChange = self._call("machine.resume", _given({"machine": machine}))
        return answer

    def notify_list(self, *, limit: Optional[int] = None) -> DeliveryList:
        """Lists the notifications of the supervisor's configuration, what each holds, those that fail, and the
        latest deliveries, the newest first."""
        answer: DeliveryList = self._call("notify.list", _given({"limit": limit}))
        return answer

    def notify_test(self, *, name: str) -> TestResult:
        """Sends a test by a notification of the supervisors' configuration, and waits up to 15 s for its
        delivery."""
        answer: TestResult = self._call("notify.test", _given({"name": name}))
        return answer

    def object_delete(self, *, type: str, ids: List[str], context: Optional[str] = None) -> Deleted:
        """Deletes objects of one type."""
        answer: Deleted = self._call("object.delete", _given({"type": type, "ids": ids, "context": context}))
        return answer

    def object_find(self, *, type: str, query: str, context: Optional[str] = None, limit: Optional[int] = None) -> ObjectPage:
        """Finds the objects that match a query."""
        answer: ObjectPage = self._call("object.find", _given({"type": type, "query": query, "context": context, "limit": limit}))
        return answer

    def object_get(self, *, type: str, id: str, context: Optional[str] = None) -> Dict[str, Any]:
        """Returns one object."""
        answer: Dict[str, Any] = self._call("object.get", _given({"type": type, "id": id, "context": context}))
        return answer

    def object_list(self, *, type: str, context: Optional[str] = None, after: Optional[str] = None, limit: Optional[int] = None) -> ObjectPage:
        """Lists the objects of one type by id, page by page."""
        answer: ObjectPage = self._call("object.list", _given({"type": type, "context": context, "after": after, "limit": limit}))
        return answer

    def object_types(self, *, context: Optional[str] = None, after: Optional[str] = None) -> TypeCounts:
        """Counts the objects of each type by context, page by page."""
        answer: TypeCounts = self._call("object.types", _given({"context": context, "after": after}))
        return answer

    def queue_drain(self, *, queue: Union[str, List[str]], force: Optional[bool] = None) -> Drained:
        """Pauses a queue, or all queues of a rule, and counts the jobs of them that run: none once it is
        drained."""
        answer: Drained = self._call("queue.drain", _given({"queue": queue, "force": force}))
        return answer

    def queue_list(self) -> QueueList:
        """Lists the queues: their depth, held jobs, the wait of the first."""
        answer: QueueList = self._call("queue.list", _given({}))
        return answer

    def queue_pause(self, *, queue: Union[str, List[str]], force: Optional[bool] = None) -> Paused:
        """Pauses a queue, or all queues of a rule: no actor claims their jobs until they are resumed."""
        answer: Paused = self._call("queue.pause", _given({"queue": queue, "force": force}))
        return answer

    def queue_purge(self, *, queue: Union[str, List[str]], force: Optional[bool] = None) -> Purged:
        """Ends all waiting jobs of a queue in error, as job.stop does."""
        answer: Purged = self._call("queue.purge", _given({"queue": queue, "force": force}))
        return answer

    def queue_resume(self, *, queue: Union[str, List[str]], force: Optional[bool] = None) -> Resumed:
        """Resumes a paused queue, or all queues of a rule."""
        answer: Resumed = self._call("queue.resume", _given({"queue": queue, "force": force}))
        return answer

    def script_check(self, *, script: str, script_type: str, extension: Optional[str] = None) -> Findings:
        """Checks a script without running it, and returns its mistakes."""
        answer: Findings = self._call("script.check", _given({"script": script, "script_type": script_type, "extension": extension}))
        return answer

    def script_delete(self, *, name: str) -> DeletedScript:
        """Deletes a published script with all its versions; its jobs keep their texts."""
        answer: DeletedScript = self._call("script.delete", _given({"name": name}))
        return answer

    def script_functions(self, *, script_type: Optional[str] = None, name: Optional[str] = None) -> Documented:
        """Documents the functions that osis and sal scripts can call."""
        answer: Documented = self._call("script.functions", _given({"script_type": script_type, "name": name}))
        return answer

    def script_get(self, *, name: str) -> ScriptTextDocument:
        """Shows a published script: its parameters, its settings and its text."""
        answer: ScriptTextDocument = self._call("script.get", _given({"name": name}))
        return answer

    def script_history(self, *, name: str) -> ScriptVersions:
        """Lists the versions of a published script that are kept, the newest first."""
        answer: ScriptVersions = self._call("script.history", _given({"name": name}))
        return answer

    def script_list(self) -> ScriptList:
        """Lists the latest version of each published script, without its text."""
        answer: ScriptList = self._call("script.list", _given({}))
        return answer

    def script_publish(self, *, name: str, script: str, description: Optional[str] = None, params: Optional[Dict[str, Any]] = None, settings: Optional[Dict[str, Any]] = None) -> PublishedDocument:
        """Publishes a version of a script: jobs name it by `uses`. The same version again publishes nothing."""
        answer: PublishedDocument = self._call("script.publish", _given({"name": name, "script": script, "description": description, "params": params, "settings": settings}))
        return answer

    def script_rollback(self, *, name: str, version: int) -> PublishedDocument:
        """Publishes the text and the settings of an older version of a script as a new version."""
        answer: PublishedDocument = self._call("script.rollback", _given({"name": name, "version": version}))
        return answer

    def session_end(self, *, id: str) -> JobChangeResult:
        """Ends a session."""
        answer: JobChangeResult = self._call("session.end", _given({"id": id}))
        return answer

    def session_list(self) -> SessionList:
        """Lists the sessions that have not ended."""
        answer: SessionList = self._call("session.list", _given({}))
        return answer

    def session_run(self, *, id: str, script: str, timeout: Optional[float] = None) -> RanInSession:
        """Runs a script in a session of the caller, and returns its exit code and what it wrote. A session runs one
        at a time; a script that goes on after its `timeout` ends the session."""
        answer: RanInSession = self._call("session.run", _given({"id": id, "script": script, "timeout": timeout}))
        return answer

    def session_start(self, *, script_type: str, timeout: Optional[float] = None, idle: Optional[float] = None, name: Optional[str] = None, group: Optional[str] = None, context_id: Optional[str] = None, env_vars: Optional[Dict[str, str]] = None, inputs: Optional[Dict[str, str]] = None, wait: Optional[float] = None) -> StartedSession:
        """Starts a session: a folder, and an interpreter whose variables stay, for calls by session.run. It ends
        after `timeout`, after `idle` without a call, or by session.end."""
        answer: StartedSession = self._call("session.start", _given({"script_type": script_type, "timeout": timeout, "idle": idle, "name": name, "group": group, "context_id": context_id, "env_vars": env_vars, "inputs": inputs, "wait": wait}))
        return answer

    def stats_get(self, *, since: Optional[str] = None, until: Optional[str] = None, by: Optional[StatsBy] = None, script_type: Optional[str] = None) -> StatsDocument:
        """Returns how many jobs of each type came and ended, and how long they waited and ran: since the first of
        each type, or in a period of the last 30 days; or failures and times of the latest ended jobs by machine or
        actor."""
        answer: StatsDocument = self._call("stats.get", _given({"since": since, "until": until, "by": by, "script_type": script_type}))
        return answer

    def system_health(self) -> NamespaceHealth:
        """Returns what is wrong now, as `hero status --check` and `hero doctor` tell it: the state of the namespace
        and its problems, the worst first."""
        answer: NamespaceHealth = self._call("system.health", _given({}))
        return answer

    def system_info(self) -> Info:
        """Returns the version, the address of Redis and the script types that the caller may use."""
        answer: Info = self._call("system.info", _given({}))
        return answer

    def system_status(self) -> StatusDocument:
        """Returns the state of the namespace as `hero status` shows it: Redis, supervisors, actors by type, queues
        and jobs by type, and the verdict of `hero status --check`."""
        answer: StatusDocument = self._call("system.status", _given({}))
        return answer


class AsyncMethods:
    """The methods of the API for asyncio."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Awaitable[Any]]) -> None:
        self._call = call

    async def actor_drain(self, *, actor: str) -> NotifiedActors:
        """Lets an actor claim no more jobs; running jobs end, the process stays."""
        answer: NotifiedActors = await self._call("actor.drain", _given({"actor": actor}))
        return answer

    async def actor_list(self, *, script_type: Optional[str] = None, where: Optional[str] = None) -> LiveActors:
        """Lists the live actors."""
        answer: LiveActors = await self._call("actor.list", _given({"script_type": script_type, "where": where}))
        return answer

    async def actor_ping(self, *, actor: str, wait: Optional[float] = None) -> Pong:
        """Asks a live actor for an answer."""
        answer: Pong = await self._call("actor.ping", _given({"actor": actor, "wait": wait}))
        return answer

    async def actor_resume(self, *, actor: str) -> NotifiedActors:
        """Lets a drained actor claim jobs again."""
        answer: NotifiedActors = await self._call("actor.resume", _given({"actor": actor}))
        return answer

    async def actor_stop(self, *, actor: str) -> NotifiedActors:
        """Drains an actor, then ends its process."""
        answer: NotifiedActors = await self._call("actor.stop", _given({"actor": actor}))
        return answer

    async def audit_list(self, *, since: Optional[str] = None, until: Optional[str] = None, who: Optional[str] = None, what: Optional[str] = None, limit: Optional[int] = None) -> AuditList:
        """Lists the changes that people and programs made, the newest first: who, what, to what, from where,
        when."""
        answer: AuditList = await self._call("audit.list", _given({"since": since, "until": until, "who": who, "what": what, "limit": limit}))
        return answer

    async def batch_submit(self, *, jobs: List[BatchJob], all_or_none: Optional[bool] = None, name: Optional[str] = None, id: Optional[str] = None, on_success: Optional[JobSettings] = None, on_failure: Optional[JobSettings] = None, on_end: Optional[JobSettings] = None, notify: Optional[List[str]] = None, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, every: Optional[Every] = None, pause_after: Optional[str] = None, more: Optional[bool] = None, opening: Optional[str] = None) -> SubmittedBatch:
        """Submits many jobs: each is accepted or rejected by itself, or all or none."""
        answer: SubmittedBatch = await self._call("batch.submit", _given({"jobs": jobs, "all_or_none": all_or_none, "name": name, "id": id, "on_success": on_success, "on_failure": on_failure, "on_end": on_end, "notify": notify, "at_a_time": at_a_time, "stop_after": stop_after, "every": every, "pause_after": pause_after, "more": more, "opening": opening}))
        return answer

    async def cron_add(self, *, name: str, schedule: str, time_zone: Optional[str] = None, catch_up: Optional[Literal['skip', 'once', 'all', None]] = None, overlap: Optional[Literal['skip', 'allow', 'replace', None]] = None, spread: Optional[str] = None, calendar: Optional[str] = None, job: Optional[JobSettings] = None, every: Optional[EveryOrNone] = None, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, pause_after: Optional[str] = None, graph: Optional[GraphToSubmit] = None) -> ChangedPeriodicJob:
        """Adds a periodic job to those in Redis, which every supervisor fires beside those in files."""
        answer: ChangedPeriodicJob = await self._call("cron.add", _given({"name": name, "schedule": schedule, "time_zone": time_zone, "catch_up": catch_up, "overlap": overlap, "spread": spread, "calendar": calendar, "job": job, "every": every, "at_a_time": at_a_time, "stop_after": stop_after, "pause_after": pause_after, "graph": graph}))
        return answer

    async def cron_backfill(self, *, name: str, since: str, until: Optional[str] = None, only_missing: Optional[bool] = None) -> Backfilled:
        """Submits the jobs of a periodic job for its firings in a period of the past."""
        answer: Backfilled = await self._call("cron.backfill", _given({"name": name, "since": since, "until": until, "only_missing": only_missing}))
        return answer

    async def cron_delete(self, *, name: str) -> ChangedPeriodicJob:
        """Deletes a periodic job in Redis, with its history; its jobs stay."""
        answer: ChangedPeriodicJob = await self._call("cron.delete", _given({"name": name}))
        return answer

    async def cron_disable(self, *, name: str) -> Switched:
        """Disables a periodic job: it does not fire until it is enabled."""
        answer: Switched = await self._call("cron.disable", _given({"name": name}))
        return answer

    async def cron_edit(self, *, name: str, schedule: Optional[str] = None, time_zone: Optional[str] = None, catch_up: Optional[Literal['skip', 'once', 'all', None]] = None, overlap: Optional[Literal['skip', 'allow', 'replace', None]] = None, spread: Optional[str] = None, calendar: Optional[str] = None, job: Optional[ChangedSettings] = None, every: Optional[EveryOrNone] = None, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, pause_after: Optional[str] = None, graph: Optional[GraphToSubmit] = None) -> ChangedPeriodicJob:
        """Changes a periodic job in Redis: given settings replace its own."""
        answer: ChangedPeriodicJob = await self._call("cron.edit", _given({"name": name, "schedule": schedule, "time_zone": time_zone, "catch_up": catch_up, "overlap": overlap, "spread": spread, "calendar": calendar, "job": job, "every": every, "at_a_time": at_a_time, "stop_after": stop_after, "pause_after": pause_after, "graph": graph}))
        return answer

    async def cron_enable(self, *, name: str) -> Switched:
        """Lets a disabled periodic job fire again."""
        answer: Switched = await self._call("cron.enable", _given({"name": name}))
        return answer

    async def cron_get(self, *, name: str) -> PeriodicJobHistoryDocument:
        """Shows a periodic job with its next and latest firings."""
        answer: PeriodicJobHistoryDocument = await self._call("cron.get", _given({"name": name}))
        return answer

    async def cron_history(self, *, name: str, limit: Optional[int] = None) -> FiringList:
        """Lists the latest firings of a periodic job, the newest first: at most 100 are kept."""
        answer: FiringList = await self._call("cron.history", _given({"name": name, "limit": limit}))
        return answer

    async def cron_list(self) -> PeriodicJobList:
        """Lists the periodic jobs: when each is due next, and how its last firing ended."""
        answer: PeriodicJobList = await self._call("cron.list", _given({}))
        return answer

    async def cron_run(self, *, name: str) -> Id:
        """Runs a periodic job now, besides its schedule: returns the id of its job, or of its batch."""
        answer: Id = await self._call("cron.run", _given({"name": name}))
        return answer

    async def dead_delete(self, *, status: Optional[str] = None, script_type: Optional[str] = None, ids: Optional[List[str]] = None, all: Optional[bool] = None, dry_run: Optional[bool] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> ManyChangedDocument:
        """Deletes dead letters: those that are named, or, with the scope admin, all that match a filter."""
        answer: ManyChangedDocument = await self._call("dead.delete", _given({"status": status, "script_type": script_type, "ids": ids, "all": all, "dry_run": dry_run, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    async def dead_list(self, *, status: Optional[str] = None, script_type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> JobPage:
        """Lists dead letters, the newest first, page by page."""
        answer: JobPage = await self._call("dead.list", _given({"status": status, "script_type": script_type, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    async def dead_retry(self, *, status: Optional[str] = None, script_type: Optional[str] = None, ids: Optional[List[str]] = None, all: Optional[bool] = None, dry_run: Optional[bool] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> ManyChangedDocument:
        """Runs dead letters again: those that are named, or all that match a filter."""
        answer: ManyChangedDocument = await self._call("dead.retry", _given({"status": status, "script_type": script_type, "ids": ids, "all": all, "dry_run": dry_run, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    async def graph_delete(self, *, id: str) -> GraphChange:
        """Deletes a graph or batch with all its jobs, unless one of them runs."""
        answer: GraphChange = await self._call("graph.delete", _given({"id": id}))
        return answer

    async def graph_edit(self, *, id: str, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, pause_after: Optional[str] = None) -> GraphDocument:
        """Changes how many jobs of a graph or batch run at once, how many failures stop the others, and after how
        many jobs the others pause, also while it runs."""
        answer: GraphDocument = await self._call("graph.edit", _given({"id": id, "at_a_time": at_a_time, "stop_after": stop_after, "pause_after": pause_after}))
        return answer

    async def graph_get(self, *, id: str, outcome: Optional[GraphJobOutcome] = None, limit: Optional[int] = None, cursor: Optional[int] = None) -> ShownGraph:
        """Returns a graph or batch with a page of its jobs: failed, cancelled, waiting, finished."""
        answer: ShownGraph = await self._call("graph.get", _given({"id": id, "outcome": outcome, "limit": limit, "cursor": cursor}))
        return answer

    async def graph_list(self, *, limit: Optional[int] = None, cursor: Optional[int] = None) -> ListedGraphs:
        """Lists graphs and batches, the newest first, page by page."""
        answer: ListedGraphs = await self._call("graph.list", _given({"limit": limit, "cursor": cursor}))
        return answer

    async def graph_retry(self, *, id: str, from_: Optional[str] = None, changes: Optional[Dict[str, Dict[str, Any]]] = None) -> GraphChange:
        """Runs those jobs of a graph or batch again that failed or were stopped, with corrected scripts and
        settings."""
        answer: GraphChange = await self._call("graph.retry", _given({"id": id, "from": from_, "changes": changes}))
        return answer

    async def graph_stop(self, *, id: str) -> GraphChange:
        """Stops all jobs of a graph or batch that have not ended."""
        answer: GraphChange = await self._call("graph.stop", _given({"id": id}))
        return answer

    async def graph_submit(self, *, jobs: List[GraphJobToSubmit], name: Optional[str] = None, id: Optional[str] = None, on_success: Optional[JobSettings] = None, on_failure: Optional[JobSettings] = None, on_end: Optional[JobSettings] = None, notify: Optional[List[str]] = None, at_a_time: Optional[int] = None, stop_after: Optional[Union[int, str]] = None, pause_after: Optional[str] = None) -> SubmittedGraph:
        """Submits jobs that wait for each other by name: all or none."""
        answer: SubmittedGraph = await self._call("graph.submit", _given({"jobs": jobs, "name": name, "id": id, "on_success": on_success, "on_failure": on_failure, "on_end": on_end, "notify": notify, "at_a_time": at_a_time, "stop_after": stop_after, "pause_after": pause_after}))
        return answer

    async def graph_tell(self, *, id: str, order: GraphOrder) -> GraphDocument:
        """Continues a graph or batch that pauses after its first jobs."""
        answer: GraphDocument = await self._call("graph.tell", _given({"id": id, "order": order}))
        return answer

    async def graph_wait(self, *, id: str, wait: Optional[float] = None) -> GraphDocument:
        """Waits until all jobs of a graph or batch have ended and returns it; if the wait ends first, as it is
        then."""
        answer: GraphDocument = await self._call("graph.wait", _given({"id": id, "wait": wait}))
        return answer

    async def hook_list(self, *, limit: Optional[int] = None) -> WebhookList:
        """Lists the webhooks of the configuration and their latest deliveries, the newest first."""
        answer: WebhookList = await self._call("hook.list", _given({"limit": limit}))
        return answer

    async def hook_test(self, *, name: str, body: str, headers: Optional[Dict[str, str]] = None) -> WebhookTest:
        """Returns the job that a webhook would submit for a delivery, without its proof and without submitting
        it."""
        answer: WebhookTest = await self._call("hook.test", _given({"name": name, "body": body, "headers": headers}))
        return answer

    async def job_change_many(self, *, change: ChangeWord, ids: Optional[List[str]] = None, filter: Optional[ListJobs] = None, with_dependents: Optional[bool] = None, changes: Optional[Dict[str, Any]] = None, edit: Optional[EditedValues] = None, dry_run: Optional[bool] = None, yes: Optional[bool] = None, children: Optional[bool] = None, uncounted: Optional[bool] = None) -> ManyChangedDocument:
        """Retries, stops, deletes or edits many jobs: those that are named, or all that match a filter."""
        answer: ManyChangedDocument = await self._call("job.change_many", _given({"change": change, "ids": ids, "filter": filter, "with_dependents": with_dependents, "changes": changes, "edit": edit, "dry_run": dry_run, "yes": yes, "children": children, "uncounted": uncounted}))
        return answer

    async def job_clear(self, *, yes: bool) -> Deleted:
        """Deletes every job that is not running."""
        answer: Deleted = await self._call("job.clear", _given({"yes": yes}))
        return answer

    async def job_clone(self, *, id: str, changes: Optional[Dict[str, Any]] = None, dry_run: Optional[bool] = None) -> ClonedJob:
        """Submits a copy of a job, with changes, and returns its id."""
        answer: ClonedJob = await self._call("job.clone", _given({"id": id, "changes": changes, "dry_run": dry_run}))
        return answer

    async def job_create(self, *, job: JobSettings, inputs: Optional[Dict[str, str]] = None, stdin: Optional[str] = None) -> SubmittedId:
        """Stores a job without starting it; job.start does that."""
        answer: SubmittedId = await self._call("job.create", _given({"job": job, "inputs": inputs, "stdin": stdin}))
        return answer

    async def job_delete(self, *, id: str) -> JobChangeResult:
        """Deletes a job that is not running, with its log."""
        answer: JobChangeResult = await self._call("job.delete", _given({"id": id}))
        return answer

    async def job_dependents(self, *, id: str, limit: Optional[int] = None, cursor: Optional[int] = None) -> DependentsPage:
        """Lists the ids of the jobs that wait for a job, or did, as they were submitted, page by page."""
        answer: DependentsPage = await self._call("job.dependents", _given({"id": id, "limit": limit, "cursor": cursor}))
        return answer

    async def job_edit(self, *, id: str, priority: Optional[int] = None, group: Optional[str] = None, run_at: Optional[str] = None, changes: Optional[Dict[str, Any]] = None) -> JobChangeResult:
        """Changes the priority, the group, the earliest time, the script or other settings of a job that has not
        started."""
        answer: JobChangeResult = await self._call("job.edit", _given({"id": id, "priority": priority, "group": group, "run_at": run_at, "changes": changes}))
        return answer

    async def job_errors(self, *, status: Optional[str] = None, script_type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> ErrorGroupsDocument:
        """Groups the latest failed jobs that job.list finds by the kind of their error."""
        answer: ErrorGroupsDocument = await self._call("job.errors", _given({"status": status, "script_type": script_type, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    async def job_file(self, *, id: str, name: str) -> FileContent:
        """Returns a file of a job."""
        answer: FileContent = await self._call("job.file", _given({"id": id, "name": name}))
        return answer

    async def job_files(self, *, id: str) -> ListedFiles:
        """Lists the files of a job: those that its script left, and those that it was given."""
        answer: ListedFiles = await self._call("job.files", _given({"id": id}))
        return answer

    async def job_get(self, *, id: str, trees: Optional[bool] = None, dead: Optional[bool] = None) -> Job:
        """Returns a job with all its fields."""
        answer: Job = await self._call("job.get", _given({"id": id, "trees": trees, "dead": dead}))
        return answer

    async def job_list(self, *, status: Optional[str] = None, script_type: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None, queue: Optional[str] = None, caller: Optional[str] = None, name: Optional[str] = None, tags: Optional[List[str]] = None, error: Optional[str] = None, kind: Optional[str] = None, failed_because: Optional[Literal['stopped', 'replaced', 'timeout', 'expired', 'prerequisite', 'crashed', 'invalid', 'signature_expired', 'unsigned', 'script', None]] = None, cancelled: Optional[bool] = None, late: Optional[bool] = None, held: Optional[bool] = None, text: Optional[str] = None, actor: Optional[str] = None, host: Optional[str] = None, parent: Optional[str] = None, since: Optional[str] = None, until: Optional[str] = None, ended_since: Optional[str] = None, ended_until: Optional[str] = None, dead: Optional[bool] = None) -> JobPage:
        """Lists jobs, the latest change first, page by page: all, or those that the filters find."""
        answer: JobPage = await self._call("job.list", _given({"status": status, "script_type": script_type, "limit": limit, "cursor": cursor, "queue": queue, "caller": caller, "name": name, "tags": tags, "error": error, "kind": kind, "failed_because": failed_because, "cancelled": cancelled, "late": late, "held": held, "text": text, "actor": actor, "host": host, "parent": parent, "since": since, "until": until, "ended_since": ended_since, "ended_until": ended_until, "dead": dead}))
        return answer

    async def job_log(self, *, id: str, after: Optional[str] = None, since: Optional[str] = None, limit: Optional[int] = None, last: Optional[bool] = None) -> LogPart:
        """Returns lines of a job's log."""
        answer: LogPart = await self._call("job.log", _given({"id": id, "after": after, "since": since, "limit": limit, "last": last}))
        return answer

    async def job_output(self, *, id: str) -> OutputResult:
        """Returns the output of a finished job."""
        answer: OutputResult = await self._call("job.output", _given({"id": id}))
        return answer

    async def job_retry(self, *, id: str, with_dependents: Optional[bool] = None, changes: Optional[Dict[str, Any]] = None) -> Retried:
        """Runs an ended job again, with a corrected script or other settings if they are given."""
        answer: Retried = await self._call("job.retry", _given({"id": id, "with_dependents": with_dependents, "changes": changes}))
        return answer

    async def job_run(self, *, job: JobSettings, wait: Optional[float] = None, inputs: Optional[Dict[str, str]] = None, stdin: Optional[str] = None) -> Job:
        """Submits a job, waits for its end and returns it; if the wait ends first, as it is then."""
        answer: Job = await self._call("job.run", _given({"job": job, "wait": wait, "inputs": inputs, "stdin": stdin}))
        return answer

    async def job_start(self, *, id: str) -> JobChangeResult:
        """Starts a created job."""
        answer: JobChangeResult = await self._call("job.start", _given({"id": id}))
        return answer

    async def job_stop(self, *, id: str, children: Optional[bool] = None) -> JobChangeResult:
        """Stops a job, waiting or running, and the jobs below it if asked."""
        answer: JobChangeResult = await self._call("job.stop", _given({"id": id, "children": children}))
        return answer

    async def job_submit(self, *, job: JobSettings, inputs: Optional[Dict[str, str]] = None, stdin: Optional[str] = None) -> SubmittedId:
        """Submits a job and returns its id; if a job with its unique key has not ended, that job's id. A submission
        that is repeated with the same id and the same content returns that job."""
        answer: SubmittedId = await self._call("job.submit", _given({"job": job, "inputs": inputs, "stdin": stdin}))
        return answer

    async def job_tell(self, *, id: str, event: str, data: Any = None) -> JobChangeResult:
        """Tells a job an event that its script waits for; one that it does not wait for yet is kept for its next
        wait."""
        answer: JobChangeResult = await self._call("job.tell", _given({"id": id, "event": event, "data": data}))
        return answer

    async def job_wait(self, *, id: str, wait: Optional[float] = None) -> Job:
        """Waits for the end of a job and returns it; if the wait ends first, as it is then."""
        answer: Job = await self._call("job.wait", _given({"id": id, "wait": wait}))
        return answer

    async def limit_list(self) -> LimitList:
        """Lists the limits, the jobs that run under each and the jobs that it holds."""
        answer: LimitList = await self._call("limit.list", _given({}))
        return answer

    async def machine_drain(self, *, machine: str, wait: Optional[float] = None) -> MachineChange:
        """Lets no live actor of a machine claim more jobs, and waits for those that run."""
        answer: MachineChange = await self._call("machine.drain", _given({"machine": machine, "wait": wait}))
        return answer

    async def machine_forget(self, *, machine: str) -> ForgottenMachine:
        """Forgets a machine without a live actor, until one is seen on it again."""
        answer: ForgottenMachine = await self._call("machine.forget", _given({"machine": machine}))
        return answer

    async def machine_list(self, *, script_type: Optional[str] = None, where: Optional[str] = None) -> MachineList:
        """Lists the machines that actors live on, or were seen on in the last days."""
        answer: MachineList = await self._call("machine.list", _given({"script_type": script_type, "where": where}))
        return answer

    async def machine_resume(self, *, machine: str) -> MachineChange:
        """Lets the live actors of a machine claim jobs again."""
        answer: MachineChange = await self._call("machine.resume", _given({"machine": machine}))
        return answer

    async def notify_list(self, *, limit: Optional[int] = None) -> DeliveryList:
        """Lists the notifications of the supervisor's configuration, what each holds, those that fail, and the
        latest deliveries, the newest first."""
        answer: DeliveryList = await self._call("notify.list", _given({"limit": limit}))
        return answer

    async def notify_test(self, *, name: str) -> TestResult:
        """Sends a test by a notification of the supervisors' configuration, and waits up to 15 s for its
        delivery."""
        answer: TestResult = await self._call("notify.test", _given({"name": name}))
        return answer

    async def object_delete(self, *, type: str, ids: List[str], context: Optional[str] = None) -> Deleted:
        """Deletes objects of one type."""
        answer: Deleted = await self._call("object.delete", _given({"type": type, "ids": ids, "context": context}))
        return answer

    async def object_find(self, *, type: str, query: str, context: Optional[str] = None, limit: Optional[int] = None) -> ObjectPage:
        """Finds the objects that match a query."""
        answer: ObjectPage = await self._call("object.find", _given({"type": type, "query": query, "context": context, "limit": limit}))
        return answer

    async def object_get(self, *, type: str, id: str, context: Optional[str] = None) -> Dict[str, Any]:
        """Returns one object."""
        answer: Dict[str, Any] = await self._call("object.get", _given({"type": type, "id": id, "context": context}))
        return answer

    async def object_list(self, *, type: str, context: Optional[str] = None, after: Optional[str] = None, limit: Optional[int] = None) -> ObjectPage:
        """Lists the objects of one type by id, page by page."""
        answer: ObjectPage = await self._call("object.list", _given({"type": type, "context": context, "after": after, "limit": limit}))
        return answer

    async def object_types(self, *, context: Optional[str] = None, after: Optional[str] = None) -> TypeCounts:
        """Counts the objects of each type by context, page by page."""
        answer: TypeCounts = await self._call("object.types", _given({"context": context, "after": after}))
        return answer

    async def queue_drain(self, *, queue: Union[str, List[str]], force: Optional[bool] = None) -> Drained:
        """Pauses a queue, or all queues of a rule, and counts the jobs of them that run: none once it is
        drained."""
        answer: Drained = await self._call("queue.drain", _given({"queue": queue, "force": force}))
        return answer

    async def queue_list(self) -> QueueList:
        """Lists the queues: their depth, held jobs, the wait of the first."""
        answer: QueueList = await self._call("queue.list", _given({}))
        return answer

    async def queue_pause(self, *, queue: Union[str, List[str]], force: Optional[bool] = None) -> Paused:
        """Pauses a queue, or all queues of a rule: no actor claims their jobs until they are resumed."""
        answer: Paused = await self._call("queue.pause", _given({"queue": queue, "force": force}))
        return answer

    async def queue_purge(self, *, queue: Union[str, List[str]], force: Optional[bool] = None) -> Purged:
        """Ends all waiting jobs of a queue in error, as job.stop does."""
        answer: Purged = await self._call("queue.purge", _given({"queue": queue, "force": force}))
        return answer

    async def queue_resume(self, *, queue: Union[str, List[str]], force: Optional[bool] = None) -> Resumed:
        """Resumes a paused queue, or all queues of a rule."""
        answer: Resumed = await self._call("queue.resume", _given({"queue": queue, "force": force}))
        return answer

    async def script_check(self, *, script: str, script_type: str, extension: Optional[str] = None) -> Findings:
        """Checks a script without running it, and returns its mistakes."""
        answer: Findings = await self._call("script.check", _given({"script": script, "script_type": script_type, "extension": extension}))
        return answer

    async def script_delete(self, *, name: str) -> DeletedScript:
        """Deletes a published script with all its versions; its jobs keep their texts."""
        answer: DeletedScript = await self._call("script.delete", _given({"name": name}))
        return answer

    async def script_functions(self, *, script_type: Optional[str] = None, name: Optional[str] = None) -> Documented:
        """Documents the functions that osis and sal scripts can call."""
        answer: Documented = await self._call("script.functions", _given({"script_type": script_type, "name": name}))
        return answer

    async def script_get(self, *, name: str) -> ScriptTextDocument:
        """Shows a published script: its parameters, its settings and its text."""
        answer: ScriptTextDocument = await self._call("script.get", _given({"name": name}))
        return answer

    async def script_history(self, *, name: str) -> ScriptVersions:
        """Lists the versions of a published script that are kept, the newest first."""
        answer: ScriptVersions = await self._call("script.history", _given({"name": name}))
        return answer

    async def script_list(self) -> ScriptList:
        """Lists the latest version of each published script, without its text."""
        answer: ScriptList = await self._call("script.list", _given({}))
        return answer

    async def script_publish(self, *, name: str, script: str, description: Optional[str] = None, params: Optional[Dict[str, Any]] = None, settings: Optional[Dict[str, Any]] = None) -> PublishedDocument:
        """Publishes a version of a script: jobs name it by `uses`. The same version again publishes nothing."""
        answer: PublishedDocument = await self._call("script.publish", _given({"name": name, "script": script, "description": description, "params": params, "settings": settings}))
        return answer

    async def script_rollback(self, *, name: str, version: int) -> PublishedDocument:
        """Publishes the text and the settings of an older version of a script as a new version."""
        answer: PublishedDocument = await self._call("script.rollback", _given({"name": name, "version": version}))
        return answer

    async def session_end(self, *, id: str) -> JobChangeResult:
        """Ends a session."""
        answer: JobChangeResult = await self._call("session.end", _given({"id": id}))
        return answer

    async def session_list(self) -> SessionList:
        """Lists the sessions that have not ended."""
        answer: SessionList = await self._call("session.list", _given({}))
        return answer

    async def session_run(self, *, id: str, script: str, timeout: Optional[float] = None) -> RanInSession:
        """Runs a script in a session of the caller, and returns its exit code and what it wrote. A session runs one
        at a time; a script that goes on after its `timeout` ends the session."""
        answer: RanInSession = await self._call("session.run", _given({"id": id, "script": script, "timeout": timeout}))
        return answer

    async def session_start(self, *, script_type: str, timeout: Optional[float] = None, idle: Optional[float] = None, name: Optional[str] = None, group: Optional[str] = None, context_id: Optional[str] = None, env_vars: Optional[Dict[str, str]] = None, inputs: Optional[Dict[str, str]] = None, wait: Optional[float] = None) -> StartedSession:
        """Starts a session: a folder, and an interpreter whose variables stay, for calls by session.run. It ends
        after `timeout`, after `idle` without a call, or by session.end."""
        answer: StartedSession = await self._call("session.start", _given({"script_type": script_type, "timeout": timeout, "idle": idle, "name": name, "group": group, "context_id": context_id, "env_vars": env_vars, "inputs": inputs, "wait": wait}))
        return answer

    async def stats_get(self, *, since: Optional[str] = None, until: Optional[str] = None, by: Optional[StatsBy] = None, script_type: Optional[str] = None) -> StatsDocument:
        """Returns how many jobs of each type came and ended, and how long they waited and ran: since the first of
        each type, or in a period of the last 30 days; or failures and times of the latest ended jobs by machine or
        actor."""
        answer: StatsDocument = await self._call("stats.get", _given({"since": since, "until": until, "by": by, "script_type": script_type}))
        return answer

    async def system_health(self) -> NamespaceHealth:
        """Returns what is wrong now, as `hero status --check` and `hero doctor` tell it: the state of the namespace
        and its problems, the worst first."""
        answer: NamespaceHealth = await self._call("system.health", _given({}))
        return answer

    async def system_info(self) -> Info:
        """Returns the version, the address of Redis and the script types that the caller may use."""
        answer: Info = await self._call("system.info", _given({}))
        return answer

    async def system_status(self) -> StatusDocument:
        """Returns the state of the namespace as `hero status` shows it: Redis, supervisors, actors by type, queues
        and jobs by type, and the verdict of `hero status --check`."""
        answer: StatusDocument = await self._call("system.status", _given({}))
        return answer


def _given(params: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}

//! Checks the relations between several values; the table of keys has the bounds of each.

use std::path::PathBuf;
use std::time::Duration;

use super::api_address::ApiAddress;
use super::command::{
    DependenciesConfig, NOT_EXTENSION, NOT_VARIABLES, are_variables, are_words, has, is_extension,
    is_module, is_node, is_python,
};
use super::config_error::{Fault, KeyPath};
use super::connection::RedisConfig;
use super::job_config::JobConfig;
use super::keys::check_signatures;
use super::limits::LimitConfig;
use super::notify::check_notifications;
use super::schema::{ActorConfig, Config, Migration, SupervisorConfig};
use super::table::check_bounds;
use super::type_of_script::names;
use super::types::{EngineKind, TypeConfig};
use super::webhook::check_webhooks;
use crate::proto::cron::CALENDAR_DAYS_MAX;
use crate::proto::keys::Keys;
use crate::proto::units::format_duration;

pub(super) fn check(config: &Config) -> Result<(), Fault> {
    // Before the bounds: their messages do not say how to hold all jobs back.
    for (name, limit) in &config.limits {
        check_limit(&KeyPath::of(&["limit", name.as_str()]), limit, config)?;
    }
    check_bounds(config)?;
    config.redis.check()?;
    config.log.check()?;
    check_migration(&config.supervisor, &config.redis)?;
    check_job(&config.job)?;
    check_actor(&config.actor)?;
    config.check.check()?;
    config.trace.check()?;
    config.api.check()?;
    if let Some(Err(why)) = config.client.api.as_ref().map(|api| api.parse::<ApiAddress>()) {
        return KeyPath::of(&["client"]).wrong("api", why);
    }
    config.amqp.check(&config.types)?;
    config.osis.check()?;
    config.sal.check()?;
    config.secrets.check()?;
    for (name, calendar) in &config.calendars {
        if calendar.days.len() > CALENDAR_DAYS_MAX {
            let table = KeyPath::of(&["calendar", name.as_str()]);
            return table.wrong("days", format!("must be at most {CALENDAR_DAYS_MAX}"));
        }
    }
    for (name, script_type) in &config.types {
        check_type(&KeyPath::of(&["type", name.as_str()]), script_type)?;
    }
    check_signatures(&config.types, &config.keys)?;
    check_notifications(&config.notify)?;
    check_webhooks(&config.hooks)?;
    config.check_units()
}

fn check_migration(supervisor: &SupervisorConfig, redis: &RedisConfig) -> Result<(), Fault> {
    const QUEUES_MAX: usize = 256;
    let table = KeyPath::of(&["supervisor"]);
    let (queues, circles) = (&supervisor.legacy_queues, &supervisor.rhailib_circles);
    let keys = Keys::new(redis.namespace.clone());
    if redis.url.is_cluster() && !circles.is_empty() {
        let message = "cannot be served with a redis+cluster url: the keys of rhailib \
                       (rhai_tasks:…) have no namespace, so they are on other nodes; keep Hero and \
                       rhailib on one Redis until its programs submit jobs";
        return table.wrong("rhailib_circles", message);
    }
    if queues.len() > QUEUES_MAX || circles.len() > QUEUES_MAX {
        let name = if queues.len() > QUEUES_MAX { "legacy_queues" } else { "rhailib_circles" };
        return table.wrong(name, format!("must be at most {QUEUES_MAX}"));
    }
    for (place, queue) in queues.iter().enumerate() {
        let legacy = &queue.legacy;
        if !keys.is_legacy_pattern(legacy) {
            let shown: String = legacy.chars().take(80).flat_map(char::escape_debug).collect();
            let message = format!("has `{shown}`, which is not of the form {}", Keys::LEGACY_FORM);
            return table.wrong("legacy_queues", message);
        }
        if queues[..place].iter().any(|before| before.legacy == *legacy) {
            return table.wrong("legacy_queues", format!("has `{legacy}` twice"));
        }
    }
    for (place, circle) in circles.iter().enumerate() {
        if circles[..place].iter().any(|before| before.circle == circle.circle) {
            let message = format!("has `{}` twice", circle.circle);
            return table.wrong("rhailib_circles", message);
        }
    }
    if supervisor.migration == Migration::Dual && queues.is_empty() {
        let message = "must be \"canonical\", or supervisor.legacy_queues must name a queue";
        return table.wrong("migration", message);
    }
    Ok(())
}

fn check_job(job: &JobConfig) -> Result<(), Fault> {
    let key = |name| KeyPath::of(&["job", name]);
    not_above(key("timeout"), job.timeout, key("timeout_max"), job.timeout_max)?;
    let (wait, wait_max) = (job.retry_backoff, job.retry_backoff_max);
    not_above(key("retry_backoff"), wait, key("retry_backoff_max"), wait_max)?;
    not_above(key("retention"), job.retention, key("retention_max"), job.retention_max)
}

fn check_actor(actor: &ActorConfig) -> Result<(), Fault> {
    let key = |name| KeyPath::of(&["actor", name]);
    // One heartbeat may be late or lost before the actor counts as dead.
    if actor.heartbeat * 2 >= actor.lease {
        let message = format!(
            "must be less than half of actor.lease ({}), not {}",
            format_duration(actor.lease),
            format_duration(actor.heartbeat)
        );
        return Err(Fault::new(key("heartbeat"), message).or(key("lease")));
    }
    Ok(())
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
        table.wrong(key, message)
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
        if !(Duration::from_millis(1)..=Duration::from_hours(24)).contains(&rate.period) {
            let message = format!("must be from 1ms to 1d, not {}", format_duration(rate.period));
            return table.wrong("rate", message);
        }
    }
    check_shares(table, limit)?;
    if let Some(script_type) = limit.script_type.as_ref()
        && !config.types.contains_key(script_type)
    {
        let message = format!("must be a configured script type: {}", names(&config.types));
        return table.wrong("type", message);
    }
    Ok(())
}

fn check_shares(table: &KeyPath, limit: &LimitConfig) -> Result<(), Fault> {
    const WEIGHTS: std::ops::RangeInclusive<u32> = 1..=1000;
    if limit.fair.is_some() && limit.running.is_none() {
        return table.wrong("fair", "needs running, whose slots it shares");
    }
    if limit.fair.is_some() && limit.per.is_some() {
        return table.wrong(
            "fair",
            "cannot stand beside per: a limit counts separately, or shares its slots",
        );
    }
    if limit.fair.is_none() && !limit.weights.is_empty() {
        return table.wrong("weights", "needs fair, such as \"caller\"");
    }
    match limit.weights.iter().find(|(_, weight)| !WEIGHTS.contains(weight)) {
        Some((name, weight)) => {
            let message = format!("must be from 1 to 1000, not {weight}");
            table.then("weights").wrong(name, message)
        }
        None => Ok(()),
    }
}

fn check_type(table: &KeyPath, script_type: &TypeConfig) -> Result<(), Fault> {
    match script_type.engine {
        EngineKind::Osis | EngineKind::Sal => check_modules(table, &script_type.modules, 0),
        EngineKind::HeroScript => check_modules(table, &script_type.modules, 1),
        EngineKind::Command => {
            check_command(table, script_type)?;
            script_type.sandbox.check(&table.then("sandbox"))
        }
    }
}

fn check_modules(table: &KeyPath, modules: &[PathBuf], least: usize) -> Result<(), Fault> {
    const MODULES_MAX: usize = 16;
    if (least..=MODULES_MAX).contains(&modules.len()) {
        return Ok(());
    }
    let message = format!("must have from {least} to {MODULES_MAX} folders");
    table.wrong("modules", message)
}

fn check_command(table: &KeyPath, script_type: &TypeConfig) -> Result<(), Fault> {
    let command = &script_type.command;
    if command.first().is_none_or(String::is_empty) {
        return table
            .wrong("command", "must begin with a program, such as [\"/bin/bash\", \"{script}\"]");
    }
    if !are_words(command) {
        return table.wrong("command", "must have at most 256 words without a NUL");
    }
    let is_compiled = !script_type.compile.is_empty();
    if !is_compiled && !command.iter().any(|word| word.contains("{script}")) {
        if command.iter().any(|word| word.contains("{binary}")) {
            return check_options(table, script_type);
        }
        return table
            .wrong("command", "must have {script} somewhere: it stands for the script's file");
    }
    if !script_type.extension.is_empty() && !is_extension(&script_type.extension) {
        return table.wrong("extension", NOT_EXTENSION);
    }
    check_options(table, script_type)
}

/// Checks the optional keys of a type that is a program.
fn check_options(table: &KeyPath, of: &TypeConfig) -> Result<(), Fault> {
    let command = &of.command;
    if !of.more_extensions.iter().all(|extension| is_extension(extension)) {
        return table.wrong("more_extensions", NOT_EXTENSION);
    }
    if !are_variables(&of.env) {
        return table.wrong("env", NOT_VARIABLES);
    }
    for (key, words) in [("compile", &of.compile), ("check", &of.check)] {
        if words.is_empty() {
            continue;
        }
        if words[0].is_empty() || !has(words, "{script}") || !are_words(words) {
            return table.wrong(
                key,
                "must begin with a program, and have {script} in one of at most 256 words",
            );
        }
    }
    if of.compile.is_empty() {
        if has(command, "{binary}") {
            return table.wrong("command", "has {binary}, but compile is not set");
        }
    } else if !has(&of.compile, "{binary}") || !has(command, "{binary}") {
        return table.wrong("compile", "must have {binary}, and so must command");
    }
    if !is_python(command) {
        for (key, is_set) in [("warm", of.warm), ("preload", !of.preload.is_empty())] {
            if is_set {
                return table.wrong(key, "is for Python only, and the command is not python");
            }
        }
    }
    if !is_python(command) && !is_node(command) && of.dependencies != DependenciesConfig::default()
    {
        let message = "is for Python and node only, and the command is neither";
        return table.wrong("dependencies", message);
    }
    if !of.preload.iter().all(|module| is_module(module)) {
        return table.wrong("preload", "must be names of modules, such as [\"json\"]");
    }
    of.dependencies.check(&table.then("dependencies"))
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
            (
                "rate = \"1/s\"\nfair = \"key\"",
                "3:8: limit.x.fair needs running, whose slots it shares".to_owned(),
            ),
            (
                "running = 1\nper = \"key\"\nfair = \"key\"",
                "4:8: limit.x.fair cannot stand beside per: a limit counts separately, or shares its slots"
                    .to_owned(),
            ),
            (
                "running = 1\nweights = { a = 2 }",
                "3:11: limit.x.weights needs fair, such as \"caller\"".to_owned(),
            ),
            (
                "running = 1\nfair = \"key\"\nweights = { a = 0 }",
                "4:17: limit.x.weights.a must be from 1 to 1000, not 0".to_owned(),
            ),
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
    fn a_calendar_has_a_bound() {
        let calendar = |days: usize| {
            let days = vec!["\"SUN\""; days].join(", ");
            Config::from_toml("hero.toml".as_ref(), &format!("[calendar.x]\ndays = [{days}]"))
        };
        assert!(calendar(CALENDAR_DAYS_MAX).is_ok());
        let refused = calendar(CALENDAR_DAYS_MAX + 1).expect_err("too many").to_string();
        assert_eq!(refused, "hero.toml:2:8: calendar.x.days must be at most 1000");
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
            ("actor.load_max = -0.1", "1:18: actor.load_max must be from 0 to 100000, not -0.1"),
            (
                "actor.load_max = 100001",
                "1:18: actor.load_max must be from 0 to 100000, not 100001",
            ),
            ("actor.load_max = nan", "1:18: actor.load_max must be from 0 to 100000, not NaN"),
            ("actor.load_max = \"8\"", "1:18: actor.load_max: expected a number, such as 8.0"),
            ("trace.sample = 1.5", "1:16: trace.sample must be from 0 to 1, not 1.5"),
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
            (
                "[client]\napi = \"ftp://x\"",
                "2:7: client.api must be https://HOST:PORT, http://HOST:PORT or unix:PATH",
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

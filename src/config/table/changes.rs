//! The keys that differ between two configurations and that a reload does not apply.

use std::collections::BTreeSet;

use toml::value::Value;

use super::KEY_TABLES;
use crate::config::key_row::KeyTable;
use crate::config::schema::Config;
use crate::proto::pattern::matches_name;

impl Config {
    /// Returns the keys that have another value in `new` and that a reload does not apply, by the table of keys. Of a
    /// table without such a key it returns `[NAME]`.
    pub fn changes_for_restart(&self, new: &Self) -> Vec<String> {
        let values = [self, new].map(|config| Value::try_from(config).ok());
        let is_changed = |path: &Vec<&str>| {
            let [old, new] = values.each_ref().map(|root| value_at(root.as_ref()?, path));
            old != new
        };
        let whole = KEY_TABLES.iter().filter(|table| table.needs_restart);
        let whole = whole.map(|table| table.fixed_path().collect()).filter(is_changed);
        let mut changed: Vec<String> = KEY_TABLES
            .iter()
            .flat_map(row_paths)
            .filter(is_changed)
            .map(|path| path.join("."))
            .chain(whole.map(|path| format!("[{}]", path.join("."))))
            .collect();
        // The values have no passwords.
        let amqp = "[amqp]".to_owned();
        if self.amqp.url != new.amqp.url && !changed.contains(&amqp) {
            changed.push(amqp);
        }
        changed
    }

    /// Returns the keys that have another value in `new`, each with the old and the new one, in the order of the file. The
    /// values of secrets are `***`.
    pub fn changes(&self, new: &Self) -> Vec<String> {
        let [old, now] = [self, new].map(|config| Value::try_from(config).ok());
        let mut changes = Vec::new();
        compare(&mut Vec::new(), old.as_ref(), now.as_ref(), &mut |path, values| {
            let key = path.join(".");
            let is_secret = path.iter().any(|part| {
                SECRET_KEYS.contains(&part.as_str()) || matches_name(&self.log.redact, part)
            });
            let [old, now] = values.map(|value| match value {
                None => "none".to_owned(),
                Some(_) if is_secret => "***".to_owned(),
                Some(value) => brief(&value.to_string()),
            });
            changes.push(format!("{key}: {old} → {now}"));
        });
        for (key, is_changed) in [
            ("redis.url", self.redis.url != new.redis.url),
            ("amqp.url", self.amqp.url != new.amqp.url),
        ] {
            // Its value has no password.
            if is_changed && !changes.iter().any(|change| change.starts_with(key)) {
                changes.push(format!("{key}: another password"));
            }
        }
        changes
    }

    /// Returns a new configuration with the values of this one for the keys that need a restart.
    #[must_use]
    pub fn kept_until_restart(&self, mut new: Self) -> Self {
        new.redis = self.redis.with_login_of(&new.redis);
        new.amqp.clone_from(&self.amqp);
        new.job.events = self.job.events;
        let (actor, supervisor, api) = (&self.actor, &self.supervisor, &self.api);
        new.supervisor.migration = supervisor.migration;
        new.supervisor.legacy_queues.clone_from(&supervisor.legacy_queues);
        new.supervisor.rhailib_circles.clone_from(&supervisor.rhailib_circles);
        new.actor.heartbeat = actor.heartbeat;
        new.actor.lease = actor.lease;
        new.actor.sandbox = actor.sandbox;
        new.trace.clone_from(&self.trace);
        new.api.listen.clone_from(&api.listen);
        new.api.path.clone_from(&api.path);
        new.api.connections_max = api.connections_max;
        new.api.address_file.clone_from(&api.address_file);
        new
    }
}

/// The keys whose values may hold a secret, beside the names that `log.redact` has.
const SECRET_KEYS: [&str; 2] = ["webhook", "headers"];

/// Calls `differs` for each value below `path` that two configurations do not have in common. The parser bounds the
/// nesting of tables, and so this recursion.
fn compare(
    path: &mut Vec<String>,
    old: Option<&Value>,
    new: Option<&Value>,
    differs: &mut impl FnMut(&[String], [Option<&Value>; 2]),
) {
    let tables = [old, new].map(|value| value.and_then(Value::as_table));
    if old == new {
        return;
    }
    if tables.iter().all(Option::is_none) {
        return differs(path, [old, new]);
    }
    let keys: BTreeSet<&String> = tables.iter().flatten().flat_map(|table| table.keys()).collect();
    for key in keys {
        let [old, new] = tables.map(|table| table.and_then(|table| table.get(key)));
        path.push(key.clone());
        compare(path, old, new, differs);
        path.pop();
    }
}

/// Returns a value as a line shows it.
fn brief(value: &str) -> String {
    const CHARS_MAX: usize = 200;
    let shown: String = value.chars().take(CHARS_MAX).collect();
    if shown.len() < value.len() { format!("{shown}…") } else { shown }
}

/// Returns the paths of the keys of a table that need a restart by themselves.
fn row_paths(table: &KeyTable) -> impl Iterator<Item = Vec<&'static str>> {
    let path: Vec<&str> = table.fixed_path().collect();
    let rows = table.rows.iter().filter(|row| row.needs_restart);
    rows.map(move |row| path.iter().copied().chain([row.key]).collect())
}

fn value_at<'v>(root: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(root, |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another value for each key that needs a restart.
    const OTHER: &str = r#"
        redis = { namespace = "other", require_durable = true, ack = "disk", shards = 2, serve = [0] }
        supervisor.migration = "dual"
        supervisor.legacy_queues = [{ legacy = "other:work_queue:w1", type = "osis" }]
        supervisor.rhailib_circles = [{ circle = "main", type = "osis" }]
        job.events = true
        actor = { heartbeat = "6s", lease = "20s", sandbox = false }
        trace = { endpoint = "http://127.0.0.1:4318", sample = 0.5, headers_file = "/etc/hero/h" }
        amqp.prefetch = 10
        [api]
        listen = ["127.0.0.1:0"]
        path = "/hero"
        connections_max = 10
        address_file = "/run/addresses"
    "#;

    #[test]
    fn each_key_that_needs_a_restart_is_named_and_keeps_its_value() {
        let (old, new) = (Config::default(), Config::from_toml("h".as_ref(), OTHER));
        let new = new.expect("legal");
        let rows = KEY_TABLES.iter().flat_map(row_paths).map(|path| path.join("."));
        let whole = KEY_TABLES.iter().filter(|table| table.needs_restart);
        let whole =
            whole.map(|table| format!("[{}]", table.fixed_path().collect::<Vec<_>>().join(".")));
        let all: Vec<String> = rows.chain(whole).collect();
        assert_eq!(old.changes_for_restart(&new), all, "OTHER has no other value for a key");
        let kept = old.kept_until_restart(new.clone());
        assert_eq!(old.changes_for_restart(&kept), [""; 0], "kept_until_restart lacks a key");
        assert_eq!(new.changes_for_restart(&new), [""; 0]);
    }

    #[test]
    fn changes_have_each_key_with_both_values_and_no_secret() {
        let of = |text: &str| Config::from_toml("h".as_ref(), text).expect("legal");
        let old = of("[type.bash.env]\nDB_PASSWORD = \"hunter1\"\nMODE = \"a\"\n\
                      [notify.ops]\nwebhook = \"https://example.org/one\"\n\
                      [redis]\nurl = \"redis://:hunter1@one\"");
        let new = of("[actor]\ntasks = 3\n[limit.db]\nkey = \"db\"\nrunning = 2\n\
                      [type.bash.env]\nDB_PASSWORD = \"hunter2\"\nMODE = \"b\"\n\
                      [notify.ops]\nwebhook = \"https://example.org/two\"\n\
                      [redis]\nurl = \"redis://:hunter2@one\"");
        let changes = old.changes(&new);
        for change in [
            "type.bash.env.DB_PASSWORD: *** → ***",
            "type.bash.env.MODE: \"a\" → \"b\"",
            "notify.ops.webhook: *** → ***",
            "limit.db.running: none → 2",
            "redis.url: another password",
        ] {
            assert!(changes.iter().any(|of| of == change), "{change}: {changes:#?}");
        }
        assert!(changes.iter().any(|of| of.starts_with("actor.tasks: ")), "{changes:#?}");
        assert!(!changes.concat().contains("hunter"), "{changes:#?}");
        assert_eq!(new.changes(&new), [""; 0]);
        assert_ne!(old.digest(), new.digest());
        let login = of("[redis]\nusername = \"hero-actor\"\npassword_file = \"/p\"");
        assert_eq!(login.digest(), Config::default().digest(), "a unit has its own login");
    }

    #[test]
    fn another_password_of_rabbitmq_needs_a_restart() {
        let of = |password: &str| {
            let text = format!("amqp.url = \"amqp://u:{password}@host\"");
            Config::from_toml("h".as_ref(), &text).expect("legal")
        };
        assert_eq!(of("a").changes_for_restart(&of("b")), ["[amqp]"]);
    }
}

//! The keys that differ between two configurations and that a reload does not apply.

use toml::value::Value;

use super::KEY_TABLES;
use crate::config::key_row::KeyTable;
use crate::config::schema::Config;

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
        new.api.keys.clone_from(&api.keys);
        new.api.connections_max = api.connections_max;
        new.api.address_file.clone_from(&api.address_file);
        new
    }
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
        [api.keys.ci]
        public_key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
        scopes = ["read"]
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
    fn another_password_of_rabbitmq_needs_a_restart() {
        let of = |password: &str| {
            let text = format!("amqp.url = \"amqp://u:{password}@host\"");
            Config::from_toml("h".as_ref(), &text).expect("legal")
        };
        assert_eq!(of("a").changes_for_restart(&of("b")), ["[amqp]"]);
    }
}

//! The unit of a name: the supervisor, the brokers of a node, or one or more actors.

use std::collections::BTreeSet;

use super::amqp::{AmqpMode, Node};
use super::config_error::{ConfigError, Fault, KeyPath};
use super::schema::Config;
use super::type_of_script::names;
use super::unit_config::{Role, UnitConfig};
use crate::proto::labels::{GIVEN_LABELS, LABELS_MAX, LabelName, Labels};
use crate::proto::target::{ActorId, ScriptType, is_word};
use crate::proto::text::{nearest, shown};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unit {
    Supervisor,
    /// Actors, at least one, each with its own identity.
    Actors(Vec<ActorUnit>),
    /// The brokers that take messages from RabbitMQ, of a node of the matrix.
    Broker(Option<Node>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActorUnit {
    pub id: ActorId,
    /// The number of jobs that it runs at once.
    pub tasks: usize,
    pub labels: Labels,
}

/// The name of the unit that is always the supervisor.
const SUPERVISOR: &str = "supervisor";
/// The name of a unit that always has the role `broker`; a node's is `broker-NODE`.
const BROKER: &str = "broker";

impl Config {
    /// Returns the unit of a name.
    ///
    /// # Errors
    /// [`ConfigError::NoSuchUnit`] if the name is neither an actor's nor in the configuration;
    /// [`ConfigError::Unit`] if its script type or its table is wrong.
    pub fn unit(&self, name: &str) -> Result<Unit, ConfigError> {
        let unit = self.units.get(name);
        let has_role = name == SUPERVISOR || broker_of(name).is_some();
        if unit.is_none() && !has_role && ActorId::from_unit(name).is_err() {
            let known = self.units.keys().map(String::as_str).chain([SUPERVISOR, BROKER]);
            return Err(ConfigError::NoSuchUnit {
                name: name.to_owned(),
                nearest: nearest(name, known).map(str::to_owned),
            });
        }
        self.resolve(name, unit.unwrap_or(&UnitConfig::default()))
            .map_err(|fault| ConfigError::Unit { name: name.to_owned(), message: fault.message })
    }

    /// Checks every `[unit.NAME]`, so that a mistake is found before the unit starts.
    pub(super) fn check_units(&self) -> Result<(), Fault> {
        check_labels(&self.actor.labels, &KeyPath::of(&["actor", "labels"]))?;
        self.units.iter().try_for_each(|(name, unit)| self.resolve(name, unit).map(drop))
    }

    fn resolve(&self, name: &str, unit: &UnitConfig) -> Result<Unit, Fault> {
        let table = KeyPath::of(&["unit", name]);
        if !is_unit_name(name) {
            let form = "is no legal name: a letter or digit, then at most 127 of A-Z, a-z, 0-9, \
                        _, . and -";
            return Err(Fault::new(table, form));
        }
        if name == SUPERVISOR {
            return must_be(unit, &table, Role::Supervisor, "is the supervisor by its name")
                .map(|()| Unit::Supervisor);
        }
        if let Some(NamedBroker { node }) = broker_of(name) {
            must_be(unit, &table, Role::Broker, "is a broker by its name")?;
            return self.broker(node, &table);
        }
        if let Ok(id) = ActorId::from_unit(name) {
            must_be(unit, &table, Role::Actor, "is one actor by its name")?;
            self.check_type(&id.script_type, &table)?;
            let (tasks, labels) = (self.tasks(unit), self.labels(unit, &table)?);
            return Ok(Unit::Actors(vec![ActorUnit { id, tasks, labels }]));
        }
        match (unit.role, unit.actors.is_empty()) {
            (Some(Role::Supervisor), true) => Ok(Unit::Supervisor),
            (Some(Role::Broker), true) => self.broker(None, &table),
            (Some(role @ (Role::Supervisor | Role::Broker)), false) => {
                let role = if role == Role::Broker { BROKER } else { SUPERVISOR };
                table.wrong("actors", format!("is for actors only, and the role is {role}"))
            }
            (_, false) => self.actors(unit, &table).map(Unit::Actors),
            (Some(Role::Actor), true) => {
                let message = "needs actors, such as [{ type = \"osis\", instance = 1 }]";
                Err(Fault::new(table, message))
            }
            (None, true) => {
                let message = "needs a role or actors: its name is not of the form \
                               TYPE-GROUP-INSTANCE";
                Err(Fault::new(table, message))
            }
        }
    }

    /// Returns a broker; `node` comes from the unit's name.
    fn broker(&self, node: Option<Node>, table: &KeyPath) -> Result<Unit, Fault> {
        let node = node.or(self.amqp.node);
        if self.amqp.url.is_empty() {
            return Err(Fault::new(table.clone(), "is a broker, which needs amqp.url"));
        }
        if self.amqp.mode == AmqpMode::Matrix && node.is_none() {
            let message = "is a broker of the matrix, which needs amqp.node, or a name such as \
                           broker-appServer";
            return Err(Fault::new(table.clone(), message));
        }
        Ok(Unit::Broker(node))
    }

    fn actors(&self, unit: &UnitConfig, table: &KeyPath) -> Result<Vec<ActorUnit>, Fault> {
        let labels = self.labels(unit, table)?;
        let mut seen = BTreeSet::new();
        let mut actors = Vec::with_capacity(unit.actors.len());
        for (index, actor) in unit.actors.iter().enumerate() {
            let entry = table.then("actors").then(index);
            self.check_type(&actor.script_type, &entry.then("type"))?;
            let id = ActorId {
                script_type: actor.script_type.clone(),
                group: actor.group.clone(),
                instance: actor.instance,
            };
            if !seen.insert(id.clone()) {
                let message = format!("has {id} twice: each actor can run only once");
                return Err(Fault::new(entry, message));
            }
            let tasks = actor.tasks.unwrap_or(self.tasks(unit));
            actors.push(ActorUnit { id, tasks, labels: labels.clone() });
        }
        Ok(actors)
    }

    /// Returns the number of jobs that an actor of the unit runs at once, unless it has its own.
    fn tasks(&self, unit: &UnitConfig) -> usize {
        unit.tasks.unwrap_or(self.actor.tasks)
    }

    /// Returns the labels of the actors of a unit: its own win.
    fn labels(&self, unit: &UnitConfig, table: &KeyPath) -> Result<Labels, Fault> {
        let mut labels = self.actor.labels.clone();
        labels.extend(unit.labels.clone());
        check_labels(&labels, &table.then("labels"))?;
        Ok(labels)
    }

    fn check_type(&self, script_type: &ScriptType, at: &KeyPath) -> Result<(), Fault> {
        if self.types.contains_key(script_type) {
            return Ok(());
        }
        let message = format!(
            "is of the script type `{script_type}`, which is not configured; configured are {}",
            names(&self.types)
        );
        Err(Fault::new(at.clone(), message))
    }
}

fn check_labels(labels: &Labels, at: &KeyPath) -> Result<(), Fault> {
    let is_given = |name: &&LabelName| GIVEN_LABELS.contains(&name.as_str());
    if let Some(name) = labels.keys().find(is_given) {
        return at.wrong(name.as_str(), "cannot be set: every actor has it by itself");
    }
    if labels.len() > LABELS_MAX {
        return Err(Fault::new(at.clone(), format!("must be at most {LABELS_MAX} labels")));
    }
    Ok(())
}

struct NamedBroker {
    /// The node of `broker-admin`; `None` for `broker`.
    node: Option<Node>,
}

/// Returns the broker of a name; `None` if no broker has this form of name.
fn broker_of(name: &str) -> Option<NamedBroker> {
    match name.strip_prefix(BROKER)? {
        "" => Some(NamedBroker { node: None }),
        rest => {
            let node = Node::of_name(rest.strip_prefix('-')?)?;
            Some(NamedBroker { node: Some(node) })
        }
    }
}

/// Rejects a role or actors that contradict the name of the unit.
fn must_be(unit: &UnitConfig, table: &KeyPath, role: Role, why: &str) -> Result<(), Fault> {
    let name = shown(table.last_key());
    if unit.role.is_some_and(|own| own != role) {
        return table.wrong("role", format!("must not differ: `{name}` {why}"));
    }
    if !unit.actors.is_empty() {
        return table.wrong("actors", format!("cannot be set: `{name}` {why}"));
    }
    Ok(())
}

/// Checks that systemd takes the name as an instance and a log line shows it as it is.
fn is_unit_name(name: &str) -> bool {
    is_word(name.as_bytes(), 128, b"_.-") && !name.starts_with(['_', '.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::from_toml("hero.toml".as_ref(), text).expect(text)
    }

    fn refusal(text: &str) -> String {
        Config::from_toml("hero.toml".as_ref(), text).expect_err(text).to_string()
    }

    fn actors(config: &Config, name: &str) -> Vec<(String, usize)> {
        match config.unit(name).expect(name) {
            Unit::Supervisor | Unit::Broker(_) => panic!("{name} has no actors"),
            Unit::Actors(actors) => {
                actors.into_iter().map(|actor| (actor.id.to_string(), actor.tasks)).collect()
            }
        }
    }

    #[test]
    fn names_alone_make_a_supervisor_and_actors() {
        let config = Config::default();
        assert_eq!(config.unit("supervisor"), Ok(Unit::Supervisor));
        assert_eq!(actors(&config, "osis-default-1"), [("osis:default:1".to_owned(), 4)]);
        assert_eq!(actors(&config, "v-gpu-large-7"), [("v:gpu-large:7".to_owned(), 4)]);
    }

    #[test]
    fn the_most_specific_number_of_tasks_counts() {
        let config = config(
            "[actor]\ntasks = 2\n[unit.osis-default-1]\ntasks = 8\n\
             [unit.mixed]\ntasks = 3\nactors = [{ type = \"osis\", instance = 1 }, \
             { type = \"sal\", group = \"io\", instance = 3, tasks = 5 }]\n",
        );
        assert_eq!(actors(&config, "osis-default-1"), [("osis:default:1".to_owned(), 8)]);
        assert_eq!(actors(&config, "osis-default-2"), [("osis:default:2".to_owned(), 2)]);
        let mixed = [("osis:default:1".to_owned(), 3), ("sal:io:3".to_owned(), 5)];
        assert_eq!(actors(&config, "mixed"), mixed);
    }

    #[test]
    fn labels_of_a_unit_are_merged_with_those_of_all_actors() {
        let config = config(
            "[actor.labels]\nrole = \"web\"\nrack = 4\n[unit.osis-default-1.labels]\nrole = \"db\"\ngpu = 1.5\n",
        );
        let labels = |name: &str| match config.unit(name).expect(name) {
            Unit::Actors(actors) => serde_json::to_string(&actors[0].labels).expect("JSON"),
            other => panic!("{other:?}"),
        };
        assert_eq!(labels("osis-default-1"), r#"{"gpu":"1.5","rack":4,"role":"db"}"#);
        assert_eq!(labels("bash-default-1"), r#"{"rack":4,"role":"web"}"#);
        assert_eq!(
            super::super::Config::from_toml("h".as_ref(), &config.to_toml().expect("text")),
            Ok(config)
        );
        let many: String =
            (0..33).map(|number| format!("l{number} = {number}\n")).collect::<Vec<_>>().concat();
        assert!(refusal(&format!("[actor.labels]\n{many}")).contains("must be at most 32 labels"));
        assert!(refusal("[actor.labels]\nRole = 1").contains("label `Role` is not legal"));
    }

    #[test]
    fn an_unknown_unit_is_rejected_with_the_nearest_name() {
        let config = config("[unit.mixed]\nactors = [{ type = \"osis\", instance = 1 }]\n");
        let message = |name| config.unit(name).expect_err("no such unit").to_string();
        assert_eq!(message("mixd"), "no such unit: `mixd`; did you mean `mixed`?");
        assert!(message("superviser").contains("did you mean `supervisor`?"));
        assert_eq!(
            message(""),
            "no such unit: ``; a unit is `supervisor`, `broker`, an actor written \
             TYPE-GROUP-INSTANCE such as `osis-default-1`, or has a [unit.NAME] in the configuration"
        );
        assert!(message(&"\u{1b}".repeat(100_000)).len() < 1000);
    }

    #[test]
    fn an_actor_of_an_unknown_type_is_rejected_with_the_known_types() {
        assert_eq!(
            Config::default().unit("ruby-default-1").expect_err("not configured").to_string(),
            "unit.ruby-default-1 is of the script type `ruby`, which is \
             not configured; configured are bash, heroscript, node, osis, python, sal, v"
        );
        assert_eq!(
            refusal("[unit.a]\nactors = [\n  { type = \"ruby\", instance = 1 },\n]"),
            "hero.toml:3:12: unit.a.actors[0].type is of the script type `ruby`, which is not \
             configured; configured are bash, heroscript, node, osis, python, sal, v"
        );
    }

    #[test]
    fn contradictions_in_a_unit_are_rejected_with_their_place() {
        let entry = "{ type = \"osis\", instance = 1 }";
        for (text, message) in [
            (
                format!("[unit.a]\nactors = [{entry}, {entry}]"),
                "2:44: unit.a.actors[1] has osis:default:1 twice: each actor can run only once",
            ),
            (
                "[unit.supervisor]\nrole = \"actor\"".to_owned(),
                "2:8: unit.supervisor.role must not differ: `supervisor` is the supervisor by its \
                 name",
            ),
            (
                "[unit.osis-default-1]\nrole = \"supervisor\"".to_owned(),
                "2:8: unit.osis-default-1.role must not differ: `osis-default-1` is one actor by \
                 its name",
            ),
            (
                format!("[unit.osis-default-1]\nactors = [{entry}]"),
                "2:10: unit.osis-default-1.actors cannot be set: `osis-default-1` is one \
                 actor by its name",
            ),
            (
                format!("[unit.s]\nrole = \"supervisor\"\nactors = [{entry}]"),
                "3:10: unit.s.actors is for actors only, and the role is supervisor",
            ),
            (
                "[unit.a]\nrole = \"actor\"".to_owned(),
                "1:1: unit.a needs actors, such as [{ type = \"osis\", instance = 1 }]",
            ),
            (
                "[actor.labels]\nhost = \"a\"".to_owned(),
                "2:8: actor.labels.host cannot be set: every actor has it by itself",
            ),
            (
                "[unit.osis-default-1.labels]\nmemory = 1".to_owned(),
                "2:10: unit.osis-default-1.labels.memory cannot be set: every actor has it by itself",
            ),
            (
                "\n[unit.a]\ntasks = 3".to_owned(),
                "2:1: unit.a needs a role or actors: its name is not of the form \
                 TYPE-GROUP-INSTANCE",
            ),
            (
                "[unit.osis-default-1]\ntasks = 1025".to_owned(),
                "2:9: unit.osis-default-1.tasks must be from 1 to 1024, not 1025",
            ),
            (
                "[unit.a]\nactors = [{ type = \"osis\", instance = 1, tasks = 0 }]".to_owned(),
                "2:50: unit.a.actors[0].tasks must be from 1 to 1024, not 0",
            ),
            (
                "[unit.a]\nactors = [{ type = \"osis\", instance = 0 }]".to_owned(),
                "2:39: unit.a.actors[0].instance: instance `0` is not legal: a whole number from \
                 1 to 65535",
            ),
            (
                "[unit.a]\nactors = [{ type = \"osis\" }]".to_owned(),
                "2:11: missing key `instance` in [unit.a.actors[0]]",
            ),
            (
                "[unit.\"a/b\"]\nrole = \"supervisor\"".to_owned(),
                "1:1: unit.\"a/b\" is no legal name: a letter or digit, then at most 127 of A-Z, \
                 a-z, 0-9, _, . and -",
            ),
        ] {
            assert_eq!(refusal(&text), format!("hero.toml:{message}"), "{text}");
        }
    }

    #[test]
    fn brokers_are_known_by_name_or_role_and_need_an_address() {
        let url = "[amqp]\nurl = \"amqp://h\"\n";
        let node = |text: &str, name: &str| config(text).unit(name).expect(name);
        assert_eq!(node(url, "broker"), Unit::Broker(None));
        assert_eq!(node(url, "broker-admin"), Unit::Broker(Some(Node::Admin)));
        let other = format!("{url}[unit.mail]\nrole = \"broker\"");
        assert_eq!(node(&other, "mail"), Unit::Broker(None));
        let message =
            |text: &str, name: &str| config(text).unit(name).expect_err("rejected").to_string();
        assert_eq!(message("", "broker"), "unit.broker is a broker, which needs amqp.url");
        let matrix = format!("{url}mode = \"matrix\"\n");
        assert!(message(&matrix, "broker").contains("which needs amqp.node, or a name such as"));
        assert_eq!(node(&matrix, "broker-tercero"), Unit::Broker(Some(Node::Tercero)));
        assert_eq!(
            message(url, "broker-quarto").split(';').next(),
            Some("no such unit: `broker-quarto`")
        );
        let wrong = "[unit.broker]\nrole = \"actor\"";
        assert!(refusal(wrong).contains("must not differ: `broker` is a broker by its name"));
    }

    #[test]
    fn further_supervisors_may_have_other_names() {
        let config = config("[unit.second]\nrole = \"supervisor\"");
        assert_eq!(config.unit("second"), Ok(Unit::Supervisor));
    }
}

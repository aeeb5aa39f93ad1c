//! `[osis]`: the objects of scripts of the engine `osis`.

use std::collections::{BTreeMap, BTreeSet};

use super::config_error::{Fault, KeyPath};
use super::key_row::{MIB, key_table};
use super::units::size;
use crate::config::toml_table::toml_table;
use crate::proto::object::{
    Context, Field, GroupRights, OWN_FIELDS, ObjectType, Right, Schema, groups_of,
};

/// The maximum number of indexed fields of one type: each costs time with every write.
const INDEXES_MAX: usize = 32;
/// The maximum number of declared types: each adds seven functions.
const SCHEMAS_MAX: usize = 256;

toml_table! {
    /// The objects that scripts of the engine `osis` store in Redis, separate for each context.
    pub struct OsisConfig in "osis" {
        /// The largest object, as JSON.
        object_size_max: u64 as "size" = 10 << 20 => Size(1, 64 * MIB);
        /// The number of objects of one context.
        objects_max: u64 = 1_000_000 => Number(1, 1_000_000_000_000);
        /// Scripts get the time, random numbers and UUIDs: `time_now()`, `random(1, 6)`, `uuid()`. They follow from the
        /// id of the job, the attempt and its start, so that a replay with these has the same.
        impure: bool = false => Flag;
    } with {
        /// The indexed fields of each type of objects.
        pub index: BTreeMap<ObjectType, BTreeSet<Field>> = BTreeMap::new(),
        /// The further contexts that the scripts of each caller may use.
        pub access: BTreeMap<String, BTreeSet<String>> = BTreeMap::new(),
        /// The declared types, by namespace and name.
        pub schema: BTreeMap<String, BTreeMap<String, Schema>> = BTreeMap::new(),
        /// The callers of each group; `@NAME` stands for the callers of another group.
        pub groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new(),
        /// The rights on the declared types of each namespace; a type without rights has no restriction.
        pub rights: BTreeMap<String, GroupRights> = BTreeMap::new(),
    }
}

key_table! {
    /// The indexed fields of each object type. The supervisor builds the index of a new field, and removes one that
    /// no supervisor has declared for ten minutes, so supervisors can be reconfigured one after the other;
    /// `hero osis reindex` does both at once.
    ///
    ///     osis.index.person = ["email", "age", "address.city"]
    ///
    /// Where `amqp.url` is set, the indexes of log records are declared too. A supervisor on another machine
    /// declares them so:
    ///
    ///     osis.index.msLogs = ["time", "level", "root", "chain"]
    /// ---
    /// A query that needs an index earlier helps to build it, and fails after two seconds if it is still
    /// incomplete.
    INDEX = "osis.index";
}

key_table! {
    /// The contexts that the scripts of a caller may use besides their own, with `osis_use`. The caller is the name
    /// that the job gives and is not verified: Redis decides who may submit jobs.
    ///
    ///     osis.access.alice = ["shared"]
    ACCESS = "osis.access";
}

key_table! {
    /// A declared type of objects. Scripts get the functions `osis_NAMESPACE_NAME_new`, `_set`, `_get`, `_exists`,
    /// `_delete`, `_list` and `_find`, and the fields of each stored object are checked.
    ///
    ///     osis.schema.project.task.fields = { title = "string", status = ["open", "done"] }
    ///     osis.schema.project.task.required = ["title"]
    ///     osis.schema.project.task.text = ["title"]
    SCHEMA = "osis.schema.NAMESPACE.NAME";

    /// The type of each field: `any`, `bool`, `float`, `int`, `map`, `string` or `time`, one of these in brackets
    /// for an array, or an array of the strings that are allowed.
    fields: Form;

    /// The fields that an object must have.
    required: Texts;

    /// The fields whose words have an index, for `osis_NAMESPACE_NAME_find`.
    text: Texts;
}

key_table! {
    /// Groups of callers; `@NAME` stands for the callers of another group.
    ///
    ///     osis.groups.admins = ["anna"]
    ///     osis.groups.editors = ["alice", "@admins"]
    ///     osis.groups.guests = ["bob"]
    GROUPS = "osis.groups";
}

key_table! {
    /// The groups that may read, or read and write, the objects of the declared types of a namespace. Each right
    /// includes those after it; `admin` gives no more than `write`, as groups are changed in the configuration. A
    /// namespace without this table is open to every caller.
    ///
    ///     osis.rights.project = { admin = ["admins"], write = ["editors"], read = ["guests"] }
    RIGHTS = "osis.rights.NAMESPACE";

    /// The groups with each right.
    admin: Texts;
    write: Texts;
    read: Texts;
}

impl OsisConfig {
    /// Returns whether the scripts of a caller may use a context beside their own.
    pub fn grants(&self, caller: &str, context: &str) -> bool {
        self.access.get(caller).is_some_and(|contexts| contexts.contains(context))
    }

    /// Returns the indexed fields of a type, and those whose words have an index.
    pub fn indexes(&self, object_type: &ObjectType) -> impl Iterator<Item = &Field> {
        let text = self.parts_of(object_type).map(|(_, _, schema)| &schema.text);
        self.index.get(object_type).into_iter().flatten().chain(text.into_iter().flatten())
    }

    pub fn all_indexes(&self) -> impl Iterator<Item = (ObjectType, &Field)> {
        let plain = self.index.iter().flat_map(|(object_type, fields)| {
            fields.iter().map(move |field| (object_type.clone(), field))
        });
        let text = self.declared().flat_map(|(object_type, schema)| {
            schema.text.iter().map(move |field| (object_type.clone(), field))
        });
        plain.chain(text)
    }

    /// Returns every declared type with its declaration.
    pub fn declared(&self) -> impl Iterator<Item = (ObjectType, &Schema)> {
        let each = self.schema.iter().flat_map(|(namespace, types)| {
            types.iter().map(move |(name, schema)| (format!("{namespace}_{name}"), schema))
        });
        each.filter_map(|(name, schema)| Some((name.parse().ok()?, schema)))
    }

    /// Returns the namespace and the name of a declared type.
    fn parts_of(&self, object_type: &ObjectType) -> Option<(&str, &str, &Schema)> {
        self.schema.iter().find_map(|(namespace, types)| {
            let rest = object_type.as_str().strip_prefix(namespace.as_str())?;
            let (name, schema) = types.get_key_value(rest.strip_prefix('_')?)?;
            Some((namespace.as_str(), name.as_str(), schema))
        })
    }

    /// Returns the declaration of a type, with its key in the configuration.
    pub fn schema_of(&self, object_type: &ObjectType) -> Option<(String, &Schema)> {
        let (namespace, name, schema) = self.parts_of(object_type)?;
        Some((format!("osis.schema.{namespace}.{name}"), schema))
    }

    /// Returns the key that denies a caller a right on the objects of a type, if one does.
    pub fn forbids(&self, caller: &str, of: &ObjectType, right: Right) -> Option<String> {
        let (namespace, ..) = self.parts_of(of)?;
        let rights = self.rights.get(namespace)?;
        let allowed = rights.allow(right, &groups_of(&self.groups, caller));
        (!allowed).then(|| format!("osis.rights.{namespace}"))
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        self.check_schemas()?;
        self.check_rights()?;
        for (object_type, fields) in &self.index {
            let key = KeyPath::of(&["osis", "index", object_type.as_str()]);
            if fields.len() > INDEXES_MAX {
                let message = format!("must have at most {INDEXES_MAX} fields");
                return Err(Fault::new(key, message));
            }
            if let Some(words) = fields.iter().find(|field| field.has_words()) {
                return Err(Fault::new(key, format!("has {words}, which is not a field")));
            }
            if let Some(own) = fields.iter().find(|field| OWN_FIELDS.contains(&field.as_str())) {
                let message = format!(
                    "must not have {own}: objects are found by id without an \
                                       index, and by the store's other fields never"
                );
                return Err(Fault::new(key, message));
            }
        }
        for (caller, contexts) in &self.access {
            if contexts.iter().any(|context| context.parse::<Context>().is_err()) {
                let message = "must have contexts of at most 256 bytes";
                return Err(Fault::new(KeyPath::of(&["osis", "access", caller]), message));
            }
        }
        Ok(())
    }

    fn check_rights(&self) -> Result<(), Fault> {
        for (name, members) in &self.groups {
            let unknown = |member: &&str| !self.groups.contains_key(*member);
            let members = members.iter().filter_map(|member| member.strip_prefix('@'));
            if let Some(group) = members.clone().find(unknown) {
                let key = KeyPath::of(&["osis", "groups", name]);
                return Err(Fault::new(key, format!("has @{group}, which is not in osis.groups")));
            }
        }
        for (namespace, rights) in &self.rights {
            let key = KeyPath::of(&["osis", "rights", namespace]);
            if !self.schema.contains_key(namespace) {
                return Err(Fault::new(key, "is of a namespace that is not in osis.schema"));
            }
            let unknown = |(_, group): &(_, &String)| !self.groups.contains_key(*group);
            if let Some((right, group)) = rights.groups().find(unknown) {
                let message = format!("has {group}, which is not in osis.groups");
                return key.wrong(right, message);
            }
        }
        Ok(())
    }

    fn check_schemas(&self) -> Result<(), Fault> {
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        for (namespace, types) in &self.schema {
            for (name, schema) in types {
                let keys = ["osis", "schema", namespace.as_str(), name.as_str()];
                let (key, object_type) = (KeyPath::of(&keys), format!("{namespace}_{name}"));
                if object_type.parse::<ObjectType>().is_err() || name.is_empty() {
                    let message = format!(
                        "must have names of letters, digits and _: `{}` is not legal for objects",
                        object_type.escape_debug()
                    );
                    return Err(Fault::new(key, message));
                }
                if let Some((of, message)) = schema.mistake() {
                    let key = if schema.fields.is_empty() { key } else { key.then(of) };
                    return Err(Fault::new(key, message));
                }
                let here = keys.join(".");
                if let Some(other) = known.insert(object_type, here) {
                    return Err(Fault::new(key, format!("has the same functions as {other}")));
                }
            }
        }
        if known.len() > SCHEMAS_MAX {
            let message = format!("must have at most {SCHEMAS_MAX} types");
            return Err(Fault::new(KeyPath::of(&["osis", "schema"]), message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    #[test]
    fn indexes_and_grants_are_read() {
        let text = "[osis.index]\nperson = [\"email\", \"home.city\"]\n\
                    [osis.access]\nalice = [\"shared\", \"\"]";
        let osis = Config::from_toml("hero.toml".as_ref(), text).expect("legal").osis;
        let person = "person".parse().expect("legal");
        let fields: Vec<&str> =
            osis.indexes(&person).map(crate::proto::object::Field::as_str).collect();
        assert_eq!(fields, ["email", "home.city"]);
        assert!(osis.grants("alice", "shared") && osis.grants("alice", ""));
        assert!(!osis.grants("alice", "other") && !osis.grants("bob", "shared"));
    }

    #[test]
    fn a_field_that_cannot_be_indexed_is_rejected() {
        for (text, expected) in [
            (
                "[osis.index]\nperson = [\"version\"]",
                "2:10: osis.index.person must not have version",
            ),
            ("[osis.index]\nperson = [\"a..b\"]", "field `a..b` is not legal"),
            ("[osis.index]\n\"a:b\" = [\"x\"]", "osis.index"),
            ("[osis]\nobject_size_max = \"1GiB\"", "2:19: osis.object_size_max must be"),
        ] {
            let error = Config::from_toml("hero.toml".as_ref(), text).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn declared_types_are_read() {
        let text = "[osis.schema.project.task]\nrequired = [\"title\"]\n\
                    fields = { title = \"string\", status = [\"open\", \"done\"] }";
        let osis = Config::from_toml("hero.toml".as_ref(), text).expect("legal").osis;
        let declared: Vec<String> = osis.declared().map(|(of, _)| of.to_string()).collect();
        assert_eq!(declared, ["project_task"]);
        let key = |of: &str| osis.schema_of(&of.parse().expect("legal")).map(|(key, _)| key);
        assert_eq!(key("project_task").as_deref(), Some("osis.schema.project.task"));
        assert_eq!((key("project"), key("project_tas"), key("task")), (None, None, None));
    }

    #[test]
    fn a_mistake_in_a_declared_type_is_rejected() {
        for (text, expected) in [
            ("[osis.schema.a.b]", "osis.schema.a.b must have from 1 to 256 fields"),
            (
                "[osis.schema.a.b]\nfields = { x = \"text\" }",
                "`text` is not a type: expected any, bool",
            ),
            (
                "[osis.schema.a.b]\nfields = { x = \"int\" }\nrequired = [\"y\"]",
                "3:12: osis.schema.a.b.required has y, which `fields` does not declare",
            ),
            ("[osis.schema.a.\"b c\"]\nfields = { x = \"int\" }", "`a_b c` is not legal"),
            (
                "[osis.schema.a.b_c]\nfields = { x = \"int\" }\n\
                 [osis.schema.a_b.c]\nfields = { x = \"int\" }",
                "osis.schema.a_b.c has the same functions as osis.schema.a.b_c",
            ),
            ("[osis.schema.a.b]\nfield = 1", "unknown key `field`"),
            ("osis.groups.a = [\"@b\"]", "1:17: osis.groups.a has @b, which is not in osis.groups"),
            ("osis.rights.a.read = []", "osis.rights.a is of a namespace that is not in"),
            (
                "[osis.schema.a.b]\nfields = { x = \"int\" }\n[osis.rights.a]\nwrite = [\"g\"]",
                "osis.rights.a.write has g, which is not in osis.groups",
            ),
        ] {
            let error = Config::from_toml("hero.toml".as_ref(), text).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}

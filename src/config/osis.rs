//! `[osis]`: the objects that scripts of the engine `osis` keep.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::error::{Fault, KeyPath};
use super::units;
use crate::proto::object::{Context, Field, OWN_FIELDS, ObjectType};

/// The most fields of one type that may have an index: each costs every write.
const INDEXES_MAX: usize = 32;

/// `[osis]`: how large and how many objects may be, and by what they are found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct OsisConfig {
    /// The most bytes of one object, as JSON.
    #[serde(with = "units::size")]
    pub object_size_max: u64,
    /// The most objects of one context.
    pub objects_max: u64,
    /// For each type of objects, the fields by which they can be found.
    pub index: BTreeMap<ObjectType, BTreeSet<Field>>,
    /// For each caller, the contexts that its scripts may use beside their own.
    pub access: BTreeMap<String, BTreeSet<String>>,
}

impl Default for OsisConfig {
    fn default() -> Self {
        Self {
            object_size_max: 10 << 20,
            objects_max: 1_000_000,
            index: BTreeMap::new(),
            access: BTreeMap::new(),
        }
    }
}

impl OsisConfig {
    /// Whether the scripts of a caller may use a context that is not their own.
    pub fn grants(&self, caller: &str, context: &str) -> bool {
        self.access.get(caller).is_some_and(|contexts| contexts.contains(context))
    }

    /// The fields by which objects of a type are found.
    pub fn indexes(&self, object_type: &ObjectType) -> impl Iterator<Item = &Field> {
        self.index.get(object_type).into_iter().flatten()
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        for (object_type, fields) in &self.index {
            let key = KeyPath::of(&["osis", "index", object_type.as_str()]);
            if fields.len() > INDEXES_MAX {
                let message = format!("must have at most {INDEXES_MAX} fields");
                return Err(Fault::new(key, message));
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
    fn what_no_index_can_be_on_is_refused() {
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
}

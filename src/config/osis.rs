//! `[osis]`: the objects of scripts of the engine `osis`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::error::{Fault, KeyPath};
use super::units;
use crate::proto::object::{Context, Field, OWN_FIELDS, ObjectType};

/// The most indexed fields of one type: each costs time with every write.
const INDEXES_MAX: usize = 32;

/// `[osis]`: the bounds of objects, and their indexes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct OsisConfig {
    /// The largest object, in bytes of JSON.
    #[serde(with = "units::size")]
    pub object_size_max: u64,
    /// The most objects of one context.
    pub objects_max: u64,
    /// The indexed fields of each type of objects.
    pub index: BTreeMap<ObjectType, BTreeSet<Field>>,
    /// The further contexts that the scripts of each caller may use.
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
    /// Returns whether the scripts of a caller may use a context beside their own.
    pub fn grants(&self, caller: &str, context: &str) -> bool {
        self.access.get(caller).is_some_and(|contexts| contexts.contains(context))
    }

    /// Returns the indexed fields of a type.
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
}

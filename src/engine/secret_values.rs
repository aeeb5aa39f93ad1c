//! The values of the secrets that a job asks for.

use std::collections::BTreeMap;
use std::fmt;

/// The values of a job's secrets, by where its script finds them. They are printed nowhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValues {
    pub variables: BTreeMap<String, String>,
    pub files: BTreeMap<String, Vec<u8>>,
    /// All that are text, by the names of the secrets.
    pub by_name: BTreeMap<String, String>,
}

impl SecretValues {
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.files.is_empty()
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_name.keys()).finish()
    }
}

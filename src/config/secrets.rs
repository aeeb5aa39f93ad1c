//! `[secrets]`: values that jobs use by name, and the jobs that may.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::config_error::{Fault, KeyPath};
use crate::config::toml_table::toml_table;
use crate::proto::job::SecretName;
use crate::proto::target::{Group, ScriptType};

/// The largest secret, in bytes.
pub const SECRET_SIZE_MAX: u64 = 64 << 10;

toml_table! {
    /// `[secrets]`: the folder of the secrets of this machine, and the jobs that may use them.
    pub struct SecretsConfig {
        /// The folder of the secrets: one file each, with the name of its secret.
        pub dir: PathBuf = PathBuf::from("/etc/hero/secrets"),
        /// `[secrets.allow.NAME]`: the jobs that may use the secret of this name.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub allow: BTreeMap<SecretName, SecretRule> = BTreeMap::new(),
    }
}

/// The jobs that may use a secret. A property without a list does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct SecretRule {
    /// Jobs of these script types.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<ScriptType>,
    /// Jobs that run on actors of these groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// Jobs of these callers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<String>,
    /// The script types whose jobs may have it as a file only, not as a variable or by its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file_only: Vec<ScriptType>,
}

impl SecretRule {
    /// Returns true for a job of this type and caller that runs on an actor of this group.
    pub fn allows(&self, script_type: &ScriptType, group: &Group, caller: &str) -> bool {
        (self.types.is_empty() || self.types.contains(script_type))
            && (self.groups.is_empty() || self.groups.contains(group))
            && (self.callers.is_empty() || self.callers.iter().any(|one| one == caller))
    }
}

impl SecretsConfig {
    /// Checks the folder and the rules.
    ///
    /// # Errors
    /// [`Fault`] names the first mistake.
    pub(super) fn check(&self) -> Result<(), Fault> {
        const RULES_MAX: usize = 1000;
        if self.allow.len() > RULES_MAX {
            let message = format!("must be at most {RULES_MAX} tables");
            return Err(Fault::new(KeyPath::of(&["secrets", "allow"]), message));
        }
        let open = self.allow.iter().find(|(_, rule)| **rule == SecretRule::default());
        if let Some((name, _)) = open {
            let message = "needs types, groups or callers: without them no job may use it";
            return Err(Fault::new(KeyPath::of(&["secrets", "allow", name.as_str()]), message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(text: &str) -> Result<Config, String> {
        Config::from_toml("h".as_ref(), text).map_err(|error| error.to_string())
    }

    #[test]
    fn rule_allows_jobs_that_have_each_of_its_properties() {
        let text = "[secrets.allow.db]\ntypes = [\"python\", \"sal\"]\ncallers = [\"nightly\"]\n\
                    [secrets.allow.\"tls.key\"]\ngroups = [\"web\"]\n";
        let config = read(text).expect("legal");
        let may = |name: &str, script_type: &str, group: &str, caller: &str| {
            let rule = &config.secrets.allow[&name.parse().expect("legal")];
            let script_type = script_type.parse().expect("legal");
            rule.allows(&script_type, &group.parse().expect("legal"), caller)
        };
        assert!(may("db", "python", "default", "nightly") && may("db", "sal", "x", "nightly"));
        assert!(!may("db", "bash", "default", "nightly") && !may("db", "python", "default", ""));
        assert!(may("tls.key", "bash", "web", "") && !may("tls.key", "bash", "default", ""));
        assert_eq!(read(&config.to_toml().expect("text")).expect("reads back"), config);
    }

    #[test]
    fn mistakes_are_reported_with_their_place() {
        for (text, said) in [
            ("[secrets]\ndir = \"a\"", "h:2:7: secrets.dir must be an absolute path"),
            ("[secrets.allow.db]", "h:1:1: secrets.allow.db needs types, groups or callers"),
            ("[secrets.allow.\"../x\"]\ntypes = [\"osis\"]", "h:1:16: "),
            ("[secrets.allow.db]\ntype = \"osis\"", "h:2:1: unknown key `type`"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.starts_with(said), "{text}: {error}");
        }
    }
}

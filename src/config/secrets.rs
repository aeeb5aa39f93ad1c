//! `[secrets]`: values that jobs use by name, and the jobs that may.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::config_error::{Fault, KeyPath};
use crate::config::toml_table::toml_table;
use crate::proto::job::SecretName;
use crate::proto::target::{Group, ScriptType};

pub const SECRET_SIZE_MAX: u64 = 64 << 10;

toml_table! {
    /// The secrets of this machine, which jobs use by name: `hero exec --secret db_password FILE`. No job may use
    /// one without a table `[secrets.allow.NAME]`.
    pub struct SecretsConfig in "secrets" {
        /// Their folder: a file each, with the name of its secret, of at most 64KiB. A file that others may read, that
        /// is a link, or whose folder others may write in is rejected. A systemd credential `secret.NAME` of the unit
        /// comes before the file.
        dir: PathBuf = PathBuf::from("/etc/hero/secrets") => Folder;
    } with {
        /// `[secrets.allow.NAME]`: the jobs that may use the secret of this name.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub allow: BTreeMap<SecretName, SecretRule> = BTreeMap::new(),
    }
}

toml_table! {
    /// The jobs that may use a secret: a job has to match each list that the table has.
    ///
    ///     secrets.allow.db_password = { types = ["python"], groups = ["etl"], callers = ["nightly"] }
    ///     secrets.allow.tls_key = { types = ["python", "bash"], file_only = ["bash"] }
    pub struct SecretRule in "secrets.allow.NAME" {
        /// The script types of the jobs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        types: Vec<ScriptType> = Vec::new() => Texts;
        /// The groups of the actors that run the jobs.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        groups: Vec<Group> = Vec::new() => Texts;
        /// The callers of the jobs. A caller is what the submitter says; it is verified only for jobs that come by the
        /// API.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        callers: Vec<String> = Vec::new() => Texts;
        /// The script types whose jobs may have the secret as a file only, not in a variable.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        file_only: Vec<ScriptType> = Vec::new() => Texts;
    }
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

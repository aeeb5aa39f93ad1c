//! The script types that callers of the API may use: one without a sandbox only where it is named.

use std::collections::BTreeSet;

use super::api::EVERYONE;
use super::schema::Config;
use super::types::EngineKind;
use crate::proto::target::ScriptType;

impl Config {
    pub fn is_sandboxed(&self, script_type: &ScriptType) -> bool {
        self.types.get(script_type).is_some_and(|config| match config.engine {
            EngineKind::Osis | EngineKind::HeroScript => true,
            EngineKind::Sal => self.sal.is_sandboxed(),
            EngineKind::Command => config.sandbox.enabled,
        })
    }

    /// Returns true if the scripts of a configured type may use the whole network.
    pub fn has_network(&self, script_type: &ScriptType) -> bool {
        self.types.get(script_type).is_some_and(|config| match config.engine {
            EngineKind::Osis | EngineKind::HeroScript => false,
            EngineKind::Sal => self.sal.network,
            EngineKind::Command => config.sandbox.network || !config.sandbox.enabled,
        })
    }

    /// Returns true if a caller of the API may use a type: one of `types`, the bound of its token, and, if its
    /// scripts are not sandboxed, named by this bound or by `who` of the type.
    pub fn is_offered(
        &self,
        script_type: &ScriptType,
        caller: &str,
        types: Option<&BTreeSet<String>>,
    ) -> bool {
        let Some(config) = self.types.get(script_type) else { return false };
        if let Some(types) = types {
            return types.contains(script_type.as_str());
        }
        let is_named = config.who.iter().any(|name| name == EVERYONE || name == caller);
        is_named || self.is_sandboxed(script_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::from_toml("hero.toml".as_ref(), text).expect("a legal configuration")
    }

    fn offered(config: &Config, caller: &str, types: Option<&[&str]>) -> Vec<String> {
        let types = types.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let names = config.types.keys();
        names
            .filter(|name| config.is_offered(name, caller, types.as_ref()))
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn type_without_a_sandbox_is_offered_where_it_is_named_alone() {
        let sandboxed = ["bash", "heroscript", "node", "osis", "python", "v"];
        let plain = Config::default();
        assert_eq!(offered(&plain, "ann", None), sandboxed);
        assert_eq!(offered(&plain, "ann", Some(&["sal"])), ["sal"]);
        assert_eq!(offered(&plain, "ann", Some(&["osis", "ruby"])), ["osis"]);
        let with_all = ["bash", "heroscript", "node", "osis", "python", "sal", "v"];
        let named = config("[type.sal]\nwho = [\"ann\"]\n");
        assert_eq!(offered(&named, "ann", None), with_all);
        assert_eq!(offered(&named, "bob", None), sandboxed);
        let open = config("[type.sal]\nwho = [\"*\"]\n");
        assert_eq!(offered(&open, "bob", None), with_all);
        let bare = config("[type.bash.sandbox]\nenabled = false\n");
        assert!(!offered(&bare, "ann", None).contains(&"bash".to_owned()));
    }

    #[test]
    fn sal_is_sandboxed_once_its_folders_are_less_than_all() {
        let sal = |text: &str| config(text).is_sandboxed(&"sal".parse().expect("legal"));
        assert!(!sal(""));
        assert!(!sal("[sal]\nwrite = [\"/srv\"]\n"));
        assert!(!sal("[sal]\nread = [\"/srv\", \"/.\"]\nwrite = []\n"));
        assert!(sal("[sal]\nread = [\"/srv\"]\nwrite = []\n"));
    }

    #[test]
    fn empty_name_of_a_caller_is_rejected_with_its_place() {
        let text = "[type.sal]\nwho = [\"ann\", \"\"]\n";
        let error = Config::from_toml("hero.toml".as_ref(), text).expect_err("illegal").to_string();
        assert!(error.contains("2:15: type.sal.who[1] must be the name of a caller"), "{error}");
    }
}

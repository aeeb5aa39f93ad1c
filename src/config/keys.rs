//! `[keys.NAME]`: the public keys of those who sign jobs; `[type.NAME] require_signature` names them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config_error::{Fault, KeyPath};
use super::key_row::key_table;
use super::types::TypeConfig;
use crate::proto::job::{KeyName, PublicKey, RequiredKeys, SubmitRule};
use crate::proto::target::ScriptType;

key_table! {
    /// A key that signs jobs, for `require_signature` of a script type. `hero key new NAME` makes one and prints these
    /// lines; docs/secrets.md has more.
    ///
    ///     [keys.ops]
    ///     public_key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
    KEYS = "keys.NAME";

    /// Its public half: the 32 bytes of an Ed25519 key in Base64.
    public_key: Text;
}

/// `[keys.NAME]`: a key that signs jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, expecting = "a table")]
pub struct KeyConfig {
    pub public_key: PublicKey,
}
crate::toml_table::only_as_table!(KeyConfig);

/// Rejects a type that requires the signature of an unknown key, and a type whose scripts may submit jobs that must be
/// signed.
pub(super) fn check_signatures(
    types: &BTreeMap<ScriptType, TypeConfig>,
    keys: &BTreeMap<KeyName, KeyConfig>,
) -> Result<(), Fault> {
    let requires = |name: &ScriptType| types.get(name).is_some_and(TypeConfig::requires_signature);
    for (name, of) in types {
        let key = |key| KeyPath::of(&["type", name.as_str(), key]);
        for (place, required) in of.require_signature.iter().enumerate() {
            if !keys.contains_key(required) {
                let message = format!(
                    "names the key {required}, which is not configured: add [keys.{required}] with its \
                     public_key, as hero key show prints it"
                );
                return Err(Fault::new(key("require_signature").then(place), message));
            }
        }
        for (place, rule) in of.may_submit.iter().enumerate() {
            let Ok(rule) = rule.parse::<SubmitRule>() else { continue };
            if requires(rule.script_type()) {
                let of = rule.script_type();
                let message = format!("names {of}, whose jobs must be signed: a script has no key");
                return Err(Fault::new(key("may_submit").then(place), message));
            }
        }
    }
    Ok(())
}

impl TypeConfig {
    pub fn requires_signature(&self) -> bool {
        !self.require_signature.is_empty()
    }

    /// Returns the keys of which one must sign each of its jobs, out of all keys.
    pub fn required_keys(&self, keys: &BTreeMap<KeyName, KeyConfig>) -> RequiredKeys {
        let required = self.require_signature.iter();
        RequiredKeys::new(
            required.filter_map(|name| Some((name.clone(), keys.get(name)?.public_key))),
        )
    }
}

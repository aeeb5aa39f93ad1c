//! `[type.NAME] who`: the callers of the API who may use a type without a sandbox; and `may_submit`: the jobs that its
//! scripts may submit.

use super::api::is_caller_name;
use super::config_error::{Fault, KeyPath};
use crate::proto::job::SubmitRule;

/// The word for all callers.
pub(super) const EVERYONE: &str = "*";

/// Rejects a text that is neither the name of a caller nor the word for all; `key` is the place of the list.
pub(super) fn check_callers(who: &[String], key: &KeyPath) -> Result<(), Fault> {
    let is_legal = |name: &String| name == EVERYONE || is_caller_name(name);
    match who.iter().position(|name| !is_legal(name)) {
        None => Ok(()),
        Some(place) => {
            let message = "must be the name of a caller of the API, or \"*\"";
            Err(Fault::new(key.then(place), message).or(key.clone()))
        }
    }
}

/// Rejects a text that is neither a script type nor a group of one; `key` is the place of the list.
pub(super) fn check_may_submit(rules: &[String], key: &KeyPath) -> Result<(), Fault> {
    match rules.iter().position(|rule| rule.parse::<SubmitRule>().is_err()) {
        None => Ok(()),
        Some(place) => {
            let message = "must be a script type, such as \"python\", or TYPE:GROUP";
            Err(Fault::new(key.then(place), message).or(key.clone()))
        }
    }
}

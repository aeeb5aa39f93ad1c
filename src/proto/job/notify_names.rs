//! The notifications that a job names.

use std::fmt;
use std::str::FromStr;

use super::value::{Give, ListItem};
use crate::proto::target::{IllegalName, is_small_word, name};

name!(
    /// The name of a notification, in the configuration and in the jobs that ask for it.
    NotifyName,
    "name of a notification",
    "a letter a-z or digit, then at most 31 of a-z, 0-9, _ and -",
    |name| is_small_word(name, 32, b"_-") && name[0].is_ascii_alphanumeric()
);

const NAMES_MAX: usize = 8;

impl ListItem for NotifyName {
    fn fault(names: &[Self]) -> Option<String> {
        (names.len() > NAMES_MAX).then(|| format!("has more than {NAMES_MAX} names"))
    }
}

pub fn notify_names<'a>(
    names: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<NotifyName>, String> {
    let mut all = Vec::new();
    names.into_iter().try_for_each(|name| all.give(name)).map(|()| all)
}

//! Rights of callers on objects, by group.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::proto::word_table::words;

words! {
    /// A right on the objects of a namespace. Each includes those before it.
    #[derive(PartialOrd, Ord)]
    Right;
    Read = "read",
    Write = "write",
}

/// The groups that have each right. Others have none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table with `admin`, `write` and `read`")]
pub struct GroupRights {
    pub admin: BTreeSet<String>,
    /// Groups that may write, and so read.
    pub write: BTreeSet<String>,
    pub read: BTreeSet<String>,
}

impl GroupRights {
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let of = |right, groups| std::iter::repeat(right).zip(groups);
        of("admin", &self.admin).chain(of("write", &self.write)).chain(of("read", &self.read))
    }

    pub fn allow(&self, right: Right, groups: &BTreeSet<&str>) -> bool {
        let has = |of: &BTreeSet<String>| of.iter().any(|group| groups.contains(group.as_str()));
        has(&self.admin) || has(&self.write) || right == Right::Read && has(&self.read)
    }
}

/// Returns the groups of a caller: those that name it, and those that name one of its groups, as
/// `@GROUP`.
pub fn groups_of<'a>(
    groups: &'a BTreeMap<String, BTreeSet<String>>,
    caller: &str,
) -> BTreeSet<&'a str> {
    let mut own: BTreeSet<&str> = BTreeSet::new();
    loop {
        let is_new = |(name, members): &(&'a String, &'a BTreeSet<String>)| {
            let is_member = |member: &String| match member.strip_prefix('@') {
                Some(group) => own.contains(group),
                None => !caller.is_empty() && member == caller,
            };
            !own.contains(name.as_str()) && members.iter().any(is_member)
        };
        let Some((name, _)) = groups.iter().find(is_new) else { return own };
        own.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn groups_contain_groups_and_rights_include_lesser_ones() {
        let groups = BTreeMap::from([
            ("admins".to_owned(), set(&["ann"])),
            ("editors".to_owned(), set(&["bob", "@admins"])),
            ("all".to_owned(), set(&["cas", "@editors", "@loop"])),
            ("loop".to_owned(), set(&["@all"])),
        ]);
        let rights =
            GroupRights { admin: set(&["admins"]), write: set(&["editors"]), read: set(&["all"]) };
        let of = |caller: &str| {
            let own = groups_of(&groups, caller);
            (rights.allow(Right::Read, &own), rights.allow(Right::Write, &own))
        };
        assert_eq!(of("ann"), (true, true));
        assert_eq!(of("bob"), (true, true));
        assert_eq!(of("cas"), (true, false));
        assert_eq!(
            (of("dora"), of(""), of("@all")),
            ((false, false), (false, false), (false, false))
        );
        let admin = GroupRights { admin: set(&["all"]), ..GroupRights::default() };
        assert!(admin.allow(Right::Write, &groups_of(&groups, "cas")));
    }
}

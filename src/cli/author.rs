//! The client of a command. Its changes are recorded for the user who gives the command.

use std::{env, iter};

use nix::unistd::{Group, Uid, User, getgid, getgroups, getuid};

use crate::client::{Client, ClientError, host_name};
use crate::config::Config;
use crate::daemon::audit_to_journal;
use crate::proto::audit::Author;

pub(super) fn open_client(config: &Config) -> Result<Client, ClientError> {
    audit_to_journal();
    Ok(Client::open(config)?.as_author(of_command()))
}

/// Returns the user of this command: `ann (uid 1000)`, and after sudo `root (uid 0, sudo by ann)`.
pub(super) fn of_command() -> Author {
    let uid = getuid();
    let name = name_of(uid).unwrap_or_else(|| "user".to_owned());
    let by = given("SUDO_USER").filter(|_| uid.is_root());
    let by = by.map(|by| format!(", sudo by {by}")).unwrap_or_default();
    let from = host_name();
    let names = iter::once(name.clone()).chain(groups()).collect();
    Author { who: format!("{name} (uid {uid}{by})"), from, through: "command line", names }
}

/// Returns the name of the user who calls, also through sudo.
pub(super) fn user() -> String {
    let own = || name_of(getuid()).unwrap_or_else(|| getuid().to_string());
    given("SUDO_USER").unwrap_or_else(own)
}

fn name_of(uid: Uid) -> Option<String> {
    Some(User::from_uid(uid).ok()??.name)
}

fn given(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}

/// Returns the groups of this process, as waits of jobs name them: `@ops`.
fn groups() -> Vec<String> {
    const GROUPS_MAX: usize = 200;
    let groups = getgroups().unwrap_or_default().into_iter().chain([getgid()]).take(GROUPS_MAX);
    let named = groups.filter_map(|group| Group::from_gid(group).ok().flatten());
    named.map(|group| format!("@{}", group.name)).collect()
}

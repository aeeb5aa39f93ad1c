//! The program at the other end of a Unix socket: its user, by the kernel's word.

use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use tokio::net::UnixStream;
use tracing::warn;

use super::caller::{Bounds, Caller, Scope, Scopes};
use super::expiring_cache::ExpiringCache;
use crate::config::ApiConfig;

/// The groups of a user are read again after this time.
const AGE_MAX: Duration = Duration::from_secs(10);

/// The users of this machine that called lately.
pub(super) struct Users(ExpiringCache<Arc<UserGroups>>);

impl Default for Users {
    fn default() -> Self {
        Self(ExpiringCache::new(AGE_MAX))
    }
}

struct UserGroups {
    name: String,
    groups: Vec<Gid>,
    admin: Option<Gid>,
    member: Option<Gid>,
}

impl Users {
    /// Returns the name for the log, and the caller if the user may call.
    pub(super) async fn caller_of(
        &self,
        stream: &UnixStream,
        settings: &ApiConfig,
    ) -> (String, Option<Arc<Caller>>) {
        let Ok(peer) = stream.peer_cred() else { return ("unknown user".to_owned(), None) };
        let Some(user) = self.groups_of(peer.uid(), settings).await else {
            return (format!("uid {}", peer.uid()), None);
        };
        let is_in = |group: Option<Gid>| {
            group.is_some_and(|group| group.as_raw() == peer.gid() || user.groups.contains(&group))
        };
        let own = Uid::from_raw(peer.uid()) == Uid::effective();
        let scopes = if peer.uid() == 0 || is_in(user.admin) {
            Scopes::all()
        } else if own || is_in(user.member) {
            [Scope::Read, Scope::Submit].into_iter().collect()
        } else {
            return (format!("user {}", user.name), None);
        };
        let caller = Caller { name: user.name.clone(), scopes, bounds: Bounds::default() };
        (format!("user {}", user.name), Some(Arc::new(caller)))
    }

    /// Reads the groups of a user, off the runtime: a directory service may be slow.
    async fn groups_of(&self, uid: u32, settings: &ApiConfig) -> Option<Arc<UserGroups>> {
        if let Some(user) = self.0.get(&uid.to_string()) {
            return Some(user);
        }
        let (admin, member) = (settings.admin_group.clone(), settings.group.clone());
        let read = tokio::task::spawn_blocking(move || read(uid, &admin, &member));
        let user = match read.await.ok()? {
            Ok(user) => Arc::new(user),
            Err(error) => {
                warn!("cannot read the groups of the user {uid}, who calls the API: {error}");
                return None;
            }
        };
        // Without room its groups are read again.
        let _ = self.0.keep(uid.to_string(), Arc::clone(&user));
        Some(user)
    }
}

fn read(uid: u32, admin: &str, member: &str) -> nix::Result<UserGroups> {
    let gid = |name: &str| -> nix::Result<Option<Gid>> {
        if name.is_empty() {
            return Ok(None);
        }
        Ok(Group::from_name(name)?.map(|group| group.gid))
    };
    let (admin, member) = (gid(admin)?, gid(member)?);
    let Some(user) = User::from_uid(Uid::from_raw(uid))? else {
        return Ok(UserGroups { name: format!("uid{uid}"), groups: Vec::new(), admin, member });
    };
    let name = CString::new(user.name.as_str()).map_err(|_| nix::Error::EINVAL)?;
    let groups = getgrouplist(&name, user.gid)?;
    Ok(UserGroups { name: user.name, groups, admin, member })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_own_user_are_read() {
        let user = read(Uid::effective().as_raw(), "no-such-group-here", "").expect("read");
        assert_eq!((user.admin, user.member), (None, None));
        assert!(!user.name.is_empty());
    }

    #[test]
    fn user_without_an_account_has_no_groups() {
        let user = read(3_999_999_999, "", "").expect("read");
        assert_eq!(user.name, "uid3999999999");
        assert!(user.groups.is_empty());
    }
}

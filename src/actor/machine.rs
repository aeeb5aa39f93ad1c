//! On which machine, in which space of process numbers, an actor runs, and whether a process
//! there is still alive.

use std::fs;

/// What tells this machine, as long as it is up, from all others: the kernel's own boot id and
/// the namespace of process numbers. A host name does not: cloned machines and containers share
/// theirs. Empty if the kernel does not say.
pub(super) fn id() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match (boot.trim(), space.to_string_lossy()) {
        ("", _) => String::new(),
        (boot, space) => format!("{boot} {space}"),
    }
}

/// Whether a process of this machine runs. One that has ended and that its parent has not yet
/// taken note of does not.
pub(super) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The name before the state may hold anything, parentheses too.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X' | 'x'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_one_that_cannot_be_is_not() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(u32::MAX));
        assert!(!id().is_empty());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a zombie is made only by starting a process")]
    fn a_process_that_has_ended_is_not_alive_though_nobody_took_note() {
        let mut child = std::process::Command::new("/bin/true").spawn().expect("starts");
        let pidfd = rustix::process::pidfd_open(
            rustix::process::Pid::from_child(&child),
            rustix::process::PidfdFlags::empty(),
        )
        .expect("a descriptor");
        let mut ended = [rustix::event::PollFd::new(&pidfd, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut ended, None).expect("poll");
        assert!(fs::metadata(format!("/proc/{}", child.id())).is_ok(), "it still has its entry");
        assert!(!is_alive(child.id()));
        child.wait().expect("reaped");
    }
}

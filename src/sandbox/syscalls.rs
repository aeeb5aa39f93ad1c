//! The seccomp filter: system calls that no script needs and Landlock does not control.
//!
//! Calls that are not listed are allowed, as interpreters use most of them. Calls newer than this
//! list do not exist for a child.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule,
};

use super::limits::RUN_NUMBER;
use super::policy::{Network, Policy};
use super::search::{CallAnswer, number, with_search};
use super::support::{Support, target};

/// A call with its name, which begins with `SYS_`.
pub(super) type Call = (i64, &'static str);

macro_rules! calls {
    ($($name:ident),* $(,)?) => { [$((libc::$name, stringify!($name))),*] };
}

/// Calls that look into other processes or change the machine. Answered with "not permitted".
const DENIED: [Call; 46] = calls![
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_process_mrelease,
    SYS_kcmp,
    SYS_pidfd_getfd,
    SYS_migrate_pages,
    SYS_move_pages,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_open_tree,
    SYS_move_mount,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_unshare,
    SYS_setns,
    SYS_keyctl,
    SYS_add_key,
    SYS_request_key,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_quotactl,
    SYS_quotactl_fd,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_fanotify_init,
];
/// Owners are changed by path, which Landlock does not control. `statmount`, `listmount`,
/// `open_tree_attr` and `file_setattr` are given by number: not every libc has their names.
const DENIED_ATTRIBUTES: [Call; 6] = [
    (libc::SYS_fchownat, "SYS_fchownat"),
    (libc::SYS_clock_adjtime, "SYS_clock_adjtime"),
    (457, "SYS_statmount"),
    (458, "SYS_listmount"),
    (467, "SYS_open_tree_attr"),
    (469, "SYS_file_setattr"),
];
#[cfg(target_arch = "x86_64")]
const DENIED_OF_PROCESSOR: [Call; 7] = calls![
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_kexec_file_load,
    SYS_uselib,
    SYS_chown,
    SYS_lchown,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_OF_PROCESSOR: [Call; 0] = [];

/// Calls that programs can do without. Answered with "no such call".
///
/// `clone3` hides its flags from a filter, and `openat2` the mode of a new file. Queues, memory and
/// semaphores of System V and POSIX outlive a job and are shared with the next, and other
/// programs' ones are reached by numbers that can be guessed; `io_uring` bypasses filters; `inotify` reports
/// files that may not be read.
const ABSENT: [Call; 20] = calls![
    SYS_clone3,
    SYS_openat2,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_inotify_init1,
    SYS_shmget,
    SYS_shmat,
    SYS_shmctl,
    SYS_semget,
    SYS_semctl,
    SYS_semop,
    SYS_semtimedop,
    SYS_msgget,
    SYS_msgctl,
    SYS_msgsnd,
    SYS_msgrcv,
    SYS_mq_open,
    SYS_mq_unlink,
    SYS_mq_notify,
];
#[cfg(target_arch = "x86_64")]
const ABSENT_OF_PROCESSOR: [Call; 1] = calls![SYS_inotify_init,];
#[cfg(not(target_arch = "x86_64"))]
const ABSENT_OF_PROCESSOR: [Call; 0] = [];

/// Extended attributes are changed by path as well. Answered as by a file system without them, which
/// programs that copy files accept. `setxattrat` and `removexattrat` are given by number.
const UNSUPPORTED: [Call; 6] = [
    (libc::SYS_setxattr, "SYS_setxattr"),
    (libc::SYS_lsetxattr, "SYS_lsetxattr"),
    (libc::SYS_removexattr, "SYS_removexattr"),
    (libc::SYS_lremovexattr, "SYS_lremovexattr"),
    (463, "SYS_setxattrat"),
    (466, "SYS_removexattrat"),
];

/// `fchmodat2`, by number: not every libc has its name.
const FCHMODAT2: [Call; 1] = [(452, "SYS_fchmodat2")];

/// The calls that set the mode of a file or make one, with the place of the mode.
const MODES: [(i64, u8); 4] =
    [(libc::SYS_fchmod, 1), (libc::SYS_fchmodat, 2), (FCHMODAT2[0].0, 2), (libc::SYS_mknodat, 2)];
#[cfg(target_arch = "x86_64")]
const MODES_OF_PROCESSOR: [(i64, u8); 3] =
    [(libc::SYS_chmod, 1), (libc::SYS_creat, 1), (libc::SYS_mknod, 1)];
#[cfg(not(target_arch = "x86_64"))]
const MODES_OF_PROCESSOR: [(i64, u8); 0] = [];

/// The calls that open a file, with the place of the flags. The mode of a new file comes after them.
#[cfg(target_arch = "x86_64")]
const OPENS: [(i64, u8); 2] = [(libc::SYS_openat, 2), (libc::SYS_open, 1)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: [(i64, u8); 1] = [(libc::SYS_openat, 2)];

/// The calls that change modes. An access list of `fsetxattr` changes the mode as well.
#[cfg(target_arch = "x86_64")]
const CHMOD: [Call; 4] = calls![SYS_fchmod, SYS_fchmodat, SYS_fsetxattr, SYS_chmod,];
#[cfg(not(target_arch = "x86_64"))]
const CHMOD: [Call; 3] = calls![SYS_fchmod, SYS_fchmodat, SYS_fsetxattr,];

/// Changes a file by its path, which Landlock controls from Linux 6.2 on.
const TRUNCATE: [Call; 1] = calls![SYS_truncate];

/// Flags for new namespaces, and for a process that would be the daemon's own child.
const CLONE_FLAGS: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_PARENT,
];

/// Returns the filter for a policy; `None` on a processor whose call numbers are not known.
pub(super) fn filter(policy: &Policy, support: Support) -> Option<BpfProgram> {
    let rules = rules(policy, support).ok()?;
    let with_rules: Vec<i64> = rules.keys().copied().collect();
    let denied = SeccompAction::Errno(number(libc::EPERM));
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, target()?).ok()?;
    let rest: BpfProgram = filter.try_into().ok()?;
    Some(with_search(&answers(policy, support, &with_rules), &rest))
}

/// Returns the answers to all calls that are not allowed, by number; `with_rules` have rules.
fn answers(policy: &Policy, support: Support, with_rules: &[i64]) -> BTreeMap<u32, CallAnswer> {
    let number = |call: &i64| u32::try_from(*call).ok();
    let with_rules = with_rules.iter().filter_map(number);
    let mut answers: BTreeMap<u32, CallAnswer> =
        with_rules.map(|call| (call, CallAnswer::Rules)).collect();
    for (calls, error) in denied(policy, support) {
        let numbers = calls.iter().filter_map(|(call, _)| number(call));
        answers.extend(numbers.map(|call| (call, CallAnswer::Error(error))));
    }
    answers.extend(number(&libc::SYS_setsockopt).map(|call| (call, CallAnswer::SocketOption)));
    answers
}

/// Returns the calls that are denied with any arguments, with their errors.
pub(super) fn denied(policy: &Policy, support: Support) -> Vec<(&'static [Call], i32)> {
    let mut denied: Vec<(&'static [Call], i32)> = vec![
        (&DENIED, libc::EPERM),
        (&DENIED_ATTRIBUTES, libc::EPERM),
        (&DENIED_OF_PROCESSOR, libc::EPERM),
        (&UNSUPPORTED, libc::EOPNOTSUPP),
        (&ABSENT, libc::ENOSYS),
        (&ABSENT_OF_PROCESSOR, libc::ENOSYS),
    ];
    if !policy.chmod {
        denied.extend([(&CHMOD[..], libc::EPERM), (&FCHMODAT2, libc::EPERM)]);
    }
    if !support.has_truncate() {
        denied.push((&TRUNCATE, libc::EPERM));
    }
    denied
}

/// Calls that are denied for some arguments. A rule applies if all its conditions hold; a call is
/// denied if one of its rules applies, or if it has none.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(policy: &Policy, support: Support) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    let flags = CLONE_FLAGS.map(|flag| vec![has(0, number(flag))]);
    rules.insert(libc::SYS_clone, all(flags)?);
    modes(&mut rules)?;
    processes(&mut rules, policy)?;
    sockets(&mut rules, policy, support)?;
    Ok(rules)
}

/// Denies the mode bits that make a program run as its owner or group: a user who starts such a program
/// becomes the daemon's user.
fn modes(rules: &mut Rules) -> Result<(), BackendError> {
    const SET_ID: [u32; 2] = [libc::S_ISUID, libc::S_ISGID];
    const NEW: [i32; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
    for (call, mode) in MODES.into_iter().chain(MODES_OF_PROCESSOR) {
        rules.insert(call, all(SET_ID.map(|bit| vec![has(mode, bit)]))?);
    }
    for (call, flags) in OPENS {
        let denied = NEW
            .into_iter()
            .flat_map(|new| SET_ID.map(|bit| vec![has(flags, number(new)), has(flags + 1, bit)]));
        rules.insert(call, all(denied)?);
    }
    Ok(())
}

/// A process may change only itself, and may not signal all processes at once.
fn processes(rules: &mut Rules, policy: &Policy) -> Result<(), BackendError> {
    const TO_ALL: u32 = u32::MAX;
    const OF_A_USER: u32 = 2;
    const IO_OF_A_USER: u32 = 3;
    const READS: u32 = u32::MAX;
    const SET_OWNER: [u32; 2] = [8, 15];
    const IOCTLS: [u32; 4] = [0x5412, 0x541c, 0x8901, 0x8902];
    const KIND: u32 = 0xff00;
    const OF_NETWORK: u32 = 0x8900;
    const OF_PIDFD: u32 = 0xff00;
    let other = |call| Ok((call, all([vec![is_not(0, 0)]])?));
    // The number of the run: see `limits.rs`. The new limit is an address.
    let run_number = number(RUN_NUMBER as i32);
    let new = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    let mut limits = vec![vec![is(1, run_number), new]];
    limits.extend(policy.own_signals.then(|| vec![is_not(0, 0)]));
    rules.insert(libc::SYS_prlimit64, all(limits)?);
    rules.insert(libc::SYS_setrlimit, all([vec![is(0, run_number)]])?);
    if policy.own_signals {
        for call in [
            libc::SYS_sched_setaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_setparam,
            libc::SYS_sched_setscheduler,
        ] {
            rules.extend([other(call)?]);
        }
        let of_others = [vec![is_not(1, 0)], vec![is(0, OF_A_USER)]];
        rules.insert(libc::SYS_setpriority, all(of_others)?);
        let of_others = [vec![is_not(1, 0)], vec![is(0, IO_OF_A_USER)]];
        rules.insert(libc::SYS_ioprio_set, all(of_others)?);
        rules.insert(libc::SYS_kill, all([vec![is(0, TO_ALL)]])?);
    }
    // The owner of a descriptor gets signals; a terminal's input can be forged.
    rules.insert(libc::SYS_fcntl, all(SET_OWNER.map(|command| vec![is(1, command)]))?);
    let mut ioctls: Vec<_> = IOCTLS.into_iter().map(|command| vec![is(1, command)]).collect();
    if policy.own_signals {
        // The user, the groups and the namespaces of any process.
        ioctls.push(vec![masked(1, KIND, OF_PIDFD)]);
    }
    if !policy.may_listen() {
        // One of a pair of sockets tells about the networks of the machine.
        ioctls.push(vec![masked(1, KIND, OF_NETWORK)]);
    }
    rules.insert(libc::SYS_ioctl, all(ioctls)?);
    // The daemon counts the open files of a process; a process that cannot be dumped hides them.
    let hides = vec![is(0, number(libc::PR_SET_DUMPABLE)), is_not(1, 1)];
    rules.insert(libc::SYS_prctl, all([hides])?);
    rules.insert(libc::SYS_personality, all([vec![is_not(0, 0), is_not(0, READS)]])?);
    Ok(())
}

/// Denies what Landlock does not control of the network: everything but TCP.
fn sockets(rules: &mut Rules, policy: &Policy, support: Support) -> Result<(), BackendError> {
    const TYPE: u32 = 0xf;
    let datagram = number(libc::SOCK_DGRAM);
    let internet = [number(libc::AF_INET), number(libc::AF_INET6)];
    let unix = number(libc::AF_UNIX);
    let mut families = Vec::new();
    if policy.unix_sockets {
        families.push(unix);
    }
    let ports = match &policy.network {
        Network::Open => None,
        Network::Ports(ports) if support.has_ports() => Some(ports.as_slice()),
        Network::Ports(_) | Network::Closed => Some([].as_slice()),
    };
    if ports.is_none_or(|ports| !ports.is_empty()) {
        families.extend(internet);
    }
    if families.is_empty() {
        rules.insert(libc::SYS_socket, Vec::new());
    } else {
        let mut denied = vec![families.iter().map(|family| is_not(0, *family)).collect()];
        for kind in [libc::SOCK_RAW, libc::SOCK_RDM, 6, 10].map(number) {
            denied.push(vec![masked(1, TYPE, kind)]);
        }
        for family in internet {
            // Landlock does not control other protocols, such as MPTCP.
            let mut known = vec![0, number(libc::IPPROTO_TCP), number(libc::IPPROTO_UDP)];
            if ports.is_none() {
                known.extend([libc::IPPROTO_ICMP, libc::IPPROTO_ICMPV6].map(number));
            }
            let unknown = known.into_iter().map(|protocol| is_not(2, protocol));
            denied.push(std::iter::once(is(0, family)).chain(unknown).collect());
            if ports.is_some_and(|ports| !ports.contains(&53)) {
                denied.push(vec![is(0, family), masked(1, TYPE, datagram)]);
            }
        }
        rules.insert(libc::SYS_socket, all(denied)?);
    }
    if !policy.may_listen() {
        // Landlock controls neither a port that the kernel chooses, nor an abstract name for one of a pair.
        rules.insert(libc::SYS_bind, Vec::new());
        rules.insert(libc::SYS_listen, Vec::new());
    }
    if !policy.unix_sockets {
        // A datagram socket of a pair can be connected to any other by name. Allowed are the kinds 1
        // and 5: all others lack the first bit, or have another than the third.
        let others = [masked(1, 1, 0), masked(1, 2, 2), masked(1, 8, 8)];
        rules.insert(libc::SYS_socketpair, all(others.map(|kind| vec![kind]))?);
    }
    if ports.is_some() {
        // These open a connection with their first data.
        let fast = number(libc::MSG_FASTOPEN);
        rules.insert(libc::SYS_sendto, all([vec![has(3, fast)]])?);
        rules.insert(libc::SYS_sendmsg, all([vec![has(2, fast)]])?);
        rules.insert(libc::SYS_sendmmsg, all([vec![has(3, fast)]])?);
    }
    Ok(())
}

/// A condition on the low half of an argument: the kernel reads no more of those used here.
type Condition = Result<SeccompCondition, BackendError>;

fn all(rules: impl IntoIterator<Item = Vec<Condition>>) -> Result<Vec<SeccompRule>, BackendError> {
    let rule = |conditions: Vec<Condition>| {
        SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
    };
    rules.into_iter().map(rule).collect()
}

fn is(argument: u8, value: u32) -> Condition {
    condition(argument, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u32) -> Condition {
    condition(argument, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, flag: u32) -> Condition {
    masked(argument, flag, flag)
}

fn masked(argument: u8, mask: u32, value: u32) -> Condition {
    condition(argument, SeccompCmpOp::MaskedEq(mask.into()), value)
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u32) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
}

#[cfg(test)]
mod tests {
    use seccompiler::sock_filter;

    use super::super::search::{JUMP, JUMP_IF_EQUAL, JUMP_IF_GREATER, LOAD, NEWEST, RETURN};
    use super::*;

    /// Runs a program as the kernel would: its answer to a call, and the number of steps.
    fn answer_to(program: &[sock_filter], call: u32, arguments: [u64; 6]) -> (u32, usize) {
        const AND: u16 = 0x54;
        const JUMP_IF_EQUAL_OR_GREATER: u16 = 0x35;
        let check = &program[1];
        let (mut at, mut steps, mut loaded) = (0, 0, 0_u32);
        loop {
            let step = &program[at];
            (at, steps) = (at + 1, steps + 1);
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            match step.code {
                LOAD if step.k == 0 => loaded = call,
                // The processor is the expected one.
                LOAD if step.k == 4 => loaded = check.k,
                LOAD => {
                    let (place, is_high) = ((step.k as usize - 16) / 8, !step.k.is_multiple_of(8));
                    let value = arguments[place] >> if is_high { 32 } else { 0 };
                    loaded = u32::try_from(value & u64::from(u32::MAX)).expect("32 bits");
                }
                AND => loaded &= step.k,
                JUMP => at += step.k as usize,
                JUMP_IF_EQUAL => at += jump(loaded == step.k),
                JUMP_IF_GREATER => at += jump(loaded > step.k),
                JUMP_IF_EQUAL_OR_GREATER => at += jump(loaded >= step.k),
                RETURN => return (step.k, steps),
                other => panic!("an unknown instruction: {other:#x}"),
            }
        }
    }

    fn error(error: i32) -> u32 {
        libc::SECCOMP_RET_ERRNO | number(error)
    }

    #[test]
    fn every_call_is_answered_in_few_steps() {
        let config = crate::config::SandboxConfig { chmod: false, ..Default::default() };
        let policy = Policy::of_type(&config);
        let support = Support { landlock: 1, seccomp: true, privileged: false };
        let Some(program) = filter(&policy, support) else { return };
        let asked = rules(&policy, support).expect("rules");
        let lists: [(&[Call], i32); 9] = [
            (&DENIED, libc::EPERM),
            (&DENIED_ATTRIBUTES, libc::EPERM),
            (&DENIED_OF_PROCESSOR, libc::EPERM),
            (&CHMOD, libc::EPERM),
            (&FCHMODAT2, libc::EPERM),
            (&TRUNCATE, libc::EPERM),
            (&UNSUPPORTED, libc::EOPNOTSUPP),
            (&ABSENT, libc::ENOSYS),
            (&ABSENT_OF_PROCESSOR, libc::ENOSYS),
        ];
        for call in 0..=NEWEST + 10 {
            let (answer, steps) = answer_to(&program, call, [0; 6]);
            let is_listed =
                |calls: &[Call]| calls.iter().any(|(known, _)| *known == i64::from(call));
            let listed = lists.iter().find(|(calls, _)| is_listed(calls));
            if listed.is_none() && asked.contains_key(&i64::from(call)) {
                continue;
            }
            let newer = (call > NEWEST).then_some(error(libc::ENOSYS));
            let expected = listed.map(|(_, errno)| error(*errno)).or(newer);
            assert_eq!(answer, expected.unwrap_or(libc::SECCOMP_RET_ALLOW), "{call}");
            assert!(steps < 30, "{call} takes {steps} steps");
        }
        assert!(program.len() < 665, "{} instructions", program.len());
    }

    #[test]
    fn rules_decide_by_the_arguments() {
        let policy = Policy::of_type(&crate::config::SandboxConfig::default());
        let support = Support { landlock: 7, seccomp: true, privileged: false };
        let Some(program) = filter(&policy, support) else { return };
        let answer = |call: i64, arguments: &[u64]| {
            let mut all = [0; 6];
            all[..arguments.len()].copy_from_slice(arguments);
            answer_to(&program, u32::try_from(call).expect("a number"), all).0
        };
        let (allowed, denied) = (libc::SECCOMP_RET_ALLOW, error(libc::EPERM));
        for kind in 0..16 {
            // Flags stand above the kind.
            let kind = kind | 0x80000;
            let expected = if [0x80001, 0x80005].contains(&kind) { allowed } else { denied };
            assert_eq!(answer(libc::SYS_socketpair, &[1, kind]), expected, "{kind:#x}");
        }
        for (call, arguments, expected) in [
            (libc::SYS_socket, &[1, 1][..], denied),
            (libc::SYS_kill, &[0xffff_ffff_ffff_ffff, 9], denied),
            (libc::SYS_kill, &[77, 9], allowed),
            (libc::SYS_prlimit64, &[1], denied),
            (libc::SYS_prlimit64, &[0], allowed),
            (libc::SYS_prlimit64, &[0, 10, 0, 1], allowed),
            (libc::SYS_prlimit64, &[0, 10, 1 << 32], denied),
            (libc::SYS_prlimit64, &[0, 7, 1 << 32], allowed),
            (libc::SYS_setrlimit, &[10], denied),
            (libc::SYS_setrlimit, &[7], allowed),
            (libc::SYS_prctl, &[4, 0], denied),
            (libc::SYS_prctl, &[4, 1], allowed),
            (libc::SYS_clone, &[0x1000_0000], denied),
            (libc::SYS_clone, &[17], allowed),
            (libc::SYS_fcntl, &[0, 8], denied),
            (libc::SYS_fcntl, &[0, 3], allowed),
            (libc::SYS_ioctl, &[0, 0x5412], denied),
            (libc::SYS_ioctl, &[0, 0x5401], allowed),
            (libc::SYS_ioctl, &[0, 0xc040_ff0b], denied),
            (libc::SYS_ioctl, &[0, 0x8912], denied),
            (libc::SYS_bind, &[3], denied),
            (libc::SYS_listen, &[3], denied),
            // The sizes of buffers: success without an effect.
            (libc::SYS_setsockopt, &[3, 1, 7], error(0)),
            (libc::SYS_setsockopt, &[3, 0x1_0000_0001, 8], error(0)),
            (libc::SYS_setsockopt, &[3, 1, 32], error(0)),
            (libc::SYS_setsockopt, &[3, 1, 33], error(0)),
            (libc::SYS_setsockopt, &[3, 1, 2], allowed),
            (libc::SYS_setsockopt, &[3, 6, 7], allowed),
            (libc::SYS_msgrcv, &[0], error(libc::ENOSYS)),
            (libc::SYS_read, &[], allowed),
            (libc::SYS_fchmod, &[3, 0o1777], allowed),
            (libc::SYS_fchmod, &[3, 0o4755], denied),
            (libc::SYS_fchmodat, &[0, 0, 0o2755], denied),
            (libc::SYS_fchmodat2, &[0, 0, 0o6755], denied),
            (libc::SYS_mknodat, &[0, 0, 0o10_4755], denied),
            (libc::SYS_openat, &[0, 0, 0o101, 0o4755], denied),
            (libc::SYS_openat, &[0, 0, 0o2020_0002, 0o2755], denied),
            (libc::SYS_openat, &[0, 0, 0o101, 0o1777], allowed),
            // Without a new file the mode has no meaning, and may be anything.
            (libc::SYS_openat, &[0, 0, 0o20_0000, 0o7777], allowed),
            (libc::SYS_openat2, &[], error(libc::ENOSYS)),
        ] {
            assert_eq!(answer(call, arguments), expected, "{call} {arguments:x?}");
        }
    }
}

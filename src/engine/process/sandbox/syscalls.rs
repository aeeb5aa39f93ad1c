//! The filter of system calls: what no script needs, and Landlock does not hold.
//!
//! Calls that are not listed go through, for interpreters use most of them; calls newer than this
//! list do not exist for a child, as nobody has thought about them yet.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use super::confine;
use super::policy::{Network, Policy};
use super::support::Support;

/// The newest call that has been thought about. From 424 on all processors share the numbers.
const NEWEST: u32 = 469;

/// What looks into other processes, or changes the machine. The answer is "not permitted".
const DENIED: [i64; 46] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
];
/// Owners are changed by name, which Landlock does not hold; a service without privileges may not
/// change them anyway. `statmount`, `listmount`, `open_tree_attr` and `file_setattr` go by number:
/// not every libc has their names.
const DENIED_ATTRIBUTES: [i64; 6] =
    [libc::SYS_fchownat, libc::SYS_clock_adjtime, 457, 458, 467, 469];
#[cfg(target_arch = "x86_64")]
const DENIED_OF_PROCESSOR: [i64; 7] = [
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_kexec_file_load,
    libc::SYS_uselib,
    libc::SYS_chown,
    libc::SYS_lchown,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_OF_PROCESSOR: [i64; 0] = [];

/// What programs do without where it is not there. The answer is "no such call".
///
/// `clone3` hides its flags from a filter. The queues and memory of System V and POSIX outlive a
/// job, and are the next one's too; `io_uring` goes past every filter; `inotify` tells of files
/// that may not be read.
const ABSENT: [i64; 12] = [
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_inotify_init1,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_semget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_notify,
];
#[cfg(target_arch = "x86_64")]
const ABSENT_OF_PROCESSOR: [i64; 1] = [libc::SYS_inotify_init];
#[cfg(not(target_arch = "x86_64"))]
const ABSENT_OF_PROCESSOR: [i64; 0] = [];

/// Extended attributes are changed by name as well. The answer is that of a file system without
/// them, which programs that copy files take. `setxattrat` and `removexattrat` go by number.
const UNSUPPORTED: [i64; 6] = [
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    463,
    466,
];

#[cfg(target_arch = "x86_64")]
const CHMOD: [i64; 3] = [libc::SYS_fchmodat, libc::SYS_fchmodat2, libc::SYS_chmod];
#[cfg(not(target_arch = "x86_64"))]
const CHMOD: [i64; 2] = [libc::SYS_fchmodat, libc::SYS_fchmodat2];

/// New namespaces, and a process that would be the daemon's own child.
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

/// Whether this kernel filters calls, and the calls of this processor are known.
pub(super) fn is_supported() -> bool {
    target().is_some() && confine::has_seccomp()
}

fn target() -> Option<TargetArch> {
    TargetArch::try_from(std::env::consts::ARCH).ok()
}

/// The filter for a policy; none for a processor whose calls are not known.
pub(super) fn filter(policy: &Policy, support: Support) -> Option<BpfProgram> {
    let rules = rules(policy, support).ok()?;
    let denied = SeccompAction::Errno(number(libc::EPERM));
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, target()?).ok()?;
    let program: BpfProgram = filter.try_into().ok()?;
    Some(answered(policy, support).into_iter().chain(program).collect())
}

/// The start of the filter: what is answered whatever its arguments are. Each call goes through it,
/// and the kernel goes through it with every number there is as it takes the filter, so it halves
/// the numbers until few are left. Numbers of another processor's calls, such as those of 32 bits,
/// are mistaken for ours here, and ended by the rest of the filter.
fn answered(policy: &Policy, support: Support) -> Vec<sock_filter> {
    let mut answers: BTreeMap<u32, i32> = BTreeMap::new();
    let mut answer = |calls: &[i64], error| {
        answers.extend(calls.iter().filter_map(|call| Some((u32::try_from(*call).ok()?, error))));
    };
    answer(&DENIED, libc::EPERM);
    answer(&DENIED_ATTRIBUTES, libc::EPERM);
    answer(&DENIED_OF_PROCESSOR, libc::EPERM);
    if !policy.chmod {
        answer(&CHMOD, libc::EPERM);
    }
    if !support.holds_truncate() {
        answer(&[libc::SYS_truncate], libc::EPERM);
    }
    answer(&UNSUPPORTED, libc::EOPNOTSUPP);
    answer(&ABSENT, libc::ENOSYS);
    answer(&ABSENT_OF_PROCESSOR, libc::ENOSYS);
    let mut program = vec![
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_GREATER, 0, 1, NEWEST),
        refusal(libc::ENOSYS),
    ];
    let answers: Vec<(u32, i32)> = answers.into_iter().collect();
    search(&answers, &mut program);
    program
}

const LOAD: u16 = 0x20;
const RETURN: u16 = 0x06;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER: u16 = 0x25;

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn refusal(error: i32) -> sock_filter {
    instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | number(error))
}

/// Appends what looks a number up among sorted ones, and goes on behind itself with any other.
fn search(answers: &[(u32, i32)], program: &mut Vec<sock_filter>) {
    const FEW: usize = 4;
    if answers.len() <= FEW {
        for (call, error) in answers {
            program.push(instruction(JUMP_IF_EQUAL, 0, 1, *call));
            program.push(refusal(*error));
        }
        return;
    }
    let (low, high) = answers.split_at(answers.len() / 2);
    let (mut of_low, mut of_high) = (Vec::new(), Vec::new());
    search(low, &mut of_low);
    search(high, &mut of_high);
    let length = |part: &[sock_filter]| u32::try_from(part.len()).unwrap_or(u32::MAX);
    let last_of_low = low.last().map_or(0, |(call, _)| *call);
    // Conditional jumps are short: this one only passes over a jump that may be long.
    program.push(instruction(JUMP_IF_GREATER, 0, 1, last_of_low));
    program.push(instruction(JUMP, 0, 0, length(&of_low) + 1));
    program.append(&mut of_low);
    program.push(instruction(JUMP, 0, 0, length(&of_high)));
    program.append(&mut of_high);
}

/// The rest of the filter: calls that are denied for what their arguments are. A rule is met when
/// all its conditions are, and a call is denied when one of its rules is met; one without rules
/// always is.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules(policy: &Policy, support: Support) -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    let flags = CLONE_FLAGS.map(|flag| vec![has(0, number(flag))]);
    rules.insert(libc::SYS_clone, all(flags)?);
    processes(&mut rules, policy)?;
    sockets(&mut rules, policy, support)?;
    Ok(rules)
}

/// Of processes only the own may be changed; of signals none goes to all.
fn processes(rules: &mut Rules, policy: &Policy) -> Result<(), BackendError> {
    const TO_ALL: u32 = u32::MAX;
    const OF_A_USER: u32 = 2;
    const IO_OF_A_USER: u32 = 3;
    const READS: u32 = u32::MAX;
    const SET_OWNER: [u32; 2] = [8, 15];
    const IOCTLS: [u32; 4] = [0x5412, 0x541c, 0x8901, 0x8902];
    let other = |call| Ok((call, all([vec![is_not(0, 0)]])?));
    if policy.own_signals {
        for call in [
            libc::SYS_prlimit64,
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
    // Who owns a descriptor gets its signals; a terminal's input can be made up.
    rules.insert(libc::SYS_fcntl, all(SET_OWNER.map(|command| vec![is(1, command)]))?);
    rules.insert(libc::SYS_ioctl, all(IOCTLS.map(|command| vec![is(1, command)]))?);
    rules.insert(libc::SYS_personality, all([vec![is_not(0, 0), is_not(0, READS)]])?);
    Ok(())
}

/// What Landlock does not hold of the network: everything but TCP.
fn sockets(rules: &mut Rules, policy: &Policy, support: Support) -> Result<(), BackendError> {
    const TYPE: u32 = 0xf;
    let (stream, datagram, packets) =
        (number(libc::SOCK_STREAM), number(libc::SOCK_DGRAM), number(libc::SOCK_SEQPACKET));
    let internet = [number(libc::AF_INET), number(libc::AF_INET6)];
    let unix = number(libc::AF_UNIX);
    let mut families = Vec::new();
    if policy.unix_sockets {
        families.push(unix);
    }
    let ports = match &policy.network {
        Network::Open => None,
        Network::Ports(ports) if support.holds_ports() => Some(ports.as_slice()),
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
            // Other protocols, such as MPTCP, are no TCP to Landlock.
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
    if !policy.unix_sockets {
        // One of a pair for datagrams can be turned to any other socket by its name.
        rules.insert(libc::SYS_socketpair, all(masked_not_any(1, TYPE, [stream, packets]))?);
    }
    if ports.is_some() {
        // A connection that is opened by its first data.
        let fast = number(libc::MSG_FASTOPEN);
        rules.insert(libc::SYS_sendto, all([vec![has(3, fast)]])?);
        rules.insert(libc::SYS_sendmsg, all([vec![has(2, fast)]])?);
        rules.insert(libc::SYS_sendmmsg, all([vec![has(3, fast)]])?);
    }
    Ok(())
}

/// The low half of an argument: the kernel looks at no more of any that is used here.
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

/// One rule for each value of four bits that is none of these.
fn masked_not_any(argument: u8, mask: u32, values: [u32; 2]) -> Vec<Vec<Condition>> {
    (0..=mask)
        .filter(|value| !values.contains(value))
        .map(|value| vec![masked(argument, mask, value)])
        .collect()
}

fn condition(argument: u8, operator: SeccompCmpOp, value: u32) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
}

/// The kernel's constants are numbers without a sign that libc has as numbers with one.
fn number(constant: i32) -> u32 {
    constant.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program answers to a number, as the kernel would run it; `None` if it goes on behind.
    fn answer(program: &[sock_filter], call: u32) -> Option<u32> {
        let (mut at, mut steps) = (0, 0);
        while let Some(step) = program.get(at) {
            steps += 1;
            assert!(steps <= 24, "{call} takes as many steps as a list would");
            at += 1;
            let jump = |holds: bool| usize::from(if holds { step.jt } else { step.jf });
            match step.code {
                LOAD => {}
                JUMP => at += step.k as usize,
                JUMP_IF_EQUAL => at += jump(call == step.k),
                JUMP_IF_GREATER => at += jump(call > step.k),
                RETURN => return Some(step.k & 0xffff),
                other => panic!("an unknown instruction: {other}"),
            }
        }
        None
    }

    #[test]
    fn every_number_gets_its_answer_in_few_steps() {
        let config = crate::config::SandboxConfig { chmod: false, ..Default::default() };
        let support = Support { landlock: 1, seccomp: true, privileged: false };
        let program = answered(&Policy::of_type(&config), support);
        let lists: [(&[i64], i32); 8] = [
            (&DENIED, libc::EPERM),
            (&DENIED_ATTRIBUTES, libc::EPERM),
            (&DENIED_OF_PROCESSOR, libc::EPERM),
            (&CHMOD, libc::EPERM),
            (&[libc::SYS_truncate], libc::EPERM),
            (&UNSUPPORTED, libc::EOPNOTSUPP),
            (&ABSENT, libc::ENOSYS),
            (&ABSENT_OF_PROCESSOR, libc::ENOSYS),
        ];
        for call in 0..=NEWEST + 10 {
            let listed = lists.iter().find(|(calls, _)| calls.contains(&i64::from(call)));
            let newer = (call > NEWEST).then_some(number(libc::ENOSYS));
            let expected = listed.map(|(_, error)| number(*error)).or(newer);
            assert_eq!(answer(&program, call), expected, "{call}");
        }
    }
}

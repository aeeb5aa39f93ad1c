//! The start of the filter of system calls: a search for the number of the call, which answers most
//! of them before any rule is looked at.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, sock_filter};

use super::syscalls::{NEWEST, number};

/// What a call is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// This error, whatever its arguments are.
    Error(i32),
    /// What the rules say of its arguments.
    Rules,
}

pub(super) const LOAD: u16 = 0x20;
pub(super) const RETURN: u16 = 0x06;
pub(super) const JUMP: u16 = 0x05;
pub(super) const JUMP_IF_EQUAL: u16 = 0x15;
pub(super) const JUMP_IF_GREATER: u16 = 0x25;
/// How the check for the processor begins a program: it loads, compares, and ends another's calls.
const PROCESSOR_CHECK_LEN: usize = 3;
/// Where a jump goes that is not known yet: to the rules.
const TO_RULES: u32 = u32::MAX;

/// Puts a search for the answers before the rules, behind the check for the processor. The kernel
/// goes through a filter with every number there is as it takes it, and translates all of it: the
/// fewer steps and instructions, the sooner a child begins.
pub(super) fn with_search(answers: &BTreeMap<u32, Answer>, rules: &[sock_filter]) -> BpfProgram {
    let (check, rules) = rules.split_at(rules.len().min(PROCESSOR_CHECK_LEN));
    let mut program = check.to_vec();
    program.push(instruction(LOAD, 0, 0, 0));
    program.push(instruction(JUMP_IF_GREATER, 0, 1, NEWEST));
    program.push(answer(Answer::Error(libc::ENOSYS)));
    let answers: Vec<(u32, Answer)> = answers.iter().map(|(call, is)| (*call, *is)).collect();
    program.extend(search(&answers));
    let end = program.len();
    for (at, step) in program.iter_mut().enumerate() {
        if step.code == JUMP && step.k == TO_RULES {
            step.k = length(end - at - 1);
        }
    }
    program.extend_from_slice(rules);
    program
}

/// Looks a number up among sorted ones: halves them until few are left, then goes through these.
fn search(answers: &[(u32, Answer)]) -> Vec<sock_filter> {
    const FEW: usize = 12;
    if answers.len() > FEW {
        let (low, high) = answers.split_at(answers.len() / 2);
        let last_of_low = low.last().map_or(0, |(call, _)| *call);
        let (low, high) = (search(low), search(high));
        // Conditional jumps are short: this one only passes over a jump that may be long.
        let halves = [
            instruction(JUMP_IF_GREATER, 0, 1, last_of_low),
            instruction(JUMP, 0, 0, length(low.len())),
        ];
        return halves.into_iter().chain(low).chain(high).collect();
    }
    // Behind the numbers stand that all others go through, and each answer once.
    let mut different: Vec<Answer> = Vec::new();
    let mut program = Vec::with_capacity(2 * FEW);
    for (place, (call, is)) in answers.iter().enumerate() {
        let known = different.iter().position(|known| known == is);
        let found = known.unwrap_or_else(|| {
            different.push(*is);
            different.len() - 1
        });
        let forward = u8::try_from(answers.len() - place + found).unwrap_or(u8::MAX);
        program.push(instruction(JUMP_IF_EQUAL, forward, 0, *call));
    }
    program.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    program.extend(different.into_iter().map(answer));
    program
}

fn answer(answer: Answer) -> sock_filter {
    match answer {
        Answer::Error(error) => instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | number(error)),
        Answer::Rules => instruction(JUMP, 0, 0, TO_RULES),
    }
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn length(instructions: usize) -> u32 {
    u32::try_from(instructions).unwrap_or(u32::MAX)
}

//! The score by which the kernel chooses a process to kill when memory runs out.

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::{read, write};

/// Makes this process and all that it starts the first that the kernel kills, before the daemon with its other jobs.
/// Anyone may raise the score; where it cannot be written, or is as high, it stays. It allocates nothing, as a child calls
/// it before its program begins.
pub(super) fn raise() {
    const LEAST: i32 = 500;
    let flags = OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let Ok(file) = open(c"/proc/self/oom_score_adj", flags, Mode::empty()) else { return };
    let mut text = [0; 16];
    let length = read(&file, &mut text).unwrap_or_default();
    let score = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.trim().parse().ok());
    if score.is_some_and(|score: i32| score < LEAST) {
        let _ = write(&file, b"500");
    }
}

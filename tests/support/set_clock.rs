//! A library that sets the clock of one process: it is compiled by the test, and preloaded into the process.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::needs;

/// The wall clock of a process, which a file moves by so many seconds.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void) {
    static int file = -1;
    char text[32] = {0};
    if (file < 0) file = open(getenv("CLOCK_FILE"), O_RDONLY | O_CLOEXEC);
    return file >= 0 && pread(file, text, sizeof text - 1, 0) > 0 ? atol(text) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
    int done = syscall(SYS_clock_gettime, clock, at);
    if (!done && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += offset();
    return done;
}

int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"#;

/// Returns true if the machine can compile it; else the test is skipped and counted.
#[expect(clippy::disallowed_methods, reason = "tests start the programs they need")]
pub(crate) fn can_set_clock() -> bool {
    needs("gcc", || {
        Command::new("gcc").arg("--version").output().is_ok_and(|ran| ran.status.success())
    })
}

/// The clock of one process.
pub(super) struct SetClock {
    library: PathBuf,
    file: PathBuf,
}

impl SetClock {
    /// Compiles the library into a folder. The clock is right.
    #[expect(clippy::disallowed_methods, reason = "tests start the programs they need")]
    pub(super) fn compile(folder: &Path) -> Self {
        let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
        std::fs::write(&source, SOURCE).expect("writing the source");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
        assert!(gcc.status().expect("gcc runs").success(), "the library compiles");
        let clock = Self { library, file: folder.join("clock") };
        clock.set(0);
        clock
    }

    /// Sets the clock ahead by so many seconds, or back.
    pub(super) fn set(&self, seconds: i64) {
        // In place, as the process has the file open.
        std::fs::write(&self.file, format!("{seconds:<20}")).expect("setting the clock");
    }

    /// The variables of the process.
    pub(super) fn variables(&self) -> [(&'static str, &Path); 2] {
        [("LD_PRELOAD", &self.library), ("CLOCK_FILE", &self.file)]
    }
}

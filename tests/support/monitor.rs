//! The commands that a Redis gets, by MONITOR.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use super::Redis;

/// Records the commands that a Redis gets.
pub(crate) struct Monitor<'r> {
    redis: &'r Redis,
    lines: BufReader<UnixStream>,
}

impl<'r> Monitor<'r> {
    /// Records from now on.
    pub(crate) fn of(redis: &'r Redis) -> Self {
        let socket = redis.folder().join("redis.sock");
        let mut link = UnixStream::connect(socket).expect("the private redis-server answers");
        link.write_all(b"MONITOR\r\n").expect("written");
        let mut monitor = Self { redis, lines: BufReader::new(link) };
        assert_eq!(monitor.line(), "+OK");
        monitor
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line of MONITOR");
        line.trim_end().to_owned()
    }

    /// Returns the commands of programs since the last call, without those inside of scripts.
    pub(crate) fn commands(&mut self) -> Vec<String> {
        const MARK: &str = "end-of-these";
        self.redis.run(&format!("ECHO {MARK}"));
        let mut commands = Vec::new();
        loop {
            let line = self.line();
            if line.contains(MARK) {
                return commands;
            }
            let Some((from, command)) = line.split_once("] ") else { continue };
            if !from.ends_with(" lua") {
                commands.push(command.to_owned());
            }
        }
    }
}

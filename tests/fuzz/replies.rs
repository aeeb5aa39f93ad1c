//! Replies of something that is not Redis, or is broken: a command ends with an error, and neither
//! panics nor waits for ever.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;

use super::{corpus, try_all};
use crate::support::{Hero, Redis};

/// The exit codes of a command that did not panic, and was not ended by a signal.
const CODES: std::ops::RangeInclusive<i32> = 0..=78;

#[test]
fn replies_of_redis_are_read_or_rejected() {
    try_all("redis_reply", |input| {
        let _ = redis::parse_redis_value(input);
    });
}

#[test]
fn command_ends_where_redis_answers_nonsense() {
    std::thread::scope(|scope| {
        for answer in corpus("redis_reply") {
            scope.spawn(|| command_ends(answer));
        }
    });
}

fn command_ends(answer: Vec<u8>) {
    let place = Redis::absent(false);
    let listener = UnixListener::bind(place.folder().join("redis.sock")).expect("a socket");
    let shown = answer.escape_ascii().to_string();
    // The thread ends with the tests: it waits for a connection.
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { return };
            let mut asked = [0; 4096];
            // It answers each request, as long as the other side asks.
            while connection.read(&mut asked).is_ok_and(|length| length > 0) {
                if connection.write_all(&answer).is_err() {
                    break;
                }
            }
        }
    });
    let done = Hero::on(&place).run(&["queue", "list"]);
    assert!(CODES.contains(&done.code), "{shown}: {} {}", done.code, done.stderr);
    assert!(!done.stderr.contains("panicked"), "{shown}: {}", done.stderr);
}

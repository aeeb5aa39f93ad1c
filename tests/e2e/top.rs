//! `hero top` in a terminal of 80 columns and 24 lines.

use std::io::{PipeWriter, Write, pipe};
use std::num::NonZero;

use super::{ENDLESS, field, until};
use crate::support::{Hero, Process, Redis, wait_until};

/// The program at its terminal.
pub(super) struct Terminal {
    process: Process,
    keyboard: PipeWriter,
}

impl Terminal {
    pub(super) fn start(hero: &Hero) -> Self {
        let (reader, keyboard) = pipe().expect("a pipe");
        let process = hero.begin_at_keyboard(&["top", "--interval", "200ms"], reader.into());
        Self { process, keyboard }
    }

    pub(super) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("the program reads its keyboard");
    }

    /// Returns the text on the screen.
    pub(super) fn screen(&self) -> String {
        let [rows, columns] = [24, 80].map(|size| NonZero::new(size).expect("not zero"));
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(self.process.out().as_bytes());
        parser.screen().contents()
    }

    /// Waits until the program has ended.
    pub(super) fn ends(self) {
        self.process.ends().code(0);
    }

    #[track_caller]
    pub(super) fn shows(&self, text: &str) {
        wait_until(&format!("the screen shows {text:?}"), || self.screen().contains(text));
    }
}

#[test]
fn screen_shows_jobs_that_keys_open_stop_and_retry() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let talking = format!("print(\"the first line\"); progress(0.5, \"half\"); {ENDLESS}");
    hero.run(&["submit", "-t", "osis", "-e", &talking, "--id", "talks", "--timeout", "1h"]).code(0);
    let mut terminal = Terminal::start(&hero);
    terminal.shows("osis:default:1");
    terminal.shows("talks");
    terminal.shows(" 50% half");

    terminal.press("\t\t\r");
    terminal.shows("Job talks");
    terminal.shows("the first line");
    terminal.press("s");
    terminal.shows("stop job talks? y does it");
    terminal.press("y");
    until(&redis, "talks", "error");
    terminal.press("\u{1b}");
    terminal.shows("No job runs.");

    // A stopped job has not failed.
    terminal.press("l\u{1b}[C\u{1b}[C\u{1b}[C\u{1b}[C");
    terminal.shows("Jobs: cancelled: 1");
    terminal.press("r");
    terminal.shows("job talks is dispatched again");
    terminal.press("\u{1b}");
    // Keys that come at once after Escape would be one sequence with it.
    terminal.shows(" 50% half");
    until(&redis, "talks", "started");
    assert_eq!(field(&redis, "talks", "error"), None);

    terminal.press("\t\tp");
    terminal.shows("pause type:osis? y does it");
    terminal.press("y");
    wait_until("both the list and the last line say that it is paused", || {
        terminal.screen().matches("paused").count() >= 2
    });
    terminal.press("q");
    let ended = terminal.process.ends().code(0);
    assert!(ended.stdout.contains("\u{1b}[?1049l"), "the terminal is as it was");
}

#[test]
fn queue_shows_its_jobs_by_state_and_a_text_searches_them() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let submit = |id: &str, rest: &[&str]| {
        let all = ["submit", "-t", "osis", "--id", id, "-e", "throw \"no luck\"", "--retries", "0"];
        hero.run(&[&all[..], rest].concat()).code(0);
    };
    submit("alone", &["--group", "io"]);
    for number in 0..3 {
        submit(&format!("red-{number}"), &[]);
    }
    submit("blue", &[]);
    let mut terminal = Terminal::start(&hero);
    terminal.shows("type:osis:group:io");
    terminal.shows("o order");
    terminal.press("o");
    terminal.shows("by queued");
    // The queue with the most jobs is the first.
    terminal.press("\r");
    terminal.shows("Jobs: waiting, of type:osis: 4");
    assert!(!terminal.screen().contains("alone"), "it is in another queue");
    terminal.press("/red-1\r");
    terminal.shows("with red-1: 1");
    let actor = hero.actor("osis-default-1").start();
    until(&redis, "red-1", "error");
    terminal.press("\u{1b}");
    terminal.shows("of type:osis: 0");
    terminal.shows("No job matches.");
    drop(actor);
    // Finished, then failed ones.
    terminal.press("\t\t\t");
    terminal.shows("Jobs: failed, of type:osis: 4");
    terminal.shows("no luck");
    terminal.press("\r");
    // Whichever ended last is the first of the list.
    terminal.shows("Log, followed");
    terminal.press("\u{1b}");
    terminal.shows("Jobs: failed, of type:osis: 4");
    terminal.press("\u{1b}");
    terminal.shows("No job runs.");
    terminal.press("l");
    terminal.shows("Jobs: waiting: ");
    terminal.press("q");
    terminal.process.ends().code(0);
}

#[test]
fn question_of_a_job_stands_below_its_log() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let asking = "echo begun; printf 'Continue? [y/N] '; sleep 600";
    let submit = ["submit", "-t", "bash", "--id", "asks", "--timeout", "15m", "-e", asking];
    hero.run(&submit).code(0);
    let mut terminal = Terminal::start(&hero);
    terminal.shows("asks");
    terminal.press("\t\t\r");
    terminal.shows("Continue? [y/N]");
    hero.run(&["job", "stop", "asks"]).code(0);
    until(&redis, "asks", "error");
    terminal.press("\u{1b}q");
    terminal.process.ends().code(0);
}

#[test]
fn lost_redis_is_reported_until_it_is_back() {
    let mut redis = Redis::that_keeps();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    let mut terminal = Terminal::start(&hero);
    terminal.shows("type:osis");
    redis.kill();
    terminal.shows("Old numbers: ");
    terminal.shows("type:osis");
    redis.start_again();
    wait_until("the numbers are new", || !terminal.screen().contains("Old numbers"));
    terminal.press("q");
    terminal.process.ends().code(0);
}

#[test]
fn one_frame_is_printed_without_a_terminal() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "-e", "1"]).code(0);
    let frame = hero.run(&["top", "--once", "--interval", "100ms"]).code(0).stdout;
    assert_eq!(frame.lines().count(), 24, "{frame}");
    for part in ["0 supervisors", "type:osis", "No actor is live.", "No job has failed."] {
        assert!(frame.contains(part), "{part} in\n{frame}");
    }
    hero.run(&["top", "--once", "--json"]).code(2).says("hero status --json");
    hero.run(&["top"]).code(2).says("hero top needs a terminal");
}

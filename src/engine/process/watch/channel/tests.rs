//! Tests of the channel of a job's child.

use std::sync::Mutex;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Records the logs of a channel.
#[derive(Default)]
struct Recorded(Mutex<Vec<String>>);

impl Log for Recorded {
    fn line(&self, stream: Stream, line: &str) {
        self.0.lock().expect("not poisoned").push(format!("{stream:?} {line}"));
    }

    fn progress(&self, fraction: f64, text: &str) {
        self.0.lock().expect("not poisoned").push(format!("{fraction} {text}"));
    }

    fn request(&self, request: ScriptRequest) {
        let asked = request.asked.map(|asked| match asked {
            RequestKind::State(state) => state.as_str().to_owned(),
            RequestKind::Submit(new) => format!("{} jobs", new.jobs.len()),
            RequestKind::Inputs(asked) => format!("inputs of {}", asked.as_str()),
            RequestKind::Next(asked) => format!("{asked:?}"),
        });
        self.0.lock().expect("not poisoned").push(format!("{asked:?}"));
    }
}

fn postponed(delay: Duration, why: &str) -> Failure {
    Failure::postponed(Some(delay), why.to_owned(), None)
}

fn through(chunks: &[&[u8]], output_bytes_max: u64) -> (Messages, Vec<String>) {
    let (log, mut messages) = (Recorded::default(), Messages::new(output_bytes_max));
    let (_, answers) = io::pipe().expect("a pipe");
    messages.answers = Some(Arc::new(AnswerPipe::new(answers).expect("set up")));
    for chunk in chunks {
        messages.take(chunk, Some(&log));
    }
    messages.close(Some(&log));
    (messages, log.0.into_inner().expect("not poisoned"))
}

#[test]
fn progress_log_and_output_are_distinguished() {
    let text = "{\"progress\":0.4,\"text\":\"reading\"}\n{\"progress\":1}\n\
                {\"log\":\"one\\ntwo\"}\n\n{\"output\":{\"a\":[1]}}\n{\"progress\":7}";
    let (messages, logged) = through(&[text.as_bytes()], 100);
    assert_eq!(logged, ["0.4 reading", "1 ", "Stdout one", "Stdout two", "1 "]);
    assert_eq!(messages.output.as_deref(), Some("{\"a\":[1]}"));
}

#[test]
fn last_output_wins_and_a_string_is_its_text() {
    for (text, output) in [
        ("{\"output\":1}\n{\"output\":\"a \\\"b\\\"\"}\n", Some("a \"b\"")),
        ("{\"output\":null}\n", Some("null")),
        (
            "{\"output\": {\"z\": 100000000000000000000, \"a\": 1.0}}\n",
            Some("{\"z\":100000000000000000000,\"a\":1.0}"),
        ),
        ("{\"log\":\"x\"}\n", None),
    ] {
        assert_eq!(through(&[text.as_bytes()], 100).0.output.as_deref(), output);
    }
}

#[test]
fn last_request_for_the_end_counts() {
    let asked = |text: &str| through(&[text.as_bytes()], 100).0.asked;
    let later = |seconds, why: &str| Some(postponed(Duration::from_secs(seconds), why));
    assert_eq!(asked("{\"log\":\"x\"}"), None);
    assert_eq!(asked("{\"retry_in\":300,\"text\":\"busy\"}"), later(300, "busy"));
    assert_eq!(asked("{\"discard\":\"no\"}\n{\"retry_in\":-1}"), later(0, ""));
    let huge = asked("{\"retry_in\":1e300}");
    assert_eq!(huge, Some(postponed(Duration::MAX, "")));
    let last = asked("{\"retry_in\":1}\n{\"discard\":\"no\"}");
    assert_eq!(last, Some(Failure::discarded("no".to_owned(), None)));
}

/// The end of a script with these lines, as the channel tells it.
fn end_of(lines: &[u8]) -> (Option<String>, Option<Failure>) {
    let (read_end, _) = io::pipe().expect("a pipe");
    let reader = Reader::new(read_end).expect("set up");
    Channel { reader, messages: through(&[lines], 100).0 }.into_reported()
}

#[test]
fn text_that_was_cut_within_a_character_is_readable() {
    let output = end_of(br#"{"output":{"text":"x\ud83d"}}"#);
    assert_eq!(output, (Some("{\"text\":\"x\u{fffd}\"}".to_owned()), None));
    let output = end_of(b"{\"output\":\"caf\xe9\"}");
    assert_eq!(output, (Some("caf\u{fffd}".to_owned()), None));
    let later = postponed(Duration::from_secs(9), "\u{fffd}");
    assert_eq!(end_of(br#"{"retry_in":9,"text":"\udcff"}"#), (None, Some(later)));
    let discarded = Failure::discarded("a\u{fffd}".to_owned(), None);
    assert_eq!(end_of(br#"{"discard":"a\ud83d"}"#), (None, Some(discarded)));
}

#[test]
fn line_that_decides_about_the_job_and_cannot_be_read_fails_the_attempt() {
    let too_long = format!("{{\"discard\":\"{}\"}}", "x".repeat(400_000));
    for line in [
        r#"{"output": NaN}"#,
        r#"{"retry_in": "5m"}"#,
        r#"{"discard": {"why": 1}}"#,
        r#"{"output": 1, "discard": "no"}"#,
        too_long.as_str(),
    ] {
        // What is said later does not make up for it.
        let (_, asked) = end_of(format!("{line}\n{{\"retry_in\": 1}}\n").as_bytes());
        let Some(Failure::Script { message: why, .. }) = asked else { panic!("{asked:?}") };
        assert!(why.starts_with("cannot read the line for `"), "{why}");
    }
    for line in [r#"{"progress": "40%"}"#, r#"{"log": 1}"#, "text"] {
        assert_eq!(end_of(line.as_bytes()), (None, None), "{line}");
    }
}

#[test]
fn each_line_that_begins_as_a_state_is_a_request() {
    let large = format!("{{\"state\":\"{}\"}}", "x".repeat(400_000));
    let lines = [
        "{\"state\":{\"row\":1.0}}",
        "{ \"state\" : null}",
        "{\"state\":1,\"log\":\"x\"}",
        "{\"state\":1,\"id\":\"other\"}",
        "{\"state\":",
        &large,
    ];
    let (_, logged) = through(&[lines.join("\n").as_bytes()], 100);
    assert_eq!(logged[..2], ["Ok(\"{\\\"row\\\":1.0}\")", "Ok(\"\")"]);
    assert_eq!(logged[2..5], ["Err(\"the line is no request of a state\")"; 3]);
    assert_eq!(logged[5..], [format!("{:?}", Err::<(), _>(Checkpoint::too_large()))]);
}

#[test]
fn each_line_that_begins_as_a_submission_is_a_request() {
    let large = format!("{{\"submit\":\"{}\"}}", "x".repeat(2_000_000));
    let lines = [
        "{\"submit\":{\"type\":\"bash\",\"script\":\"1\"}}",
        "{\"submit\":[{\"type\":\"bash\",\"script\":\"1\"},{\"type\":\"osis\",\"script\":\"2\"}]}",
        "{\"submit\":{\"type\":\"bash\",\"script\":\"1\"},\"state\":1}",
        "{ \"submit\" :",
        &large,
    ];
    let (_, logged) = through(&[lines.join("\n").as_bytes()], 100);
    assert_eq!(logged[..2], ["Ok(\"1 jobs\")", "Ok(\"2 jobs\")"]);
    assert_eq!(logged[2..4], ["Err(\"the line is no request to submit jobs\")"; 2]);
    assert_eq!(logged[4..], [format!("{:?}", Err::<(), _>(NewChildren::too_large()))]);
}

#[test]
fn lines_that_are_not_messages_are_counted_and_logged_once() {
    let lines = [
        "garbage",
        "{}",
        "7",
        "{\"progress\":\"half\"}",
        "{\"progress\":1,\"log\":\"x\"}",
        "{\"text\":\"x\"}",
        "{\"colour\":1}",
        "\u{1}\u{2}",
    ];
    let (messages, logged) = through(&[lines.join("\n").as_bytes()], 100);
    assert_eq!(
        logged,
        [
            "Stderr 8 lines on descriptor 3 were not messages to hero, first `garbage`: see hero exec --help"
        ]
    );
    assert!(!messages.too_large);
}

#[test]
fn output_over_its_bound_is_noticed_and_a_long_line_of_garbage_is_dropped() {
    let value = "x".repeat(101);
    assert!(through(&[format!("{{\"output\":\"{value}\"}}\n").as_bytes()], 100).0.too_large);
    let endless = vec![b'x'; 500_000];
    let (messages, logged) = through(&[&endless, b"\n{\"log\":\"on\"}\n"], 100);
    assert!(!messages.too_large && messages.partial.capacity() < 400_000);
    assert_eq!(logged[0], "Stdout on");
    let output = [&b"{\"output\":\""[..], &endless, b"\"}"].concat();
    assert!(through(&[&output], 100).0.too_large);
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_the_same_messages(
        bytes in prop_oneof![
            vec(any::<u8>(), 0..200),
            "(\\{\"(progress|log|output|text|retry_in|discard)\":(0.5|\"a\"|null)\\}?\n?){0,8}"
                .prop_map(String::into_bytes),
        ],
        cut in any::<proptest::sample::Index>(),
    ) {
        let at = cut.index(bytes.len() + 1);
        let (whole, logged_whole) = through(&[&bytes], 20);
        let (cut, logged_cut) = through(&[&bytes[..at], &bytes[at..]], 20);
        prop_assert_eq!(logged_whole, logged_cut);
        prop_assert_eq!((whole.output, whole.asked), (cut.output, cut.asked));
    }
}

#[test]
fn request_for_a_call_takes_the_output_and_drops_the_end_that_its_call_said() {
    let large = format!("{{\"next\":\"{}\"}}", "x".repeat(2_000_000));
    let lines = [
        "{\"output\":[7]}",
        "{\"retry_in\":1}",
        "{\"next\":{\"exit\":0,\"output\":\"aGk=\"}}",
        "{\"next\":null,\"state\":1}",
        "{ \"next\" :",
        &large,
    ];
    let (messages, logged) = through(&[lines.join("\n").as_bytes()], 100);
    assert!(logged[0].contains(r#"result: Some(\"[7]\")"#), "{}", logged[0]);
    assert_eq!(logged[1..3], ["Err(\"the line is no request for a call\")"; 2]);
    assert_eq!(logged[3..], [format!("{:?}", Err::<(), _>(AskedCall::too_large()))]);
    assert_eq!((messages.output, messages.asked), (None, None));
}

//! Hostile texts of jobs in messages: each is told as what it is, by every way, and each does harm where it is put in as it is.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::{Value, json};

use super::{Receiver, hero, wanted};
use crate::support::{Redis, wait_until};

/// Texts, each with the way in which it does harm.
const TEXTS: [(Harm, &str); 24] = [
    (Harm::Json, "\", \"admin\": true, \"x\": \""),
    (Harm::Json, "\"}, {\"event\": \"finished\"}, {\"a\": \""),
    (Harm::Json, "\\"),
    (Harm::Json, "\\\", \"b\": \"\\"),
    (Harm::Json, "\u{0}nul"),
    (Harm::Json, "\u{1b}[2J\u{7}"),
    (Harm::Json, "a\nb\tc"),
    (Harm::Json, "\\u0022, \\ud800"),
    (Harm::Mail, "x\r\nBcc: all@example.org"),
    (Harm::Mail, "x\nBcc: all@example.org\n\nanother body"),
    (Harm::Mail, "x\r\n.\r\nMAIL FROM:<x@example.org>\r\nRCPT TO:<all@example.org>\r\nDATA"),
    (Harm::Mail, "x\r\nContent-Type: text/html\r\n\r\n<script>alert(1)</script>"),
    (Harm::Mail, "x\rBcc: all@example.org"),
    (Harm::Mail, "x\n.\nQUIT"),
    (Harm::Shell, "$(touch canary)"),
    (Harm::Shell, "`touch canary`"),
    (Harm::Shell, "\"; touch canary; \""),
    (Harm::Shell, "\" && touch canary #"),
    (Harm::Shell, "\"\ntouch canary\n\""),
    (Harm::Shell, "\" | touch canary | \""),
    (Harm::Template, "{{ 7 * 191 }}"),
    (Harm::Template, "{% for x in range(9) %}1337{% endfor %}"),
    (Harm::Template, "{{ total }}1337{# comment #}"),
    (Harm::Template, "{secret}"),
];

/// Where a text leaves its place if nothing escapes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Json,
    Mail,
    Shell,
    Template,
}

/// Tells whether a text does its harm where it is put in as it is: the control.
#[expect(clippy::disallowed_methods, reason = "the control is a shell")]
fn does_harm(harm: Harm, text: &str, folder: &std::path::Path) -> bool {
    match harm {
        Harm::Json => {
            let read = serde_json::from_str::<Value>(&format!("{{\"text\": \"{text}\"}}"));
            read.map_or(true, |read| read != json!({ "text": text }))
        }
        Harm::Mail => {
            let mail = format!("Subject: {text}\n\nbody");
            let (head, body) = mail.split_once("\n\n").expect("a head");
            head.split(['\r', '\n']).count() > 1 || body != "body"
        }
        Harm::Shell => {
            let mut shell = Command::new("sh");
            let done = shell.args(["-c", &format!("echo \"{text}\"")]).current_dir(folder).output();
            done.expect("a shell runs");
            fs::remove_file(folder.join("canary")).is_ok()
        }
        Harm::Template => text.contains("{{") || text.contains("{%") || text == "{secret}",
    }
}

/// Returns a script of Rhai that ends with this text, and the number of the try.
fn script(number: usize, text: &str) -> String {
    let mut literal = String::new();
    for c in text.chars() {
        match c {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            c if c < ' ' => write!(literal, "\\x{:02x}", u32::from(c)).expect("text"),
            c => literal.push(c),
        }
    }
    format!("throw \"try{number}({literal})\"")
}

#[test]
fn hostile_texts_leave_their_place_in_no_message_and_do_harm_where_nothing_escapes_them() {
    let redis = Redis::start();
    let folder = redis.folder().to_owned();
    let server = Receiver::start(&redis, "mail_server.py");
    let receiver = Receiver::start(&redis, "receiver.py");
    let (told, secret, page) = (folder.join("told"), folder.join("secret"), folder.join("page"));
    fs::create_dir(&told).expect("a folder");
    fs::write(&secret, "hunter2").expect("written");
    let text = format!("#!/bin/sh\ncd {0}\ncat > $$.new\nmv $$.new $$.json\n", told.display());
    fs::write(&page, text).expect("written");
    fs::set_permissions(&page, fs::Permissions::from_mode(0o755)).expect("a mode");
    let more = format!(
        "template = '{{\"text\": {{{{ events[0].error }}}}, \"of\": {{{{ events[0].name }}}}}}'\nevery = \"0s\"\n\
         secret_file = {secret:?}\nmail = [\"ops@example.org\"]\nfrom = \"hero@example.org\"\n\
         smtp = \"smtp://127.0.0.1:{}\"\n[notify.program]\ncommand = [{page:?}]\nwrite = [{told:?}]\nevery = \"0s\"\n",
        server.port
    );
    let hero = hero(&redis, &receiver, &more);
    let _osis = hero.actor("osis-default-1").start();
    let _supervisor = hero.supervisor().start();
    wanted(&redis, &["failed"]);
    for (number, (harm, text)) in TEXTS.iter().enumerate() {
        assert!(does_harm(*harm, text, &folder), "the control of {text:?}");
        let (script, id) = (script(number, text), format!("t{number}"));
        let exec = ["exec", "-t", "osis", "-e", script.as_str(), "--id", id.as_str()];
        // A name has no control character; others are as good a way in as an error is.
        let named = [&exec[..], &["--name", text]].concat();
        let is_name = !text.chars().any(char::is_control);
        hero.run(if is_name { &named } else { &exec }).code(1);
    }
    receiver.awaits(TEXTS.len());
    server.awaits(TEXTS.len());
    let files = || fs::read_dir(&told).expect("a folder").flatten().map(|entry| entry.path());
    let done = |file: &std::path::PathBuf| file.extension().is_some_and(|of| of == "json");
    wait_until("the program has them all", || files().filter(done).count() == TEXTS.len());

    let mut seen = BTreeSet::new();
    for body in receiver.messages() {
        let members: Vec<&String> = body.as_object().expect("an object").keys().collect();
        assert_eq!(members, ["text", "of"], "{body}");
        let error = body["text"].as_str().expect("text");
        let number = error.split("try").nth(1).and_then(|rest| rest.split('(').next());
        let number = number.expect("its number").parse::<usize>().expect("a number");
        seen.insert(number);
        let (harm, text) = TEXTS[number];
        assert!(harm != Harm::Template || error.contains(text), "{body}");
        assert!(!body.to_string().contains("hunter2"), "{body}");
    }
    assert_eq!(seen, (0..TEXTS.len()).collect());
    let heads = ["Subject", "From", "To", "Date", "Message-ID"].map(str::to_lowercase);
    for mail in server.received() {
        assert_eq!(mail["to"], json!(["ops@example.org"]), "{mail}");
        let text = mail["body"].as_str().expect("text");
        let (head, body) = text.split_once("\n\n").expect("a head");
        let lines = head.lines().filter(|line| !line.starts_with([' ', '\t']));
        let names: Vec<String> =
            lines.map(|line| line.split(':').next().expect("a name").to_lowercase()).collect();
        let own = |name: &str| {
            heads.iter().any(|known| known == name)
                || name.starts_with("mime")
                || name.starts_with("content-")
                || name == "auto-submitted"
                || name.starts_with("hero-")
        };
        assert!(names.iter().all(|name| own(name)), "{head}");
        assert_eq!(names.len(), names.iter().collect::<BTreeSet<_>>().len(), "{head}");
        assert!(!head.contains("text/html") && body.contains("hero job show"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    assert_eq!((receiver.received().len(), server.received().len()), (TEXTS.len(), TEXTS.len()));
    for file in files().filter(done) {
        let message: Value =
            serde_json::from_str(&fs::read_to_string(&file).expect("a file")).expect("JSON");
        assert_eq!(message["events"].as_array().expect("events").len(), 1, "{message}");
        assert_eq!(message["counts"], json!({ "failed": 1 }), "{message}");
    }
    let canaries =
        files().chain(fs::read_dir(&folder).expect("a folder").flatten().map(|e| e.path()));
    assert!(!canaries.into_iter().any(|file| file.ends_with("canary")));
}

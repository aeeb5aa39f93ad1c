//! Hostile requests for a state: each leaves the state before it, and the same request without what makes it hostile is done.

use serde_json::Value;

use crate::support::{Hero, Redis, keys, wait_until};

/// A name, a hostile request in Python, and the honest one. `say` writes bytes to `HERO_FD`.
const TRIES: [(&str, &str, &str); 22] = [
    (
        "a byte too much",
        "say(b'{\"state\": \"' + b'x' * 65535 + b'\"}\\n')",
        "say(b'{\"state\": \"' + b'x' * 65534 + b'\"}\\n')",
    ),
    (
        "two megabytes",
        "say(b'{\"state\": \"' + b'x' * 2000000 + b'\"}\\n')",
        "say(b'{\"state\": \"x\"}\\n')",
    ),
    ("a zero byte", r#"say(b'{"state": "\0"}\n')"#, r#"say(b'{"state": "0"}\n')"#),
    ("half a line at the end", r#"say(b'{"state": 1')"#, r#"say(b'{"state": 1}\n')"#),
    ("quotes of another language", r#"say(b"{'state': 1}\n")"#, r#"say(b'{"state": 1}\n')"#),
    (
        "two requests in a line",
        r#"say(b'{"state": 1}{"state": 2}\n')"#,
        r#"say(b'{"state": 2}\n')"#,
    ),
    (
        "thousands of brackets",
        r#"say(b'{"state": ' + b'[' * 5000 + b']' * 5000 + b'}\n')"#,
        r#"say(b'{"state": [[]]}\n')"#,
    ),
    ("no number", r#"say(b'{"state": NaN}\n')"#, r#"say(b'{"state": 0}\n')"#),
    ("a number without an end", r#"say(b'{"state": Infinity}\n')"#, r#"say(b'{"state": 9e9}\n')"#),
    ("a number of another base", r#"say(b'{"state": 0x10}\n')"#, r#"say(b'{"state": 16}\n')"#),
    (
        "another encoding",
        r#"say('{"state": 1}\n'.encode('utf-16'))"#,
        r#"say('{"state": 1}\n'.encode())"#,
    ),
    ("a list of requests", r#"say(b'[{"state": 1}]\n')"#, r#"say(b'{"state": 1}\n')"#),
    (
        "a request in a request",
        r#"say(b'{"log": {"state": 1}}\n')"#,
        r#"say(b'{"state": {"log": 1}}\n')"#,
    ),
    (
        "a request on standard output",
        r#"print('{"state": 1}', flush=True)"#,
        r#"say(b'{"state": 1}\n')"#,
    ),
    (
        "a request on standard error",
        r#"os.write(2, b'{"state": 1}\n')"#,
        r#"say(b'{"state": 1}\n')"#,
    ),
    (
        "a request on the descriptor of answers",
        "try: os.write(int(os.environ['HERO_FD_IN']), b'{\"state\": 1}\\n')\nexcept OSError: pass",
        r#"say(b'{"state": 1}\n')"#,
    ),
    (
        "the value of a secret",
        "say(json.dumps({'state': os.environ['API_TOKEN']}).encode() + b'\\n')",
        "say(json.dumps({'state': os.environ['API_USER']}).encode() + b'\\n')",
    ),
    (
        "the value of a secret in the name of a member",
        "say(json.dumps({'state': {'a' + os.environ['API_TOKEN']: 1}}).encode() + b'\\n')",
        "say(json.dumps({'state': {'a' + os.environ['API_USER']: 1}}).encode() + b'\\n')",
    ),
    (
        "a process that outlives the script",
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(1)\n        \
         say(b'{\"state\": 1}\\n')\n    os._exit(0)",
        "if os.fork() == 0:\n    os.setsid()\n    say(b'{\"state\": 1}\\n')\n    os._exit(0)\nos.wait()",
    ),
    (
        "another process's descriptor",
        "for fd in range(3, 64):\n    try: os.write(os.open(f'/proc/{os.getppid()}/fd/{fd}', os.O_WRONLY), \
         b'{\"state\": 1}\\n')\n    except OSError: pass",
        "say(b'{\"state\": 1}\\n')",
    ),
    (
        "a file in the place of the descriptor",
        "os.dup2(os.open('own', os.O_CREAT | os.O_WRONLY), fd)\nsay(b'{\"state\": 1}\\n')",
        "os.dup2(fd, 60)\nos.write(60, b'{\"state\": 1}\\n')",
    ),
    (
        "a state that its file has",
        "open('state', 'w').write('1')\nos.environ['HERO_STATE'] = os.path.abspath('state')",
        "say(b'{\"state\": 1}\\n')",
    ),
];

/// The start of each script. It keeps the state that must stay.
const HEAD: &str = "import hero, json, os, time\nfd = int(os.environ['HERO_FD'])\n\
    def say(data):\n    while data: data = data[os.write(fd, data):]\nhero.checkpoint('safe')\n";

#[test]
fn hostile_requests_for_a_state_leave_the_one_before_and_honest_ones_replace_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").start();
    let kept = |id: &str, script: &str| {
        let script = format!("{HEAD}{script}\nraise SystemExit(1)");
        let exec = ["exec", "-t", "python", "--id", id, "--env", "API_TOKEN=s3cr3t", "--env"];
        hero.run(&[&exec[..], &["API_USER=annie", "-e", &script]].concat()).code(1);
        redis.field(&keys::job(id), "kept_state")
    };
    let mut failures = Vec::new();
    for (number, (what, hostile, honest)) in TRIES.iter().enumerate() {
        let state = kept(&format!("hostile-{number}"), hostile);
        if state.as_deref() != Some("\"safe\"") {
            failures.push(format!("{what}: {state:.80?}"));
        }
        let state = kept(&format!("honest-{number}"), honest);
        if state.is_none() || state.as_deref() == Some("\"safe\"") {
            failures.push(format!("control of {what}: {state:?}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn script_reaches_neither_the_state_nor_the_descriptor_of_another_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _python = hero.actor("python-default-1").tasks(2).start();
    let victim =
        format!("{HEAD}hero.checkpoint(os.getpid())\nopen('own', 'w').write('1')\ntime.sleep(600)");
    hero.run(&["submit", "-t", "python", "--id", "victim", "-e", &victim]).code(0);
    let state = || redis.field(&keys::job("victim"), "kept_state");
    let is_number = |text: String| text.parse::<u32>().is_ok();
    wait_until("the victim has told its process", || state().is_some_and(is_number));
    let process = state().expect("a state");
    // What could be opened, and how much was tried.
    let attack = "import glob, json, os, sys\nopened = tried = 0\nfor fd in range(64):\n    tried += 1\n    try:\n\
        \x20       to = os.open(f'/proc/{sys.argv[1]}/fd/{fd}', os.O_WRONLY)\n        opened += 1\n\
        \x20       os.write(to, b'{\"state\": \"stolen\"}\\n')\n    except OSError: pass\n\
        up = os.getcwd()\nfor up in [os.path.dirname(up), os.path.dirname(os.path.dirname(up))]:\n\
        \x20   opened += len(glob.glob(up + '/*/own') + glob.glob(up + '/*/home/own'))\nprint(json.dumps([opened, tried]))";
    let told = hero.run(&["exec", "-t", "python", "-e", attack, "--", &process]).code(0).stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told, serde_json::json!([0, 64]));
    assert_eq!(state(), Some(process));
}

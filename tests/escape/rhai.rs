//! Hostile Rhai scripts: they have no access to the machine, and bounded resources.

use super::{Escape, osis, try_all};
use crate::support::{Hero, Redis};

const ESCAPES: [Escape; 14] = [
    osis("call itself without end", "fn f(n) { f(n + 1) } f(0)", "tack overflow"),
    osis(
        "call itself by a function pointer",
        "let f = |f, n| f.call(f, n + 1); f.call(f, 0)",
        "error",
    ),
    osis("let a string grow", "let s = \"xxxxxxxxxxxxxxxx\"; loop { s += s; }", "too long"),
    osis("let a string grow by padding", "let s = \"x\"; s.pad(2000000000, 'x'); s", "too"),
    osis("let an array grow", "let a = []; loop { a.push(1); }", "too large"),
    osis("let an array grow by padding", "let a = []; a.pad(2000000000, 1); a", "too"),
    osis("let a map grow", "let m = #{}; let i = 0; loop { m[`k${i}`] = i; i += 1; }", "too large"),
    osis("nest arrays without end", "let a = []; loop { a = [a]; }", "error"),
    osis("evaluate text", "eval(\"1\")", "eval"),
    osis("import from the disk", "import \"/etc/passwd\" as p; 1", "error"),
    osis("read a file", "file_read(\"/etc/passwd\")", "file_read"),
    osis("run a program", "run(\"id\").execute()", "run"),
    osis("read the environment", "env_get(\"PATH\")", "env_get"),
    osis("run without end", "loop { }", "timeout"),
];

#[test]
fn no_rhai_script_escapes_or_grows_without_bound() {
    try_all("RHAI", &ESCAPES);
}

/// The restrictions of SAL functions hold for the commands that its scripts run.
#[test]
fn commands_of_sal_reach_no_more_than_its_functions() {
    let redis = Redis::start();
    let folder = |name: &str| {
        let folder = redis.folder().join(name);
        std::fs::create_dir(&folder).expect("making a folder");
        std::fs::write(folder.join("file"), "content").expect("writing a file");
        folder
    };
    let (allowed, denied) = (folder("allowed"), folder("denied"));
    let list = format!("[\"{}\"]", allowed.display());
    let hero = Hero::on(&redis).set("sal.read", &list).set("sal.write", &list);
    let hero = hero.set("sal.network", "false");
    let _sal = hero.actor("sal-default-1").start();
    let succeeds = |command: &str| {
        let script = format!("run({command:?}).ignore_error().execute().success");
        hero.run(&["exec", "-t", "sal", "-e", &script]).code(0).stdout
    };
    let (allowed, denied) = (allowed.display(), denied.display());
    for (command, result) in [
        (format!("cat {allowed}/file"), "true\n"),
        (format!("cat {denied}/file"), "false\n"),
        (format!("echo x > {allowed}/new"), "true\n"),
        (format!("echo x > {denied}/new"), "false\n"),
        ("cp /usr/bin/env own && ./own true".to_owned(), "true\n"),
        ("echo > /dev/tcp/127.0.0.1/9".to_owned(), "false\n"),
    ] {
        assert_eq!(succeeds(&command), result, "{command}");
    }
}

//! Commands of SAL: they reach no more than its functions.

use crate::support::{Hero, Redis};

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

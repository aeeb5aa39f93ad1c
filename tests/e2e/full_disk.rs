//! Full disks: a job that fills one fails with the reason; a job that cannot start waits for space.

use std::fs;

use crate::support::{Disk, Hero, Redis, is_empty, wait_until};

fn next_one_runs(hero: &Hero) {
    hero.run(&["exec", "-t", "python", "-e", "print(1)"]).code(0).stdout("1\n");
}

#[test]
fn script_that_fills_the_disk_fails_without_harm_to_the_next() {
    let redis = Redis::start();
    let Some(disk) = Disk::new(redis.folder().join("run")) else { return };
    let hero = Hero::on(&redis);
    let actor = hero.actor("python-default-1").tasks(1).env("RUNTIME_DIRECTORY", &disk.folder);
    let actor = actor.start();
    let warning = "the jobs of this process may fill 1GiB of ";
    wait_until("it warns", || actor.err().contains(warning));
    let fill = "f = open('x', 'wb', buffering=0)\nwhile True: f.write(bytes(65536))";
    let failed = hero.run(&["exec", "-t", "python", "-e", fill]).code(1);
    failed.says("No space left on device");
    assert!(disk.is_empty());
    next_one_runs(&hero);
    // A script that handles the error succeeds, and leaves nothing behind.
    let many = "import os\nwhile True:\n    try: open(os.urandom(8).hex(), 'wb', 0).write(bytes(4096))\n    \
                except OSError: break\nprint('full')";
    hero.run(&["exec", "-t", "python", "-e", many]).code(0).stdout("full\n");
    assert!(disk.is_empty());
    next_one_runs(&hero);
}

#[test]
fn full_actor_says_so_between_two_heartbeats() {
    let redis = Redis::start();
    let Some(disk) = Disk::new(redis.folder().join("run")) else { return };
    // Longer than the pause before it tries again.
    let hero = Hero::on(&redis).set("actor.heartbeat", "\"5s\"").set("actor.lease", "\"15s\"");
    let actor = hero.actor("python-default-1").tasks(1).env("RUNTIME_DIRECTORY", &disk.folder);
    let _actor = actor.start();
    let filled = fs::write(disk.folder.join("of-another-user"), vec![0_u8; 4 << 20]);
    assert!(filled.is_err(), "the disk is not full");
    hero.run(&["submit", "-t", "python", "-e", "print(1)"]).code(0);
    wait_until("the actor says why it claims no jobs", || {
        hero.run(&["actor", "list"]).code(0).stdout.contains("no space left on device")
    });
}

#[test]
fn job_on_a_full_disk_waits_uncharged_until_there_is_space() {
    let redis = Redis::start();
    let Some(disk) = Disk::new(redis.folder().join("run")) else { return };
    let hero = Hero::on(&redis);
    let actor = hero.actor("python-default-1").tasks(1).env("RUNTIME_DIRECTORY", &disk.folder);
    let actor = actor.start();
    let other = disk.folder.join("of-another-user");
    let filled = fs::write(&other, vec![0_u8; 4 << 20]);
    assert!(filled.is_err(), "the disk is not full");
    for id in ["a", "b", "c"] {
        hero.run(&["submit", "-t", "python", "--id", id, "-e", "print(1)"]).code(0);
    }
    let reason = "no space left on device";
    wait_until("a job went back", || actor.err().contains("goes back to queue"));
    wait_until("the actor says why it claims no jobs", || {
        hero.run(&["actor", "list"]).code(0).stdout.contains(reason)
    });
    for id in ["a", "b", "c"] {
        assert_eq!(super::field(&redis, id, "status").as_deref(), Some("dispatched"));
    }
    fs::remove_file(&other).expect("removed");
    for id in ["a", "b", "c"] {
        hero.run(&["job", "wait", id]).code(0).stdout("1\n");
        assert_eq!(super::field(&redis, id, "attempt").as_deref(), Some("1"));
        assert_eq!(super::field(&redis, id, "crashes"), None);
    }
    assert!(disk.is_empty());
}

#[test]
fn job_without_an_inode_for_its_folder_waits_uncharged_until_there_is_one() {
    let redis = Redis::start();
    let Some(disk) = Disk::with(redis.folder().join("run"), "nr_inodes=40,mode=0700") else {
        return;
    };
    let hero = Hero::on(&redis);
    let actor = hero.actor("python-default-1").tasks(1).env("RUNTIME_DIRECTORY", &disk.folder);
    let _actor = actor.start();
    next_one_runs(&hero);
    wait_until("the folder of that job is gone", || disk.is_empty());
    let mut files = (0..).map(|number| disk.folder.join(format!("file-{number}")));
    let full = files.find(|file| fs::write(file, "").is_err());
    assert!(full.is_some());
    hero.run(&["submit", "-t", "python", "--id", "a", "-e", "print(1)"]).code(0);
    wait_until("the actor says why it claims no jobs", || {
        let list = hero.run(&["actor", "list"]).code(0).stdout;
        list.contains("no space left on device")
    });
    wait_until("its reason is a problem", || {
        let problems = hero.run(&["doctor", "--problems"]).stdout;
        // Which of its steps finds no inode depends on those that are free.
        problems.contains("python:default:1: cannot ")
            && problems.contains("no space left on device")
    });
    for entry in fs::read_dir(&disk.folder).expect("it is there").flatten() {
        let _ = fs::remove_file(entry.path());
    }
    hero.run(&["job", "wait", "a"]).code(0).stdout("1\n");
    let fields = ["attempt", "crashes", "attempts"].map(|of| super::field(&redis, "a", of));
    assert_eq!(fields, [Some("1".to_owned()), None, None], "nothing of it had begun");
}

#[test]
fn job_waits_while_the_interpreter_of_its_type_is_gone() {
    let redis = Redis::start();
    let interpreter = redis.folder().join("own-shell");
    let install = || fs::copy("/bin/bash", &interpreter).expect("copied");
    install();
    let hero =
        Hero::on(&redis).set("type.bash.command", &format!("[{interpreter:?}, \"{{script}}\"]"));
    let _actor = hero.actor("bash-default-1").tasks(1).start();
    hero.run(&["exec", "-t", "bash", "-e", "echo 1"]).code(0).stdout("1\n");
    fs::remove_file(&interpreter).expect("removed");
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", "echo 2"]).code(0);
    wait_until("the actor says why it claims no jobs", || {
        hero.run(&["actor", "list"]).code(0).stdout.contains("no own-shell in PATH")
    });
    install();
    hero.run(&["job", "wait", "a"]).code(0).stdout("2\n");
}

#[test]
fn sal_functions_on_a_full_disk_report_the_action_and_the_file() {
    let redis = Redis::start();
    let Some(disk) = Disk::new(redis.folder().join("run")) else { return };
    let hero = Hero::on(&redis);
    let actor = hero.actor("sal-default-1").tasks(1).env("RUNTIME_DIRECTORY", &disk.folder);
    let _actor = actor.start();
    // The first file fits, a second of its size does not.
    let script = r#"
        let text = "";
        text.pad(1200000, "x");
        file_write("first", text);
        file_write("template", "{{ text }}");
        let replacer = text_replacer_new().pattern("x").replacement("y").build();
        let template = template_builder_open("template").add_var("text", text);
        let told = [];
        try { file_write("written", text) } catch (error) { told.push(`${error}`) }
        try { delete("written"); file_write_append("appended", text) } catch (error) { told.push(`${error}`) }
        try { delete("appended"); copy("first", "copied") } catch (error) { told.push(`${error}`) }
        try { delete("copied"); replacer.replace_file_to("first", "replaced") } catch (error) { told.push(`${error}`) }
        try { delete("replaced"); template.render_to_file("rendered") } catch (error) { told.push(`${error}`) }
        let names = ["file_write written", "appended", "copy first", "replace_file_to first", "rendered"];
        for at in 0..names.len() {
            let error = if at < told.len() { told[at].to_lower() } else { "none" };
            if !error.contains("no space left") || !error.contains(names[at]) {
                throw `${names[at]}: ${error}`;
            }
        }
        told.len()
    "#;
    hero.run(&["exec", "-t", "sal", "-e", script]).code(0).stdout("5\n");
    assert!(disk.is_empty());
    hero.run(&["exec", "-t", "sal", "-e", "40 + 2"]).code(0).stdout("42\n");
}

#[test]
fn file_at_its_size_limit_fails_only_its_job() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("type.python.sandbox.file_size", "\"1MiB\"");
    let folder = redis.folder().join("run");
    fs::create_dir(&folder).expect("a folder");
    let actor = hero.actor("python-default-1").tasks(1).env("RUNTIME_DIRECTORY", &folder);
    let _actor = actor.start();
    let fill = "f = open('x', 'wb', buffering=0)\nwhile True: f.write(bytes(65536))";
    hero.run(&["exec", "-t", "python", "--id", "a", "-e", fill]).code(1).says("File too large");
    assert_eq!(super::field(&redis, "a", "limit").as_deref(), Some("file size"));
    assert!(is_empty(&folder));
    next_one_runs(&hero);
}

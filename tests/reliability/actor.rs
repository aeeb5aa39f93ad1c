//! Actors that were stopped for too long, or are told to come back on their way out; dead letters
//! by the command line.

use nix::sys::signal::Signal;

use crate::support::{Hero, Redis, keys, until, wait_until};

fn status(redis: &Redis, id: &str) -> String {
    redis.field(&keys::job(id), "status").unwrap_or_default()
}

#[test]
fn an_actor_that_was_stopped_beyond_its_lease_writes_nothing_and_starts_anew() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"1s\"");
    let _supervisor = hero.supervisor().start();
    let paused = hero.actor("osis-default-1").tasks(1).start();
    let script = "sleep(1.0); print(\"said\"); \"done\"";
    hero.run(&["submit", "-t", "osis", "--reply-format", "json", "--id", "a", "-e", script])
        .code(0);
    until(&redis, "a", "started");
    paused.signal(Signal::SIGSTOP);
    let _other = hero.actor("osis-default-2").tasks(1).start();
    until(&redis, "a", "finished");
    paused.signal(Signal::SIGCONT);
    wait_until("it knows that it lost its lease", || paused.err().contains("lost the lease"));
    wait_until("it says which job it lost", || {
        let lost = |line: &str| line.contains("lost job a with the lease");
        paused.err().lines().any(lost)
    });
    // It serves again, under its old name.
    hero.run(&["exec", "-t", "osis", "-i", "1", "-e", "1"]).code(0).stdout("1\n");
    let log = hero.run(&["job", "logs", "a"]).code(0).stdout;
    let again = "attempt 1 begins, after 1 crash: its actor died, or its process was killed\n";
    assert_eq!(log, format!("{again}said\n"), "only the run that counts has written");
    let replies = redis.list(&keys::reply("a")).len();
    assert_eq!(replies, 1);
    assert_eq!(redis.field(&keys::job("a"), "crashes").as_deref(), Some("1"));
}

#[test]
fn an_actor_on_its_way_out_is_not_called_back() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let osis = hero.actor("osis-default-1").tasks(1).start();
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "sleep(2.0)"]).code(0);
    until(&redis, "a", "started");
    osis.signal(Signal::SIGTERM);
    wait_until("it drains", || osis.err().contains("shutting down"));
    hero.run(&["submit", "-t", "osis", "--id", "b", "-e", "1"]).code(0);
    redis.push(&keys::control("osis:default:1"), &[r#"{"cmd":"resume"}"#]);
    wait_until("it has read the message", || osis.err().contains("does not resume"));
    osis.ends().code(0);
    assert_eq!(
        (status(&redis, "a"), status(&redis, "b")),
        ("finished".into(), "dispatched".into())
    );
}

#[test]
fn dead_letters_are_listed_shown_retried_and_deleted_by_the_command_line() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).add("[type.osis]\ndead_letters = \"all\"\n");
    let osis = hero.actor("osis-default-1").start();
    for (id, script) in [("a", "throw \"no luck\""), ("b", "throw \"no luck\""), ("c", "1")] {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", script]).code(0);
    }
    until(&redis, "a", "error");
    until(&redis, "b", "error");
    until(&redis, "c", "finished");
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
    let listed = hero.run(&["dead", "list", "--limit", "1", "--json"]).code(0).stdout;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["jobs"].as_array().map(Vec::len), Some(1));
    assert!(listed["next"].is_string() && listed["jobs"][0]["error"].is_string(), "{listed}");
    hero.run(&["dead", "list", "--error", "other"])
        .code(0)
        .stdout("ID  NAME  DIED  TYPE  TARGET  ATTEMPT  AGE  TOOK  ACTOR\n");
    hero.run(&["dead", "show", "c"]).code(65).says("job c is not a dead letter: it is finished");
    hero.run(&["dead", "retry", "a"]).code(0).stdout("a retried\n");
    hero.run(&["dead", "retry", "a", "x"]).code(65).says("no such job: x");
    hero.run(&["dead", "retry", "--all", "--error", "luck"])
        .code(0)
        .stdout("1 dead letter retried\n");
    assert_eq!(
        (status(&redis, "a"), status(&redis, "b")),
        ("dispatched".into(), "dispatched".into())
    );
    let none = "{\"deleted\":0,\"left\":0,\"reason\":null}\n";
    hero.run(&["dead", "delete", "--all", "--json"]).code(0).stdout(none);
    // Nothing is deleted without a confirmation.
    let osis = hero.actor("osis-default-1").start();
    until(&redis, "a", "error");
    until(&redis, "b", "error");
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
    hero.run(&["dead", "delete", "--all"])
        .code(2)
        .says("cannot delete 2 dead letters without confirmation; add --yes, or --dry-run");
    let all = ["dead", "retry", "--all", "--dry-run"];
    let listed = hero.run(&all).code(0).says("2 dead letters would be retried").stdout;
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert_eq!(status(&redis, "a"), "error");
    // The same by the commands of jobs, of which these are presets.
    let by_filter = ["job", "retry", "--dead", "--kind", "no luck…"];
    hero.run(&[&by_filter[..], &["--dry-run"]].concat())
        .code(0)
        .says("2 dead letters would be retried");
    assert_eq!(
        hero.run(&["job", "list", "--dead", "--type", "osis"]).code(0).stdout.lines().count(),
        3
    );
    hero.run(&["job", "stop", "--dead", "--yes"]).code(0).stdout("0 dead letters stopped\n");
    hero.run(&["dead", "delete", "--all", "--error", "luck", "--yes"])
        .code(0)
        .stdout("2 dead letters deleted\n");
    hero.run(&["dead", "retry"]).code(2);
    hero.run(&["dead", "delete", "a", "--all"]).code(2);
}

#[test]
fn name_of_an_actor_that_lives_on_a_copy_of_this_machine_is_not_taken() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let mut first = hero.actor("osis-default-1").start();
    first.kill();
    // Its process is gone from this machine. On the other one it goes on: it takes control messages.
    let (list, mut link) = (keys::control("osis:default:1"), redis.link());
    let other = std::thread::spawn(move || {
        let mut taken = 0;
        while taken < 2 {
            let got: redis::RedisResult<(String, String)> =
                redis::cmd("BLPOP").arg(&list).arg(20).query(&mut link);
            got.expect("a message");
            taken += 1;
        }
    });
    let second = hero.actor("osis-default-1").begin().ends().code(73);
    second.says("actor osis:default:1 is already running on a clone of this machine: there ");
    other.join().expect("a thread");
    // Nothing takes messages any more.
    let _third = hero.actor("osis-default-1").start();
}

#[test]
fn dead_letter_is_shown_raw_and_retried_with_its_dependents() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).add("[type.osis]\ndead_letters = \"all\"\n");
    let _osis = hero.actor("osis-default-1").start();
    let script = "throw \"\\x1b[2J no\"";
    hero.run(&["submit", "-t", "osis", "--id", "a", "--retries", "0", "-e", script]).code(0);
    until(&redis, "a", "error");
    hero.run(&["submit", "-t", "osis", "--id", "c", "-e", "1"]).code(0);
    until(&redis, "c", "finished");
    let shown = |args: &[&str]| hero.run(args).code(0).stdout;
    assert!(shown(&["dead", "show", "--raw", "a"]).contains('\u{1b}'));
    assert!(!shown(&["dead", "show", "a"]).contains('\u{1b}'));

    // A dependent that waits while its prerequisite fails for good.
    hero.run(&["actor", "drain", "osis-default-1"]).code(0);
    let p = ["submit", "-t", "osis", "--id", "p", "--retries", "0", "-e", "throw 1"];
    hero.run(&p).code(0);
    hero.run(&["submit", "-t", "osis", "--id", "q", "--after", "p", "-e", "2"]).code(0);
    hero.run(&["actor", "resume", "osis-default-1"]).code(0);
    until(&redis, "q", "error");
    redis.set_field(&keys::job("p"), "script", "1");
    let retried = hero.run(&["dead", "retry", "--with-dependents", "p"]).code(0).stdout;
    assert!(retried.contains("p dispatched") && retried.contains("q waiting"), "{retried}");
    until(&redis, "q", "finished");
    hero.run(&["dead", "retry", "--with-dependents", "c"]).code(65).says("is not a dead letter");
    hero.run(&["dead", "retry", "--all", "q"]).code(2);
}

#[test]
fn dead_letters_are_grouped_by_error_and_retried_group_by_group() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).add("[type.osis]\ndead_letters = \"all\"\n");
    let osis = hero.actor("osis-default-1").start();
    for (id, error) in
        [("a", "no host 10.0.0.7"), ("b", "no host 10.0.0.8"), ("c", "disk 3 is full")]
    {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", &format!("throw \"{error}\"")])
            .code(0);
        until(&redis, id, "error");
    }
    // It failed in the same way, but is not among the dead letters.
    hero.run(&["submit", "-t", "osis", "--id", "d", "-e", "throw \"no host 10.0.0.9\""]).code(0);
    until(&redis, "d", "error");
    redis.run(&format!("LREM {} 0 d", keys::dead("osis")));
    osis.signal(Signal::SIGTERM);
    osis.ends().code(0);
    let groups = |args: &[&str]| {
        let printed = hero.run(&[args, &["--json"]].concat()).code(0).stdout;
        let printed: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
        let groups = printed["groups"].as_array().expect("groups").clone();
        let of = |of: &serde_json::Value| {
            (of["jobs"].clone(), of["kind"].as_str().unwrap_or_default().to_owned())
        };
        groups.iter().map(of).collect::<Vec<_>>()
    };
    let dead = groups(&["dead", "errors"]);
    assert_eq!(dead, groups(&["job", "errors", "--dead"]));
    assert_eq!((&dead[0].0, &dead[1].0), (&2.into(), &1.into()), "{dead:?}");
    assert_eq!(groups(&["job", "errors"])[0].0, 3);
    let kind = dead[0].1.as_str();
    assert!(kind.contains("no host N"), "{kind}");
    hero.run(&["dead", "retry", "--all", "--kind", kind])
        .code(0)
        .stdout("2 dead letters retried\n");
    let states = ["a", "b", "c", "d"].map(|id| status(&redis, id));
    assert_eq!(states, ["dispatched", "dispatched", "error", "error"]);
    // A table at a terminal may cut the kind; an error of the kind names it too.
    let error = redis.field(&keys::job("c"), "error").expect("an error");
    let listed =
        |kind: &str| hero.run(&["dead", "list", "--kind", kind]).code(0).stdout.lines().count();
    assert_eq!([listed(&error), listed("disk N is f…"), listed("disk")], [2, 2, 1]);
}

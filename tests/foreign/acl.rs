//! The shipped example of access control, with its part for the time beside older programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Program, W1, all_finish, counting, dual, jobs, lines, replies_are_right, submit};
use crate::support::{Hero, Redis, keys, wait_until};

const EXAMPLE: &str = include_str!("../../packaging/redis/hero-acl.conf");
pub(crate) const PASSWORD: &str = "secret";

/// The rules of a user, those for older programs among them.
pub(crate) fn rules(user: &str) -> Vec<String> {
    rules_in(EXAMPLE, user)
}

fn rules_in(text: &str, user: &str) -> Vec<String> {
    let line_of = |begins: &str| {
        let mut lines = text.lines();
        lines.find_map(|line| line.strip_prefix(begins)?.strip_prefix(user))
    };
    let own = line_of("user ").expect("the user");
    // The backup reads all keys.
    let more = line_of("#   ").unwrap_or_default();
    let mut rules: Vec<String> = Vec::new();
    for word in own.split_whitespace().chain(more.split_whitespace()) {
        let word = match word.strip_prefix("#SHA256") {
            Some(_) => format!(">{PASSWORD}"),
            None => word.to_owned(),
        };
        // A selector in brackets is one rule.
        match rules.last_mut() {
            Some(last) if last.starts_with('(') && !last.ends_with(')') => {
                last.push(' ');
                last.push_str(&word);
            }
            _ => rules.push(word),
        }
    }
    rules
}

/// Hero beside older programs with the login of one of the users.
fn login(redis: &Redis, user: &str) -> Hero {
    let hero = dual(redis, &[W1, "hero:job:actor_queue:bash"]);
    let hero = hero.set("supervisor.rhailib_circles", r#"[{ circle = "main", type = "bash" }]"#);
    with_login(redis, hero, user, &rules(user))
}

fn with_login(redis: &Redis, hero: Hero, user: &str, rules: &[String]) -> Hero {
    redis.ask_with::<String, _>(&format!("ACL SETUSER {user}"), rules);
    let file = redis.folder().join("password");
    fs::write(&file, PASSWORD).expect("writing the password");
    hero.set("redis.username", &format!("{user:?}"))
        .set("redis.password_file", &format!("{:?}", file.display().to_string()))
}

/// Checks that Redis has refused nothing.
#[track_caller]
fn nothing_was_denied(redis: &Redis) {
    let denied: Vec<Vec<redis::Value>> = redis.ask("ACL LOG");
    assert!(denied.is_empty(), "{denied:#?}");
}

#[test]
fn the_shipped_access_rules_are_enough_with_older_programs() {
    let redis = Redis::start();
    let supervisor = login(&redis, "hero-supervisor")
        .add("[notify.ops]\njournal = true\nevery = \"0s\"\non = [\"no_actor\", \"recovered\"]\n");
    let (actor, client) = (login(&redis, "hero-actor"), login(&redis, "hero-client"));
    redis.run("ACL LOG RESET");
    let supervisor = supervisor.supervisor().start();
    let number = jobs(10);
    let ids = submit(&redis, &client, "n", number);
    let script = counting(&redis, "{id}", "out-{id}");
    let old = Program::begin(&redis, "old_client", &["run", "w1", &script, &number.to_string()]);
    let words = ["main", &counting(&redis, "t{n}", "out"), &number.to_string()];
    let rhailib = Program::begin(&redis, "rhailib_client", &words);
    let _worker = Program::serve(&redis, "old_worker", &["w1"]);
    let _actor = actor.actor("bash-default-1").tasks(2).start();
    all_finish(&redis, &ids);
    replies_are_right(&old.ends(), number);
    assert_eq!(lines(&rhailib.ends()).len(), number);

    // Popped and lost jobs come back, and stops go both ways.
    for id in ["sleeps", "waits"] {
        let target = if id == "waits" { "nobody" } else { "default" };
        client
            .run(&["submit", "-t", "bash", "-g", target, "--id", id, "-e", "exec sleep 600"])
            .code(0);
    }
    wait_until("it runs", || super::has_status(&redis, "sleeps", "started"));
    let told = "no_actor: queue type:bash:group:nobody";
    wait_until("a queue without an actor is told", || supervisor.err().contains(told));
    for id in ["sleeps", "waits"] {
        Program::run(&redis, "old_client", &["stop", "w1", id]);
        wait_until("it is stopped", || super::has_status(&redis, id, "error"));
    }
    client.run(&["submit", "-t", "bash", "-g", "nobody", "--id", "last-one", "-e", "echo"]).code(0);
    client.run(&["job", "stop", "last-"]).code(0);
    client.run(&["migrate", "status"]).code(0);
    client.run(&["submit", "--circle", "main", "-e", "echo 42"]).code(0).stdout("42\n");
    nothing_was_denied(&redis);
}

#[test]
fn the_shipped_access_rules_are_enough_for_merged_lists() {
    let redis = Redis::start();
    let users = ["hero-client", "hero-supervisor"];
    let users = users.map(|user| with_login(&redis, Hero::on(&redis), user, &rules(user)));
    redis.run("ACL LOG RESET");
    let delayed = |script_type: &str| {
        let words = ["submit", "-t", script_type, "--delay", "1h", "-e", "1"];
        users[0].run(&words).code(0);
    };
    ["python", "sal", "osis"].into_iter().for_each(delayed);
    // The newest of one type are more than its part of a page.
    (0..4).for_each(|_| delayed("bash"));
    for user in &users {
        let listed = user.run(&["job", "list", "--limit", "3", "--json"]).code(0).stdout;
        assert_eq!(listed.matches("\"bash\"").count(), 3, "{listed}");
    }
    nothing_was_denied(&redis);
}

#[test]
fn the_shipped_access_rules_are_enough_for_waits() {
    let redis = Redis::start();
    let of = |user: &str| {
        let hero = Hero::on(&redis).set("type.python.may_submit", "[\"python\"]");
        with_login(&redis, hero, user, &rules(user))
    };
    let (supervisor, actor, client) = (of("hero-supervisor"), of("hero-actor"), of("hero-client"));
    redis.run("ACL LOG RESET");
    let _supervisor = supervisor.supervisor().start();
    let _actor = actor.actor("python-default-1").start();
    let script = "import hero\n\
                  if hero.event is None:\n    hero.submit('1', name='c')\n    hero.submit(uses='one', name='d')\n\
                  \x20   hero.wait(children=True)\n\
                  if 'children' in hero.event: hero.wait('ok')\n\
                  if 'event' in hero.event: hero.wait('never', '10ms')\n\
                  print(hero.event['timeout'])";
    client.run(&["script", "publish", "one", "-t", "python", "-e", "1"]).code(0);
    client.run(&["submit", "-t", "python", "--id", "a", "-e", script]).code(0);
    let waits = || redis.field(&keys::job("a"), "wait").is_some_and(|wait| wait.contains("ok"));
    wait_until("it waits for the event", waits);
    client.run(&["job", "tell", "a", "later"]).code(0);
    client.run(&["job", "tell", "a", "ok"]).code(0);
    client.run(&["job", "wait", "a"]).code(0).stdout("True\n");
    nothing_was_denied(&redis);
}

#[test]
fn supervisor_with_an_older_access_list_says_once_which_key_it_lacks() {
    const LACKS: &str = "the access list of its user lacks ~hero:meta:job:expiring:";
    let redis = Redis::start();
    let mut older = rules("hero-supervisor");
    older.retain(|rule| rule != "~hero:meta:job:expiring");
    let hero = with_login(&redis, Hero::on(&redis), "hero-supervisor", &older);
    let supervisor = hero.quick_sweeps().supervisor().start();
    wait_until("it says what it lacks", || supervisor.err().contains(LACKS));
    redis.run("ACL LOG RESET");
    wait_until("further rounds are refused", || {
        let refused: Vec<Vec<redis::Value>> = redis.ask("ACL LOG");
        let counts = refused.iter().filter_map(|entry| match entry.get(1) {
            Some(redis::Value::Int(count)) => Some(*count),
            _ => None,
        });
        counts.sum::<i64>() >= 3
    });
    let log = supervisor.err();
    assert_eq!(log.matches("The user executing the script").count(), 1, "{log}");
    drop(supervisor);
    // They were expected.
    redis.run("ACL LOG RESET");
}

/// Returns every key of the namespace with its content.
fn contents(redis: &Redis) -> BTreeMap<String, Vec<u8>> {
    let keys = redis.keys("hero:").into_iter();
    keys.map(|key| (redis.ask_with("DUMP", &[&key]), key)).map(|(of, key)| (key, of)).collect()
}

#[test]
fn command_with_the_shipped_access_rules_is_done_or_changes_nothing() {
    const DONE: [&[&str]; 20] = [
        &["submit", "--graph", "g.toml"],
        &["submit", "--batch", "b.jsonl", "--all-or-none"],
        &["submit", "--batch", "b2.jsonl", "--on-end", "end.rhai", "--on-failure", "end.rhai"],
        &[
            "submit",
            "-t",
            "osis",
            "--unique-key",
            "k",
            "--expires",
            "1h",
            "--where",
            "a = 1",
            "-e",
            "1",
        ],
        &["cron", "add", "nightly", "--schedule", "0 3 * * *", "-t", "osis", "-e", "1"],
        &["cron", "run", "nightly"],
        &["cron", "disable", "nightly"],
        &["script", "publish", "one", "-t", "osis", "-e", "1"],
        &["job", "retry", "failed"],
        &["job", "edit", "later", "--priority", "urgent", "--set", "timeout=5m"],
        &["job", "edit", "queued", "--group", "other"],
        &["job", "tell", "queued", "ok"],
        &["job", "clone", "later"],
        &["job", "stop", "later"],
        &["graph", "stop", "g"],
        &["graph", "retry", "g"],
        &["graph", "delete", "g"],
        &["queue", "pause", "type:osis"],
        &["queue", "pause", "--all"],
        &["job", "delete", "queued"],
    ];
    const REFUSED: [(&[&str], i32); 10] = [
        (&["submit", "--graph", "cycle.toml"], 65),
        (&["submit", "--batch", "taken.jsonl", "--all-or-none"], 65),
        (&["submit", "--batch", "b.jsonl", "--all-or-none", "--on-end", "none.rhai"], 66),
        (&["submit", "-t", "osis", "--after", "none", "-e", "1"], 65),
        (&["cron", "add", "wrong", "--schedule", "61 3 * * *", "-t", "osis", "-e", "1"], 65),
        (&["job", "retry", "queued"], 65),
        (&["job", "edit", "failed", "--priority", "urgent"], 65),
        (&["job", "stop", "failed"], 65),
        (&["graph", "stop", "none"], 66),
        (&["queue", "pause", "nope"], 65),
    ];
    let redis = Redis::start();
    let hero = with_login(&redis, Hero::on(&redis), "hero-client", &rules("hero-client"));
    let graph = |after: &str| {
        let job = |name: &str, after: &str| {
            format!("[job.{name}]\ntype = \"osis\"\nscript = \"1\"\nafter = [{after}]\n")
        };
        job("a", after) + job("b", "\"a\"").as_str()
    };
    let line =
        |id: &str| format!("{{\"id\":\"{id}\",\"script_type\":\"osis\",\"script\":\"1\"}}\n");
    for (name, text) in [
        ("g.toml", graph("")),
        ("cycle.toml", graph("\"b\"")),
        ("b.jsonl", line("one") + line("two").as_str()),
        ("b2.jsonl", line("four") + line("five").as_str()),
        ("taken.jsonl", line("three") + line("queued").as_str()),
        ("end.rhai", "1".to_owned()),
    ] {
        fs::write(redis.folder().join(name), text).expect("written");
    }
    let actor = Hero::on(&redis).actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "--id", "failed", "--retries", "0", "-e", "throw 1"]).code(1);
    drop(actor);
    hero.run(&["submit", "-t", "osis", "--id", "queued", "-e", "1"]).code(0);
    hero.run(&["submit", "-t", "osis", "--id", "later", "--delay", "1h", "-e", "1"]).code(0);
    hero.run(&["submit", "--graph", "g.toml", "--id", "g"]).code(0);
    redis.run("ACL LOG RESET");
    for (words, code) in REFUSED {
        let before = contents(&redis);
        hero.run(words).code(code);
        assert!(contents(&redis) == before, "{words:?} has acted");
    }
    for words in DONE {
        let before = contents(&redis);
        hero.run(words).code(0);
        assert!(contents(&redis) != before, "{words:?} has not acted");
    }
    nothing_was_denied(&redis);
}

#[test]
fn recovery_that_fails_is_critical_and_named_once_and_its_jobs_stay_started_until_it_can() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("actor.lease", "\"1s\"");
    let mut older = rules("hero-supervisor");
    older.retain(|rule| rule != "~hero:meta:boot:index");
    let login = with_login(&redis, hero, "hero-supervisor", &older);
    let client = Hero::on(&redis);
    let mut actor = client.actor("bash-default-1").start();
    client.run(&["submit", "-t", "bash", "--id", "a", "-e", "sleep 600"]).code(0);
    wait_until("it runs", || super::has_status(&redis, "a", "started"));
    let _supervisor = login.quick_sweeps().supervisor().start();
    actor.kill();
    let mut told = String::new();
    wait_until("the recovery is critical", || {
        told = client.run(&["status", "--check"]).stdout;
        told.contains("recovering jobs of dead actors")
    });
    client.run(&["status", "--check"]).code(2);
    assert_eq!(told.matches("recovering jobs").count(), 1, "{told}");
    assert!(told.contains("they stay started"), "{told}");
    assert!(super::has_status(&redis, "a", "started"));
    redis.run("ACL SETUSER hero-supervisor ~hero:meta:boot:index");
    wait_until("it is put back", || super::has_status(&redis, "a", "dispatched"));
    drop(actor);
    wait_until("it is no problem any more", || {
        !client.run(&["status", "--check"]).stdout.contains("recovering jobs")
    });
    // They were expected.
    redis.run("ACL LOG RESET");
}

/// Runs the command of the example that adds the keys of further shards, on the rules for a namespace.
#[expect(clippy::disallowed_methods, reason = "the command is for a shell")]
fn with_keys_of_shards(folder: &Path, namespace: &str) -> String {
    let command = EXAMPLE.lines().find(|line| line.contains("sed -i -E ")).expect("the command");
    let command = command.trim_start_matches(['#', ' ']);
    let file = folder.join("hero-acl.conf");
    let text = EXAMPLE.replace("~hero:", &format!("~{namespace}:"));
    fs::write(&file, text).expect("writing the rules");
    let status = Command::new("sh").args(["-c", command]).current_dir(folder).status();
    assert!(status.expect("sh runs").success(), "{command}");
    fs::read_to_string(file).expect("the rules")
}

#[test]
fn the_command_of_the_access_rules_adds_the_keys_of_further_shards() {
    for namespace in ["hero", "{hero}"] {
        let redis = Redis::start();
        let text = with_keys_of_shards(redis.folder(), namespace);
        let login = |user: &str| {
            let hero = Hero::on(&redis)
                .set("redis.namespace", &format!("{namespace:?}"))
                .set("redis.shards", "2");
            with_login(&redis, hero, user, &rules_in(&text, user))
        };
        let [client, supervisor, actor, backup] =
            ["hero-client", "hero-supervisor", "hero-actor", "hero-backup"].map(login);
        redis.run("ACL LOG RESET");
        let _supervisor = supervisor.supervisor().start();
        let _actor = actor.actor("osis-default-1").start();
        for id in ["a", "s1-a"] {
            client.run(&["submit", "-t", "osis", "--id", id, "-e", "40 + 2"]).code(0);
            client.run(&["job", "wait", id]).code(0).stdout("42\n");
        }
        client.run(&["job", "list"]).code(0);
        backup.run(&["backup", "saved"]).code(0);
        nothing_was_denied(&redis);
    }
}

const SUBMITTER: &str = include_str!("../../packaging/redis/hero-acl-submitter.conf");

/// The tries of a hostile program with the narrow login, each at the keys of another's job.
const TRIES: [&[&str]; 36] = [
    &["HSET", "hero:job:bob-1", "script", "echo forged"],
    &["HSET", "hero:job:bob-1", "status", "finished", "output", "forged"],
    &["HGETALL", "hero:job:ann-1"],
    &["HMGET", "hero:job:bob-1", "script", "env_vars"],
    &["HGET", "hero:job:bob-1", "output"],
    &["DEL", "hero:job:ann-1"],
    &["EXPIRE", "hero:job:ann-1", "1"],
    &["BLPOP", "hero:q:reply:bob-1", "1"],
    &["RPUSH", "hero:q:reply:bob-1", "{}"],
    &["LPOP", "hero:q:work:type:python"],
    &["BLPOP", "hero:q:work:type:python", "1"],
    &["LPUSH", "hero:q:work:type:python", "ann-1"],
    &["LRANGE", "hero:q:work:type:python", "0", "-1"],
    &["RPUSH", "hero:q:work:type:sal", "ann-1"],
    &["RPUSH", "hero:q:work:type:python:prio:0", "ann-1"],
    &["RPUSH", "hero:q:ctl:type:python", "bob-1"],
    &["RPUSH", "hero:q:ctl:type:python:group:default:inst:1", "{\"cmd\":\"shutdown\"}"],
    &["SET", "hero:meta:actor:inst:python:default:1", "{}"],
    &["HSET", "hero:meta:cron:evil", "due_us", "0"],
    &["HSET", "hero:meta:cron:added:jobs", "evil", "{}"],
    &["HSET", "hero:meta:script:index", "evil", "{}"],
    &["HSET", "hero:meta:script:of:deploy", "text:1", "evil"],
    &["HSET", "hero:meta:api:tokens", "x", "{}"],
    &["GET", "hero:meta:job:unique:deploy"],
    &["SET", "hero:meta:job:unique:deploy", "ann-1"],
    &["GET", "hero:meta:job:output:bob-1"],
    &["XRANGE", "hero:meta:job:log:bob-1", "-", "+"],
    &["XADD", "hero:meta:job:log:ann-1", "*", "line", "forged"],
    &["EVAL", "while true do end", "0"],
    &["SCRIPT", "LOAD", "return 1"],
    &["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"],
    &["KEYS", "*"],
    &["SCAN", "0"],
    &["CONFIG", "GET", "requirepass"],
    &["MONITOR"],
    &["FLUSHALL"],
];

#[test]
fn narrow_login_submits_its_jobs_and_reaches_no_others() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _units = ["supervisor", "python-default-1"].map(|unit| match unit {
        "supervisor" => hero.supervisor().start(),
        unit => hero.actor(unit).start(),
    });
    redis.set_job("bob-1", "script print(1) script_type python status created");
    let rules = rules_in(SUBMITTER, "hero-submitter-ann");
    redis.ask_with::<String, _>("ACL SETUSER ann", &rules);
    let mut ann = redis.link();
    redis::cmd("AUTH").arg("ann").arg(PASSWORD).exec(&mut ann).expect("a login");
    let mut ask = |words: &[&str]| {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]).query::<redis::Value>(&mut ann)
    };
    for fields in [["script", "print(40 + 2)"], ["script_type", "python"], ["status", "dispatched"]]
    {
        ask(&["HSET", "hero:job:ann-1", fields[0], fields[1]]).expect("its own job");
    }
    ask(&["RPUSH", "hero:q:work:type:python", "ann-1"]).expect("its own queue");
    let reply = ask(&["BLPOP", "hero:q:reply:ann-1", "60"]).expect("its own reply");
    assert!(format!("{reply:?}").contains("finished"), "{reply:?}");
    ask(&["HMGET", "hero:job:ann-1", "status", "output"]).expect("its own job");
    ask(&["XRANGE", "hero:meta:job:log:ann-1", "-", "+"]).expect("its own log");
    let before: Vec<String> = redis.ask("HGETALL hero:job:bob-1");
    for words in TRIES {
        let refused = ask(words).expect_err(words[0]);
        assert!(
            refused.to_string().contains("NOPERM") || refused.code() == Some("NOPERM"),
            "{words:?}: {refused}"
        );
    }
    assert_eq!(redis.ask::<Vec<String>>("HGETALL hero:job:bob-1"), before);
}

//! An answer is true: nothing says "none" of jobs that it did not search, and no number counts something else.

use hero::proto::job::JobEnd;
use serde_json::{Value, json};

use super::top::Terminal;
use super::{ENDLESS, until};
use crate::support::{Hero, Redis, Served, agent, keys, wait_until};
use crate::web::requests::{send, signed_in};

/// More jobs than any list shows or any step reads.
pub(super) const MANY: usize = 12_000;

/// A site whose jobs fail at once.
pub(super) fn site(redis: &Redis) -> Served {
    Served::with(Hero::on(redis).set("job.retries", "0"), redis)
}

/// Submits `MANY` jobs that nobody runs.
pub(super) fn submit_many(hero: &Hero) {
    let line =
        json!({ "script_type": "osis", "group": "nobody", "script": "1", "caller_id": "shop" });
    let lines = format!("{line}\n").repeat(MANY);
    hero.run_with_input(&["submit", "--batch", "-", "--id", "many"], &lines).code(0);
}

/// One failed job, and then `MANY` that waited and were stopped.
fn world(redis: &Redis) -> Served {
    let site = site(redis);
    let hero = &site.hero;
    let actor = hero.actor("osis-default-1").start();
    let failing =
        ["exec", "-t", "osis", "--caller", "zoe", "--name", "zoes", "-e", "throw \"boom\""];
    hero.run(&failing);
    drop(actor);
    submit_many(hero);
    let purged = hero.run(&["queue", "purge", "type:osis:group:nobody", "--yes"]).code(0);
    assert_eq!(purged.stdout, format!("{MANY} jobs purged\n"), "{}", purged.stderr);
    site
}

/// Returns the jobs that wait in queues, as faces count them.
fn waiting(site: &Served) -> Vec<u64> {
    let hero = &site.hero;
    let read = |args: &[&str]| -> Value {
        serde_json::from_str(&hero.run(args).stdout).unwrap_or_default()
    };
    let depths = |queues: &Value| -> u64 {
        queues.as_array().into_iter().flatten().filter_map(|of| of["depth"].as_u64()).sum()
    };
    let listed = read(&["queue", "list", "--json"]);
    let status = read(&["status", "--json"]);
    vec![
        depths(&listed["queues"]),
        depths(&status["queues"]),
        depths(&site.call("queue.list", &json!({}))["queues"]),
    ]
}

#[test]
fn jobs_that_were_stopped_wait_in_no_queue_at_once() {
    let redis = Redis::start();
    let site = site(&redis);
    submit_many(&site.hero);
    assert_eq!(waiting(&site), [MANY as u64; 3]);
    let stopping = site.hero.begin(&["job", "stop", "--caller", "shop", "--yes"]);
    wait_until("most are stopped", || {
        let index = keys::ended(JobEnd::Cancelled, "osis");
        redis.ask::<usize>(&format!("ZCARD {index}")) > MANY / 2
    });
    stopping.ends().code(0);
    // A list keeps entries of stopped jobs until a sweep.
    let ended = format!("ZRANGE {} 0 200", keys::ended(JobEnd::Cancelled, "osis"));
    let stale: Vec<String> = redis.ask(&ended);
    redis.run(&format!("RPUSH {} {}", keys::work("type:osis:group:nobody"), stale.join(" ")));
    assert_eq!(waiting(&site), [0; 3]);
    let doctor = site.hero.run(&["doctor"]).stdout;
    assert!(!doctor.contains("nobody"), "nothing waits there: {doctor}");
    site.hero.run(&["submit", "-t", "osis", "-g", "nobody", "-e", "1"]).code(0);
    assert_eq!(waiting(&site), [1; 3]);
    // What a program pushes counts before it is adopted.
    redis.run(&format!("HSET {} status dispatched script_type osis script 1", keys::job("pushed")));
    redis.run(&format!("LPUSH {} pushed", keys::work("type:osis:group:nobody")));
    assert_eq!(waiting(&site), [2; 3]);
}

#[test]
fn actor_says_of_jobs_that_are_gone_that_they_do_not_run_again() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let actor = hero.actor("bash-default-1").start();
    hero.run(&["submit", "-t", "bash", "--id", "gone", "-e", "sleep 600"]).code(0);
    wait_until("it runs", || {
        redis.field(&keys::job("gone"), "status").as_deref() == Some("started")
    });
    redis.run("FLUSHALL");
    wait_until("the actor has lost it", || actor.err().contains("lost job gone with the lease"));
    let log = actor.err();
    let line = log.lines().find(|line| line.contains("lost job gone")).unwrap_or_default();
    assert!(
        line.contains("redis does not have it any more") && !line.contains("elsewhere"),
        "{line}"
    );
}

#[test]
fn children_are_found_without_a_search_through_other_jobs() {
    let redis = Redis::start();
    let site = site(&redis);
    for id in ["parent", "first", "second"] {
        site.hero.run(&["submit", "-t", "osis", "-g", "nobody", "--id", id, "-e", "1"]).code(0);
    }
    redis.set_field(&keys::job("parent"), "children", "[\"first\",\"second\"]");
    for child in ["first", "second"] {
        redis.set_field(&keys::job(child), "parent", "parent");
    }
    submit_many(&site.hero);
    let found = site.call("job.list", &json!({ "parent": "parent" }));
    let ids: Vec<&str> = found["jobs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|job| job["id"].as_str())
        .collect();
    assert_eq!((ids, &found["searched"]), (vec!["second", "first"], &json!(2)), "{found}");
    assert_eq!(found["complete"], true);
    let first = site.call("job.list", &json!({ "parent": "parent", "limit": 1 }));
    let rest = json!({ "parent": "parent", "limit": 1, "cursor": first["next"] });
    assert_eq!(site.call("job.list", &rest)["jobs"][0]["id"], "first");
    let failed = site.call("job.list", &json!({ "parent": "parent", "status": "failed" }));
    assert_eq!((&failed["jobs"], &failed["complete"]), (&json!([]), &json!(true)));
}

#[test]
fn one_failed_job_is_found_behind_thousands_of_stopped_ones_on_every_face() {
    let redis = Redis::start();
    let site = world(&redis);
    let hero = &site.hero;
    for filter in [
        &["--caller", "zoe"][..],
        &["--name", "zoes"],
        &["--error", "boom"],
        &["--status", "failed"],
        &["--failed-because", "script"],
        &["--since", "1h", "--name", "zoes"],
    ] {
        let listed = hero.run(&[&["job", "list"][..], filter].concat()).code(0);
        assert!(listed.stdout.contains("zoes"), "{filter:?}: {}{}", listed.stdout, listed.stderr);
    }
    let none = hero.run(&["job", "list", "--caller", "nobody", "--json"]).code(0).stdout;
    let none: Value = serde_json::from_str(&none).expect("JSON");
    assert_eq!((&none["complete"], &none["searched"]), (&json!(true), &json!(MANY + 1)));
    assert!(hero.run(&["job", "errors"]).code(0).stdout.contains("boom"));

    for filter in
        [json!({ "caller": "zoe" }), json!({ "name": "zoes" }), json!({ "error": "boom" })]
    {
        let (mut found, mut params) = (Vec::new(), filter.clone());
        loop {
            let page = site.call("job.list", &params);
            found.extend(page["jobs"].as_array().expect("jobs").iter().cloned());
            assert!(page["complete"] == json!(page["next"].is_null()), "{filter}: {page}");
            if page["next"].is_null() {
                break;
            }
            params["cursor"] = page["next"].clone();
        }
        assert_eq!(found.len(), 1, "{filter}");
    }
    let groups = site.call("job.errors", &json!({}));
    assert_eq!((&groups["groups"][0]["jobs"], &groups["complete"]), (&json!(1), &json!(true)));

    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    let page = send(&site, "GET", "/jobs?state=failed", &cookie, "").body;
    assert!(page.contains("zoes") && page.contains("1 job"), "{page}");
    let number = |state: &str| {
        let after = page.split(&format!("id=\"n-{state}\"")).nth(1)?;
        Some(after.split('>').nth(1)?.split('<').next()?.to_owned())
    };
    assert_eq!(number("error").as_deref(), Some("1"));
    let cancelled = number("cancelled").unwrap_or_default();
    let digits: String = cancelled.chars().filter(char::is_ascii_digit).collect();
    assert_eq!(digits, MANY.to_string(), "{cancelled}");
    let top = hero.run(&["top", "--once"]).code(0).stdout;
    assert!(top.contains("boom") && !top.contains("cancelled"), "{top}");
    let mut terminal = Terminal::start(hero);
    terminal.shows("Failures 1");
    terminal.shows("boom");
    let screen = terminal.screen();
    assert!(!screen.contains("Failures 1+") && !screen.contains("stopped"), "{screen}");
    terminal.press("q");
    terminal.ends();
}

#[test]
fn bulk_command_works_through_all_that_matches() {
    let redis = Redis::start();
    let site = site(&redis);
    submit_many(&site.hero);
    let dry = site.hero.run(&["job", "stop", "--caller", "shop"]).code(2);
    assert!(dry.stderr.contains("at least 1000 jobs without confirmation"), "{}", dry.stderr);
    let stopping = site.hero.begin(&["job", "stop", "--caller", "shop", "--yes"]);
    let index = keys::ended(JobEnd::Cancelled, "osis");
    for part in 1..=6 {
        let number = MANY / 6 * part;
        wait_until(&format!("{number} jobs are stopped"), || {
            redis.ask::<usize>(&format!("ZCARD {index}")) >= number
        });
    }
    let stopped = stopping.ends().code(0);
    assert_eq!(stopped.stdout, format!("{MANY} jobs stopped\n"), "{}", stopped.stderr);
    let left = site.hero.run(&["job", "list", "--caller", "shop", "--status", "waiting"]).code(0);
    assert!(left.stderr.contains("no job in state waiting of caller shop"), "{}", left.stderr);
}

#[test]
fn flushed_redis_is_reported_with_the_jobs_that_were_known() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let hero = &site.hero;
    // It writes its presence again at once.
    let _actor = hero.actor("osis-default-1").start();
    for _ in 0..3 {
        hero.run(&["submit", "-t", "osis", "-g", "nobody", "-e", "1"]).code(0);
    }
    // It counts them at a heartbeat.
    let second = hero.supervisor().start();
    wait_until("a supervisor has counted the jobs", || {
        hero.run(&["status"]).stdout.contains("supervisor")
            && redis.ask::<u64>(&format!("ZCARD {}", keys::supervisors())) == 2
    });
    redis.run("FLUSHALL");
    wait_until("the loss is a problem", || {
        let health = site.call("system.health", &json!({}));
        let problems = health["problems"].as_array().cloned().unwrap_or_default();
        problems.iter().any(|of| {
            of["kind"] == "redis_emptied"
                && of["severity"] == "critical"
                && of["text"].as_str().is_some_and(|text| text.contains("3 jobs were known"))
        })
    });
    drop(second);
    for args in [&["status"][..], &["doctor", "--problems"]] {
        let told = hero.run(args).stdout;
        assert!(
            told.contains("was emptied") && told.contains("3 jobs were known"),
            "{args:?}: {told}"
        );
    }
    let told = agent(hero, "health", &json!({}));
    assert!(told.contains("redis_emptied") && told.contains("3 jobs were known"), "{told}");
}

#[test]
fn bulk_change_over_the_api_and_the_page_goes_on_until_nothing_that_matches_is_left() {
    let redis = Redis::start();
    let site = site(&redis);
    submit_many(&site.hero);
    let stopped =
        || redis.ask::<usize>(&format!("ZCARD {}", keys::ended(JobEnd::Cancelled, "osis")));
    let cookie = signed_in(&site, &["ann", "--scope", "read,submit,operate"]);
    let forgery = send(&site, "GET", "/jobs", &cookie, "").forgery();
    let post = |form: &str| {
        send(&site, "POST", "/jobs", &cookie, &format!("do=stop&caller=shop&{form}&csrf={forgery}"))
    };
    let asked = post("all=1").body;
    // A busy machine may not count all in two seconds: "at least".
    assert!(asked.contains("<title>Stop "), "{asked}");
    assert_eq!(stopped(), 0, "the question changes nothing");

    // A call with a limit says how many are left, and goes on behind its last job.
    let mut params =
        json!({ "change": "stop", "yes": true, "filter": { "caller": "shop", "limit": 500 } });
    let first = site.call("job.change_many", &params);
    assert_eq!((&first["done"], &first["more"]), (&json!(500), &json!(true)), "{first}");
    let is_counted = |answer: &Value, left: usize| match answer["remaining_complete"] {
        Value::Bool(true) => answer["remaining"] == json!(left),
        _ => answer["remaining"]
            .as_u64()
            .is_some_and(|number| (1000..=left as u64).contains(&number)),
    };
    assert!(is_counted(&first, MANY - 500) && stopped() == 500, "{first}");
    params["filter"]["cursor"] = first["next"].clone();
    let second = site.call("job.change_many", &params);
    assert!(is_counted(&second, MANY - 1000) && stopped() == 1000, "{second}");

    // The page goes on by a button until all are done.
    let mut form = "all=1&sure=1".to_owned();
    let mut steps = 0;
    loop {
        let before = stopped();
        let answer = post(&form);
        assert!(stopped() > before, "{}", answer.body);
        if answer.status == 303 {
            break;
        }
        assert!(answer.body.contains(" left."), "{}", answer.body);
        let cursor = answer.body.split("name=\"cursor\" value=\"").nth(1).expect("a place");
        form = format!("all=1&sure=1&cursor={}", cursor.split('"').next().unwrap_or_default());
        steps += 1;
        assert!(steps <= MANY / 1000, "each step has at least a thousand jobs");
    }
    assert_eq!(stopped(), MANY);
    let last =
        site.call("job.change_many", &json!({ "change": "stop", "filter": {}, "yes": true }));
    assert_eq!(
        (&last["done"], &last["next"], &last["remaining"]),
        (&json!(0), &Value::Null, &json!(0))
    );
}

/// The commands that report the state of the namespace.
const REPORTS: [&[&str]; 5] = [
    &["doctor", "--problems"],
    &["status"],
    &["status", "--check"],
    &["top", "--once"],
    &["queue", "list"],
];

#[test]
fn agent_gets_the_reason_why_a_job_waits_without_an_actor() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let job = json!({ "script_type": "osis", "script": "1" });
    let nobody = "no live one claims jobs of type:osis";
    let told = agent(&hero, "submit_job", &job);
    assert!(told.contains("\"waits_for\":\"an actor: ") && told.contains(nobody), "{told}");
    let told =
        agent(&hero, "run_script", &json!({ "script_type": "osis", "script": "1", "wait": 0.1 }));
    assert!(told.contains("it waits for an actor: ") && told.contains(nobody), "{told}");
    let _actor = hero.actor("osis-default-1").start();
    let told = agent(&hero, "run_script", &json!({ "script_type": "osis", "script": "1" }));
    assert!(told.contains("finished") && !told.contains("waits_for"), "{told}");
}

#[test]
fn list_as_csv_goes_on_to_its_end() {
    let redis = Redis::start();
    let site = site(&redis);
    submit_many(&site.hero);
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    let csv = |query: &str| send(&site, "GET", &format!("/jobs.csv{query}"), &cookie, "");
    assert_eq!(csv("").body.matches(",osis,").count(), MANY);
    assert_eq!(csv("?caller=shop&limit=1500").body.matches(",osis,").count(), 1500);
    let none = csv("?caller=nobody");
    assert_eq!((none.status, none.body.matches("osis").count()), (200, 0), "{}", none.body);
}

#[test]
fn page_after_the_last_job_does_not_deny_the_jobs_before_it() {
    let redis = Redis::start();
    let site = site(&redis);
    let hero = &site.hero;
    hero.run(&["submit", "-t", "osis", "-g", "nobody", "--id", "a", "-e", "1"]).code(0);
    let place = site.call("job.list", &json!({ "limit": 1, "name": "" }))["next"].clone();
    let place = place.as_str().expect("a full page has a next one");
    let listed = hero.run(&["job", "list", "--status", "waiting", "--cursor", place]).code(0);
    assert_eq!(listed.stderr, "hero: no further job in state waiting\n");
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    let page = send(&site, "GET", &format!("/jobs?status=waiting&cursor={place}"), &cookie, "");
    assert!(page.body.contains("No further job in state waiting."), "{}", page.body);
}

#[test]
fn errors_beyond_the_kinds_that_are_shown_are_counted() {
    let redis = Redis::start();
    let site = site(&redis);
    let _actor = site.hero.actor("osis-default-1").start();
    for error in ["red", "green", "blue"] {
        let script = format!("throw \"{error}\"");
        site.hero.run(&["exec", "-t", "osis", "-e", &script]).code(1);
    }
    let found = site.call("job.errors", &json!({ "limit": 2 }));
    let shown = found["groups"].as_array().map(Vec::len);
    assert_eq!((shown, &found["kinds"], &found["jobs"]), (Some(2), &json!(3), &json!(3)));
    let errors = site.hero.run(&["job", "errors", "--limit", "2"]).code(0);
    assert!(errors.stderr.contains("the 2 most frequent of 3 kinds"), "{}", errors.stderr);
}

#[test]
fn queue_that_a_limit_holds_names_the_limit_on_every_face() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("limit.gpu.running", "1").set("check.wait_warning", "\"1ms\"");
    let site = Served::with(hero, &redis);
    let hero = &site.hero;
    let _actor = hero.actor("osis-default-1").tasks(2).start();
    hero.run(&["submit", "-t", "osis", "--id", "a", "--timeout", "1h", "-e", ENDLESS]).code(0);
    for id in ["b", "c"] {
        hero.run(&["submit", "-t", "osis", "--id", id, "-e", "1"]).code(0);
    }
    wait_until("both are held", || {
        redis.ask::<u64>(&format!("ZCARD {}", keys::held("type:osis"))) == 2
    });
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    let page = |path: &str| send(&site, "GET", path, &cookie, "").body;
    wait_until("the page has read it", || page("/queues/type:osis").contains("by limit gpu"));
    let health = site.call("system.health", &json!({})).to_string();
    let mut reports: Vec<String> = REPORTS.iter().map(|args| hero.run(args).stdout).collect();
    let doctor = &hero.run(&["doctor"]).stdout;
    for text in [doctor, &health, &agent(hero, "health", &json!({}))] {
        assert!(text.contains("the first by limit gpu"), "{text}");
    }
    let metrics = hero.run(&["metrics"]).code(0).stdout;
    assert!(metrics.contains("kind=\"queue_held_long\""), "{metrics}");
    reports.extend([metrics, health, page("/"), page("/queues"), page("/queues/type:osis")]);
    for text in reports {
        for wrong in ["start more actors", "queue_wait\"", "long wait", "No job waits in it"] {
            assert!(!text.contains(wrong), "{wrong}: {text}");
        }
    }
}

#[test]
fn redis_that_refuses_connections_is_reported_as_that_on_every_face() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let hero = &site.hero;
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    let mut held = redis.link();
    for command in ["CONFIG SET maxclients 1", "CLIENT KILL TYPE normal", "CLIENT KILL TYPE pubsub"]
    {
        let mut words = command.split(' ');
        let mut command = redis::cmd(words.next().unwrap_or_default());
        for word in words {
            command.arg(word);
        }
        command.query::<redis::Value>(&mut held).expect("Redis has this connection");
    }
    let names_it = |text: &str| text.contains("maxclients") && !text.contains("roken pipe");
    wait_until("the log says so", || site.supervisor.err().contains("maxclients"));
    for args in REPORTS {
        let done = hero.run(args);
        let text = format!("{}{}", done.stdout, done.stderr);
        assert!(names_it(&text), "{args:?}: {text}");
    }
    let told = agent(hero, "health", &json!({}));
    assert!(names_it(&told), "{told}");
    let asked = crate::support::request("system.health", &json!({}));
    // Its first call is over a connection that was closed.
    let told = site.unix().post("/rpc", &[], &asked).text();
    assert!(names_it(&told), "{told}");
    wait_until("the page says so", || names_it(&send(&site, "GET", "/queues", &cookie, "").body));
}

#[test]
fn queue_names_the_cause_that_holds_its_jobs() {
    let redis = Redis::start();
    let site = Served::with(Hero::on(&redis).set("check.depth_warning", "1"), &redis);
    let hero = &site.hero;
    let _actor = hero.actor("bash-default-1").start();
    hero.run(&["actor", "drain", "bash-default-1"]).code(0);
    hero.run(&["submit", "-t", "bash", "-e", "1"]).code(0);
    let problems = || hero.run(&["doctor", "--problems"]).stdout;
    wait_until("the actor drains", || {
        problems().contains("queue type:bash has 1 job and its actor bash:default:1 drains")
    });
    assert!(problems().contains("hero actor resume bash-default-1"), "{}", problems());
    assert!(!problems().contains("start one"), "{}", problems());
    hero.run(&["queue", "pause", "type:bash"]).code(0);
    let told = problems();
    assert!(told.contains("resume it: hero queue resume type:bash"), "{told}");
    assert!(!told.contains("start one") && !told.contains("drains"), "{told}");
}

#[test]
fn bulk_command_does_not_deny_jobs_that_it_cannot_change() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["exec", "-t", "bash", "--name", "finer", "-e", "echo 1"]).code(0);
    let wait = "trap '' TERM; while [ ! -e stop ]; do sleep 0.05; done";
    hero.run(&["submit", "-t", "bash", "--id", "runs", "--name", "runner", "-e", wait]).code(0);
    until(&redis, "runs", "started");
    for (args, said) in [
        (
            &["delete", "--status", "running", "--yes"][..],
            "no job in state running that can be deleted",
        ),
        (&["delete", "--name", "runner", "--dry-run"], "that can be deleted"),
        (
            &["retry", "--name", "runner"],
            "no job with a name that contains `runner` that can be retried",
        ),
        (&["stop", "--name", "finer", "--yes"], "that can be stopped"),
        (&["edit", "--name", "finer", "--priority", "0"], "that can be edited"),
    ] {
        hero.run(&[&["job"], args].concat()).code(0).says(said);
    }
    // The name of its unit is a name of the actor.
    for name in ["bash-default-1", "bash:default:1"] {
        let found = hero.run(&["job", "list", "--actor", name, "--json"]).code(0).stdout;
        assert!(found.contains("\"runs\""), "{name}: {found}");
    }
    hero.run(&["job", "stop", "--type", "bash", "--yes"])
        .code(0)
        .stdout("0 jobs stopped, 1 told to stop\n");
    until(&redis, "runs", "error");
}

#[test]
fn change_that_the_record_lacks_is_reported() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    hero.run(&["submit", "-t", "osis", "--id", "a", "-e", "1"]).code(0);
    redis.ask::<String>("CONFIG SET maxmemory 1mb");
    let lost = "it is done, but hero audit has no record that";
    hero.run(&["job", "delete", "a"]).code(0).says(lost).says("called job.delete of a");
    redis.ask::<String>("CONFIG SET maxmemory 0");
    assert!(redis.field(&keys::job("a"), "status").is_none());
}

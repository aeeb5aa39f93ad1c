//! The bridge to the circles of rhailib, with the client and the worker of its sequence diagram.

use std::collections::BTreeSet;

use super::{Program, jobs, lines};
use crate::support::{Hero, Redis, wait_until};

/// Hero serving the circle `main`.
fn bridging(redis: &Redis) -> Hero {
    Hero::on(redis).set("supervisor.rhailib_circles", r#"[{ circle = "main", type = "osis" }]"#)
}

/// Writes the details of a task and pushes it.
fn push_task(redis: &Redis, id: &str, fields: &[&str]) {
    redis.ask_with::<i64, _>(&format!("HSET rhai_task_details:{id}"), fields);
    redis.run(&format!("LPUSH rhai_tasks:main {id}"));
}

fn detail(redis: &Redis, id: &str, name: &str) -> Option<String> {
    redis.field(&format!("rhai_task_details:{id}"), name)
}

#[track_caller]
fn until(redis: &Redis, id: &str, status: &str) {
    wait_until(&format!("task {id} is {status}"), || {
        detail(redis, id, "status").as_deref() == Some(status)
    });
}

#[test]
fn the_rhailib_sequence_diagram_runs_through_hero() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    let number = jobs(20);
    for field in ["reply_to_queue", "reply_to", "reply_queue_name"] {
        let words = ["main", "40 + {n}", &number.to_string(), field];
        let answers = lines(&Program::run(&redis, "rhailib_client", &words));
        assert_eq!(answers.len(), number);
        for (n, line) in answers.iter().enumerate() {
            let output = (40 + n).to_string();
            let expected = serde_json::json!({
                "task_id": line["id"], "status": "completed", "output": output
            });
            assert_eq!(line["reply"], expected);
            assert_eq!(line["details"]["status"], "completed");
            assert_eq!(line["details"]["output"], output.as_str());
            assert_eq!(line["details"]["client_rpc_id"], n.to_string());
        }
    }
    let long = "let text = \"\\\"\"; text.pad(20000, 'x'); text";
    let answer = lines(&Program::run(&redis, "rhailib_client", &["main", long, "1"])).remove(0);
    let output = format!("\"{}", "x".repeat(19_999));
    assert_eq!(
        (&answer["reply"]["output"], &answer["details"]["output"]),
        (&output.clone().into(), &output.into())
    );
    let words = ["main", "nonsense(", "1"];
    let answer = lines(&Program::run(&redis, "rhailib_client", &words)).remove(0);
    assert_eq!(answer["reply"]["status"], "error");
    assert_eq!(answer["reply"]["error"], answer["details"]["error"]);
    // The diagram has another name for the error.
    for place in ["reply", "details"] {
        assert_eq!(answer[place]["error_msg"], answer["reply"]["error"], "in the {place}");
    }
    assert!(answer["reply"]["error"].as_str().is_some_and(|error| error.contains("line 1")));
}

#[test]
fn tasks_run_in_the_order_of_their_arrival() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    let fields = ["script", "1", "status", "pending", "reply_to_queue", "test:replies"];
    // More than one step takes.
    let ids: Vec<String> = (0..250).map(|n| format!("t{n}")).collect();
    for id in &ids {
        push_task(&redis, id, &fields);
    }
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("osis-default-1").tasks(1).start();
    wait_until("every task has its reply", || redis.list("test:replies").len() == ids.len());
    let task = |reply: &String| lines(reply)[0]["task_id"].as_str().unwrap_or_default().to_owned();
    let order: Vec<String> = redis.list("test:replies").iter().rev().map(task).collect();
    assert_eq!(order, ids);
}

#[test]
fn a_rhailib_worker_and_hero_serve_one_circle() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    let _worker = Program::serve(&redis, "rhailib_worker", &["main"]);
    let number = jobs(30);
    let words = ["main", "40 + {n}", &number.to_string()];
    let answers = lines(&Program::run(&redis, "rhailib_client", &words));
    for (n, line) in answers.iter().enumerate() {
        assert_eq!(line["reply"]["output"], (40 + n).to_string());
    }
    let by_worker: usize = redis.ask("HLEN test:by_rhailib_worker");
    let by_hero = redis.keys("hero:job:rhai-").len();
    assert_eq!(by_worker + by_hero, number, "no task ran twice");
}

#[test]
fn task_that_hero_submits_runs_in_a_worker_of_rhailib_and_its_reply_is_the_output() {
    let redis = Redis::start();
    // Without a supervisor Hero takes no task.
    let hero = bridging(&redis);
    let submit =
        |arguments: &[&str]| hero.run(&[&["submit", "--circle", "main"][..], arguments].concat());
    // Nobody serves the circle.
    submit(&["--timeout", "100ms", "-e", "1"]).code(75).says("gave up waiting for task ");
    let waiting = redis.list("rhai_tasks:main");
    assert_eq!(detail(&redis, &waiting[0], "status").as_deref(), Some("pending"));
    let ttl_s: i64 = redis.ask(&format!("TTL rhai_task_details:{}", waiting[0]));
    assert!(ttl_s > 0, "the details of a task stay for ever");
    redis.delete("rhai_tasks:main");

    let _worker = Program::serve(&redis, "rhailib_worker", &["main"]);
    submit(&["-e", "40 + 2"]).code(0).stdout("42\n");
    let file = redis.folder().join("script.rhai");
    std::fs::write(&file, "6 * 7").expect("a file");
    let file = file.display().to_string();
    let output = hero.run(&["--json", "submit", "--circle", "main", &file]).code(0).stdout;
    assert_eq!(output.trim(), r#"{"output":"42"}"#);
    submit(&["-e", "1 / 0"]).code(1).says("in the circle main: division by zero");
    submit(&["-e", "1", "--retries", "1"]).code(2);
    hero.run(&["submit", "--circle", "m*", "-e", "1"]).code(2).says("name one circle");
    let replies = redis.keys("rhai_reply:");
    assert!(replies.is_empty(), "a reply is left: {replies:?}");
}

#[test]
fn end_of_a_task_whose_worker_pushes_no_reply_is_read_from_its_details() {
    let redis = Redis::start();
    // Without a supervisor Hero takes no task.
    let hero = bridging(&redis);
    let submitted = std::thread::scope(|scope| {
        let run = scope.spawn(|| hero.run(&["submit", "--circle", "main", "-e", "1"]));
        wait_until("the task is there", || !redis.list("rhai_tasks:main").is_empty());
        let task = redis.list("rhai_tasks:main").remove(0);
        let ended = ["status", "completed", "output", "by the details"];
        redis.ask_with::<i64, _>(&format!("HSET rhai_task_details:{task}"), &ended);
        run.join().expect("no panic")
    });
    submitted.code(0).stdout("by the details\n");
}

#[test]
fn several_supervisors_and_their_deaths_neither_lose_nor_double_a_task() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    let _actor = hero.actor("osis-default-1").start();
    let number = jobs(60);
    let ids: Vec<String> = (0..number).map(|n| format!("t{n}")).collect();
    let mut mortal = vec![hero.supervisor().start(), hero.supervisor().start()];
    for (n, id) in ids.iter().enumerate() {
        push_task(
            &redis,
            id,
            &["script", &n.to_string(), "status", "pending", "reply_to_queue", "test:replies"],
        );
        if n % 20 == 10 {
            let mut victim = mortal.remove(0);
            victim.kill();
            mortal.push(hero.supervisor().start());
        }
    }
    wait_until("every task has its reply", || redis.list("test:replies").len() >= number);
    for id in &ids {
        until(&redis, id, "completed");
    }
    let replies: BTreeSet<String> = redis.list("test:replies").into_iter().collect();
    assert_eq!((replies.len(), redis.list("test:replies").len()), (number, number));
}

#[test]
fn details_may_come_later_and_their_absence_is_reported_and_counted() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    redis.run("LPUSH rhai_tasks:main soon never");
    let supervisor = hero.supervisor().start();
    let _actor = hero.actor("osis-default-1").start();
    wait_until("both wait", || redis.ask::<u64>("ZCARD hero:meta:legacy:late:main") == 2);
    redis.run("HSET rhai_task_details:soon script 1 status pending");
    until(&redis, "soon", "completed");
    // As if its minute were over.
    redis.run("ZADD hero:meta:legacy:late:main 1 never");
    wait_until("it is dropped", || {
        redis.field("hero:meta:legacy:seen:main", "dropped").as_deref() == Some("1")
    });
    wait_until("and told", || supervisor.err().contains("its details never appeared"));
    assert_eq!(supervisor.err().matches("its details never appeared").count(), 1);
    assert_eq!(redis.ask::<u64>("ZCARD hero:meta:legacy:late:main"), 0);
}

#[test]
fn tasks_that_never_get_details_hold_back_no_other() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    let never: Vec<String> = (0..1000).map(|n| format!("never-{n}")).collect();
    redis.ask_with::<i64, _>("RPUSH rhai_tasks:main", &never);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    wait_until("all wait", || redis.ask::<u64>("ZCARD hero:meta:legacy:late:main") == 1000);
    let words = ["main", "40 + {n}", "10"];
    let answers = lines(&Program::run(&redis, "rhailib_client", &words));
    assert!(answers.iter().all(|line| line["reply"]["status"] == "completed"), "{answers:?}");
    // One in the middle of them gets its details after all.
    redis.run("HSET rhai_task_details:never-500 script 1 status pending");
    until(&redis, "never-500", "completed");
    let ttl_s: i64 = redis.ask("TTL hero:meta:legacy:seen:main");
    assert!(ttl_s > 0, "the record of a circle stays for ever");
}

#[test]
fn what_is_no_task_is_refused_by_name() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    push_task(&redis, "bare", &["status", "pending", "reply_to_queue", "test:bare"]);
    let (_, reply): (String, String) = redis.ask("BLPOP test:bare 20");
    let reply: serde_json::Value = serde_json::from_str(&reply).expect("JSON");
    let expected = "invalid task: script is missing";
    let expected_reply = serde_json::json!({
        "task_id": "bare", "status": "error", "error": expected, "error_msg": expected
    });
    assert_eq!(reply, expected_reply);
    assert_eq!(detail(&redis, "bare", "error").as_deref(), Some(expected));

    for (id, list) in [("own", "hero:q:work:type:osis"), ("tasks", "rhai_tasks:main")] {
        push_task(&redis, id, &["script", "1", "status", "pending", "reply_to_queue", list]);
        until(&redis, id, "error");
        assert!(detail(&redis, id, "error").is_some_and(|error| error.contains("reply_to_queue")));
        assert_eq!(redis.list(list), [] as [&str; 0]);
    }
    redis.run("SET rhai_task_details:text x");
    redis.run("LPUSH rhai_tasks:main text");
    // A reply list that is something else costs its owner the reply, and nobody else anything.
    redis.run("SET test:string x");
    push_task(
        &redis,
        "last",
        &["script", "1", "status", "pending", "reply_to_queue", "test:string"],
    );
    until(&redis, "last", "completed");
}

#[test]
fn details_overwritten_while_the_task_runs_change_neither_its_script_nor_its_reply_queue() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    let _supervisor = hero.supervisor().start();
    push_task(
        &redis,
        "t",
        &["script", "1 + 1", "status", "pending", "reply_to_queue", "test:first"],
    );
    until(&redis, "t", "processing");
    // The same id once more, while it is on its way.
    push_task(&redis, "t", &["script", "9", "status", "pending", "reply_to_queue", "test:second"]);
    wait_until("the second is no task of its own", || {
        redis.field("hero:meta:legacy:seen:main", "doubled").as_deref() == Some("1")
    });
    let _actor = hero.actor("osis-default-1").start();
    let (_, reply): (String, String) = redis.ask("BLPOP test:first 20");
    assert!(reply.contains(r#""output":"2""#), "{reply}");
    until(&redis, "t", "completed");
    assert_eq!(detail(&redis, "t", "output").as_deref(), Some("2"));
    assert!(redis.keys("test:second").is_empty());
    // A new task under the old id, once the first is over, is one.
    push_task(&redis, "t", &["script", "9", "status", "pending", "reply_to_queue", "test:second"]);
    let (_, reply): (String, String) = redis.ask("BLPOP test:second 20");
    assert!(reply.contains(r#""output":"9""#), "{reply}");
}

#[test]
fn a_task_that_is_stopped_notifies_its_client() {
    let redis = Redis::start();
    let hero = bridging(&redis);
    let (_supervisor, _actor) = (hero.supervisor().start(), hero.actor("osis-default-1").start());
    push_task(&redis, "t", &["script", "loop {}", "status", "pending", "reply_to_queue", "test:r"]);
    wait_until("it runs", || {
        redis.field("hero:job:rhai-t", "status").as_deref() == Some("started")
    });
    hero.run(&["job", "stop", "rhai-t"]).code(0);
    let (_, reply): (String, String) = redis.ask("BLPOP test:r 20");
    assert!(reply.contains("stopped_by_request"), "{reply}");
}

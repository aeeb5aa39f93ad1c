//! Functions of the scripts against the program's: times and routing; errors of scripts.

use hero::proto::job::Job;
use hero::proto::keys::Keys;
use hero::store::lua_sources;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{RETENTION, Redis, World, keys};

const SHARED: [&str; 3] = [
    include_str!("../../src/store/scripts/shared/time.lua"),
    include_str!("../../src/store/scripts/shared/names.lua"),
    include_str!("../../src/store/scripts/shared/routing.lua"),
];

/// Runs a shared function for each line of arguments, in one call. Nil comes back as `nil`.
fn evaluate(redis: &Redis, function: &str, arguments: &[Vec<String>]) -> Vec<String> {
    let width = arguments.first().map_or(1, Vec::len);
    let body = format!(
        "local out = {{}}
         for i = 1, #ARGV, {width} do
           local result = {function}(unpack(ARGV, i, i + {width} - 1))
           out[#out + 1] = type(result) == 'number' and integer(result) or result or 'nil'
         end
         return out"
    );
    let script = [Keys::default().lua(), SHARED.concat(), body].concat();
    let words: Vec<&str> = [script.as_str(), "0"]
        .into_iter()
        .chain(arguments.iter().flatten().map(String::as_str))
        .collect();
    redis.ask_with("EVAL", &words)
}

#[test]
fn redis_compiles_every_script() {
    let redis = Redis::start();
    for source in lua_sources(&Keys::default()) {
        let hash: String = redis.ask_with("SCRIPT", &["LOAD", &source.text]);
        assert_eq!(hash.len(), 40, "{}", source.name);
    }
}

#[test]
fn times_that_scripts_write_are_those_that_the_program_writes() {
    let redis = Redis::start();
    // Scores are doubles: from here on, in the year 2255, not every microsecond is one.
    let last_us = (1_i64 << 53) - 1;
    let mut times: Vec<i64> =
        vec![0, 999, 1000, 951_782_399_999_999, 951_868_800_000_000, last_us - 1];
    times.extend((0..5000).map(|_| fastrand::i64(0..last_us)));
    times.extend((0..5000).map(|_| fastrand::i64(0..4_000_000_000_000_000)));
    let arguments: Vec<Vec<String>> = times.iter().map(|us| vec![us.to_string()]).collect();
    let written = evaluate(&redis, "rfc3339", &arguments);
    for (us, text) in times.iter().zip(&written) {
        let ms = Timestamp::from_millisecond(us / 1000).expect("in range");
        assert_eq!(*text, format!("{ms:.3}"), "{us}");
    }
    let texts: Vec<Vec<String>> = written.into_iter().map(|text| vec![text]).collect();
    let read = evaluate(&redis, "microseconds", &texts);
    for (us, back) in times.iter().zip(&read) {
        assert_eq!(*back, (us / 1000 * 1000).to_string(), "{us}");
    }
}

#[test]
fn times_of_foreign_programs_are_parsed_like_those_of_the_program() {
    let redis = Redis::start();
    let texts = [
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00.5Z",
        "2026-01-31T12:00:00.123456789Z",
        "2026-01-31T13:30:00+01:30",
        "2026-01-31T04:00:00.25-0800",
    ];
    let arguments: Vec<Vec<String>> = texts.iter().map(|text| vec![(*text).to_owned()]).collect();
    for (text, read) in texts.iter().zip(evaluate(&redis, "microseconds", &arguments)) {
        let time: Timestamp = text.parse().expect("a time");
        assert_eq!(read, (time.as_millisecond() * 1000).to_string(), "{text}");
    }
}

#[test]
fn texts_that_are_no_times_are_no_microseconds() {
    let redis = Redis::start();
    let bad = ["", "now", "2026-01-31", "2026-01-31T12:00:00.000+1", "x2026-01-31T12:00:00.000Z"];
    let arguments: Vec<Vec<String>> = bad.iter().map(|text| vec![(*text).to_owned()]).collect();
    assert_eq!(evaluate(&redis, "microseconds", &arguments), ["0"; 5]);
}

fn name(legal: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![6 => legal, 1 => "", 1 => "[a-zA-Z0-9:_. -]{1,6}", 1 => "[a-z]{30,70}"]
}

/// Illegal names too: the scripts must refuse what the program refuses.
#[test]
fn routing_in_scripts_is_that_of_the_program() {
    let redis = Redis::start();
    let instance = prop_oneof![
        4 => (1u32..=65_535).prop_map(|n| n.to_string()),
        2 => Just(String::new()),
        1 => (65_530u32..=100_001).prop_map(|n| n.to_string()),
        1 => "[0-9a-z:+-]{1,6}",
    ];
    let priority = prop_oneof![4 => "[012]", 2 => Just(String::new()), 1 => "[0-9:a]{1,2}"];
    let fields =
        (name("[a-z][a-z0-9_]{0,31}"), name("[a-z0-9][a-z0-9_.-]{0,63}"), instance, priority);
    let many = proptest::collection::vec(fields, 500);
    let mut runner = TestRunner::new(Config { cases: 20, ..Config::default() });
    let result = runner.run(&many, |many| {
        let arguments: Vec<Vec<String>> = many
            .iter()
            .map(|(t, g, i, p)| vec![t.clone(), g.clone(), i.clone(), p.clone()])
            .collect();
        let routed = evaluate(&redis, "queue_of", &arguments);
        for (fields, in_lua) in arguments.iter().zip(routed) {
            prop_assert_eq!(&in_lua, &program_queue(fields), "{:?}", fields);
        }
        Ok(())
    });
    result.expect("the two agree");
}

fn program_queue(fields: &[String]) -> String {
    let names = ["script_type", "group", "instance", "priority"];
    let pairs = names.iter().zip(fields).map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let pairs = pairs.chain([("script".as_bytes(), "1".as_bytes())]);
    let job = Job::from_hash("a".parse().expect("legal"), pairs).ok();
    job.and_then(|job| job.spec.queue()).map_or_else(|| "nil".to_owned(), |queue| queue.to_string())
}

#[tokio::test]
async fn redis_and_the_program_spell_the_time_of_a_transition_alike() {
    let world = World::new();
    let before = Timestamp::now();
    world.accepts(&[crate::support::job("a")]).await;
    let created: Timestamp =
        world.field("a", "created_at").expect("written").parse().expect("legible");
    let apart = created.duration_since(before).as_secs().abs();
    assert!(apart < 30, "created {apart} s away from now");
}

#[tokio::test]
async fn error_of_a_script_names_its_file_and_line() {
    let world = World::new();
    world.redis.push(&keys().settling(), &["no JSON"]);
    let error = world.store.schedule().settle(RETENTION).await.expect_err("no JSON").to_string();
    assert!(error.contains("settle.lua:"), "{error}");
    assert!(!error.contains("user_script"), "{error}");
}

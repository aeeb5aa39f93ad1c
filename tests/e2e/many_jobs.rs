//! Searches among more jobs than a step reads, and changes of that many.

use std::process::Command;
use std::time::Duration;

use hero::proto::job::JobEnd;
use serde_json::{Value, json};

use super::answers::{MANY, site, submit_many};
use crate::support::proxy::{Lane, Mode};
use crate::support::{Hero, Redis, Served, agent, keys, wait_until};
use crate::web::requests::{send, signed_in};

/// The job that is wanted.
const WANTED: &str = "wanted";

/// A page of a face: whether it has the wanted job, the place of the next page, and its text.
struct FacePage {
    has_it: bool,
    next: Option<String>,
    text: String,
}

impl FacePage {
    /// Reads a page of the API.
    fn of(page: &Value) -> Self {
        let mut jobs = page["jobs"].as_array().into_iter().flatten();
        let has_it = jobs.any(|job| job["id"] == WANTED);
        Self { has_it, next: page["next"].as_str().map(str::to_owned), text: page.to_string() }
    }
}

/// Goes on from page to page, as a search ends after two seconds, until one has the job.
#[track_caller]
fn finds(face: &str, page: impl Fn(Option<&str>) -> FacePage) {
    let mut place = None;
    loop {
        let FacePage { has_it, next, text } = page(place.as_deref());
        if has_it {
            return;
        }
        assert!(next.is_some() && next != place, "{face} says that there is none: {text}");
        place = next;
    }
}

/// Returns a page of the tool of agents.
fn page_of_agent(hero: &Hero, arguments: &Value) -> FacePage {
    let answer = agent(hero, "list_jobs", arguments);
    let of: Value = serde_json::from_str(answer.trim_end()).expect(&answer);
    let text = of["result"]["content"][0]["text"].as_str().expect(&answer);
    FacePage::of(&serde_json::from_str(text).expect(text))
}

/// Returns a page of the list in a browser.
fn page_of_browser(site: &Served, cookie: &str, query: &str) -> FacePage {
    let text = send(site, "GET", &format!("/jobs?{query}"), cookie, "").body;
    let before = text.split_once("\" rel=\"next\"").map(|(before, _)| before);
    let next = before.and_then(|before| before.rsplit_once("cursor=")).map(|(_, place)| place);
    FacePage {
        has_it: text.contains(&format!("id=\"j-{WANTED}\"")),
        next: next.map(str::to_owned),
        text,
    }
}

#[test]
fn one_failed_job_is_found_behind_thousands_of_finished_ones_on_every_face() {
    let redis = Redis::start();
    let site = site(&redis);
    let hero = &site.hero;
    hero.run(&["submit", "-t", "osis", "-g", "nobody", "--id", "parent", "-e", "1"]).code(0);
    let actor = hero.actor("osis-default-1").start();
    let failing = ["exec", "-t", "osis", "--id", WANTED, "--caller", "zoe", "--name", "zoes"];
    hero.run(&[&failing[..], &["-e", "throw \"boom\""]].concat()).code(1);
    drop(actor);
    redis.set_field(&keys::job("parent"), "children", json!([WANTED]).to_string());
    redis.set_job(WANTED, "parent parent late_at 2026-01-01T00:00:00Z");
    // They ended after it, and were submitted before it.
    redis.has_ended(MANY, JobEnd::Finished, true);
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    for (name, value) in [
        ("caller", "zoe"),
        ("name", "zoes"),
        ("since", "30m"),
        ("error", "boom"),
        ("parent", "parent"),
        ("late", "true"),
        ("text", "zoes"),
    ] {
        let option = format!("--{name}");
        let words =
            if name == "late" { vec![option.as_str()] } else { vec![option.as_str(), value] };
        let listed = hero.run(&[&["job", "list"][..], &words].concat()).code(0);
        assert!(listed.stdout.contains(WANTED), "{words:?}: {}{}", listed.stdout, listed.stderr);
        let params = |place: Option<&str>| {
            let value = if name == "late" { json!(true) } else { json!(value) };
            let mut params = json!({ name: value });
            if let Some(place) = place {
                params["cursor"] = json!(place);
            }
            params
        };
        finds("API", |place| FacePage::of(&site.call("job.list", &params(place))));
        finds("MCP", |place| page_of_agent(hero, &params(place)));
        finds("page", |place| {
            let place = place.map(|place| format!("&cursor={place}")).unwrap_or_default();
            page_of_browser(&site, &cookie, &format!("{name}={value}{place}"))
        });
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "Python reads the table")]
fn csv_of_the_command_line_has_all_jobs_that_match_as_another_program_reads_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    redis.has_ended(MANY, JobEnd::Finished, true);
    let name = "a \"b\", and c";
    hero.run(&["submit", "-t", "osis", "--delay", "1h", "--id", "last", "--name", name, "-e", "1"])
        .code(0);
    let reader = "import csv, sys\nrows = list(csv.DictReader(open(sys.argv[1], newline=''), strict=True))\n\
                  print(len(rows), len({row['id'] for row in rows}), [row['name'] for row in rows if row['id'] == 'last'])";
    let read = |words: &[&str]| {
        let file = redis.folder().join("jobs.csv");
        let done = hero.run(&[&["job", "list", "--csv"], words].concat()).code(0);
        std::fs::write(&file, done.stdout).expect("a file");
        let read = Command::new("python3").args(["-c", reader]).arg(&file).output();
        String::from_utf8(read.expect("Python runs").stdout).expect("a text")
    };
    let all = MANY + 1;
    assert_eq!(read(&[]), format!("{all} {all} ['a \"b\", and c']\n"));
    assert_eq!(read(&["--status", "finished"]), format!("{MANY} {MANY} []\n"));
    let columns = ["job", "list", "--csv", "--status", "scheduled", "--fields", "name,id"];
    hero.run(&columns).code(0).stdout("name,id\r\n\"a \"\"b\"\", and c\",last\r\n");
    hero.run(&["job", "list", "--csv", "--fields", "names"]).code(2).says("names");
}

#[test]
fn search_in_a_slow_redis_ends_with_a_place_and_a_command_goes_on_to_the_end() {
    let redis = Redis::start();
    redis.has_ended(MANY, JobEnd::Finished, true);
    let lane = redis.folder().join("lane");
    let lane = Lane::open(&lane, &redis.folder().join("redis.sock"));
    let url = format!("redis+unix://{}", lane.path().display());
    let site = Served::with(Hero::on(&redis).set("redis.url", &format!("{url:?}")), &redis);
    let cookie = signed_in(&site, &["ann", "--scope", "read"]);
    lane.set(Mode::Delay(Duration::from_millis(8)));
    let cut = site.call("job.list", &json!({ "caller": "zoe" }));
    assert_eq!((&cut["complete"], &cut["jobs"]), (&json!(false), &json!([])), "{cut}");
    let searched = cut["searched"].as_u64().unwrap_or_default();
    assert!(cut["next"].is_string() && (1..MANY as u64).contains(&searched), "{cut}");
    let told = page_of_agent(&site.hero, &json!({ "caller": "zoe" }));
    assert!(told.next.is_some() && told.text.contains("\"complete\":false"), "{}", told.text);
    let page = page_of_browser(&site, &cookie, "caller=zoe");
    assert!(page.text.contains("Found no job of caller zoe among the latest "), "{}", page.text);
    assert!(page.next.is_some() && !page.text.contains("No job of caller"), "{}", page.text);
    let listed = site.hero.begin_at_terminal(&["job", "list", "--caller", "zoe"]);
    let listed = listed.ends().code(0).stdout;
    assert!(
        listed.contains("hero: searched ") && listed.contains("no job of caller zoe"),
        "{listed}"
    );
    assert!(!listed.contains("among the latest"), "{listed}");
}

#[test]
fn bulk_command_of_several_calls_shows_how_far_it_is() {
    const FEW: usize = 2000;
    let redis = Redis::start();
    redis.has_ended(FEW, JobEnd::Finished, true);
    let lane = redis.folder().join("lane");
    let lane = Lane::open(&lane, &redis.folder().join("redis.sock"));
    let url = format!("redis+unix://{}", lane.path().display());
    let hero = Hero::on(&redis).set("redis.url", &format!("{url:?}"));
    // One call takes two seconds at most.
    lane.set(Mode::Delay(Duration::from_millis(1)));
    let numbers = changes_all(&hero, FEW, "delete", &["--yes"], "deleted");
    assert!(!numbers.is_empty(), "it shows no progress");
}

/// Changes all jobs of caller shop by a command at a terminal. Returns the numbers by which it has shown how far it is: there are
/// none if one call did it all.
#[track_caller]
fn changes_all(hero: &Hero, all: usize, verb: &str, options: &[&str], done: &str) -> Vec<usize> {
    let words = [&["job", verb, "--caller", "shop"][..], options].concat();
    let shown = hero.begin_at_terminal(&words).ends().code(0).stdout;
    assert!(shown.contains(&format!("{all} jobs {done}\r\n")), "{shown}");
    let progress = |part: &str| {
        let number = part.split_once(&format!(" {done}")).map(|(number, _)| number);
        number.and_then(|number| number.parse::<usize>().ok())
    };
    let numbers: Vec<usize> = shown.split("hero: ").filter_map(progress).collect();
    assert!(numbers.is_sorted(), "{shown:?}");
    assert!(numbers.iter().all(|number| (1..=all).contains(number)), "{numbers:?}");
    numbers
}

#[test]
fn bulk_retry_works_through_all_that_failed() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    redis.has_ended(MANY, JobEnd::Failed, true);
    changes_all(&hero, MANY, "retry", &[], "retried");
    assert_eq!(redis.ask::<usize>(&format!("ZCARD {}", keys::ended(JobEnd::Failed, "osis"))), 0);
    let waiting = keys::work("type:osis:group:nobody");
    assert_eq!(redis.ask::<usize>(&format!("LLEN {waiting}")), MANY);
    assert_eq!(redis.field(&keys::job("many-1"), "status").as_deref(), Some("dispatched"));
}

#[test]
fn bulk_delete_works_through_all_that_match() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    redis.has_ended(MANY, JobEnd::Finished, true);
    let dry = hero.run(&["job", "delete", "--caller", "shop"]).code(2);
    assert!(dry.stderr.contains("jobs without confirmation"), "{}", dry.stderr);
    changes_all(&hero, MANY, "delete", &["--yes"], "deleted");
    assert_eq!(redis.ask::<usize>(&format!("ZCARD {}", keys::ended(JobEnd::Finished, "osis"))), 0);
    assert_eq!(redis.keys(&keys::job("many-")), [""; 0]);
}

#[test]
fn bulk_edit_works_through_all_that_wait() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    submit_many(&hero);
    changes_all(&hero, MANY, "edit", &["--priority", "2"], "edited");
    let length = |queue: &str| redis.ask::<usize>(&format!("LLEN {}", keys::work(queue)));
    assert_eq!(length("type:osis:group:nobody"), 0);
    assert_eq!(length("type:osis:group:nobody:prio:2"), MANY);
}

#[test]
fn upgrade_that_sorts_ended_jobs_is_reported_when_it_is_done() {
    let redis = Redis::start();
    redis.has_ended(600, JobEnd::Finished, false);
    let hero = Hero::on(&redis);
    let supervisor = hero.supervisor().start();
    let _actor = hero.actor("osis-default-1").start();
    hero.run(&["exec", "-t", "osis", "--id", "meanwhile", "-e", "1"]).code(0);
    wait_until("all are sorted", || supervisor.err().contains("done, lists are complete"));
    let all = hero.run(&["job", "list", "--status", "finished", "--limit", "1000", "--json"]);
    let all: Value = serde_json::from_str(&all.code(0).stdout).expect("JSON");
    let number = all["jobs"].as_array().map(Vec::len);
    assert_eq!((number, &all["complete"]), (Some(601), &json!(true)));
}

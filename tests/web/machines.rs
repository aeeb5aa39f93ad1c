//! The page of machines: their groups, what waits for them, and drain, resume and forget; the machines of a job for every one.

use hero::proto::target::ActorId;
use serde_json::{Value, json};

use super::browser::Browser;
use super::jobs::{HOSTILE, is_safe};
use super::pages::has_browser;
use super::requests::{own_origin, send, signed_in};
use super::visitors::{BOUND, OPERATOR, READER};
use crate::support::{Hero, Process, Redis, Served, keys, needs, until, wait_until};

/// May drain what concerns jobs of the type bash.
const BOUND_OPERATOR: &[&str] = &["bound-op", "--scope", "read,operate", "--type", "bash"];

/// Returns whether actors of this test can have machines of their own.
fn can_divide() -> bool {
    needs("root", || nix::unistd::geteuid().is_root())
}

/// A namespace with the page, and machines web1 and web2 of the role web and db1 of the role db.
fn fleet() -> (Redis, Served, [Process; 3]) {
    let redis = Redis::start();
    let hero = Hero::on(&redis)
        .set("actor.labels.role", "\"web\"")
        .quick_sweeps()
        .add("\n[unit.bash-default-3.labels]\nrole = \"db\"\n");
    let site = Served::with(hero, &redis);
    let on = |unit: &str, host: &str| site.hero.actor(unit).on_machine(host).start();
    let actors =
        [on("bash-default-1", "web1"), on("bash-default-2", "web2"), on("bash-default-3", "db1")];
    (redis, site, actors)
}

/// Stores the presence of an actor, which no process has.
fn appears(redis: &Redis, actor: &str, hostname: &str, labels: &Value) {
    let now = jiff::Timestamp::now();
    let id: ActorId = actor.parse().expect("legal");
    let is_foreign = labels.is_null();
    let presence = json!({
        "pid": 1, "hostname": hostname, "started_at": now.to_string(), "version": "1", "capabilities": [],
        "boot_id": (!is_foreign).then_some("00000000-0000-4000-8000-000000000001"),
        "last_heartbeat": now.to_string(), "tasks": 4, "running": 0,
        "state": if is_foreign { "foreign" } else { "ready" },
        "labels": if is_foreign { json!({}) } else { labels.clone() },
        "load_hundredths": 150, "memory_available": 3_u64 << 30,
    });
    redis.ask_with::<Ignored, _>("SET", &[keys::keys().presence(&id), presence.to_string()]);
    let index = if is_foreign { keys::keys().foreign_actors() } else { keys::keys().actors() };
    let at = now.as_microsecond().to_string();
    redis.ask_with::<u8, _>("ZADD", &[index, at, actor.to_owned()]);
}

/// An answer that nobody reads.
type Ignored = redis::Value;

/// Notes an actor that was seen a while ago, and is not live.
fn was_seen(redis: &Redis, actor: &str, labels: &Value) {
    let at = (jiff::Timestamp::now() - jiff::SignedDuration::from_hours(2)).as_microsecond();
    let seen = [keys::keys().actors_seen(), at.to_string(), actor.to_owned()];
    redis.ask_with::<u8, _>("ZADD", &seen);
    redis.set_field(&keys::keys().actor_labels(), actor, labels.to_string());
}

fn labels(host: &str, role: &str) -> Value {
    json!({ "host": host, "machine": format!("m-{host}"), "role": role, "cores": 1 })
}

/// Posts a form of a page. Returns the status.
fn post(site: &Served, token: &[&str], path: &str, fields: &str) -> u16 {
    let cookie = signed_in(site, token);
    let form = send(site, "GET", "/machines", &cookie, "").forgery();
    let headers = format!("{cookie}{}", own_origin(site));
    send(site, "POST", path, &headers, &format!("csrf={form}&{fields}")).status
}

/// Returns the rows of a table of machines: the groups as their heads.
fn rows(browser: &Browser) -> Vec<String> {
    let script = "return [...document.querySelectorAll('#machine-rows tr')].map(
        (row) => (row.querySelector('th a') ?? row.querySelector('th, a.id')).textContent.trim())";
    let rows = browser.run(script);
    let rows = rows.as_array().expect("rows").iter();
    rows.map(|row| row.as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn machines_are_grouped_by_a_label_and_drained_and_resumed_with_and_without_a_script() {
    if !has_browser() || !can_divide() {
        return;
    }
    let (redis, site, _actors) = fleet();
    let browser = Browser::start(redis.folder());
    browser.size(1280, 900);
    browser.open(&site.at(&format!("/?token={}", site.token(OPERATOR))));
    browser.open(&site.at("/machines"));
    browser.waits_for("#headline", "3 machines live with 3 actors");
    assert_eq!(rows(&browser), ["role = db", "db1", "role = web", "web1", "web2"]);
    assert_eq!(browser.text("#n-machines"), "3");
    browser.open(&site.at("/machines?by=os&where=role+%3D+web"));
    assert_eq!(rows(&browser)[1..], ["web1", "web2"]);
    browser.open(&site.at("/machines?by=-"));
    assert_eq!(rows(&browser), ["db1", "web1", "web2"]);
    browser.open(&site.at("/machines?where=role+%3D"));
    assert!(browser.text("#where-hint").contains("at character 7"), "{}", browser.text("main"));

    // With a script the state changes in place.
    let state = |host: &str| {
        let listed = site.hero.run(&["machine", "list", "--json"]).code(0).stdout;
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let all = listed["machines"].as_array().expect("machines").clone();
        let one = all.iter().find(|of| of["host"] == host).expect("a machine");
        one["actors"][0]["state"].as_str().unwrap_or_default().to_owned()
    };
    browser.open(&site.at("/machines/web1"));
    browser.waits_for("#headline", "ready. It runs 0 jobs");
    browser.click("[name=do][value=drain]");
    browser.waits_for(".toast", "web1: 1 actor drained, no job of it runs.");
    browser.waits_for("#headline", "draining");
    assert_eq!(state("web1"), "draining");
    site.hero.run(&["submit", "-t", "bash", "--where", "host = web1", "-e", "true"]).code(0);
    browser.waits_for("#facts", "1 job in type:bash:where:");
    browser.waits_for("#facts", "for it alone");
    assert_eq!(browser.console(), [] as [&str; 0]);

    browser.run_scripts(false);
    browser.open(&site.at("/machines?by=role"));
    assert!(browser.text("#machine-rows").contains("1 for it alone"), "{}", browser.text("main"));
    browser.click("[name=resume]");
    browser.waits_for(".toast", "web1 claims jobs again.");
    assert!(browser.address().ends_with("/machines?by=role"), "{}", browser.address());
    wait_until("it resumes", || state("web1") == "ready");
    browser.click("#machine-rows .pick");
    browser.click(".bulk [value=drain]");
    browser.waits_for(".toast", "db1: 1 actor drained");
    assert_eq!((state("db1").as_str(), state("web2").as_str()), ("draining", "ready"));
    let audit = site.hero.run(&["audit", "--what", "machine"]).code(0).stdout;
    assert!(audit.contains("machine.drain") && audit.contains("operator"), "{audit}");
}

#[test]
fn absent_machine_is_shown_with_what_waits_for_it_and_forgotten_after_a_question() {
    if !has_browser() {
        return;
    }
    let redis = Redis::start();
    let site = Served::on(&redis);
    appears(&redis, "bash:default:1", "one", &labels("one", "web"));
    was_seen(&redis, "bash:default:2", &labels("two", "web"));
    was_seen(&redis, "bash:default:3", &labels("two", "web"));
    let only = ["submit", "-t", "bash", "--where", "host = two", "-e", "true"];
    site.hero.run(&only).code(0);
    let browser = Browser::start(redis.folder());
    browser.run_scripts(false);
    browser.open(&site.at(&format!("/?token={}", site.token(OPERATOR))));
    browser.open(&site.at("/machines?state=absent"));
    browser.waits_for("#headline", "1 machine live with 1 actor, 1 absent.");
    assert_eq!(rows(&browser), ["two"]);
    assert!(browser.text("#machine-rows").contains("1 for it alone"), "{}", browser.text("main"));
    browser.open(&site.at("/machines/two"));
    browser.waits_for("#headline", "absent: an actor was seen on it 2 h ago.");
    browser.waits_for("#facts", "bash:default:3, seen 2 h ago");
    browser.click("#machine-actions a");
    browser.waits_for("h1", "Forget two?");
    browser.click("main .danger");
    browser.waits_for(".toast", "two forgotten.");
    assert_eq!(rows(&browser), ["one"]);
    browser.open(&site.at("/machines/m-two"));
    browser.waits_for("main", "No machine m-two");
    assert_eq!(post(&site, OPERATOR, "/machines/m-one", "do=forget"), 409, "it is live");
}

#[test]
fn visitor_with_bounds_sees_its_actors_alone_and_changes_no_machine_with_others() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    appears(&redis, "bash:default:1", "both", &labels("both", "web"));
    appears(&redis, "python:default:1", "both", &labels("both", "web"));
    appears(&redis, "python:default:2", "other", &labels("other", "db"));
    appears(&redis, "bash:default:3", "own", &labels("own", "web"));
    was_seen(&redis, "python:default:4", &labels("gone", "db"));
    for id in ["p1", "b1"] {
        let of = if id == "p1" { "python" } else { "bash" };
        site.hero.run(&["submit", "-t", of, "--id", id, "-e", "1"]).code(0);
    }
    let of = |token: &[&str], path: &str| {
        let page = send(&site, "GET", path, &signed_in(&site, token), "");
        let main = page.body.split("<main").nth(1).unwrap_or_default().to_owned();
        (page.status, main)
    };
    let (_, all) = of(READER, "/machines");
    for text in ["both", "other", "own", "gone", "python:default:1", "absent"] {
        assert!(all.contains(text), "{text}: {all}");
    }
    assert!(!all.contains("name=\"drain\"") && !all.contains("/forget"), "a reader: {all}");
    let (_, bound) = of(BOUND, "/machines");
    assert!(bound.contains("both") && bound.contains("own"), "{bound}");
    for text in ["other", "gone", "python"] {
        assert!(!bound.contains(text), "{text}: {bound}");
    }
    assert_eq!((of(BOUND, "/machines/other").0, of(BOUND, "/machines/gone").0), (404, 404));
    let (_, one) = of(BOUND, "/machines/both");
    assert!(one.contains("bash:default:1") && !one.contains("python"), "{one}");
    let (_, may) = of(BOUND_OPERATOR, "/machines");
    assert!(may.contains("value=\"m-own\"") && !may.contains("value=\"m-both\""), "{may}");
    for (token, name, status) in [
        (READER, "m-own", 403),
        (BOUND, "m-own", 403),
        (BOUND_OPERATOR, "m-both", 403),
        (BOUND_OPERATOR, "m-other", 404),
        (BOUND_OPERATOR, "m-own", 303),
    ] {
        // The order waits for an actor: none of these has a process.
        assert_eq!(post(&site, token, "/machines", &format!("resume={name}")), status, "{name}");
    }
}

#[test]
fn list_has_a_page_for_no_machine_and_for_hundreds_and_shows_hostile_names_as_text() {
    let redis = Redis::start();
    let site = Served::on(&redis);
    let cookie = signed_in(&site, OPERATOR);
    let shown = |path: &str| {
        let page = send(&site, "GET", path, &cookie, "");
        is_safe(&page, path);
        page.body
    };
    assert!(shown("/machines").contains("No machine has, or had lately, an actor."));
    let hostile = "<script>alert(1)</script>'&<b onclick=x>";
    for number in 0..200 {
        let (host, role) = match number {
            7 => (format!("{hostile} / ?"), hostile),
            _ => (format!("node{number:03}"), "web"),
        };
        let actor = format!("bash:default:{}", number + 1);
        appears(&redis, &actor, &host, &labels(&host, role));
    }
    appears(&redis, "js:default:1", HOSTILE, &Value::Null);
    wait_until("all are read", || shown("/machines").contains("200 machines live"));
    let first = shown("/machines");
    assert!(
        first.contains("1 to 100 of 200 machines") && first.contains("199 machines"),
        "{first}"
    );
    assert!(first.contains("&lt;script&gt;alert(1)"), "{first}");
    assert!(
        first.contains("Actors without a machine") && first.contains("js:default:1"),
        "{first}"
    );
    let second = shown("/machines?page=2");
    assert!(second.contains("node199") && !second.contains("node050"), "{second}");
    let row = first.split("href=\"/machines/").find(|link| link.starts_with("m-%3Cscript"));
    let address = row.and_then(|link| link.split('"').next()).expect("a link");
    let one = shown(&format!("/machines/{}", address.replace("&amp;", "&")));
    assert!(one.contains("bash:default:8") && one.contains("cores = 1"), "{one}");
    shown("/actors?type=js");
    // A label that nobody has, and one whose name is none.
    assert!(shown("/machines?by=site").contains("without site"));
    shown("/machines?by=%3Cb%20onclick%3Dx%3E&where=role+in+(");
}

#[test]
fn graph_of_a_job_for_every_machine_shows_equal_answers_in_one_cell() {
    if !can_divide() {
        return;
    }
    let (redis, site, _actors) = fleet();
    let script = "[ $(hostname) != db1 ] || { echo '<b>odd' >&2; exit 3; }; echo begun; echo same";
    let run = ["submit", "--every-machine", "--name", "check", "-t", "bash", "-e", script];
    let batch = site.hero.run(&run).code(0).stdout;
    let batch = batch.trim();
    site.hero.run(&["graph", "wait", batch]).code(1);
    let cookie = signed_in(&site, READER);
    let page = send(&site, "GET", &format!("/graphs/{batch}"), &cookie, "");
    is_safe(&page, "the graph");
    let fleet = page.body.split("id=\"fleet\"").nth(1).expect("a grid");
    let fleet = fleet.split("</section>").next().unwrap_or_default();
    let cells: Vec<&str> = fleet.split("<li>").skip(1).collect();
    assert_eq!(cells.len(), 2, "{fleet}");
    assert!(cells[0].contains("2 machines") && cells[0].contains(">same<"), "{fleet}");
    assert!(cells[0].contains(">web1</a>") && cells[0].contains(">web2</a>"), "{fleet}");
    assert!(cells[1].contains(">db1</a>") && cells[1].contains("exit 3"), "{fleet}");
    assert!(cells[1].contains("Error") && cells[1].contains("exit code 3"), "{fleet}");
    let shown = site.hero.run(&["graph", "show", batch, "--json"]).code(0).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["graph"]["every"], "machine", "{shown}");
    // Another batch has none.
    site.hero
        .run_with_input(
            &["submit", "--batch", "-"],
            "{\"id\":\"x\",\"script_type\":\"bash\",\"script\":\"true\"}\n",
        )
        .code(0);
    until(&redis, "x", "finished");
    let of: String = redis.field(&keys::job("x"), "graph_id").expect("a batch");
    let page = send(&site, "GET", &format!("/graphs/{of}"), &cookie, "").body;
    assert!(!page.contains("equal answers in one cell"), "{page}");
}

#[test]
fn slow_machine_is_found_among_those_that_ran_jobs() {
    if !can_divide() {
        return;
    }
    let (redis, site, _actors) = fleet();
    let script = "[ $(hostname) = web1 ] || exit 0; exit 4";
    let run = ["exec", "--every-machine", "-t", "bash", "-e", script];
    site.hero.run(&run).code(1);
    // The job of web2 ran for an hour.
    let listed = site.hero.run(&["job", "list", "--host", "web2", "--json"]).code(0).stdout;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    let id = listed["jobs"][0]["id"].as_str().expect("a job").to_owned();
    let ended = redis.field(&keys::job(&id), "finished_at").expect("it has ended");
    let ended: jiff::Timestamp = ended.parse().expect("a time");
    let began = ended - jiff::SignedDuration::from_hours(1);
    redis.set_field(&keys::job(&id), "started_at", began.to_string());
    let stats = |args: &[&str]| -> Value {
        let done = site.hero.run(&[&["--json", "stats", "--by"], args].concat()).code(0);
        serde_json::from_str(&done.stdout).expect("JSON")
    };
    let of = stats(&["host"]);
    let names: Vec<&str> = of["places"]
        .as_array()
        .expect("places")
        .iter()
        .filter_map(|of| of["name"].as_str())
        .collect();
    assert_eq!((names[0], names.len()), ("web2", 3), "{of}");
    assert_eq!(of["places"][0]["run"]["mean_s"], 3600.0, "{of}");
    assert_eq!((&of["complete"], &of["searched"]), (&json!(true), &json!(3)), "{of}");
    let failed = |name: &str| {
        let place = of["places"].as_array().expect("places").iter().find(|of| of["name"] == name);
        place.map(|of| (of["finished"].clone(), of["failed"].clone()))
    };
    assert_eq!(failed("web1"), Some((json!(0), json!(1))), "{of}");
    assert_eq!(failed("db1"), Some((json!(1), json!(0))), "{of}");
    assert_eq!(stats(&["actor"])["places"][0]["name"], "bash:default:2");
    site.hero
        .run(&["stats", "--by", "host", "-t", "python"])
        .code(0)
        .says("no ended job of type python");
    site.hero.run(&["stats", "--by", "rack"]).code(2).says("host, actor or name");
    let shown = site.hero.run(&["stats", "--by", "host", "--since", "1h"]).code(0).stdout;
    assert!(shown.starts_with("HOST") && shown.contains("web2"), "{shown}");
    let cookie = signed_in(&site, READER);
    let page = send(&site, "GET", "/stats?by=host", &cookie, "").body;
    let (slow, failing) = (page.find(">web2</a>"), page.find(">web1</a>"));
    assert!(slow.is_some() && slow < failing, "{page}");
    assert!(page.contains("Of 3 ended jobs that have not expired."), "{page}");
}

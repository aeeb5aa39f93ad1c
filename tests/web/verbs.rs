//! The verbs of the API on the page: each has a button or a form, or a reason for having none.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::requests::{send, signed_in};
use super::visitors::OPERATOR;
use super::world::PageWorld;
use crate::support::wait_until;

/// A verb, the page that has it, and a part of its button or form.
const ON_PAGES: [(&str, &str, &str); 26] = [
    ("job.submit", "/submit", "Submit</button>"),
    ("script.check", "/submit", "value=\"check\""),
    ("job.stop", "/jobs/running", "value=\"stop\""),
    ("job.retry", "/jobs/dead-one", "value=\"retry\""),
    ("job.delete", "/jobs/dead-one", "href=\"/jobs/dead-one/delete\""),
    ("job.clone", "/jobs/dead-one", "href=\"/submit?from=dead-one\""),
    ("job.edit", "/jobs/unserved", "href=\"/jobs/unserved/correct\""),
    ("job.change_many", "/jobs?state=failed", "value=\"retry\""),
    ("dead.retry", "/dead", "value=\"retry\""),
    ("dead.delete", "/dead", "value=\"delete\""),
    ("graph.retry", "/graphs/pipeline", "value=\"retry\""),
    ("graph.delete", "/graphs/pipeline", "href=\"/graphs/pipeline/delete\""),
    ("queue.pause", "/queues/type:bash", "value=\"pause\""),
    ("queue.pause", "/queues", "name=\"pause\" required"),
    ("queue.purge", "/queues/type:bash", "href=\"/queues/type:bash/purge\""),
    ("machine.drain", "/machines", "name=\"drain\""),
    ("actor.drain", "/actors", "name=\"drain\""),
    ("actor.stop", "/actors/bash:default:1", "href=\"/actors/bash:default:1/stop\""),
    ("cron.run", "/cron/nightly", "value=\"run\""),
    ("cron.disable", "/cron/nightly", "value=\"disable\""),
    ("cron.add", "/cron", "href=\"/cron-form\""),
    ("cron.edit", "/cron/weekly", "href=\"/cron-form?name=weekly\""),
    ("cron.delete", "/cron/weekly", "href=\"/cron/weekly/delete\""),
    ("script.rollback", "/scripts/greet", "value=\"rollback\""),
    ("object.delete", "/objects?type=person&context=work", "value=\"delete\""),
    ("notify.test", "/notifications", "name=\"test\" value=\"ops\""),
];

/// The same of what is paused, drained or disabled.
const TURNED: [(&str, &str, &str); 4] = [
    ("queue.resume", "/queues/type:bash", "value=\"resume\""),
    ("actor.resume", "/actors/bash:default:1", "value=\"resume\""),
    ("machine.resume", "/machines", "value=\"resume\""),
    ("cron.enable", "/cron/nightly", "value=\"enable\""),
];

/// A verb without a button in this world, and why.
const ELSEWHERE: [(&str, &str); 20] = [
    ("job.tell", "web::jobs::waiting_job_is_told_its_event_by_the_form_on_its_page"),
    ("graph.stop", "web::graphs::graph_is_retried_stopped_and_deleted_by_forms_of_those_who_may"),
    ("graph.tell", "web::graphs::graph_is_retried_stopped_and_deleted_by_forms_of_those_who_may"),
    (
        "machine.forget",
        "web::machines::absent_machine_is_shown_with_what_waits_for_it_and_forgotten",
    ),
    ("job.create", "a job of a program, which starts it"),
    ("job.start", "a job of a program, which starts it"),
    ("job.run", "the page of a job shows its end"),
    ("job.clear", "the list of jobs deletes all that match"),
    ("batch.submit", "a file of jobs: hero submit --batch"),
    ("graph.submit", "a file of jobs: hero submit --graph"),
    ("graph.edit", "hero graph edit"),
    ("queue.drain", "programs take the jobs of a queue away with it"),
    ("cron.backfill", "hero cron backfill"),
    ("script.publish", "hero script publish, from the file that is under review"),
    ("script.delete", "hero script delete"),
    ("session.start", "agents and programs"),
    ("session.run", "agents and programs"),
    ("session.end", "the page of its job stops it"),
    ("job.follow", "a page is live by itself"),
    ("hook.test", "hero hook test, with the body of a delivery"),
];

/// Returns which of these parts the pages lack.
fn lacking(world: &PageWorld, cookie: &str, parts: &[(&str, &str, &str)]) -> Vec<String> {
    let lacks = |(verb, address, part): &(&str, &str, &str)| {
        let page = send(&world.site, "GET", address, cookie, "");
        let is_there = page.status == 200 && page.body.contains(part);
        (!is_there).then(|| format!("{verb}: {address} ({}) has no {part}", page.status))
    };
    parts.iter().filter_map(lacks).collect()
}

#[test]
fn each_verb_of_the_api_has_a_button_or_a_reason_for_having_none() {
    let world = PageWorld::start();
    let hero = &world.site.hero;
    let run = |args: &[&str]| hero.run(args).code(0);
    run(&["cron", "add", "weekly", "--schedule", "@weekly", "-t", "bash", "-e", "true"]);
    for text in ["echo 1", "echo 2"] {
        hero.run_with_input(&["script", "publish", "greet", "-", "-t", "bash"], text).code(0);
    }
    let cookie = signed_in(&world.site, OPERATOR);
    let mut lost = lacking(&world, &cookie, &ON_PAGES);
    run(&["queue", "pause", "type:bash"]);
    run(&["cron", "disable", "nightly"]);
    run(&["actor", "drain", "bash:default:1"]);
    wait_until("what is turned off is shown so", || lacking(&world, &cookie, &TURNED).is_empty());
    let document = world.site.call("rpc.discover", &json!({}));
    let methods = document["methods"].as_array().expect("methods");
    let changes = |method: &&Value| {
        let scope = method["x-scope"].as_str().unwrap_or("read");
        let changes = |name: &str| name.split_once('.').is_some_and(|(_, verb)| verb != "list");
        scope != "read" && method["name"].as_str().is_some_and(changes)
    };
    let names = methods.iter().filter(changes).filter_map(|method| method["name"].as_str());
    let on_pages = ON_PAGES.iter().chain(&TURNED).map(|(verb, ..)| *verb);
    let known: BTreeSet<&str> = on_pages.chain(ELSEWHERE.iter().map(|(verb, _)| *verb)).collect();
    let unknown = names.filter(|name| !known.contains(name));
    lost.extend(unknown.map(|name| format!("{name}: on no page, and without a reason")));
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

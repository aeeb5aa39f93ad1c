//! The rights of a caller, compared with the job that a script finds: every verb on the jobs of each kind.

use std::collections::BTreeSet;
use std::sync::Arc;

use hero::client::{Client, Graph, GraphRetry, JobBuilder};
use hero::config::JobConfig;
use hero::proto::access::Bounds;
use hero::proto::job::{Corrections, Job, JobId};
use hero::proto::job_rights::{CallerRights, JobRights};
use hero::store::{
    DeleteOutcome, EditOutcome, JobEdit, RetryOutcome, StopOutcome, Store, Submitted, TellOutcome,
};

use crate::support::owners::{OWN, OWNERS, Owner, reaches};
use crate::support::{RETENTION, World, keys};

/// The verbs that name a job, the state that they need, and whether they change it.
const VERBS: [(&str, bool); 8] = [
    ("stop", true),
    ("delete", true),
    ("retry", true),
    ("edit", true),
    ("start", true),
    ("tell", true),
    ("wait for", false),
    ("wait for in a batch", false),
];

fn set(name: &str) -> BTreeSet<String> {
    BTreeSet::from([name.to_owned()])
}

fn callers() -> Vec<CallerRights> {
    let caller = |sees_all, changes_all, bounds| CallerRights {
        name: "ann".to_owned(),
        sees_all,
        changes_all,
        bounds,
    };
    let free = Bounds::default;
    vec![
        caller(true, false, free()),
        caller(false, false, free()),
        caller(true, true, Bounds { types: Some(set("osis")), ..free() }),
        caller(true, true, Bounds { groups: Some(set("io")), ..free() }),
        caller(true, true, Bounds { callers: Some(set("ann")), ..free() }),
        caller(true, true, Bounds { contexts: Some(set("work")), ..free() }),
    ]
}

fn of(name: &str, [caller, script_type, group, context]: Owner) -> Job {
    let job = JobBuilder::new(script_type, "1").id(name).caller_id(caller).group(group);
    job.context_id(context).build().expect("legal")
}

fn id(name: &str) -> JobId {
    name.parse().expect("a legal id")
}

/// Does a verb to a job with a store. Returns whether it found the job.
async fn finds(store: &Store, verb: &str, name: &str) -> bool {
    let job = id(name);
    let dependent = JobBuilder::new("osis", "1").id(&format!("{name}-after")).caller_id("ann");
    let dependent = dependent.after(name).build().expect("legal");
    match verb {
        "stop" => {
            store.jobs().stop(&job, RETENTION, None).await.expect(verb) != StopOutcome::Missing
        }
        "delete" => {
            store.jobs().delete(&job, RETENTION).await.expect(verb) != DeleteOutcome::Missing
        }
        "retry" => {
            let none = Corrections::new();
            let outcome = store.jobs().retry_corrected(&job, &none).await.expect(verb);
            outcome != RetryOutcome::Missing
        }
        "edit" => {
            let edit = JobEdit { group: Some(None), ..JobEdit::default() };
            store.jobs().edit(&job, &edit).await.expect(verb) != EditOutcome::Missing
        }
        "start" => store.jobs().start(&job, RETENTION).await.expect(verb) != RetryOutcome::Missing,
        "tell" => {
            let told = store.jobs().tell(&job, ("go", "{\"data\":null}"), &[]).await.expect(verb);
            told != TellOutcome::Missing
        }
        "wait for" => {
            let done = store.jobs().submit(&[dependent], true, RETENTION).await.expect(verb);
            done != [Submitted::UnknownPrerequisite(name.to_owned())]
        }
        _ => {
            let done = store.batches().submit(&[dependent], None, RETENTION).await.expect(verb);
            done == hero::store::BatchOutcome::Accepted
        }
    }
}

#[tokio::test]
async fn script_finds_only_jobs_that_its_caller_may_see_or_change() {
    for (place, caller) in callers().into_iter().enumerate() {
        let world = World::new();
        let rights = Arc::new(JobRights { caller: Some(caller.clone()), ..JobRights::default() });
        let store = world.store.clone().acting_as(rights);
        for (number, owner) in OWNERS.into_iter().enumerate() {
            for (at, (verb, changes)) in VERBS.into_iter().enumerate() {
                let name = format!("j-{place}-{number}-{at}");
                let made = world.store.jobs().submit(&[of(&name, owner)], false, RETENTION).await;
                made.expect("stored");
                let before = world
                    .redis
                    .ask::<Vec<String>>(&format!("HGETALL {}", crate::support::keys::job(&name)));
                let found = finds(&store, verb, &name).await;
                let all = if changes { caller.changes_all } else { caller.sees_all };
                let expected = reaches(&caller.name, all, &caller.bounds, owner);
                assert_eq!(found, expected, "{verb} a job of {owner:?} by {caller:?}");
                let after = world
                    .redis
                    .ask::<Vec<String>>(&format!("HGETALL {}", crate::support::keys::job(&name)));
                assert!(found || before == after, "{verb} changed a job of {owner:?}");
            }
        }
    }
}

#[tokio::test]
async fn store_of_a_graph_changes_no_job_that_names_another() {
    let world = World::new();
    let mut member = of("m", OWN);
    member.graph_id = Some(id("g"));
    world.store.jobs().submit(&[member, of("n", OWN)], false, RETENTION).await.expect("stored");
    let within = world.store.within_graph(&id("g"));
    for verb in ["stop", "retry", "edit", "start", "delete"] {
        assert!(!finds(&within, verb, "n").await, "{verb}");
        assert!(finds(&within, verb, "m").await, "{verb}");
    }
}

#[tokio::test]
async fn store_of_a_graph_changes_no_job_once_the_graph_is_of_another_caller() {
    let world = World::new();
    let free = Bounds::default();
    let ann = |changes_all, bounds: &Bounds| CallerRights {
        name: "ann".to_owned(),
        sees_all: true,
        changes_all,
        bounds: bounds.clone(),
    };
    let bound = Bounds { callers: Some(set("ann")), ..Bounds::default() };
    for (place, (caller, owner, may_change)) in [
        (ann(false, &free), "ann", true),
        (ann(false, &free), "bob", false),
        (ann(true, &bound), "bob", false),
        (ann(true, &free), "bob", true),
    ]
    .into_iter()
    .enumerate()
    {
        let (graph, member) = (format!("g{place}"), format!("m{place}"));
        let mut job = of(&member, OWN);
        job.graph_id = Some(id(&graph));
        world.store.jobs().submit(&[job], false, RETENTION).await.expect("stored");
        let rights = JobRights { caller: Some(caller.clone()), ..JobRights::default() };
        let store = world.store.clone().acting_as(rights.into()).within_graph(&id(&graph));
        world.redis.set_field(&keys::keys().graph(&id(&graph)), "caller", owner);
        assert_eq!(finds(&store, "stop", &member).await, may_change, "{caller:?} {owner}");
    }
}

#[tokio::test]
async fn correction_of_a_graph_reaches_no_step_but_the_one_that_was_checked() {
    let world = World::new();
    let client = Client::with(&world.redis.config("hero"), JobConfig::default()).expect("a client");
    let bounds = Bounds { types: Some(set("osis")), ..Bounds::default() };
    let ann = CallerRights { name: "ann".to_owned(), sees_all: true, changes_all: false, bounds };
    let client = client.acting_as(JobRights { caller: Some(ann), ..JobRights::default() });
    let step = |name: &str| JobBuilder::new("osis", "1").id(name).name("step").caller_id("ann");
    let mut graph = Graph::new();
    graph.set_id(id("g"));
    graph.add("step", step("later").build().expect("legal"));
    client.graphs().submit(&mut graph).await.expect("a graph");
    client.graphs().stop(&id("g")).await.expect("its own");
    let changes = serde_json::json!({ "script": "2" }).as_object().expect("an object").clone();
    let how = GraphRetry { from: None, changes: [("step".to_owned(), changes)].into() };
    let created = world
        .store
        .jobs()
        .job(&id("later"))
        .await
        .expect("read")
        .expect("there")
        .expect("legal")
        .created_at;
    for (checked, is_corrected) in [("before", false), ("later", true)] {
        let pinned = client.pinned([(id(checked), created)]);
        let retried = pinned.graphs().retry(&id("g"), &how).await;
        assert_eq!(retried.is_ok(), is_corrected, "{checked}: {retried:?}");
        let script = if is_corrected { "2" } else { "1" };
        assert_eq!(world.field("later", "script").as_deref(), Some(script));
    }
}

#[tokio::test]
async fn pinned_store_changes_no_later_job_with_the_id() {
    let world = World::new();
    for verb in ["stop", "delete", "retry", "edit", "start", "tell"] {
        let (job, key) = (id(verb), crate::support::keys::job(verb));
        world.store.jobs().submit(&[of(verb, OWN)], false, RETENTION).await.expect("stored");
        let stored =
            world.store.jobs().job(&job).await.expect("read").expect("there").expect("legal");
        let created = stored.created_at.expect("a time");
        let pinned = world.store.pinned([(job, created)].into());
        let hash = || world.redis.ask::<Vec<String>>(&format!("HGETALL {key}"));
        world.redis.set_field(&key, "created_at", "2999-01-01T00:00:00.000Z");
        let before = hash();
        assert!(!finds(&pinned, verb, verb).await, "{verb} a later job");
        assert_eq!(hash(), before, "{verb} a later job");
        world.redis.set_field(&key, "created_at", created.to_string());
        assert!(finds(&pinned, verb, verb).await, "{verb}");
    }
}

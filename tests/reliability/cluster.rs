//! A Redis Cluster: Hero finds the node with its slot, and goes after it through failovers and moves.

use hero::proto::job::{Job, JobStatus};
use hero::proto::keys::Keys;
use hero::store::{Store, StoreError, Submitted};

use crate::foreign::acl::{PASSWORD, rules};
use crate::support::cluster::NAMESPACE;
use crate::support::keys::prefix;
use crate::support::{Cluster, Hero, RETENTION, job, wait_until};

fn keys() -> Keys {
    Keys::new(NAMESPACE.parse().expect("legal"))
}

/// Submits until it is accepted; a call whose answer was lost may have done it.
async fn submit(store: &Store, jobs: &[Job]) {
    loop {
        match store.jobs().submit(jobs, true, RETENTION).await {
            Ok(answers) => {
                let stored = |answer: &Submitted| {
                    matches!(answer, Submitted::Accepted(_) | Submitted::Exists)
                };
                return assert!(answers.iter().all(stored), "{answers:?}");
            }
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
        tokio::task::yield_now().await;
    }
}

async fn status(store: &Store, id: &str) -> Option<JobStatus> {
    let id = id.parse().expect("legal");
    let job = store.jobs().job(&id).await.expect("redis answers")?;
    Some(job.expect("a legal job").status)
}

/// A job that leaves a line in a file. Every second has an output.
fn leaves_line(cluster: &Cluster, id: &str) -> Job {
    let file = cluster.folder().join("effects");
    let output = if id.ends_with(['1', '3', '5', '7', '9']) { id } else { "" };
    let script = format!("file_write_append(\"{}\", \"{id}\\n\"); \"{output}\"", file.display());
    hero::client::JobBuilder::new("sal", &script).id(id).build().expect("legal")
}

fn lines(cluster: &Cluster) -> Vec<String> {
    let text = std::fs::read_to_string(cluster.folder().join("effects")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test]
async fn after_a_failover_of_the_owner_all_accepted_jobs_end() {
    let mut cluster = Cluster::start();
    let hero = Hero::on_cluster(&cluster);
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("sal-default-1").tasks(2).start();
    hero.run(&["exec", "-t", "sal", "-e", "6 * 7"]).code(0).stdout("42\n");
    let store = Store::open(&cluster.config()).expect("settings");
    let names: Vec<String> = (0..200).map(|number| format!("job-{number:03}")).collect();
    let jobs: Vec<Job> = names.iter().map(|name| leaves_line(&cluster, name)).collect();
    submit(&store, &jobs[..150]).await;
    let dead = cluster.kill_owner_in_step();
    // Through the failover.
    submit(&store, &jobs[150..]).await;
    wait_until("all have run", || {
        let mut lines = lines(&cluster);
        lines.dedup();
        lines == names
    });
    let owner = cluster.awaited_owner();
    assert_ne!(owner, dead);
    // The dead one returns as a replica, which nobody takes for the owner.
    cluster.start_again(dead);
    cluster.wait_for_replicas();
    hero.run(&["exec", "-t", "sal", "-e", "6 * 7"]).code(0).stdout("42\n");
    for name in &names {
        assert_eq!(status(&store, name).await, Some(JobStatus::Finished), "{name}");
    }
}

#[test]
fn move_of_the_slot_under_load_loses_and_repeats_no_job() {
    let cluster = Cluster::start();
    // Each output that is not empty has a key of its own.
    let hero = Hero::on_cluster(&cluster).set("job.output_inline_max", "\"0B\"");
    let _supervisor = hero.supervisor().start();
    let _actor = hero.actor("sal-default-1").tasks(2).start();
    let store = Store::open(&cluster.config()).expect("settings");
    let names: Vec<String> = (0..400).map(|number| format!("job-{number:03}")).collect();
    let jobs: Vec<Job> = names.iter().map(|name| leaves_line(&cluster, name)).collect();
    let submitting = async {
        for some in jobs.chunks(10) {
            submit(&store, some).await;
        }
    };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let first = cluster.awaited_owner();
    std::thread::scope(|scope| {
        let moves = scope.spawn(|| {
            for _ in 0..3 {
                cluster.move_slot();
            }
        });
        runtime.block_on(submitting);
        moves.join().expect("the slot moves");
    });
    assert_ne!(cluster.owner(), Some(first), "three moves lead elsewhere");
    wait_until("all have run", || lines(&cluster).len() >= names.len());
    hero.run(&["exec", "-t", "sal", "-e", "6 * 7"]).code(0).stdout("42\n");
    assert_eq!(lines(&cluster), names, "each ran once");
    for name in &names {
        let output = if name.ends_with(['1', '3', '5', '7', '9']) { name.as_str() } else { "" };
        let read = runtime.block_on(store.jobs().outcome(&name.parse().expect("legal")));
        let ended = (JobStatus::Finished, Some(output.as_bytes().to_vec()));
        assert_eq!(read.expect("reading"), Some(ended), "{name}");
    }
}

#[tokio::test]
async fn call_during_a_move_is_refused_before_it_writes_and_no_answer_is_partial() {
    let cluster = Cluster::start();
    let store = Store::open(&cluster.config()).expect("settings");
    let jobs: Vec<Job> = (0..20).map(|number| job(&format!("early-{number}"))).collect();
    submit(&store, &jobs).await;
    let (from, to) = cluster.begin_move();
    assert_eq!(cluster.move_keys(from, to, 5), 5);
    let late = job("late");
    let error = store.jobs().submit(std::slice::from_ref(&late), true, RETENTION).await;
    let error = error.expect_err("the slot is on its way");
    assert!(matches!(&error, StoreError::NotServing { .. }), "{error:?}");
    assert!(error.to_string().contains("TRYAGAIN"), "{error}");
    let exists = format!("EXISTS {}", keys().job(&late.id));
    // Neither node has anything of it: the source answers by ASK.
    assert_eq!(cluster.ask::<i64>(from, &exists), None);
    // A list would lack jobs that have moved already.
    let error = store.queues().states([].into()).await.expect_err("the slot is on its way");
    assert!(error.is_transient(), "{error:?}");
    while cluster.move_keys(from, to, 100) > 0 {}
    cluster.end_move(from, to);
    assert_eq!(cluster.ask::<i64>(to, &exists), Some(0));
    submit(&store, &[late]).await;
    let queue: hero::proto::queue::Queue = "type:osis".parse().expect("legal");
    let depth = format!("LLEN {}", keys().work(&queue));
    assert_eq!(cluster.ask_owner::<i64>(&depth), 21);
    assert_eq!(cluster.owner(), Some(to));
}

#[tokio::test]
async fn slot_is_found_from_any_node_and_when_all_were_away() {
    let mut cluster = Cluster::start();
    for node in 0..6 {
        let mut config = cluster.config();
        config.url = cluster.url_of(&[node]).into();
        Store::open(&config).expect("settings").now().await.expect("the owner answers");
    }
    let store = Store::open(&cluster.config()).expect("settings");
    submit(&store, &[job("before")]).await;
    (0..6).for_each(|node| cluster.kill(node));
    let error = store.ping().await.expect_err("nobody is there");
    assert!(matches!(&error, StoreError::Unreachable { .. }), "{error:?}");
    let fresh = Store::open(&cluster.config()).expect("settings");
    let message = fresh.ping().await.expect_err("nobody is there").to_string();
    assert!(message.contains("node 127.0.0.1:"), "{message}");
    (0..6).for_each(|node| cluster.start_again(node));
    wait_until("the cluster serves", || cluster.owner().is_some());
    submit(&fresh, &[job("after")]).await;
    assert_eq!(status(&store, "before").await, Some(JobStatus::Dispatched));
}

#[test]
fn shipped_access_rules_are_enough_on_a_cluster() {
    let cluster = Cluster::start();
    let password = cluster.folder().join("password");
    std::fs::write(&password, PASSWORD).expect("writing the password");
    let login = |user: &str| {
        let of_default = format!("~{}", prefix("HERO"));
        let of_cluster = format!("~{NAMESPACE}:");
        let rules = rules(user).into_iter().map(|rule| rule.replace(&of_default, &of_cluster));
        cluster.set_user(user, &rules.collect::<Vec<_>>());
        Hero::on_cluster(&cluster)
            .set("redis.username", &format!("{user:?}"))
            .set("redis.password_file", &format!("{:?}", password.display().to_string()))
    };
    let (supervisor, actor) = (login("hero-supervisor"), login("hero-actor"));
    let client = login("hero-client");
    let _supervisor = supervisor.supervisor().start();
    let _actor = actor.actor("sal-default-1").start();
    client.run(&["exec", "-t", "sal", "-e", "6 * 7"]).code(0).stdout("42\n");
    cluster.move_slot();
    client.run(&["exec", "-t", "sal", "-e", "6 * 8"]).code(0).stdout("48\n");
    assert_eq!(cluster.denied(), []);
}

#[test]
fn namespace_without_braces_is_refused_with_the_way_out() {
    let config = hero::config::RedisConfig {
        url: "redis+cluster://127.0.0.1:1/".into(),
        ..hero::config::RedisConfig::default()
    };
    let error = Store::open(&config).err().expect("refused").to_string();
    assert!(error.contains("namespace = \"{hero}\""), "{error}");
}

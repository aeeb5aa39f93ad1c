//! Backup and restore: everything comes back in another namespace of another Redis, by random worlds.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use hero::client::{BackupReader, BackupWriter, Client, JobBuilder, restore};
use hero::config::Config;
use hero::proto::job::{Job, JobId, JobStatus};
use hero::proto::object::{Answer, Ask, Context, Query, Write};
use hero::store::Verdict;
use serde_json::json;

use crate::support::{Life, RETENTION, Redis, World, line, queue, seed};

const LIMITS: &str = "[limit.keys]\nper = \"key\"\nrunning = 1\nrate = \"100/h\"";
const HOUR: Duration = Duration::from_hours(1);

type Fields = BTreeMap<String, Vec<u8>>;

fn client(world: &World, namespace: &str) -> Client {
    let config = world.redis.config(namespace);
    Client::with(&config, Config::default().job).expect("a client")
}

async fn backup(world: &World, namespace: &str) -> Vec<u8> {
    let mut writer = BackupWriter::new(Vec::new());
    client(world, namespace).backup(&[], &mut writer).await.expect("a backup");
    writer.into_inner()
}

async fn restore_into(world: &World, namespace: &str, file: &[u8]) -> u64 {
    let restored = restore(&client(world, namespace), &mut BackupReader::new(file)).await;
    world.check();
    restored.expect("restored").jobs
}

/// Makes a random world with jobs in every state.
async fn fill(world: &mut World, rng: &mut Rng) -> Vec<String> {
    world.limit(LIMITS);
    let life = Life::of("osis-io-1");
    let mut ids: Vec<String> = Vec::new();
    for number in 0..120 {
        let id = format!("j{number}");
        let mut builder = JobBuilder::new("osis", "1").id(&id).priority(rng.u8(..3));
        builder = match rng.u8(..8) {
            0 => builder.delay(HOUR),
            1 => builder.limit_key("a"),
            2 => builder.unique_key(&format!("key-{number}")),
            3 => builder.group("io"),
            4 => builder.retention(2 * HOUR),
            _ => builder,
        };
        if let Some(after) = ids.get(rng.usize(..=ids.len())).filter(|_| rng.u8(..3) == 0) {
            builder = if rng.bool() { builder.after(after) } else { builder.after_any(after) };
        }
        let job: Job = builder.build().expect("a legal job");
        if rng.u8(..10) == 0 {
            world.create(&[job]).await;
        } else {
            world.submit(&[job]).await;
        }
        ids.push(id);
        if rng.u8(..3) == 0 {
            for attempt in world.claim(&life, 2).await.attempts {
                let logged = [line(1, "a line"), line(2, "another")];
                let logged = logged.iter().map(|line| (&attempt.id, line));
                world.store.logs().append(&life.boot, logged, HOUR).await.expect("logged");
                let output = |bytes: &[u8]| hero::proto::job::JobOutput::from(bytes.to_vec());
                let (exit_code, error) = (Some(3), "failed".to_owned());
                let verdict = match rng.u8(..6) {
                    0 if ids.len().is_multiple_of(2) => {
                        Verdict::Finished { output: output(&b"x".repeat(100_000)), exit_code: None }
                    }
                    0 => Verdict::Finished { output: output(b"text"), exit_code: Some(0) },
                    1 => Verdict::Finished { output: output(&[0, 255, 1]), exit_code: None },
                    2 => Verdict::Error { error, exit_code, dead: true },
                    3 => Verdict::Retry { error, exit_code, delay: HOUR },
                    _ => continue,
                };
                world.finish(&life, &attempt.id, verdict).await;
            }
        }
    }
    world.store.queues().pause(&[queue("type:osis:prio:2")]).await.expect("paused");
    ids
}

fn hash(world: &World, id: &str) -> Fields {
    let id = id.parse().expect("legal");
    let mut fields: Fields = world.redis.ask_with("HGETALL", &[world.store.keys().job(&id)]);
    // A large output is restored into the hash.
    if fields.remove("output_key").is_some() {
        let output = world.redis.ask_with("GET", &[world.store.keys().output(&id)]);
        fields.insert("output".to_owned(), output);
    }
    fields
}

fn status(fields: &Fields) -> &str {
    std::str::from_utf8(&fields["status"]).expect("text")
}

/// Returns the fields that a job should have after its restore.
fn expected(mut fields: Fields) -> Fields {
    fields.retain(|name, _| !["limits", "held_by"].contains(&name.as_str()));
    if status(&fields) == "started" {
        fields.retain(|name, _| !["started_at", "actor", "boot_id"].contains(&name.as_str()));
        fields.insert("status".to_owned(), b"dispatched".to_vec());
        let attempt: u32 = String::from_utf8_lossy(&fields["attempt"]).parse().expect("a number");
        fields.insert("attempt".to_owned(), (attempt - 1).to_string().into_bytes());
    }
    fields
}

/// The ids that wait in a queue of the old world, by dispatch, held ones included.
fn in_order(world: &World, name: &str) -> Vec<String> {
    let keys = world.store.keys();
    let mut waiting: Vec<(f64, String)> = [keys.ready(&queue(name)), keys.held(&queue(name))]
        .iter()
        .flat_map(|key| {
            let ids = world.redis.members(key).into_iter();
            ids.map(|id| (world.redis.score(key, &id).expect("a score"), id)).collect::<Vec<_>>()
        })
        .collect();
    waiting.sort_by(|one, other| one.0.total_cmp(&other.0));
    waiting.into_iter().map(|(_, id)| id).collect()
}

#[tokio::test]
async fn every_job_comes_back_in_its_state_and_runs_to_its_end() {
    let mut rng = Rng::with_seed(seed());
    let mut world = World::new();
    let ids = fill(&mut world, &mut rng).await;
    let by_status =
        |status: &str| ids.iter().filter(|id| world.status(id).as_str() == status).count();
    for status in JobStatus::ALL {
        assert!(by_status(status.as_str()) > 0, "no job is {status}");
    }
    let file = backup(&world, "hero").await;
    let copy = World::on(Redis::start(), "copy");
    assert_eq!(restore_into(&copy, "copy", &file).await, ids.len() as u64);
    for id in &ids {
        assert_eq!(hash(&copy, id), expected(hash(&world, id)), "{id}");
        let [old, new] = [&world, &copy].map(|world| {
            let id = id.parse().expect("legal");
            let (job, log) = (world.store.keys().job(&id), world.store.keys().log(&id));
            let entries: redis::Value = world.redis.ask_with("XRANGE", &[&log, "-", "+"]);
            let pending = world
                .redis
                .ask_with::<Vec<String>, _>("SMEMBERS", &[world.store.keys().pending(&id)]);
            (entries, pending, world.redis.ttl(&job), world.redis.ttl(&log))
        });
        assert_eq!((&old.0, &old.1), (&new.0, &new.1), "log and prerequisites of {id}");
        // A job that others wait for is kept a day longer.
        let kept = if new.2 - old.2 > 86_000 { new.2 - 86_400 } else { new.2 };
        assert!((old.2 - kept).abs() <= 60 && (old.3 - new.3).abs() <= 60, "{id}: {old:?} {new:?}");
    }
    for name in ["type:osis", "type:osis:prio:0", "type:osis:prio:2", "type:osis:group:io"] {
        let started = |id: &String| world.status(id) == JobStatus::Started;
        let list: Vec<String> = copy.work(name).into_iter().filter(|id| !started(id)).collect();
        assert_eq!(list, in_order(&world, name), "{name}");
    }
    let of_copy =
        [copy.store.keys().dead(&"osis".parse().expect("legal")), copy.store.keys().paused()];
    let of_world =
        [world.store.keys().dead(&"osis".parse().expect("legal")), world.store.keys().paused()];
    assert_eq!(copy.redis.list(&of_copy[0]), world.redis.list(&of_world[0]));
    assert_eq!(
        copy.redis.ask::<Vec<String>>(&format!("SMEMBERS {}", of_copy[1])),
        ["type:osis:prio:2"]
    );
    copy.store.queues().resume(&[queue("type:osis:prio:2")]).await.expect("resumed");
    ends(&copy, &ids).await;
}

/// Runs all jobs of a restored world to their ends.
async fn ends(world: &World, ids: &[String]) {
    for id in ids.iter().filter(|id| world.status(id) == JobStatus::Created) {
        world.store.jobs().start(&id.parse().expect("legal"), RETENTION).await.expect("started");
    }
    let now = |id: &String| !world.status(id).is_terminal();
    let life = Life::of("osis-io-2");
    while ids.iter().any(now) {
        // Those that are scheduled are due at once.
        let index = world.store.keys().index(JobStatus::Scheduled, &"osis".parse().expect("legal"));
        for id in world.redis.members(&index) {
            world.redis.put(&index, 1, &id);
        }
        world.store.schedule().dispatch_due(1000, RETENTION).await.expect("dispatching");
        let claimed = world.claim(&life, 50).await;
        for attempt in claimed.attempts {
            assert!(attempt.job.is_ok());
            let done = Verdict::Finished { output: "".into(), exit_code: None };
            world.finish(&life, &attempt.id, done).await;
        }
    }
}

#[tokio::test]
async fn prerequisite_that_runs_again_is_waited_for_by_a_job_whose_copy_is_later() {
    // The prerequisite is copied while it runs, its dependent after that has been dispatched.
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let first = world.started(&life, "first").await;
    let build = |id| JobBuilder::new("osis", "1").id(id);
    let dependent = build("then").after("first").build().expect("legal");
    world.accepts(&[dependent]).await;
    let before = backup(&world, "hero").await;
    let done = Verdict::Finished { output: "".into(), exit_code: None };
    world.finish(&life, &first, done).await;
    let after = backup(&world, "hero").await;
    let (before, after) = (text(&before), text(&after));
    let of = |lines: &str, id: &str| {
        let is_job = |line: &&str| line.starts_with(&format!("{{\"job\":{{\"id\":\"{id}\""));
        lines.lines().find(is_job).expect("the job is in the backup").to_owned()
    };
    let copy = World::on(Redis::start(), "copy");
    let file = signed(&[head(&before), of(&before, "first"), of(&after, "then")]);
    restore_into(&copy, "copy", &file).await;
    assert_eq!(copy.status("first"), JobStatus::Dispatched);
    assert_eq!(copy.status("then"), JobStatus::WaitingForPrerequisites);
    // The other way round: it was copied as it waited, its prerequisite after the end.
    let other = World::on(Redis::start(), "copy");
    let file = signed(&[head(&before), of(&before, "then"), of(&after, "first")]);
    restore_into(&other, "copy", &file).await;
    assert_eq!(other.status("first"), JobStatus::Finished);
    assert_eq!(other.status("then"), JobStatus::Dispatched);
    ends(&copy, &["first".to_owned(), "then".to_owned()]).await;
}

fn text(file: &[u8]) -> String {
    String::from_utf8(file.to_vec()).expect("a backup is text")
}

fn head(file: &str) -> String {
    file.lines().next().expect("a head").to_owned()
}

/// Returns a backup of these lines, with its end.
fn signed(lines: &[String]) -> Vec<u8> {
    let mut writer = BackupWriter::new(Vec::new());
    for line in lines {
        writer.write(&serde_json::from_str(line).expect("a line")).expect("written");
    }
    writer.end().expect("written");
    writer.into_inner()
}

#[tokio::test]
async fn namespace_with_jobs_is_not_restored_into() {
    let world = World::new();
    world.accepts(&[crate::support::job("a")]).await;
    let file = backup(&world, "hero").await;
    let error = restore(&client(&world, "hero"), &mut BackupReader::new(file.as_slice())).await;
    let error = error.expect_err("it has jobs").to_string();
    assert!(error.contains("the namespace hero has jobs or objects"), "{error}");
    assert_eq!(restore_into(&World::on(Redis::start(), "hero"), "hero", &file).await, 1);
}

#[tokio::test]
async fn job_that_a_foreign_program_pushed_is_in_the_backup() {
    let world = World::new();
    world.accepts(&[crate::support::job("known")]).await;
    world.redis.push_job("osis", "pushed", "1");
    let file = backup(&world, "hero").await;
    let copy = World::on(Redis::start(), "copy");
    assert_eq!(restore_into(&copy, "copy", &file).await, 2);
    assert_eq!(copy.work("type:osis"), ["known", "pushed"]);
}

#[tokio::test]
async fn long_log_comes_back_whole() {
    let (world, life) = (World::new(), Life::of("osis-default-1"));
    let id: JobId = world.started(&life, "a").await;
    let lines: Vec<_> = (0..2000).map(|n| line(1, &format!("{n} {}", "x".repeat(500)))).collect();
    let lines = lines.iter().map(|line| (&id, line));
    world.store.logs().append(&life.boot, lines, HOUR).await.expect("logged");
    let file = backup(&world, "hero").await;
    let copy = World::on(Redis::start(), "hero");
    restore_into(&copy, "hero", &file).await;
    let read = async |world: &World| world.store.logs().read(&id, None, 5000).await.expect("read");
    assert_eq!(read(&copy).await.len(), 2000);
    assert_eq!(read(&copy).await, read(&world).await);
}

#[tokio::test]
async fn objects_come_back_with_versions_times_and_indexes() {
    let world = World::new();
    let toml = "[osis.index]\nperson = [\"age\"]";
    let config = Config::from_toml("hero.toml".as_ref(), toml).expect("a configuration").osis;
    let person: hero::proto::object::ObjectType = "person".parse().expect("legal");
    for name in ["", "work: a/b"] {
        let context: Context = name.parse().expect("legal");
        for number in 0..150 {
            let document =
                json!({ "id": format!("p{number}"), "age": number % 10, "text": "a\nb" });
            let serde_json::Value::Object(document) = document else { continue };
            let write = Write::of_document(person.clone(), document).expect("legal");
            let ask = Ask::Write(vec![write]);
            world.store.objects(&context, ask, &config).await.expect("written");
        }
    }
    let file = backup(&world, "hero").await;
    let copy = World::on(Redis::start(), "copy");
    restore_into(&copy, "copy", &file).await;
    for name in ["", "work: a/b"] {
        let context: Context = name.parse().expect("legal");
        let all = async |world: &World, namespace| {
            let page = client(world, namespace);
            page.objects().page(&context, &person, None, 1000).await.expect("a page").0
        };
        assert_eq!(all(&copy, "copy").await.len(), 150);
        assert_eq!(all(&copy, "copy").await, all(&world, "hero").await);
        let query = Query::parse("age = 3").expect("a query");
        let ask = Ask::Find { object_type: person.clone(), query, after: None, limit: 100 };
        let found = copy.store.objects(&context, ask, &config).await.expect("found");
        assert!(matches!(found, Answer::Objects(objects) if objects.len() == 15));
    }
    let states = [&world, &copy].map(|world| {
        let key = world.store.keys().object_indexes(&Context::default(), &person);
        world.redis.field(&key, "age")
    });
    assert_eq!(states, [Some("ready".to_owned()), Some("ready".to_owned())]);
}

//! The rules, each on a healthy snapshot with one change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::proto::cron::CronInForce;
use crate::proto::labels::Labels;
use crate::proto::message::{ActorState, ClockStep, RECOVERING};
use crate::proto::notification::{DeliveryRecord, NotifyMessage};
use crate::proto::target::{ActorId, SelectorDigest};
use crate::store::{BrokerPresence, CronEnds, EmptiedRedis, FiredCron, LastHour, WriteTrial};
use crate::view::Minute;
use crate::view::snapshot::tests::{healthy_snapshot, presence};

/// A change of a healthy snapshot.
type Change<'a> = &'a dyn Fn(&mut Snapshot);

fn health(change: impl Fn(&mut Snapshot), rules: &HealthRules) -> NamespaceHealth {
    let mut snapshot = healthy_snapshot();
    change(&mut snapshot);
    NamespaceHealth::of(&snapshot, rules)
}

fn texts(change: impl Fn(&mut Snapshot)) -> Vec<(Severity, String)> {
    let health = health(change, &HealthRules::default());
    health.problems.into_iter().map(|of| (of.severity, of.text)).collect()
}

fn step(seconds: i64) -> ClockStep {
    ClockStep { at: "2026-01-31T12:30:00Z".to_owned(), seconds }
}

#[test]
fn healthy_snapshot_has_no_problems() {
    assert_eq!(texts(|_| {}), []);
    assert_eq!(health(|_| {}, &HealthRules::default()).state, HealthState::Ok);
}

/// The periodic jobs in force of a supervisor.
fn cron(changed: &[&str], refused: &[&str]) -> CronInForce {
    let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect();
    CronInForce::new(BTreeMap::new(), lines(changed), lines(refused), Vec::new(), Vec::new())
}

fn failing_notification() -> DeliveryRecord {
    let message =
        NotifyMessage::new("ops-1".to_owned(), "ops".parse().expect("legal"), String::new());
    message.record(String::new(), "no route", true)
}

/// A periodic job that has been overdue for a second.
fn overdue(succeeded: Option<&str>) -> FiredCron {
    let at = |text: &str| text.parse().expect("a time");
    let failed = (at("2026-01-31T12:00:00Z"), "j".to_owned(), "exit 1\nmore".to_owned());
    let ends = CronEnds {
        succeeded: succeeded.map(|text| (at(text), "i".to_owned())),
        failed: Some(failed),
        overdue: Some(at("2026-01-31T12:59:59Z")),
        ..CronEnds::default()
    };
    FiredCron { name: "report".parse().expect("legal"), ends, is_running: false }
}

#[test]
fn periodic_job_is_no_problem_before_it_is_overdue_nor_after_a_later_success() {
    let mut of = overdue(Some("2026-01-31T12:30:00Z"));
    of.ends.overdue = Some("2026-01-31T13:00:00Z".parse().expect("a time"));
    assert_eq!(texts(|snapshot| snapshot.periodic_jobs.push(of.clone())), []);
}

fn labels(name: &str, value: &str) -> Labels {
    Labels::from([(name.parse().expect("legal"), value.parse().expect("legal"))])
}

#[test]
#[expect(clippy::too_many_lines, reason = "a row for each rule")]
fn every_rule_has_its_severity_and_its_sentence() {
    use Severity::{Critical, Note, Warning};
    let silent: ActorId = "osis:default:1".parse().expect("an actor");
    let cases: [(Change<'_>, Severity, &str); 36] = [
        (
            &|of| of.ids_without_hash = vec![("LIST".to_owned(), "a".to_owned())],
            Warning,
            "programs pushed 1 id without a job within the last minute: a to LIST",
        ),
        (
            &|of| {
                of.actors = vec![presence("osis-default-1", ActorState::Ready)];
                let presence = &mut of.actors[0].presence;
                presence.last_heartbeat = of.at.to_string();
                presence.version = env!("CARGO_PKG_VERSION").to_owned();
                presence.hostname = "one".to_owned();
                of.actors[0].presence.after_oom_kill = Some("2026-01-31T12:30:00Z".to_owned());
            },
            Warning,
            "actor osis:default:1 on one was killed as memory ran out, before 2026-01-31T12:30:00Z",
        ),
        (
            &|of| {
                // Of one process.
                of.actors = ["osis-default-1", "osis-default-2"]
                    .map(|unit| presence(unit, ActorState::Ready))
                    .to_vec();
                for of_unit in &mut of.actors {
                    of_unit.presence.last_heartbeat = of.at.to_string();
                    of_unit.presence.version = env!("CARGO_PKG_VERSION").to_owned();
                    of_unit.presence.hostname = "one".to_owned();
                    of_unit.presence.folders_left = 2;
                }
            },
            Warning,
            "2 folders of jobs could not be removed, by actor osis:default:1 on one among others; each minute they are tried again",
        ),
        (
            &|of| {
                of.actors = ["osis-default-1", "osis-default-2"]
                    .map(|unit| presence(unit, ActorState::Ready))
                    .to_vec();
                for (of_unit, host) in of.actors.iter_mut().zip(["one", "two"]) {
                    of_unit.presence.last_heartbeat = of.at.to_string();
                    of_unit.presence.version = env!("CARGO_PKG_VERSION").to_owned();
                    of_unit.presence.hostname = host.to_owned();
                    of_unit.presence.labels = labels("machine", "0a1b2c");
                }
            },
            Warning,
            "one (boot unknown, pid 1 since ) and two (boot unknown, pid 1 since ) have one machine id: the label machine = \"0a1b2c\" stands for all of them",
        ),
        (
            &|of| {
                let digest = SelectorDigest::of_text("role = \"web\"");
                of.queues[0].0.queue = format!("type:osis:where:{digest}").parse().expect("legal");
                of.queues[0].0.selector = Some("role = \"web\"".to_owned());
                of.queues[0].1 = 0;
                of.actors = vec![presence("osis-default-1", ActorState::Ready)];
                let presence = &mut of.actors[0].presence;
                presence.last_heartbeat = of.at.to_string();
                presence.version = env!("CARGO_PKG_VERSION").to_owned();
                presence.labels = labels("role", "db");
            },
            Warning,
            "queue type:osis:where:c16a1f7e38eb38d87daf6db28d26c1a0fa66a3b0 has 3 jobs and no live actor that matches \
             role = \"web\": of 1 live actor, 1 fails role = \"web\"",
        ),
        (
            &|of| of.unserved = vec![("LIST".to_owned(), Some(3))],
            Warning,
            "programs pushed to 1 list that nobody serves: LIST (3)",
        ),
        (
            &|of| of.failing_notifications = vec![failing_notification()],
            Warning,
            "notification ops cannot be delivered and is tried again: no route",
        ),
        (
            &|of| {
                of.supervisors.clear();
                of.types[0].due = 0;
            },
            Critical,
            "0 live supervisors (threshold 1)",
        ),
        (
            &|of| of.supervisors[0].redis = "failing".to_owned(),
            Warning,
            "supervisor supervisor on one fails: failing",
        ),
        (
            &|of| of.supervisors[0].redis = format!("{RECOVERING}: no"),
            Critical,
            "supervisor supervisor on one fails: recovering jobs of dead actors: no; until it can, they stay started",
        ),
        (
            &|of| of.supervisors[0].cron = Some(cron(&["a.toml"], &[])),
            Warning,
            "periodic jobs changed on disk, not in force on one: a.toml",
        ),
        (
            &|of| of.supervisors[0].cron = Some(cron(&[], &["cron.a: never fires"])),
            Warning,
            "periodic jobs that supervisor supervisor on one does not fire: cron.a: never fires",
        ),
        (
            &|of| of.periodic_jobs.push(overdue(None)),
            Warning,
            "periodic job report has not succeeded, though it was due twice; job j failed: exit 1",
        ),
        (
            &|of| of.periodic_jobs.push(overdue(Some("2026-01-29T13:00:00Z"))),
            Warning,
            "periodic job report has not succeeded for 2d, twice its interval; job j failed: exit 1",
        ),
        (&|of| of.queues[0].1 = 0, Warning, "queue type:osis has 3 jobs and no live actor"),
        (
            &|of| of.queues[0].0.oldest_wait = Some(Duration::from_mins(5)),
            Warning,
            "the first job of queue type:osis waits for 5m00s (threshold 5m)",
        ),
        (
            &|of| of.queues[0].0.oldest_wait = Some(Duration::from_hours(1)),
            Critical,
            "the first job of queue type:osis waits for 1h00m (threshold 30m)",
        ),
        (&|of| of.queues[0].0.held = 2, Note, "limits hold 2 jobs of queue type:osis"),
        (
            &|of| {
                let state = &mut of.queues[0].0;
                (state.depth, state.held, state.oldest_wait) = (0, 2, None);
                state.held_wait = Some(Duration::from_hours(1));
                state.held_by = Some("gpu".to_owned());
            },
            Note,
            "limits hold 2 jobs of queue type:osis, the first by limit gpu for 1h00m (threshold 5m)",
        ),
        (
            &|of| {
                let at = "2026-01-31T12:03:00Z".parse().expect("a time");
                of.emptied = Some(EmptiedRedis { at, jobs: 1200, restarted: false });
            },
            Critical,
            "redis was emptied at 2026-01-31T12:03:00Z, 1200 jobs were known: FLUSHALL or FLUSHDB, or its keys were deleted",
        ),
        (
            &|of| {
                of.queues[0].0.paused = true;
                of.queues[0].0.paused_by = Some("ann".to_owned());
                of.queues[0].0.oldest_wait = Some(Duration::from_hours(1));
                of.queues[0].1 = 0;
            },
            Note,
            "queue type:osis is paused by ann; 3 jobs wait in it, the first for 1h00m (threshold 5m)",
        ),
        (
            &|of| {
                (of.queues[0].0.held, of.queues[0].0.held_wait) = (2, Some(Duration::from_mins(6)));
            },
            Note,
            "limits hold 2 jobs of queue type:osis, the first for 6m00s (threshold 5m)",
        ),
        (&|of| of.types[0].dead = 2, Note, "2 dead letters are kept"),
        (
            &|of| of.redis.appends = Some(false),
            Warning,
            "redis forgets accepted jobs when it is killed or restarted: it appends to no file \
             (appendonly no)",
        ),
        (
            &|of| of.redis.memory_used_bytes = 96 << 20,
            Critical,
            "redis uses 96 % of its maxmemory (threshold 95 %)",
        ),
        (
            &|of| of.redis.role = Some("slave".to_owned()),
            Critical,
            "redis is a replica, and refuses writes",
        ),
        (
            &|of| of.redis.append_failed = true,
            Critical,
            "redis cannot write its append-only file, and refuses writes",
        ),
        (
            &|of| of.redis.version = Some("6.0.16".to_owned()),
            Critical,
            "redis is version 6.0.16; hero needs 6.2 or later",
        ),
        (
            &|of| of.clock_difference = Duration::from_secs(3),
            Warning,
            "the clocks of this machine and of redis differ by 3.00s",
        ),
        (
            &|of| of.supervisors[0].last_heartbeat = "2026-01-31T13:00:09Z".to_owned(),
            Warning,
            "the clocks of one and of redis differ by 9.00s or more",
        ),
        (
            &|of| of.supervisors[0].clock_step = Some(step(60)),
            Warning,
            "the clock of redis was set forward by 1m00s at 2026-01-31T12:30:00Z",
        ),
        (
            &|of| of.supervisors[0].clock_step = Some(step(-61)),
            Critical,
            "the clock of redis was set back by 1m01s at 2026-01-31T12:30:00Z",
        ),
        (
            &|of| of.supervisors[0].version = "0.0.9".to_owned(),
            Note,
            concat!(
                "1 daemon has another version than this program's ",
                env!("CARGO_PKG_VERSION"),
                ": supervisor on one: 0.0.9"
            ),
        ),
        (
            &|of| of.actor_counts.values_mut().for_each(|count| count.holding = 1),
            Note,
            "1 of 2 actors of type osis claims no jobs, as its machine is overloaded or full",
        ),
        (
            &|of| of.actor_counts.values_mut().for_each(|count| count.holding = 2),
            Warning,
            "all 2 actors of type osis claim no jobs, as their machines are overloaded or full",
        ),
        (
            &|of| of.silent_actors = vec![(silent.clone(), of.at - Duration::from_secs(90))],
            Note,
            "actor osis:default:1 has had no heartbeat for 1m30s and has not shut down",
        ),
    ];
    for (change, severity, text) in cases {
        assert_eq!(texts(change), [(severity, text.to_owned())]);
    }
}

#[test]
fn dead_letters_of_the_last_hour_are_reported_until_they_are_retried_or_deleted() {
    let hour = LastHour { finished: 0, failed: 9, dead: 3, since: Duration::from_hours(1) };
    let told = |kept: u64| texts(|of| (of.types[0].hour, of.types[0].dead) = (Some(hour), kept));
    assert_eq!(told(0), []);
    let warning = "2 dead letters in the last hour (threshold 1)".to_owned();
    assert!(told(2).contains(&(Severity::Warning, warning)), "{:?}", told(2));
}

/// Adds a broker that is well, and changes it.
fn with_broker(snapshot: &mut Snapshot, change: impl FnOnce(&mut BrokerPresence)) {
    let mut broker = BrokerPresence {
        unit: "broker".to_owned(),
        host: "one".to_owned(),
        dispatchers: 4,
        consuming: 4,
        is_alive: true,
        ..BrokerPresence::default()
    };
    change(&mut broker);
    snapshot.brokers.push(broker);
}

#[test]
fn brokers_are_reported_by_what_they_lack_and_by_their_dead_letters() {
    use Severity::{Critical, Warning};
    let well = |_: &mut BrokerPresence| {};
    let gone = |of: &mut BrokerPresence| (of.is_alive, of.seen_ago_s) = (false, 90);
    let of = |change: &dyn Fn(&mut Snapshot)| texts(change);
    assert_eq!(of(&|snapshot| with_broker(snapshot, well)), []);
    let said = "broker broker on one has had no heartbeat for 1m30s".to_owned();
    assert_eq!(of(&|snapshot| with_broker(snapshot, gone)), [(Critical, said.clone())]);
    let beside_another = |snapshot: &mut Snapshot| {
        with_broker(snapshot, gone);
        with_broker(snapshot, well);
    };
    assert_eq!(of(&beside_another), [(Warning, said)]);
    let away = |seconds| {
        texts(move |snapshot: &mut Snapshot| {
            with_broker(snapshot, |of| {
                of.consuming = 0;
                of.outages.insert("rabbitmq".to_owned(), seconds);
            });
        })
    };
    assert_eq!(away(29), []);
    let said = "broker broker on one has had no RabbitMQ for 30.00s (threshold 30s)".to_owned();
    assert_eq!(away(30), [(Warning, said)]);
    let said = "broker broker on one has had no RabbitMQ for 5m00s (threshold 5m)".to_owned();
    assert_eq!(away(300), [(Critical, said)]);
    let one = |change: fn(&mut BrokerPresence)| of(&|snapshot| with_broker(snapshot, change));
    let said = "3 of 4 dispatchers of broker broker on one consume".to_owned();
    assert_eq!(one(|of| of.consuming = 3), [(Warning, said)]);
    let said = "broker broker on one has lost 7 log events".to_owned();
    assert_eq!(one(|of| (of.log_events_lost, of.lost_ago_s) = (7, Some(60))), [(Warning, said)]);
    assert_eq!(one(|of| (of.log_events_lost, of.lost_ago_s) = (7, Some(3600))), []);
    let letters = |of: &mut BrokerPresence, at_us, number| {
        of.at_us = at_us;
        of.dead_letters.insert("prod_adm".to_owned(), number);
    };
    let said = "RabbitMQ queue prod_adm has 2 dead letters (threshold 1)".to_owned();
    let latest_counts = |snapshot: &mut Snapshot| {
        with_broker(snapshot, |of| letters(of, 9, 2));
        with_broker(snapshot, |of| letters(of, 5, 0));
    };
    assert_eq!(of(&latest_counts), [(Warning, said)]);
}

#[test]
fn threshold_of_the_configuration_decides_the_severity_and_zero_is_off() {
    let rules = |check| HealthRules { check, ..HealthRules::default() };
    let deep = |depth_warning, depth_critical| {
        let check = CheckConfig { depth_warning, depth_critical, ..CheckConfig::default() };
        health(|_| {}, &rules(check)).state
    };
    assert_eq!(deep(0, 0), HealthState::Ok);
    assert_eq!(deep(3, 0), HealthState::Warning);
    assert_eq!(deep(1, 3), HealthState::Critical);
    let held = CheckConfig { held_warning: 1, ..CheckConfig::default() };
    assert_eq!(health(|of| of.queues[0].0.held = 1, &rules(held)).state, HealthState::Warning);
    let forgets = CheckConfig { durable: false, ..CheckConfig::default() };
    let found = health(|of| of.redis.appends = Some(false), &rules(forgets));
    assert_eq!(found.problems, []);
}

#[test]
fn queue_of_a_type_that_is_not_configured_is_reported_with_a_suggestion() {
    let lacks = [("osis", None), ("python", None), ("v", Some("no v in PATH".to_owned()))];
    let types = lacks.map(|(name, lacks)| (name.parse().expect("legal"), lacks)).into();
    let rules = HealthRules { types, ..HealthRules::default() };
    let found = |queue: &str| {
        let change = |of: &mut Snapshot| {
            of.queues[0].0.queue = queue.parse().expect("legal");
            of.queues[0].1 = 0;
        };
        health(change, &rules).problems.remove(0)
    };
    let misspelled = found("type:pyton");
    assert_eq!(misspelled.kind, ProblemKind::QueueOfUnknownType);
    assert!(misspelled.text.ends_with("did you mean `python`?"), "{misspelled:?}");
    assert_eq!(found("type:python").kind, ProblemKind::QueueWithoutActor);
    assert_eq!(found("type:xyz").kind, ProblemKind::QueueWithoutActor, "none is like it");
    assert!(found("type:xyz").remedy.contains("add [type.xyz] to the configuration"));
    assert!(found("type:python").remedy.starts_with("start one: "));
    let lacking = found("type:v").remedy;
    assert!(lacking.contains("no v in PATH; start one where they can"), "{lacking}");
}

#[test]
fn worst_problem_comes_first_and_notes_come_last() {
    use Severity::{Critical, Note, Warning};
    let health = health(
        |of| {
            of.queues[0].1 = 0;
            of.types[0].dead = 1;
            of.supervisors.clear();
        },
        &HealthRules::default(),
    );
    let severities: Vec<Severity> = health.problems.iter().map(|of| of.severity).collect();
    assert_eq!(severities, [Critical, Critical, Warning, Note]);
    assert_eq!((health.state, health.wrong().count()), (HealthState::Critical, 3));
}

#[test]
fn same_problem_of_many_queues_is_one_with_their_number_and_examples() {
    let of_queues = |number: usize| {
        texts(|of| {
            of.queues[0].1 = 0;
            of.queues = vec![of.queues[0].clone(); number];
            for (place, (state, _)) in of.queues.iter_mut().enumerate() {
                state.queue = format!("type:osis:group:g{place}").parse().expect("legal");
            }
        })
    };
    let first = "queue type:osis:group:g0 has 3 jobs and no live actor";
    let rest = "type:osis:group:g1, type:osis:group:g2, type:osis:group:g3 and 30 more";
    assert_eq!(of_queues(34), [(Severity::Warning, format!("34 queues: {first}; so do {rest}"))]);
    assert_eq!(of_queues(3).len(), 3);
}

#[test]
fn many_paused_queues_are_one_note() {
    let texts = texts(|of| {
        of.queues[0].0.paused = true;
        of.queues = vec![of.queues[0].clone(); 51];
    });
    assert_eq!(
        texts,
        [(Severity::Note, "all 51 queues are paused; 153 jobs wait in them".to_owned())]
    );
}

#[test]
fn rule_that_pauses_queues_is_one_note() {
    let texts = texts(|of| {
        of.queues[0].0.paused = true;
        of.pauses = vec!["*".parse().expect("legal")];
    });
    let text = "all queues are paused, also those that come later; 3 jobs wait in them";
    assert_eq!(texts, [(Severity::Note, text.to_owned())]);
}

#[test]
fn failures_that_rise_are_reported_with_both_shares() {
    let minute = |(finished, failed)| Minute {
        at: None,
        length: Duration::from_mins(1),
        submitted: 0,
        finished,
        failed,
        running: 0,
        wait_p95: None,
    };
    let hour = |latest: &[(u64, u64)]| {
        let before = std::iter::repeat_n((98, 2), 20);
        let minutes: Arc<[Minute]> = before.chain(latest.iter().copied()).map(minute).collect();
        texts(|of| of.minutes = minutes.clone())
    };
    assert_eq!(
        hour(&[(95, 5); 10]),
        [(
            Severity::Warning,
            "failures rise: 5.0 % of the jobs that ended in the last 10 min failed, 2.0 % in the \
             20 min before"
                .to_owned()
        )]
    );
    assert_eq!(hour(&[(97, 3); 10]), [], "less than twice as many");
    assert_eq!(hour(&[(0, 0); 10]), [], "none at all");
    assert_eq!(hour(&[(0, 9)]), []);
}

#[test]
fn every_severity_has_one_word_everywhere() {
    for severity in [Severity::Note, Severity::Warning, Severity::Critical] {
        assert_eq!(serde_json::json!(severity), severity.as_str());
    }
}

#[test]
fn notification_that_a_supervisor_does_not_have_is_reported_with_its_periodic_job() {
    let health = health(
        |snapshot| {
            let unheard = vec!["backup: opps".to_owned(), "report: mail, chat".to_owned()];
            snapshot.supervisors[0].cron = Some(CronInForce { unheard, ..CronInForce::default() });
        },
        &HealthRules::default(),
    );
    let problem = health.problem(ProblemKind::CronUnheard).expect("a problem");
    assert!(problem.text.ends_with("has no such notification: backup: opps; report: mail, chat"));
    assert!(problem.remedy.ends_with("hero cron show backup"), "{}", problem.remedy);
}

#[test]
fn periodic_job_that_does_not_exist_is_reported_with_the_notification_that_names_it() {
    let health = health(
        |snapshot| {
            let unknown = vec!["ops: nosuchcron".to_owned(), "mail: a, b".to_owned()];
            snapshot.supervisors[0].cron = Some(CronInForce { unknown, ..CronInForce::default() });
        },
        &HealthRules::default(),
    );
    let problem = health.problem(ProblemKind::CronUnknown).expect("a problem");
    assert_eq!(problem.severity, Severity::Warning);
    assert!(problem.text.ends_with("jobs that do not exist: ops: nosuchcron; mail: a, b"));
    assert!(problem.remedy.contains("[notify.ops]"), "{}", problem.remedy);
}

/// Nobody is live, and everything waits.
fn nobody_is_live(snapshot: &mut Snapshot) {
    snapshot.supervisors.clear();
    snapshot.queues[0].1 = 0;
    with_broker(snapshot, |of| (of.is_alive, of.seen_ago_s) = (false, 90));
}

#[test]
fn redis_that_refuses_writes_is_the_one_cause_while_no_presence_can_be_renewed() {
    let kinds = |change: &dyn Fn(&mut Snapshot)| -> Vec<ProblemKind> {
        let health = health(change, &HealthRules::default());
        health.problems.into_iter().map(|of| of.kind).collect()
    };
    let missing = [
        ProblemKind::FewSupervisors,
        ProblemKind::JobsDue,
        ProblemKind::BrokerGone,
        ProblemKind::QueueWithoutActor,
    ];
    assert_eq!(kinds(&nobody_is_live), missing);
    let refusals: [(Change<'_>, ProblemKind); 4] = [
        (
            &|of| {
                (of.redis.write_trial, of.redis.good_replicas) = (WriteTrial::FewReplicas, Some(0));
            },
            ProblemKind::RedisRefusesWrites,
        ),
        (
            &|of| (of.redis.write_trial, of.redis.save_failed) = (WriteTrial::DiskFails, true),
            ProblemKind::RedisRefusesWrites,
        ),
        (&|of| of.redis.append_failed = true, ProblemKind::RedisCannotAppend),
        (&|of| of.redis.role = Some("slave".to_owned()), ProblemKind::RedisReplica),
    ];
    for (refuses, kind) in refusals {
        let found = kinds(&|snapshot| {
            nobody_is_live(snapshot);
            refuses(snapshot);
        });
        assert_eq!(found, [kind]);
    }
    let lacking = health(
        |of| (of.redis.write_trial, of.redis.good_replicas) = (WriteTrial::FewReplicas, Some(0)),
        &HealthRules::default(),
    );
    let problem = &lacking.problems[0];
    assert_eq!((problem.severity, lacking.state), (Severity::Critical, HealthState::Critical));
    assert!(problem.text.starts_with("redis refuses every write: min-replicas-to-write "));
    assert!(problem.remedy.contains("CONFIG SET min-replicas-to-write 0"), "{problem:?}");
}

#[test]
fn snapshot_that_fails_is_a_warning_unless_writes_are_refused() {
    let told = |write_trial| {
        texts(move |of| (of.redis.write_trial, of.redis.save_failed) = (write_trial, true))
    };
    let warning = |text: &str| [(Severity::Warning, text.to_owned())];
    let may =
        "redis cannot write its snapshot, and may refuse writes (stop-writes-on-bgsave-error)";
    assert_eq!(told(WriteTrial::Unknown), warning(may));
    assert_eq!(told(WriteTrial::Accepted), warning("redis cannot write its snapshot"));
}

//! Situations in which supervisors or receivers are dead, and exactly the events that each of them leads to: by a webhook
//! and by mail.

use std::collections::BTreeMap;
use std::fs;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::Receiver;
use super::problems::told;
use crate::support::{Hero, Process, Redis, keys, wait_until};

/// The processes that are dead while something happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dead {
    Supervisors,
    Receivers,
    All,
}

/// A situation: the event, and the daemons and receivers that are there.
struct Stage {
    redis: Redis,
    hero: Hero,
    supervisors: Vec<Process>,
    actors: Vec<Process>,
    web: Receiver,
    mail: Receiver,
}

impl Stage {
    fn start() -> Self {
        let redis = Redis::start();
        let (web, mail) =
            (Receiver::start(&redis, "receiver.py"), Receiver::start(&redis, "mail_server.py"));
        let on = "on = [\"failed\", \"dead\", \"recovered\", \"late\", \"held\", \"no_actor\", \"cron_late\"]";
        let hook = format!(
            "webhook = \"http://127.0.0.1:{}/hook\"\nevery = \"0s\"\ntimeout = \"500ms\"",
            web.port
        );
        let post = format!(
            "mail = [\"ops@example.org\"]\nfrom = \"hero@example.org\"\nsmtp = \"smtp://127.0.0.1:{}\"\nevery = \"0s\"\ntimeout = \"500ms\"",
            mail.port
        );
        let cron = redis.folder().join("cron.d");
        fs::create_dir(&cron).expect("a folder");
        let hero = Hero::on(&redis)
            .add(&format!(
                "[notify.all]\n{hook}\n{on}\n[notify.post]\n{post}\n{on}\n\
                 [notify.wholes]\n{hook}\nnamed = true\non = [\"failed\", \"finished\"]\n"
            ))
            .set("unit.two.role", "\"supervisor\"")
            .set("check.wait_warning", "\"1s\"")
            .set("supervisor.cron_dir", &format!("\"{}\"", cron.display()));
        let mut stage =
            Self { redis, hero, supervisors: Vec::new(), actors: Vec::new(), web, mail };
        stage.start_supervisors();
        super::wanted(&stage.redis, &["failed", "recovered", "late", "finished named"]);
        stage
    }

    fn start_supervisors(&mut self) {
        self.supervisors = vec![self.hero.supervisor().start(), self.hero.actor("two").start()];
    }

    fn kill_supervisors(&mut self) {
        for mut of in self.supervisors.drain(..) {
            of.kill();
        }
    }

    fn run(&self, args: &[&str]) {
        self.hero.run(args).code(0);
    }

    fn submit(&self, args: &[&str]) {
        self.run(&[&["submit", "-t", "bash"], args].concat());
    }

    /// Does something while these are dead, and brings them back.
    fn without(&mut self, dead: Dead, act: fn(&mut Self)) {
        if dead != Dead::Receivers {
            self.kill_supervisors();
        }
        if dead != Dead::Supervisors {
            self.web.kill();
            self.mail.kill();
        }
        act(self);
        if dead != Dead::Receivers {
            self.start_supervisors();
        }
        if dead != Dead::Supervisors {
            wait_until("an attempt failed", || !self.redis.all("NOTIFY_TROUBLE").is_empty());
        }
        if dead == Dead::All {
            self.kill_supervisors();
        }
        if dead != Dead::Supervisors {
            self.web.start_again();
            self.mail.start_again();
        }
        if dead == Dead::All {
            self.start_supervisors();
        }
    }
}

/// A situation: what happens, who is dead, and the events that are told: `NOTIFICATION EVENT SUBJECT ENDED`.
type Situation = (&'static str, Dead, fn(&mut Stage), &'static [&'static str]);

const SITUATIONS: &[Situation] = &[
    (
        "no live actor serves a queue",
        Dead::Receivers,
        |stage| stage.submit(&["-e", "true"]),
        &["all no_actor type:bash"],
    ),
    (
        "an actor starts to serve it",
        Dead::Supervisors,
        |stage| stage.actors.push(stage.hero.actor("bash-default-1").start()),
        &["all recovered type:bash no_actor"],
    ),
    (
        "a pause holds a job",
        Dead::All,
        |stage| {
            stage.run(&["queue", "pause", "type:bash"]);
            stage.submit(&["-e", "true"]);
        },
        &["all held type:bash"],
    ),
    (
        "the pause is over",
        Dead::Receivers,
        |stage| stage.run(&["queue", "resume", "type:bash"]),
        &["all recovered type:bash held"],
    ),
    (
        "a periodic job has not succeeded for twice its interval",
        Dead::Supervisors,
        |stage| {
            let daily =
                "[cron.backup]\nschedule = \"@daily\"\ntype = \"bash\"\nscript = \"true\"\n";
            fs::write(stage.redis.folder().join("cron.d/own.toml"), daily).expect("written");
            let ended = format!("{}backup", keys::prefix("CRON_ENDED"));
            let since = (Timestamp::now() - SignedDuration::from_hours(72)).as_microsecond();
            stage.redis.set_field(&ended, "since_us", since);
        },
        &["all cron_late backup"],
    ),
    (
        "it succeeds",
        Dead::All,
        |stage| {
            let id = stage.hero.run(&["cron", "run", "backup"]).code(0).stdout.trim().to_owned();
            stage.run(&["job", "wait", &id]);
        },
        &["all recovered backup cron_late"],
    ),
    (
        "a graph ends with a failure",
        Dead::All,
        |stage| {
            let graph = "id = \"g\"\nnotify = [\"wholes\"]\n[job.a]\nid = \"ga\"\nname = \"a\"\ntype = \"bash\"\n\
                         script = \"exit 1\"\n";
            stage.hero.run_with_input(&["submit", "--graph", "-"], graph).code(0);
            stage.hero.run(&["graph", "wait", "g"]).code(1);
        },
        &["all failed ga", "wholes failed g"],
    ),
    (
        "a batch ends well",
        Dead::Receivers,
        |stage| {
            let line = json!({ "type": "bash", "script": "true" });
            let submit = ["submit", "--batch", "-", "--id", "b1", "--notify", "wholes"];
            stage.hero.run_with_input(&submit, &format!("{line}\n{line}\n")).code(0);
        },
        &["wholes finished b1"],
    ),
    (
        "an atomic batch ends with a failure",
        Dead::Supervisors,
        |stage| {
            let line = |id: &str, script: &str| {
                json!({ "type": "bash", "id": id, "name": id, "script": script }).to_string()
            };
            let lines = format!("{}\n{}\n", line("b2-a", "true"), line("b2-b", "exit 3"));
            let submit =
                ["submit", "--batch", "-", "--all-or-none", "--id", "b2", "--notify", "wholes"];
            stage.hero.run_with_input(&submit, &lines).code(0);
        },
        &["all failed b2-b", "wholes failed b2"],
    ),
    (
        "a job uses up its attempts",
        Dead::Receivers,
        |stage| {
            let more = ["--retries", "1", "--backoff", "10ms", "--id", "d1", "--name", "d"];
            stage.submit(&[&more[..], &["-e", "exit 1"]].concat());
        },
        &["all dead d1"],
    ),
    (
        "its like recovers",
        Dead::All,
        |stage| {
            stage.submit(&["--id", "d2", "--name", "d", "-e", "true"]);
            stage.run(&["job", "wait", "d2"]);
        },
        &["all recovered d2"],
    ),
    (
        "a job has not ended within its time",
        Dead::Supervisors,
        |stage| stage.submit(&["--id", "l", "--expect-within", "50ms", "-e", "sleep 60"]),
        &["all late l"],
    ),
];

/// Returns the titles of messages, each message once.
fn titles(messages: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let by_id: BTreeMap<String, String> = messages.collect();
    let mut titles: Vec<String> = by_id.into_values().collect();
    titles.sort();
    titles
}

/// Returns the message ids and titles of the mails.
fn mails(mail: &Receiver) -> impl Iterator<Item = (String, String)> {
    mail.received().into_iter().map(|of| {
        let text = of["body"].as_str().expect("text").replace("\n ", " ");
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.expect("the header").trim().to_owned()
        };
        let title = field("Subject:");
        (field("Message-ID:"), title.trim_start_matches("hero: ").to_owned())
    })
}

#[test]
fn each_situation_leads_to_its_messages_though_supervisors_or_receivers_are_dead() {
    let mut stage = Stage::start();
    let mut expected: Vec<String> = Vec::new();
    for (what, dead, act, lines) in SITUATIONS {
        stage.without(*dead, *act);
        expected.extend(lines.iter().map(|&line| line.to_owned()));
        expected.sort();
        wait_until(what, || told(&stage.web).len() >= expected.len());
        wait_until("nothing is left", || {
            stage.redis.members(&keys::keys().notify_due()).is_empty()
        });
        // A message that came twice bears the same id, and counts once.
        assert_eq!(told(&stage.web), expected, "{what}");
        let text = |of: &serde_json::Value| of.as_str().expect("text").to_owned();
        let posts = stage.web.messages();
        let of_all = posts.iter().filter(|of| of["notification"] == "all");
        let by_web = titles(of_all.map(|of| (text(&of["id"]), text(&of["title"]))));
        assert_eq!(titles(mails(&stage.mail)), by_web, "{what}");
    }
}

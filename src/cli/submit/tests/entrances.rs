//! Every setting of a job can be given at every entrance, but where `settings.rs` says why not.

use std::path::Path;

use clap::Parser;

use super::super::graph;
use crate::cli::job_options::JobOptions;
use crate::client::{Graph, JobBuilder, job_of_members, members_of_line};
use crate::config::Config;
use crate::proto::job::{Entrance, FieldKind, Job, SETTINGS, Setting};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: JobOptions,
}

const DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

const SIGNATURE: &str = "ops 2030-01-01T00:00:00Z RyQlOHwPfORT5suVSVG++cePgRsh6ub5m0J9R9I1Ou7h+xJwBEnJipImfoyrlwnH1Iusn+NhFdcf5SYOxwP8Cw==";

/// A value as the hash has it, on the command line, and in a TOML file.
fn sample(setting: &Setting) -> (&'static str, &'static str, String) {
    let quoted = |text| (text, text, format!("\"{text}\""));
    match (setting.field, setting.kind) {
        ("script_type", _) => quoted("python"),
        ("fallback", _) => quoted("type"),
        ("reply", _) => ("0", "", "false".to_owned()),
        ("backoff", _) => quoted("10s..5m"),
        ("retry_if" | "discard_if", _) => quoted("1,64-78"),
        ("output_overflow", _) => quoted("fail"),
        ("reply_format", _) => quoted("plain"),
        ("memory" | "job_memory", _) => quoted("512MiB"),
        ("traceparent", _) => quoted(TRACEPARENT),
        ("signature", _) => quoted(SIGNATURE),
        ("network", _) => quoted("none"),
        ("unique_by", _) => quoted("key"),
        ("on_duplicate", _) => quoted("reject"),
        ("script_digest", _) => quoted(DIGEST),
        ("where", _) => quoted("a = 1"),
        (_, FieldKind::Text) => quoted("a"),
        (_, FieldKind::Number) => ("2", "2", "2".to_owned()),
        (_, FieldKind::Duration) => ("90", "90s", "\"90s\"".to_owned()),
        (_, FieldKind::Flag) => {
            let value = if setting.negated.is_empty() { "true" } else { "false" };
            (value, "", value.to_owned())
        }
        (_, FieldKind::Time) => {
            let time = "2030-01-01T00:00:00Z";
            ("2030-01-01T00:00:00.000Z", time, format!("\"{time}\""))
        }
        (_, FieldKind::List) | ("secrets" | "tags" | "notify", _) => {
            (r#"["a"]"#, "a", "[\"a\"]".to_owned())
        }
        (_, FieldKind::Texts) => (r#"["a"]"#, "", "[\"a\"]".to_owned()),
        (_, FieldKind::Object) => (r#"{"A":1}"#, "", "{ A = 1 }".to_owned()),
        (_, FieldKind::Map) => (r#"{"A":"b"}"#, "A=b", "{ A = \"b\" }".to_owned()),
    }
}

/// Checks that an entrance gives the setting, or refuses it where the list says so.
fn check(setting: &Setting, entrance: &str, absent: Option<&str>, job: Result<Job, String>) {
    let field = setting.field;
    match (absent, job) {
        (None, Ok(job)) => {
            let fields = job.submitted_fields();
            let found = fields.iter().find(|(name, _)| *name == field);
            let text = found.map(|(_, text)| text.as_str());
            assert_eq!(text, Some(sample(setting).0), "{field} is lost by {entrance}");
        }
        (None, Err(error)) => panic!("{field} cannot be given by {entrance}: {error}"),
        (Some(_), Ok(_)) => panic!("{field} is accepted by {entrance}, and should not be"),
        (Some(reason), Err(error)) => {
            assert!(error.contains(reason), "{field} by {entrance} should say {reason}: {error}");
        }
    }
}

fn from_options(setting: &Setting) -> Result<Job, String> {
    let (option, value) = match setting.kind {
        FieldKind::Flag if setting.negated.is_empty() => (format!("--{}", setting.word), None),
        FieldKind::Flag => (format!("--no-{}", setting.word), None),
        _ => (format!("--{}", setting.word.replace('_', "-")), Some(sample(setting).1)),
    };
    let mut args = vec!["submit", &option];
    args.extend(value);
    if setting.word != "uses" {
        args.extend(["-e", "1"]);
    }
    if setting.word != "type" {
        args.extend(["--type", "python"]);
    }
    let line = Line::try_parse_from(args).map_err(|error| error.to_string())?;
    line.options.job(&Config::default()).map_err(|error| error.message)
}

/// The lines of a table beside the setting, and its own.
fn table(setting: &Setting, name: &str, others: &[(&str, &str)]) -> String {
    // A published script stands in place of a text.
    let has_text = |key: &str| key == "script" && setting.word == "uses";
    let others = others.iter().filter(|(key, _)| *key != setting.word && !has_text(key));
    let others: Vec<String> = others.map(|(key, value)| format!("{key} = {value}")).collect();
    format!("[{name}]\n{} = {}\n{}\n", setting.word, sample(setting).2, others.join("\n"))
}

fn graph_of(text: &str) -> Result<Graph, String> {
    let path = Path::new("g.toml");
    let source = graph::parse(path, text).map_err(|error| error.message)?;
    let read = graph::read(&source, path, &Config::default());
    let plan = read.map(|(_, plan, _)| plan).map_err(|error| error.message)?;
    Graph::of(plan).map_err(|error| error.to_string())
}

fn from_graph(text: &str) -> Result<Job, String> {
    let jobs = graph_of(text)?.jobs().map_err(|error| error.to_string())?;
    jobs.into_iter().next().ok_or_else(|| "no job".to_owned())
}

fn from_callback(text: &str) -> Result<Job, String> {
    let graph = graph_of(text)?;
    graph.callbacks().next().map(|(_, job)| job.clone()).ok_or_else(|| "no callback".to_owned())
}

fn from_cron(text: &str) -> Result<Job, String> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.toml"), text).expect("writing a file");
    let mut config = Config::default();
    folder.path().clone_into(&mut config.supervisor.cron_dir);
    let crontab = config.crontab();
    match (crontab.entries.first(), crontab.problems.first()) {
        (Some(entry), None) => {
            let mut job = entry.job(jiff::Timestamp::UNIX_EPOCH);
            job.spec.env_vars.retain(|name, _| !name.starts_with("HERO_"));
            Ok(job)
        }
        (_, problem) => Err(problem.map(ToString::to_string).unwrap_or_default()),
    }
}

fn from_line(setting: &Setting) -> Result<Job, String> {
    let mut line = serde_json::Map::new();
    line.insert("script".to_owned(), "1".into());
    line.insert(setting.field.to_owned(), sample(setting).0.into());
    let line = serde_json::Value::Object(line).to_string();
    let members = members_of_line(line.as_bytes());
    members.and_then(job_of_members).map_err(|error| error.to_string())
}

fn from_hash(setting: &Setting) -> Result<Job, String> {
    let fields = [("script", "1"), (setting.field, sample(setting).0)];
    let pairs = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    Job::from_hash("a".parse().expect("legal"), pairs).map_err(|error| error.to_string())
}

fn from_builder(setting: &Setting) -> Result<Job, String> {
    let new = JobBuilder::new("osis", "1");
    let builder = match setting.field {
        "id" => new.id("a"),
        "script" => new.script("a"),
        "name" => new.name("a"),
        "caller_id" => new.caller_id("a"),
        "context_id" => new.context_id("a"),
        "uses" => new.uses("a"),
        "script_digest" => new.script_digest(DIGEST),
        "script_type" => new.script_type("python"),
        "extension" => new.extension("a"),
        "group" => new.group("a"),
        "instance" => new.instance(2),
        "where" => new.r#where("a = 1"),
        "fallback" => new.fallback("type"),
        "priority" => new.priority(2),
        "timeout" => new.timeout(std::time::Duration::from_secs(90)),
        "retries" => new.retries(2),
        "backoff" => new.backoff("10s..5m"),
        "retry_if" => new.retry_if("1,64-78"),
        "discard_if" => new.discard_if("1,64-78"),
        "concurrent" => new.concurrent(false),
        "tags" => new.tag("a"),
        "log_path" => new.log_path("a"),
        "env_vars" => new.env("A", "b"),
        "args" => new.arg("a"),
        "secrets" => new.secret("a"),
        "params" => new.param("A", 1.into()),
        "prerequisites" => new.after("a"),
        "after_any" => new.after_any("a"),
        "prerequisite_names" => new.prerequisite_name("A", "b"),
        "run_at" => new.run_at("2030-01-01T00:00:00Z".parse().expect("a time")),
        "expires" => new.expires(std::time::Duration::from_secs(90)),
        "expect_within" => new.expect_within(std::time::Duration::from_secs(90)),
        "slow_after" => new.slow_after(std::time::Duration::from_secs(90)),
        "unique_key" => new.unique_key("a"),
        "unique_for" => new.unique_for(std::time::Duration::from_secs(90)),
        "unique_by" => new.unique_by("key"),
        "on_duplicate" => new.on_duplicate("reject"),
        "debounce" => new.debounce(std::time::Duration::from_secs(90)),
        "debounce_max" => new.debounce_max(std::time::Duration::from_secs(90)),
        "memory" => new.memory("512MiB"),
        "job_memory" => new.job_memory("512MiB"),
        "cpu" => new.cpu_time(std::time::Duration::from_secs(90)),
        "network" => new.network("none"),
        "limit_key" => new.limit_key("a"),
        "shard_key" => new.shard_key("a"),
        "traceparent" => new.traceparent(TRACEPARENT),
        "retention" => new.retention(std::time::Duration::from_secs(90)),
        "durable" => new.durable(true),
        "may_fail" => new.may_fail(true),
        "reply" => new.reply(false),
        "output_overflow" => new.output_overflow("fail"),
        "reply_format" => new.reply_format("plain"),
        "notify" => new.notify("a"),
        "signature" => new.signature(SIGNATURE),
        other => panic!("add {other} to this test of the builder"),
    };
    builder.build().map_err(|error| error.to_string())
}

#[test]
fn every_setting_can_be_given_at_every_entrance() {
    let of_job = [("type", "\"python\""), ("script", "\"1\"")];
    let of_cron = [
        ("type", "\"python\""),
        ("script", "\"1\""),
        ("schedule", "\"@daily\""),
        ("unique_key", "\"k\""),
    ];
    for setting in SETTINGS {
        let absent = |entrance| setting.absent_at(entrance);
        match absent(Entrance::CommandLine) {
            None => check(setting, "the command line", None, from_options(setting)),
            Some(_) => assert!(from_options(setting).is_err(), "{}", setting.field),
        }
        let graph = from_graph(&table(setting, "job.n", &of_job));
        check(setting, "a graph", absent(Entrance::Graph), graph);
        let defaults =
            format!("{}[job.n]\nscript = \"1\"\n", table(setting, "defaults", &of_job[..1]));
        check(
            setting,
            "the defaults of a graph",
            absent(Entrance::GraphDefaults),
            from_graph(&defaults),
        );
        let callback = format!(
            "[job.a]\ntype = \"osis\"\nscript = \"1\"\n{}",
            table(setting, "on_end", &of_job)
        );
        let callback = from_callback(&callback);
        check(setting, "a callback", absent(Entrance::GraphCallback), callback);
        let cron = from_cron(&table(setting, "cron.a", &of_cron));
        check(setting, "a periodic job", absent(Entrance::PeriodicJob), cron);
        check(setting, "a line of a batch", None, from_line(setting));
        check(setting, "the builder", None, from_builder(setting));
        check(setting, "the hash", None, from_hash(setting));
        let json = from_hash(setting).expect("a legal hash").to_json();
        assert!(json.get(setting.field).is_some(), "{} is not in the JSON", setting.field);
    }
}

#[test]
fn every_gap_has_its_reason() {
    let gaps = SETTINGS.iter().flat_map(|setting| {
        setting.absent.iter().map(|(entrance, reason)| (setting.field, *entrance, *reason))
    });
    for (field, entrance, reason) in gaps {
        assert!(!reason.is_empty(), "{field} is absent at {entrance:?} without a reason");
    }
}

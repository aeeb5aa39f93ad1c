//! Signed jobs: every way to submit signs, and another program can sign too.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::sandboxed_daemon::reload;
use super::{field, until};
use crate::support::{Hero, Redis, Served, keys, needs, replace_file, request, wait_until};

/// Makes the key `ops`, and returns its file and a program whose bash jobs must be signed by it.
fn with_key(redis: &Redis) -> (Hero, String) {
    let file = redis.folder().join("ops.key").display().to_string();
    let made = Hero::on(redis).run(&["key", "new", "ops", "--file", &file]).code(0).stdout;
    let hero = Hero::on(redis).add(&made).set("type.bash.require_signature", "[\"ops\"]");
    (hero, file)
}

#[test]
fn every_way_to_submit_signs_and_each_place_reports_the_signature() {
    let redis = Redis::start();
    let (hero, ops) = with_key(&redis);
    let _actor = hero.actor("bash-default-1").start();
    let folder = redis.folder();
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).expect("written");
        folder.join(name).display().to_string()
    };
    let input = write("data.csv", "1,2\n");
    let exec = ["exec", "-t", "bash", "--sign", &ops, "--input", &input, "--stdin", &input];
    let script = "cat \"$HERO_INPUT_DIR/data.csv\" -";
    hero.run(&[&exec[..], &["--id", "one", "-e", script]].concat()).code(0).stdout("1,2\n1,2\n");
    let shown = hero.run(&["job", "show", "one"]).code(0).stdout;
    assert!(shown.contains("by ops until 20"), "{shown}");
    let graph = write(
        "graph.toml",
        "[job.a]\nid = \"a\"\ntype = \"bash\"\nscript = \"echo 1\"\n[job.b]\nid = \"b\"\ntype = \"bash\"\n\
         after = [\"a\"]\nscript = \"cat $HERO_INPUTS\"\n",
    );
    hero.run(&["submit", "--graph", &graph, "--sign", &ops]).code(0);
    let batch = write(
        "batch.jsonl",
        "{\"script_type\": \"bash\", \"script\": \"echo 1\", \"id\": \"c\"}\n",
    );
    hero.run(&["submit", "--batch", &batch, "--sign", &ops, "--signed-for", "1h"]).code(0);
    for id in ["a", "b", "c"] {
        until(&redis, id, "finished");
        assert!(field(&redis, id, "signature").is_some_and(|text| text.starts_with("ops 20")));
    }
    let unsigned = ["exec", "-t", "bash", "-e", "echo 1"];
    hero.run(&unsigned).code(1).says("must be signed by ops: hero submit --sign KEY_FILE");
    let callback =
        ["submit", "--batch", &batch, "--sign", &ops, "--on-end", &write("e.sh", "true")];
    hero.run(&callback).code(65).says("cannot sign a callback");
    // A copy is another job.
    let copy = hero.run(&["job", "clone", "one"]).code(0).stdout;
    assert_eq!(field(&redis, copy.trim(), "signature"), None);
}

fn has_openssl(hero: &Hero) -> bool {
    needs("openssl", || hero.command_of_user("openssl").arg("version").output().is_ok())
}

/// Signs a bash job with these parts by another program than Hero, with the key `ops` in a file.
#[track_caller]
fn signed_by_openssl(hero: &Hero, ops: &str, parts: &Value) -> String {
    let program = "import base64, json, subprocess, sys\n\
        key, until = sys.argv[1], '2100-01-01T00:00:00Z'\n\
        parts = {**json.loads(sys.argv[2]), 'target': 'type:bash', 'key': 'ops', 'not_after': until}\n\
        text = b'hero-signed-job-1\\n'\n\
        for name in sorted(parts, key=str.encode):\n\
        \x20   value = parts[name].encode()\n\
        \x20   text += b'%s %d\\n%s\\n' % (name.encode(), len(value), value)\n\
        open(key + '.text', 'wb').write(text)\n\
        sign = ['openssl', 'pkeyutl', '-sign', '-rawin', '-inkey', key, '-in', key + '.text']\n\
        print('ops', until, base64.b64encode(subprocess.run(sign, check=True, capture_output=True).stdout).decode())";
    let args = ["-c", program, ops, &parts.to_string()];
    let signed = hero.command_of_user("/usr/bin/python3").args(args).output();
    let signed = signed.expect("python runs");
    assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    String::from_utf8_lossy(&signed.stdout).trim().to_owned()
}

#[test]
fn job_that_another_program_signed_runs() {
    let redis = Redis::start();
    let (hero, ops) = with_key(&redis);
    if !has_openssl(&hero) {
        return;
    }
    let _actor = hero.actor("bash-default-1").start();
    let signature =
        signed_by_openssl(&hero, &ops, &json!({ "id": "foreign", "script": "echo für" }));
    let job = keys::job("foreign");
    for (name, value) in [("script_type", "bash"), ("signature", &signature), ("timeout", "")] {
        redis.set_field(&job, name, value);
    }
    redis.push_job("bash", "foreign", "echo für");
    until(&redis, "foreign", "finished");
}

#[test]
fn key_is_written_once_and_read_only_if_nobody_else_can() {
    let redis = Redis::absent(false);
    let hero = Hero::on(&redis);
    let file = redis.folder().join("ops.key").display().to_string();
    let made = hero.run(&["key", "new", "ops", "--file", &file]).code(0).stdout;
    let permissions = || fs::metadata(&file).expect("a file").permissions().mode() & 0o777;
    assert_eq!(permissions(), 0o600);
    hero.run(&["key", "show", &file]).code(0).stdout(&made);
    hero.run(&["key", "new", "ops", "--file", &file]).code(65).says("exists");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a mode");
    hero.run(&["key", "show", &file]).code(77).says("others may read it");
    hero.run(&["key", "new", "o ps"]).code(65).says("name of a key");
    hero.run(&["key", "show", "/dev/null/ops.key"]).code(66);
}

#[test]
fn type_whose_jobs_must_be_signed_has_no_sessions() {
    let redis = Redis::start();
    let (hero, _) = with_key(&redis);
    let site = Served::with(hero, &redis);
    let start = request("session.start", &json!({ "script_type": "bash", "wait": 0 }));
    let answer = site.unix().post("/rpc", &[], &start).json();
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("must be signed"), "{answer}");
}

#[test]
fn configuration_with_an_unknown_key_or_unsigned_children_is_rejected() {
    let redis = Redis::absent(false);
    let unknown = Hero::on(&redis).set("type.bash.require_signature", "[\"ops\"]");
    unknown.run(&["check"]).code(78).says("names the key ops, which is not configured");
    let made = Hero::on(&redis).run(&[
        "key",
        "new",
        "ops",
        "--file",
        &redis.folder().join("ops.key").display().to_string(),
    ]);
    let signed =
        || Hero::on(&redis).add(&made.stdout).set("type.bash.require_signature", "[\"ops\"]");
    signed()
        .set("type.python.may_submit", "[\"bash\"]")
        .run(&["check"])
        .code(78)
        .says("must be signed");
    let folder = redis.folder().join("cron");
    fs::create_dir(&folder).expect("a folder");
    let entry = "[cron.night]\nschedule = \"@daily\"\ntype = \"bash\"\nscript = \"1\"\n";
    fs::write(folder.join("night.toml"), entry).expect("written");
    let cron = signed().set("supervisor.cron_dir", &format!("{:?}", folder.display().to_string()));
    cron.run(&["check"]).says("jobs of bash must be signed, and periodic jobs cannot be");
    let wrong = Hero::on(&redis).set("keys.ops.public_key", "\"AAAA\"");
    wrong.run(&["check"]).code(78).says("Ed25519 public key");
}

/// Returns the time until which the signature of a job holds.
fn holds_until(redis: &Redis, id: &str) -> Timestamp {
    let signature = field(redis, id, "signature").expect("a signature");
    signature.split(' ').nth(1).expect("a time").parse().expect("RFC 3339")
}

#[test]
fn expired_signature_is_distinguished_from_a_missing_and_an_unknown_one_everywhere() {
    let redis = Redis::start();
    let (hero, ops) = with_key(&redis);
    let other = redis.folder().join("dev.key").display().to_string();
    hero.run(&["key", "new", "dev", "--file", &other]).code(0);
    let site = Served::with(hero, &redis);
    let hero = &site.hero;
    let submit = |id: &str, how: &[&str]| {
        let plain = ["submit", "-t", "bash", "--id", id, "-e", "echo 1"];
        hero.run(&[&plain[..], how].concat()).code(0);
    };
    submit("late", &["--sign", &ops, "--signed-for", "1s"]);
    submit("none", &[]);
    submit("unknown", &["--sign", &other]);
    let ends = holds_until(&redis, "late");
    wait_until("its signature has run out", || Timestamp::now() > ends);
    submit("good", &["--sign", &ops]);
    let _actor = hero.actor("bash-default-1").start();
    let page =
        |id: &str| site.unix().get(&format!("/jobs/{id}"), &[("accept", "text/html")]).text();
    for (id, said) in [
        ("late", "signature ran out: the key ops has signed until 20"),
        ("none", "signature is missing; jobs of bash must be signed by ops"),
        ("unknown", "signature is by the key dev; jobs of bash must be signed by ops"),
    ] {
        until(&redis, id, "error");
        let shown = hero.run(&["job", "show", id]).code(0).stdout;
        assert!(shown.contains(said), "{shown}");
        assert!(page(id).contains(said), "{id}");
    }
    let errors = hero.run(&["job", "errors"]).code(0).stdout;
    for kind in ["signature ran out", "signature is missing", "signature is by the key dev"] {
        assert_eq!(errors.matches(kind).count(), 1, "{errors}");
    }
    let because = |word: &str| {
        let list = ["--json", "job", "list", "--failed-because", word];
        let found: Value = serde_json::from_str(&hero.run(&list).code(0).stdout).expect("JSON");
        let api = site.call("job.list", &json!({ "failed_because": word }));
        let ids = |of: &Value| {
            let jobs = of["jobs"].as_array().expect("jobs").iter();
            let mut ids: Vec<String> =
                jobs.map(|job| job["id"].as_str().expect("an id").to_owned()).collect();
            ids.sort();
            ids
        };
        assert_eq!(ids(&found), ids(&api), "{word}");
        ids(&found)
    };
    assert_eq!(because("signature_expired"), ["late"]);
    assert_eq!(because("unsigned"), ["none", "unknown"]);
    assert_eq!(because("invalid"), [] as [&str; 0]);
    until(&redis, "good", "finished");
    let until = holds_until(&redis, "good");
    assert!(page("good").contains(&format!("<dt>Signature</dt><dd>by ops until {until}</dd>")));
    assert!(!page("none").contains("<dt>Signature</dt>"));
}

#[test]
fn job_of_the_api_brings_its_own_signature() {
    let redis = Redis::start();
    let (hero, ops) = with_key(&redis);
    if !has_openssl(&hero) {
        return;
    }
    let site = Served::with(hero, &redis);
    let _actor = site.hero.actor("bash-default-1").start();
    let parts =
        json!({ "id": "a", "script": "echo api", "caller_id": "ann", "params": "{\"n\":1}" });
    let signature = signed_by_openssl(&site.hero, &ops, &parts);
    let token = site.token(&["ann", "--scope", "read,submit"]);
    let submit = |change: &Value| {
        let mut job = json!({
            "id": "a", "script_type": "bash", "script": "echo api", "params": { "n": 1 }, "signature": signature,
        });
        for (name, value) in change.as_object().expect("an object") {
            job[name] = value.clone();
        }
        let request = crate::support::request("job.run", &json!({ "job": job }));
        let bearer = format!("Bearer {token}");
        let answer = site.tcp().post("/rpc", &[("authorization", &bearer)], &request);
        serde_json::from_str::<Value>(&answer.text()).expect("JSON")
    };
    let done = submit(&json!({}));
    assert_eq!(done["result"]["output"], json!("api"), "{done}");
    site.hero.run(&["job", "delete", "a"]).code(0);
    for change in [
        json!({ "script": "echo evil" }),
        json!({ "params": { "n": 2 } }),
        json!({ "id": "b" }),
        json!({ "timeout": 5 }),
    ] {
        let done = submit(&change);
        let error = done["result"]["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains("the key ops has not signed the job as it is now"), "{done}");
        let id = change["id"].as_str().unwrap_or("a").to_owned();
        site.hero.run(&["job", "delete", &id]).code(0);
    }
    let done = submit(&json!({ "signature": "ops" }));
    assert!(
        done["error"]["message"].as_str().is_some_and(|why| why.contains("KEY TIME")),
        "{done}"
    );
}

#[test]
fn reload_takes_a_new_key_and_refuses_the_old_one() {
    let redis = Redis::start();
    let (hero, ops) = with_key(&redis);
    let actor = hero.actor("bash-default-1").start();
    let run = |key: &str| hero.run(&["exec", "-t", "bash", "--sign", key, "-e", "echo 1"]);
    run(&ops).code(0);
    let folder = redis.folder().join("new");
    fs::create_dir(&folder).expect("a folder");
    // A key that is replaced keeps its name.
    let new = folder.join("ops.key").display().to_string();
    let made = hero.run(&["key", "new", "ops", "--file", &new]).code(0).stdout;
    run(&new).code(1).says("the key ops has not signed the job as it is now");
    let public = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("public_key")).expect("a key");
        line.to_owned()
    };
    let old = public(&hero.run(&["key", "show", &ops]).code(0).stdout);
    let config = fs::read_to_string(actor.config()).expect("its configuration");
    replace_file(actor.config(), &config.replace(&old, &public(&made)));
    let said = reload(&actor);
    assert!(said.contains("read the configuration again"), "{said}");
    run(&new).code(0);
    run(&ops).code(1).says("the key ops has not signed the job as it is now");
}

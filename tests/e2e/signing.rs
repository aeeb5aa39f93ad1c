//! Signed jobs: every way to submit signs, and another program can sign too.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{field, until};
use crate::support::{Hero, Redis, keys, needs};

/// Makes the key `ops`, and returns its file and a program whose bash jobs must be signed by it.
fn with_key(redis: &Redis) -> (Hero, String) {
    let file = redis.folder().join("ops.key").display().to_string();
    let made = Hero::on(redis).run(&["key", "new", "ops", "--file", &file]).code(0).stdout;
    let hero = Hero::on(redis).add(&made).set("type.bash.require_signature", "[\"ops\"]");
    (hero, file)
}

#[test]
fn every_way_to_submit_signs_and_each_place_tells_the_signature() {
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

#[test]
fn job_that_another_program_signed_runs() {
    let redis = Redis::start();
    let (hero, ops) = with_key(&redis);
    let version = || hero.command_of_user("openssl").arg("version").output();
    if !needs("openssl", || version().is_ok()) {
        return;
    }
    let _actor = hero.actor("bash-default-1").start();
    let program = "import base64, subprocess, sys\n\
        key, until = sys.argv[1], '2100-01-01T00:00:00Z'\n\
        parts = {'id': 'foreign', 'script': 'echo für', 'target': 'type:bash', 'key': 'ops', 'not_after': until}\n\
        text = b'hero-signed-job-1\\n'\n\
        for name in sorted(parts, key=str.encode):\n\
        \x20   value = parts[name].encode()\n\
        \x20   text += b'%s %d\\n%s\\n' % (name.encode(), len(value), value)\n\
        open(key + '.text', 'wb').write(text)\n\
        sign = ['openssl', 'pkeyutl', '-sign', '-rawin', '-inkey', key, '-in', key + '.text']\n\
        print('ops', until, base64.b64encode(subprocess.run(sign, check=True, capture_output=True).stdout).decode())";
    let signed = hero.command_of_user("/usr/bin/python3").args(["-c", program, &ops]).output();
    let signed = signed.expect("python runs");
    assert!(signed.status.success(), "{}", String::from_utf8_lossy(&signed.stderr));
    let signature = String::from_utf8_lossy(&signed.stdout).trim().to_owned();
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

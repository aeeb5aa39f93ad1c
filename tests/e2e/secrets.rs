//! Secrets: jobs use values of the actor's machine by name, and nothing shows them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use crate::support::{Hero, Redis, needs, wait_until};

use super::{field, until};

const VALUE: &str = "hunter2\"correct horse";

fn with_secrets(redis: &Redis) -> Hero {
    let folder = redis.folder().join("secrets");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("a mode");
    write(redis, "db", &format!("{VALUE}\n"), 0o600);
    Hero::on(redis)
        .set("secrets.dir", &format!("{:?}", folder.display().to_string()))
        .set("secrets.allow.db.types", "[\"python\", \"bash\", \"node\", \"osis\", \"sal\"]")
        .set("secrets.allow.db.callers", "[\"me\"]")
}

fn write(redis: &Redis, name: &str, text: &str, mode: u32) {
    let file = redis.folder().join("secrets").join(name);
    fs::write(&file, text).expect("written");
    fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
}

/// Everything that Redis holds, as text.
fn everything(redis: &Redis) -> String {
    let mut all = String::new();
    for key in redis.ask::<Vec<String>>("KEYS *") {
        let bytes: Option<Vec<u8>> = redis.ask_with("DUMP", &[&key]);
        all.push_str(&String::from_utf8_lossy(&bytes.unwrap_or_default()));
        let kind: String = redis.ask_with("TYPE", &[&key]);
        let read = match kind.as_str() {
            "hash" => format!("{:?}", redis.ask_with::<Vec<String>, _>("HGETALL", &[&key])),
            "stream" => {
                format!("{:?}", redis.ask_with::<redis::Value, _>("XRANGE", &[&key, "-", "+"]))
            }
            "list" => {
                format!("{:?}", redis.ask_with::<Vec<String>, _>("LRANGE", &[&key, "0", "-1"]))
            }
            "string" => redis.ask_with("GET", &[&key]),
            _ => String::new(),
        };
        all.push_str(&read);
    }
    all
}

#[track_caller]
fn shows_no_secret(text: &str) {
    for part in ["hunter2", "correct horse"] {
        assert!(!text.contains(part), "{text}");
    }
}

#[test]
fn secret_reaches_scripts_of_every_kind_and_nothing_shows_it() {
    let redis = Redis::start();
    let hero = with_secrets(&redis).set("log.level", "\"debug\"");
    let mut units = vec!["python-default-1", "bash-default-1", "osis-default-1", "sal-default-1"];
    if needs("node", || std::path::Path::new("/usr/bin/node").exists()) {
        units.push("node-default-1");
    }
    let actors: Vec<_> = units.iter().map(|unit| hero.actor(unit).start()).collect();
    let scripts = [
        (
            "python",
            "--secret=KEY=db",
            "import os, sys, hero\nkey = os.environ['KEY']\nhero.log(key)\n\
          print(key, file=sys.stderr)\nhero.progress(0.5, key)\nprint(len(key), key, [key])",
        ),
        ("bash", "--secret=db", "echo \"$db\" >&2; echo \"${#db} $db $*\""),
        ("node", "--secret=KEY=db", "console.log(process.env.KEY.length, process.env.KEY)"),
        ("osis", "--secret=KEY=db", "let key = secret(\"db\"); print(key); `${key.len()} ${key}`"),
        (
            "sal",
            "--secret=KEY=db",
            "let key = secret(\"db\"); print(key); key.len().to_string() + run_command(\"printenv KEY\").stdout",
        ),
        (
            "bash",
            "--secret=file:db",
            "stat -c %a \"$HERO_SECRET_DIR/db\"; wc -c < \"$HERO_SECRET_DIR/db\"; cat \"$HERO_SECRET_DIR/db\"",
        ),
    ];
    let mut told = String::new();
    for (script_type, secret, script) in scripts {
        if !units.iter().any(|unit| unit.starts_with(script_type)) {
            continue;
        }
        let args = ["exec", "-t", script_type, "--caller", "me", secret, "-e", script];
        let done = hero.run(&args).code(0);
        let length = if secret.contains("file") { "600\n22" } else { "21" };
        assert!(done.stdout.starts_with(length), "{script_type}: {}", done.stdout);
        assert!(done.stdout.contains("***"), "{script_type}: {}", done.stdout);
        told.push_str(&done.stdout);
        told.push_str(&done.stderr);
    }
    // The error and the output of a failed script.
    let failing = "echo \"out $db\"; echo \"err $db\" >&2; exit 3";
    let args = ["exec", "-t", "bash", "--caller=me", "--secret=db", "--id=failed", "-e", failing];
    told.push_str(&hero.run(&args).code(3).says("***").stderr);
    for args in [
        &["job", "show", "failed"][..],
        &["--json", "job", "show", "failed"],
        &["job", "logs", "failed"],
        &["--json", "job", "list"],
    ] {
        told.push_str(&hero.run(args).code(0).stdout);
    }
    assert_eq!(field(&redis, "failed", "secrets").as_deref(), Some("[\"db\"]"));
    shows_no_secret(&told);
    for actor in &actors {
        shows_no_secret(&actor.err());
        shows_no_secret(&actor.out());
    }
    shows_no_secret(&everything(&redis));
}

#[test]
fn secret_reaches_warm_python() {
    let redis = Redis::start();
    let hero = with_secrets(&redis).set("type.python.warm", "true");
    let _actor = hero.actor("python-default-1").start();
    let script = "import os, sys\nprint('ctypes' in sys.modules, len(os.environ['db']), sys.argv)\n\
                  print(open(os.environ['HERO_SECRET_DIR'] + '/db').read().count('horse'))";
    let secrets = ["--caller=me", "--secret=db", "--secret=file:db"];
    wait_until("the job is a fork", || {
        let args = [&["exec", "-t", "python", "-e", script], &secrets[..]].concat();
        let output = hero.run(&args).code(0).stdout;
        assert!(output.contains(" 21 ['/") && output.ends_with("]\n1\n"), "{output}");
        output.starts_with("True")
    });
    // The next fork has nothing of it.
    let next = "import os\nprint('db' in os.environ, 'HERO_SECRET_DIR' in os.environ)";
    hero.run(&["exec", "-t", "python", "-e", next]).code(0).stdout("False False\n");
}

#[test]
fn secret_that_a_job_may_not_use_ends_it_without_a_retry() {
    let redis = Redis::start();
    let hero = with_secrets(&redis).set("secrets.allow.open.types", "[\"bash\"]");
    write(&redis, "open", "visible to all", 0o644);
    write(&redis, "hidden", "nobody's", 0o600);
    let _actor = hero.actor("bash-default-1").start();
    let refused = |id: &str, secret: &str, caller: &str, why: &str| {
        let args = [
            "submit",
            "-t",
            "bash",
            "--retries=3",
            "--id",
            id,
            "--caller",
            caller,
            "--secret",
            secret,
        ];
        hero.run(&[&args[..], &["-e", "echo ran"]].concat()).code(0);
        until(&redis, id, "error");
        let error = field(&redis, id, "error").expect("an error");
        assert!(error.starts_with("invalid job: secrets `") && error.contains(why), "{error}");
        assert_eq!(field(&redis, id, "attempt").as_deref(), Some("1"));
    };
    refused("a", "db", "you", "type bash, group default, caller you: [secrets.allow.db]");
    refused("b", "hidden", "me", "add [secrets.allow.hidden] with types = [\"bash\"]");
    refused("c", "open", "me", "chmod o-rwx");
    fs::remove_file(redis.folder().join("secrets/db")).expect("removed");
    refused("d", "db", "me", "does not exist on the actor's machine");
    let link = redis.folder().join("secrets/db");
    std::os::unix::fs::symlink("/etc/shadow", link).expect("a link");
    refused("e", "db", "me", "it is a link");
}

#[test]
fn hostile_names_of_secrets_are_rejected_at_submission() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let large = "x".repeat(200);
    for (secret, why) in [
        ("../../etc/shadow", "name of a secret"),
        ("file:/etc/shadow", "name of a secret"),
        ("file:..", "name of a secret"),
        ("LD_PRELOAD=db", "cannot hold a secret"),
        ("PATH=db", "cannot hold a secret"),
        ("HERO_FD=db", "cannot hold a secret"),
        ("A-B=db", "is not a legal variable name"),
        (&large, "name of a secret"),
    ] {
        hero.run(&["submit", "-t", "bash", "-e", "1", "--secret", secret]).code(65).says(why);
    }
    let twice = ["submit", "-t", "bash", "-e", "1", "--secret=A=a", "--secret=A=b"];
    hero.run(&twice).code(65).says("--secret: has `A` twice");
    let line = r#"{"script_type":"bash","script":"1","secrets":["a\u0000"]}"#;
    hero.run_with_input(&["submit", "--batch", "-"], line).code(65).says("secrets");
    assert_eq!(redis.all("JOB").len(), 0, "nothing was submitted");
}

#[test]
fn check_and_doctor_say_which_secrets_jobs_cannot_use() {
    let redis = Redis::start();
    let hero = with_secrets(&redis).set("secrets.allow.open.types", "[\"bash\"]");
    write(&redis, "open", VALUE, 0o644);
    write(&redis, "unused", VALUE, 0o600);
    let checked = hero.run(&["check"]).code(0);
    assert!(checked.stdout.contains("secrets: db\n"), "{}", checked.stdout);
    let checked = checked
        .says("hero: secret open: others may use it: chmod o-rwx ")
        .says("hero: secret unused: no job may use it: add [secrets.allow.\"unused\"]");
    shows_no_secret(&format!("{}{}", checked.stdout, checked.stderr));
    let document = hero.run(&["check", "--json"]).code(0).stdout;
    let document: serde_json::Value = serde_json::from_str(&document).expect("one document");
    assert_eq!(document["secrets"], serde_json::json!(["db"]));
    let page = hero.run(&["doctor"]).stdout;
    assert!(page.contains("secret open: others may use it"), "{page}");
}

//! The folder of `[artifacts]`: contents by their SHA-256, who deletes them, and what happens without it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Disk, Hero, Redis, keys, wait_until};

use super::field;

/// Prints 300 KiB.
const MAKE: &str = "head -c 307200 /dev/zero | tr '\\0' x";

fn hero(redis: &Redis) -> (Hero, PathBuf) {
    let dir = redis.folder().join("artifacts");
    fs::create_dir(&dir).expect("a folder");
    (with(redis, &dir), dir)
}

fn with(redis: &Redis, dir: &Path) -> Hero {
    Hero::on(redis)
        .quick_sweeps()
        .set("artifacts.dir", &format!("\"{}\"", dir.display()))
        .set("artifacts.max_size", "\"1MiB\"")
        .set("job.files_size_max", "\"128KiB\"")
}

#[expect(clippy::disallowed_methods, reason = "the folder is looked at by other programs")]
fn tool(program: &str, args: &[&str], path: &Path) -> String {
    let done = Command::new(program).args(args).arg(path).output().expect("it runs");
    String::from_utf8(done.stdout).expect("text")
}

/// The files of contents, each checked by sha256sum.
fn contents(dir: &Path) -> Vec<PathBuf> {
    let shell =
        "cd \"$1\" && find hero.files -type f -path 'hero.files/??/*' -name '????????????????*'";
    let found = tool("sh", &["-c", shell, "sh"], dir);
    let files: Vec<PathBuf> = found.lines().map(|line| dir.join(line)).collect();
    for file in &files {
        let name = file.file_name().expect("a name").to_str().expect("text");
        let sum = tool("sha256sum", &[], file);
        // A supervisor may delete it meanwhile.
        assert!(sum.starts_with(name) || !file.exists(), "{}", file.display());
    }
    files
}

fn age(file: &Path) {
    tool("touch", &["-d", "2 days ago"], file);
}

#[test]
fn large_files_go_through_the_folder_and_back_unchanged() {
    let redis = Redis::start();
    let (hero, dir) = hero(&redis);
    let given = redis.folder().join("given");
    fs::write(&given, vec![b'x'; 307_200]).expect("written");
    let input = format!("in.bin={}", given.display());
    let given = given.to_str().expect("UTF-8");
    let script = "cd \"$HERO_OUTPUT_DIR\"; cat \"$HERO_INPUT_DIR/in.bin\" - > both; \
                  cp \"$HERO_INPUT_DIR/in.bin\" again; echo small > small; ls \"$DIR\" 2> /dev/null || echo closed";
    let env = format!("DIR={}", dir.display());
    hero.run(&[
        "submit", "-t", "bash", "--id", "a", "--input", &input, "--stdin", given, "--env", &env,
        "-e", script,
    ])
    .code(0);
    assert_eq!(contents(&dir).len(), 1, "two files of one content");
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["job", "wait", "a"]).code(0).stdout("closed\n");
    assert_eq!(contents(&dir).len(), 2);
    let listed = hero.run(&["job", "files", "a"]).code(0).stdout;
    assert!(listed.contains("614400") && listed.contains("307200"), "{listed}");
    let fetched = redis.folder().join("fetched");
    let to = fetched.to_str().expect("UTF-8");
    for (name, times) in [("both", 2), ("again", 1), ("in.bin", 1)] {
        hero.run(&["job", "fetch", "a", name, "-o", to]).code(0);
        assert_eq!(fs::read(&fetched).expect("written"), vec![b'x'; 307_200 * times], "{name}");
    }
    hero.run(&["job", "fetch", "a", "small", "-o", "-"]).code(0).stdout("small\n");
    let size = redis.ask::<u64>(&format!("MEMORY USAGE {}", keys::files("a")));
    assert!(size < 10_000, "{size} bytes are in Redis");
    // A copy and a retry name the same content.
    let copy = hero.run(&["job", "clone", "a"]).code(0).stdout;
    hero.run(&["job", "wait", copy.trim()]).code(0);
    hero.run(&["job", "retry", "a"]).code(0);
    hero.run(&["job", "wait", "a"]).code(0);
    assert_eq!(contents(&dir).len(), 2);
}

#[test]
fn next_job_of_a_graph_gets_large_files() {
    let redis = Redis::start();
    let (hero, _dir) = hero(&redis);
    let graph = redis.folder().join("g.toml");
    let text = format!(
        "[defaults]\ntype = \"bash\"\n\
         [job.make]\nscript = '''{MAKE} > \"$HERO_OUTPUT_DIR/out\"'''\n\
         [job.use]\nid = \"use\"\nafter = [\"make\"]\nscript = 'wc -c < \"$HERO_INPUT_DIR/make/out\"'\n"
    );
    fs::write(&graph, text).expect("written");
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["submit", "--graph", graph.to_str().expect("UTF-8")]).code(0);
    hero.run(&["job", "wait", "use"]).code(0).stdout("307200\n");
}

#[test]
fn content_is_deleted_only_when_no_kept_job_names_it() {
    let redis = Redis::start();
    let (hero, dir) = hero(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let script = format!("{MAKE} > \"$HERO_OUTPUT_DIR/out\"");
    for id in ["a", "b"] {
        hero.run(&["exec", "-t", "bash", "--id", id, "-e", &script]).code(0);
    }
    let other = format!(
        "echo y > \"$HERO_OUTPUT_DIR/own\"; {script}; cat \"$HERO_OUTPUT_DIR\"/o* > \
                         \"$HERO_OUTPUT_DIR/other\""
    );
    hero.run(&["exec", "-t", "bash", "--id", "c", "-e", &other]).code(0);
    let all = contents(&dir);
    assert_eq!(all.len(), 2);
    for id in ["a", "c"] {
        hero.run(&["job", "delete", id]).code(0);
    }
    let begun = dir.join("hero.files/new/left by a dead process");
    fs::write(&begun, "x").expect("written");
    for file in &all {
        age(file);
    }
    age(&begun);
    let supervisor = hero.supervisor().start();
    wait_until("the content of c is deleted", || contents(&dir).len() == 1);
    hero.run(&["job", "fetch", "b", "out", "-o", "-"]).code(0);
    assert!(!begun.exists());
    wait_until("it is said in the log", || supervisor.err().contains("deleted 1 file of"));
    // The files of the job expire with it, without any command.
    redis.run(&format!("PEXPIRE {} 1", keys::files("b")));
    wait_until("the content of b is deleted", || contents(&dir).is_empty());
    let key = hero::proto::keys::Keys::default().contents();
    assert_eq!(redis.ask::<u64>(&format!("ZCARD {key}")), 0);
}

#[test]
fn files_of_ended_jobs_go_after_their_own_time() {
    let redis = Redis::start();
    let (hero, dir) = hero(&redis);
    let hero = hero.set("artifacts.retention", "\"1s\"");
    let _bash = hero.actor("bash-default-1").start();
    let script = format!("{MAKE} > \"$HERO_OUTPUT_DIR/out\"; echo x > \"$HERO_OUTPUT_DIR/small\"");
    hero.run(&["exec", "-t", "bash", "--id", "a", "-e", &script]).code(0);
    for file in contents(&dir) {
        age(&file);
    }
    let _supervisor = hero.supervisor().start();
    wait_until("it is deleted", || contents(&dir).is_empty());
    hero.run(&["job", "fetch", "a", "out", "-o", "-"]).code(65).says("`out` is gone");
    hero.run(&["job", "fetch", "a", "small", "-o", "-"]).code(0).stdout("x\n");
}

#[test]
fn actor_that_dies_between_its_files_and_the_end_loses_neither() {
    let redis = Redis::start();
    let (hero, dir) = hero(&redis);
    let hero = hero.set("actor.lease", "\"1s\"");
    let point = PathBuf::from(format!("{}:1", hero::failpoint::BEFORE_FINISH));
    let mut dying = hero.actor("bash-default-1").env("HERO_FAILPOINT", &point).start();
    let script = format!("{MAKE} > \"$HERO_OUTPUT_DIR/out\"");
    hero.run(&["submit", "-t", "bash", "--id", "a", "-e", &script]).code(0);
    wait_until("the actor dies", || dying.has_ended());
    assert_eq!(contents(&dir).len(), 1);
    let _supervisor = hero.supervisor().start();
    let _bash = hero.actor("bash-default-2").start();
    hero.run(&["job", "wait", "a"]).code(0);
    assert_eq!(contents(&dir).len(), 1);
    assert_eq!(hero.run(&["job", "fetch", "a", "out", "-o", "-"]).code(0).bytes.len(), 307_200);
}

#[test]
fn missing_content_and_missing_folder_are_said() {
    let redis = Redis::start();
    let (hero, dir) = hero(&redis);
    let given = redis.folder().join("given");
    fs::write(&given, vec![b'x'; 307_200]).expect("written");
    let input = format!("in={}", given.display());
    let submit = |hero: &Hero, id: &str| {
        hero.run(&["submit", "-t", "bash", "--id", id, "--input", &input, "-e", "true"])
    };
    submit(&hero, "a").code(0);
    submit(&hero, "b").code(0);
    let file = contents(&dir).remove(0);
    let hash = file.file_name().expect("a name").to_str().expect("text");
    fs::write(&file, "another content").expect("written");
    let bash = hero.actor("bash-default-1").start();
    hero.run(&["job", "wait", "a"]).code(1).says("is damaged");
    fs::remove_file(&file).expect("removed");
    hero.run(&["job", "retry", "a"]).code(0);
    hero.run(&["job", "wait", "a"]).code(1).says(&format!("no content with the SHA-256 {hash} in"));
    hero.run(&["job", "fetch", "a", "in", "-o", "-"]).code(66).says(dir.to_str().expect("UTF-8"));
    drop(bash);
    // Hostile values in Redis are no paths.
    let files = keys::files("b");
    redis.set_field(&files, "a:i:in", "../../../../etc/passwd 10");
    hero.run(&["job", "fetch", "b", "in", "-o", "-"]).code(65).says("is gone");

    let nowhere = with(&redis, &dir.join("not/mounted"));
    submit(&nowhere, "c").code(69).says("not/mounted (artifacts.dir): no such file or directory");
    nowhere
        .run(&["check"])
        .code(0)
        .says("not/mounted: no such file or directory; make it a folder");
    let _bash = nowhere.actor("bash-default-1").start();
    let script = format!("{MAKE} > \"$HERO_OUTPUT_DIR/out\"; echo x > \"$HERO_OUTPUT_DIR/small\"");
    nowhere
        .run(&["exec", "-t", "bash", "--id", "d", "-e", &script])
        .code(0)
        .says("`out` is not kept");
    assert_eq!(field(&redis, "d", "output_files").as_deref(), Some("[\"small\"]"));
    let without = Hero::on(&redis).set("job.files_size_max", "\"128KiB\"");
    submit(&without, "e").code(65).says("larger than the limit of 128KiB (job.files_size_max)");
}

#[test]
fn file_that_does_not_fit_into_the_folder_is_said_in_the_log() {
    let redis = Redis::start();
    let Some(disk) = Disk::new(redis.folder().join("disk")) else { return };
    let (hero, dir) = (with(&redis, &disk.folder), disk.folder.clone());
    let _bash = hero.actor("bash-default-1").start();
    let script = "for n in 1 2 3 4; do head -c 900000 /dev/urandom > \"$HERO_OUTPUT_DIR/$n\"; done";
    hero.run(&["exec", "-t", "bash", "--id", "a", "-e", script])
        .code(0)
        .says("the file `3` is not kept: cannot use the folder")
        .says("no space left on device");
    assert_eq!(field(&redis, "a", "output_files").as_deref(), Some("[\"1\",\"2\"]"));
    assert_eq!(contents(&dir).len(), 2, "nothing is left of the others");
}

#[test]
fn file_of_a_script_with_holes_takes_no_more_place_in_the_folder() {
    let redis = Redis::start();
    let (hero, dir) = hero(&redis);
    let _bash = hero.actor("bash-default-1").start();
    let script = "cd \"$HERO_OUTPUT_DIR\"; truncate -s 900K holes; printf end >> holes";
    hero.run(&["exec", "-t", "bash", "--id", "a", "-e", script]).code(0);
    let [file] = &contents(&dir)[..] else { panic!("one file") };
    let data = fs::metadata(file).expect("there");
    assert_eq!(data.len(), 900 * 1024 + 3);
    assert!(data.blocks() * 512 < 300 * 1024, "{} blocks", data.blocks());
    let fetched = hero.run(&["job", "fetch", "a", "holes", "-o", "-"]).code(0).stdout;
    assert!(fetched.ends_with("\0end"), "{} bytes", fetched.len());
}

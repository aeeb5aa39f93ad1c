//! Files of jobs: given to scripts, left by them, and passed on.

use std::path::PathBuf;

use crate::support::{Hero, Redis, keys};

use super::field;

fn file(redis: &Redis, name: &str, bytes: &[u8]) -> PathBuf {
    let path = redis.folder().join(name);
    std::fs::write(&path, bytes).expect("writing a file");
    path
}

fn given(name: &str, path: &std::path::Path) -> String {
    format!("{name}={}", path.display())
}

#[test]
fn script_finds_its_files_and_those_that_it_leaves_are_kept() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let data = given("data.csv", &file(&redis, "local", b"a,b\n"));
    let more = file(&redis, "more", b"on standard input\n");
    let more = more.to_str().expect("UTF-8");
    let script =
        "cat \"$HERO_INPUT_DIR/data.csv\"; cat; printf '\\377\\0bin' > \"$HERO_OUTPUT_DIR/r.bin\"";
    hero.run(&[
        "submit", "-t", "bash", "--id", "a", "--input", &data, "--stdin", more, "-e", script,
    ])
    .code(0);
    assert!(redis.ttl(&keys::files("a")) > 86_400, "they stay while the job waits");
    let _units = ["bash-default-1", "python-default-1"].map(|unit| hero.actor(unit).start());
    hero.run(&["job", "wait", "a"]).code(0).stdout("a,b\non standard input\n");
    let listed = hero.run(&["job", "files", "a"]).code(0).stdout;
    let lines: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = [
        ["NAME", "BYTES", "KIND"],
        ["r.bin", "5", "output"],
        ["data.csv", "4", "input"],
        ["-", "18", "stdin"],
    ];
    assert_eq!(lines, expected);
    hero.run(&["job", "fetch", "a", "-", "-o", "-"]).code(0).stdout("on standard input\n");
    let left = hero.run(&["job", "fetch", "a", "r.bin", "-o", "-"]).code(0).bytes;
    assert_eq!(left, b"\xff\0bin");
    let local = redis.folder().join("fetched");
    let to = local.to_str().expect("UTF-8");
    hero.run(&["job", "fetch", "a", "data.csv", "-o", to]).code(0).stdout("");
    assert_eq!(std::fs::read(&local).expect("written"), b"a,b\n");
    hero.run(&["job", "fetch", "a", "../local"]).code(66).says("has no file `../local`");
    let kept = redis.ttl(&keys::files("a"));
    assert!((1..=2 * 86_400).contains(&kept), "they go with the job: {kept}");

    let copy = hero.run(&["job", "clone", "a"]).code(0).stdout;
    hero.run(&["job", "wait", copy.trim()]).code(0).stdout("a,b\non standard input\n");
    hero.run(&["job", "retry", "a"]).code(0);
    hero.run(&["job", "wait", "a"]).code(0).stdout("a,b\non standard input\n");
    hero.run(&["job", "delete", "a"]).code(0);
    assert!(!redis.ask::<bool>(&format!("EXISTS {}", keys::files("a"))));
    let script = "import sys; print(sys.stdin.read(), end='')";
    hero.run_with_input(&["exec", "-t", "python", "--stdin", "-", "-e", script], "piped\n")
        .code(0)
        .stdout("piped\n");
}

#[test]
fn next_job_of_a_graph_gets_the_files_of_its_prerequisites() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let graph = "[defaults]\ntype = \"bash\"\n\
                 [job.make]\nscript = 'echo made > \"$HERO_OUTPUT_DIR/out.txt\"'\n\
                 [job.\"../odd\"]\nscript = 'echo odd > \"$HERO_OUTPUT_DIR/out.txt\"'\nid = \"odd\"\n\
                 [job.none]\nscript = 'true'\n\
                 [job.use]\nid = \"use\"\nafter = [\"make\", \"../odd\", \"none\"]\n\
                 script = 'cd \"$HERO_INPUT_DIR\" && cat make/out.txt odd/out.txt && ls'\n";
    let graph = file(&redis, "g.toml", graph.as_bytes());
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["submit", "--graph", graph.to_str().expect("UTF-8")]).code(0);
    hero.run(&["job", "wait", "use"]).code(0).stdout("made\nodd\nmake\nodd\n");
}

#[test]
fn failed_script_keeps_its_files_and_hostile_entries_are_left_out() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.files_size_max", "\"1KiB\"");
    let _bash = hero.actor("bash-default-1").start();
    let script = "cd \"$HERO_OUTPUT_DIR\"; echo kept > report.txt; ln -s /etc/passwd link; mkfifo pipe; \
                  head -c 2000 /dev/zero > large; mkdir below; echo x > .hidden; exit 3";
    hero.run(&["exec", "-t", "bash", "--id", "a", "-e", script])
        .code(3)
        .says("the file `link` is not kept: it is a link")
        .says("the file `pipe` is not kept: it is not a regular file")
        .says("the file `large` is not kept: it has 2000 bytes, with the files before it more than job")
        .says("the file `below` is not kept: it is a folder")
        .says("the file `.hidden` is not kept: its name is not legal");
    assert_eq!(field(&redis, "a", "output_files").as_deref(), Some("[\"report.txt\"]"));
    hero.run(&["job", "fetch", "a", "report.txt", "-o", "-"]).code(0).stdout("kept\n");
    hero.run(&[
        "exec",
        "-t",
        "bash",
        "-e",
        "rm -r \"$HERO_OUTPUT_DIR\"; ln -s /etc \"$HERO_OUTPUT_DIR\"",
    ])
    .code(0)
    .says("no file of HERO_OUTPUT_DIR is kept");
}

#[test]
fn job_whose_files_cannot_be_read_ends_in_error_and_others_of_its_type_run() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let input = given("a", &file(&redis, "small", b"x"));
    hero.run(&["submit", "-t", "bash", "--id", "a", "--input", &input, "-e", "true"]).code(0);
    for key in redis.keys(&keys::prefix("FILES")) {
        redis.spoil(&key);
    }
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["job", "wait", "a"]).code(1).says("invalid job: input_files cannot be read");
    hero.run(&["exec", "-t", "bash", "-e", "echo 42"]).code(0).stdout("42\n");
}

#[test]
fn files_that_are_not_allowed_are_rejected_before_the_job_is_stored() {
    let redis = Redis::start();
    let hero = Hero::on(&redis).set("job.files_size_max", "\"1KiB\"");
    let (small, large) = (file(&redis, "small", b"x"), file(&redis, "large", &[b'x'; 1025]));
    let submit = |input: &str| {
        hero.run(&["submit", "-t", "bash", "--id", "a", "--input", input, "-e", "true"])
    };
    submit(&given("a", &large)).code(65).says("larger than the limit of 1KiB");
    submit(&given("../a", &small)).code(65).says("file name");
    submit("a=/no/such/file").code(66);
    submit("/no/such/file").code(66);
    submit("a=").code(2);
    let (one, two) = (given("one", &small), given("one", &large));
    hero.run(&["submit", "-t", "bash", "--input", &one, "--input", &two, "-e", "true"]).code(65);
    assert!(redis.keys(&keys::prefix("FILES")).is_empty());
    submit(&one).code(0);
    submit(&one).code(65).says("taken");
    assert_eq!(redis.keys(&keys::prefix("FILES")).len(), 1, "the job keeps its files");
    hero.run(&["exec", "-t", "osis", "--input", &one, "-e", "1"])
        .code(65)
        .says("input is for scripts that are processes; scripts of type osis are not");
    let graph = format!(
        "[job.b]\ntype = \"sal\"\nscript = \"1\"\nstdin = {:?}\n",
        small.display().to_string()
    );
    let graph = file(&redis, "g.toml", graph.as_bytes());
    hero.run(&["submit", "--graph", graph.to_str().expect("UTF-8")])
        .code(65)
        .says("g.toml:4:9: job.b.stdin: ")
        .says("scripts of type sal are not");
    assert_eq!(redis.keys(&keys::prefix("FILES")).len(), 1, "nothing is left of these");
}

#[test]
fn files_of_a_job_with_very_many_prerequisites_stay_while_it_waits() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let data = given("data", &file(&redis, "local", b"x"));
    let lines: Vec<String> = (0..3000)
        .map(|number| format!(r#"{{"id":"p{number}","script_type":"osis","script":"1"}}"#))
        .collect();
    hero.run_with_input(&["submit", "--batch", "-"], &lines.join("\n")).code(0);
    let ids: Vec<String> = (0..3000).map(|number| format!("p{number}")).collect();
    let mut args = vec!["submit", "-t", "bash", "--id", "a", "--input", &data, "-e", "true"];
    args.extend(ids.iter().flat_map(|id| ["--after", id.as_str()]));
    hero.run(&args).code(0);
    assert!(redis.ttl(&keys::files("a")) > 30 * 86_400);
}

#[test]
fn jobs_of_a_graph_take_files_relative_to_the_graph() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    std::fs::create_dir(redis.folder().join("below")).expect("a folder");
    file(&redis, "below/data", b"some data\n");
    file(&redis, "below/names", b"ann\nbob\n");
    let graph = |inputs: &str| {
        let text = format!(
            "[defaults]\ntype = \"bash\"\n[job.a]\nid = \"a\"\n{inputs}\nstdin = \"names\"\n\
             script = 'cat \"$HERO_INPUT_DIR/d.txt\" -'\n\
             [job.b]\nid = \"b\"\nafter = [\"a\"]\nscript = 'echo \"${{HERO_INPUT_DIR-none}}\"'\n"
        );
        file(&redis, "below/g.toml", text.as_bytes());
        hero.run(&["submit", "--graph", "below/g.toml"])
    };
    for (inputs, code, said) in [
        ("inputs = { \"../d\" = \"data\" }", 65, "below/g.toml:5:10: job.a.inputs: "),
        ("inputs = { \"d.txt\" = \"nothing\" }", 66, "no such file: below/nothing"),
        ("inputs = [\"data\"]", 65, "below/g.toml:5:10: "),
    ] {
        graph(inputs).code(code).says(said);
    }
    assert!(redis.keys(&keys::prefix("FILES")).is_empty(), "nothing is left of them");
    graph("inputs = { \"d.txt\" = \"data\" }").code(0);
    assert!(redis.ttl(&keys::files("a")) > 30 * 86_400, "they stay while the job waits");
    graph("inputs = { \"d.txt\" = \"data\" }").code(65).says("taken");
    assert_eq!(redis.keys(&keys::prefix("FILES")), [keys::files("a")]);
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["job", "wait", "a"]).code(0).stdout("some data\nann\nbob\n");
    hero.run(&["job", "wait", "b"]).code(0).stdout("none\n");
}

#[test]
fn lines_of_a_batch_take_files_relative_to_it() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    file(&redis, "data", b"some data\n");
    let line = |id: &str, more: &str| {
        format!(
            r#"{{"id":"{id}","script_type":"bash","script":"cat \"$HERO_INPUT_DIR\"/*"{more}}}"#
        )
    };
    let good = r#","inputs":{"d":"data"}"#;
    let lines = [
        line("a", good),
        line("b", r#","inputs":{"../d":"data"}"#),
        line("c", r#","stdin":"nothing""#),
        line("d", r#","inputs":5"#),
        line("e", &format!(r#"{good},"prerequisites":["nobody"]"#)),
        line("a", good),
    ];
    file(&redis, "jobs.jsonl", lines.join("\n").as_bytes());
    hero.run(&["submit", "--batch", "jobs.jsonl", "--all-or-none"]).code(65);
    assert!(redis.keys(&keys::prefix("FILES")).is_empty(), "nothing is left of them");
    let done = hero.run(&["submit", "--batch", "jobs.jsonl", "--ids"]).code(65).stdout("a\n");
    let done = done
        .says("jobs.jsonl:2: invalid job: its files")
        .says("jobs.jsonl:3: invalid job: its files");
    done.says("jobs.jsonl:4: invalid job: inputs does not name files: expected an object")
        .says("jobs.jsonl:6: job id a is taken");
    assert_eq!(redis.keys(&keys::prefix("FILES")), [keys::files("a")]);
    let _bash = hero.actor("bash-default-1").start();
    hero.run(&["job", "wait", "a"]).code(0).stdout("some data\n");
}

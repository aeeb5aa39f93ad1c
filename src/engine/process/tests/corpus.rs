//! Differential tests: the scripts of `tests/corpus/` run as jobs as they run by hand. Each runs here and
//! by its bare program, and output, log, exit code and files are compared. A difference must be listed in
//! `tests/corpus/differences`, with the section of `docs/scripts.md` that describes it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::config::is_python;
use crate::engine::process::end::{job_output, log_output};
use crate::engine::process::prepare::tests::World;
use crate::engine::process::prepare::{UNBUFFERED, basic_environment};
use crate::engine::process::start::{Registered, Warm, command};
use crate::engine::process::watch::LineSplitter;
use crate::engine::process::{CommandEngine, find_program};
use crate::engine::{Cancel, Engine, Failure, Inputs, Log, Script, SecretValues, Stream};
use crate::proto::job::AskedBounds;
use crate::test_support::needs;

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus");
/// The rooms with scripts that end before a process which they have started.
const HELPERS: [&str; 2] = ["helpers: ", "reports: "];
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scripts.md");

/// The visible result of a script.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// `0`, an exit code, or `signal 9`.
    end: String,
    /// The output of a script that succeeded.
    output: String,
    /// The lines of standard output of a failed script.
    stdout: Vec<String>,
    stderr: Vec<String>,
    /// The files in its working directory, with their texts or sizes.
    files: BTreeMap<String, String>,
}

#[derive(Default)]
struct Both(Mutex<(Vec<String>, Vec<String>)>);

impl Log for Both {
    fn line(&self, stream: Stream, line: &str) {
        let mut lines = self.0.lock().expect("a lock");
        if stream == Stream::Stdout { &mut lines.0 } else { &mut lines.1 }.push(line.to_owned());
    }
}

/// One way to run scripts, with a working directory of its own.
struct Way {
    world: World,
    name: &'static str,
    /// `None` for the bare program.
    engine: Option<CommandEngine>,
    program: PathBuf,
    /// The words between the program and the script, by hand.
    words: &'static [&'static str],
}

impl Way {
    fn new(name: &'static str, language: &Language, keys: Option<&str>) -> Self {
        let world = World::new();
        let work = world.path("work");
        let engine =
            keys.map(|keys| world.engine(language.name, &format!("cwd = {work:?}\n{keys}")));
        let program = find_program(language.program).expect("found");
        Self { world, name, engine, program, words: language.words }
    }

    fn run(&self, Sample { name, source, extension }: &Sample) -> Seen {
        let work = PathBuf::from(self.world.path("work"));
        let _ = fs::remove_dir_all(&work);
        fs::create_dir(&work).expect("created");
        let mut seen = match &self.engine {
            Some(engine) => job(engine, source, extension),
            None => self.bare(
                source,
                extension,
                &work,
                HELPERS.iter().any(|room| name.starts_with(room)),
            ),
        };
        files_of(&work, "", &mut seen.files);
        let lines = seen.stdout.iter_mut().chain(&mut seen.stderr).chain([&mut seen.output]);
        for text in lines.chain(seen.files.values_mut()) {
            *text = comparable(text, &self.world.path(""));
        }
        seen
    }

    /// Runs a script by its program alone, in a session of its own and without a core file. `waits` for processes
    /// that it leaves, which would be orphans of this process else.
    fn bare(&self, source: &str, extension: &str, work: &Path, waits: bool) -> Seen {
        let home = PathBuf::from(self.world.path("job-000000"));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir(&home).expect("created");
        let script = home.join(format!("script{extension}"));
        write_program(&script, source);
        let mut program = command("/usr/bin/setsid".as_ref());
        program.args(["/usr/bin/prlimit", "--core=0"]);
        if waits {
            program.args(["/usr/bin/python3", "-c", include_str!("waits.py")]);
        }
        if source.starts_with("#!") {
            // The kernel reads its first line.
            fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("executable");
        } else {
            program.arg(&self.program).args(self.words);
        }
        program.arg(&script);
        program.env_clear().envs(basic_environment(&home)).current_dir(work).stdin(Stdio::null());
        // As a person sets it who wants to see the output at once.
        if is_python(&[self.program.display().to_string()]) {
            program.env(UNBUFFERED.0, UNBUFFERED.1);
        }
        program.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (child, _registered) = Registered::start(|| program.spawn()).expect("it starts");
        let ran = child.wait_with_output().expect("it runs");
        let log = Both::default();
        let mut stderr = LineSplitter::default();
        let mut emit = |line: &str| log.line(Stream::Stderr, line);
        stderr.push(&ran.stderr, &mut emit);
        stderr.finish(&mut emit);
        let end = match (ran.status.code(), ran.status.signal()) {
            (Some(code), _) => code.to_string(),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        let mut output = String::new();
        if ran.status.success() {
            output = job_output(ran.stdout).to_string();
        } else {
            log_output(&ran.stdout, &log);
        }
        let (stdout, stderr) = log.0.into_inner().expect("a lock");
        Seen { end, output, stdout, stderr, ..Seen::default() }
    }
}

/// Writes a file by another process: a child that a test starts meanwhile would inherit the open file of this one, and
/// the kernel executes no file that is open for writing.
fn write_program(file: &Path, text: &str) {
    let mut tee = command("/usr/bin/tee".as_ref());
    tee.arg(file).stdin(Stdio::piped()).stdout(Stdio::null());
    let (mut child, _registered) = Registered::start(|| tee.spawn()).expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("written");
    drop(stdin);
    assert!(child.wait().expect("it runs").success(), "tee cannot write {}", file.display());
}

fn job(engine: &CommandEngine, source: &str, extension: &str) -> Seen {
    let (log, env, inputs) = (Both::default(), BTreeMap::new(), Inputs::default());
    let script = Script {
        job_id: "job-1",
        caller_id: "",
        context_id: "",
        token_bounds: None,
        attempt: 1,
        traceparent: None,
        attempts_left: 0,
        started_at: None,
        state: None,
        event: None,
        source,
        extension,
        env: &env,
        args: &[],
        params: &crate::proto::job::Params::new(),
        bounds: &AskedBounds::default(),
        secrets: &SecretValues::default(),
        inputs: &inputs,
        files: None,
        output_overflow: None,
        deadline: Instant::now() + Duration::from_mins(1),
    };
    let (end, output) = match engine.run(&script, &Cancel::new(), &log) {
        Ok(success) => ("0".to_owned(), success.output.to_string()),
        Err(Failure::Script { exit_code: Some(code), .. }) => (code.to_string(), String::new()),
        Err(Failure::Script { message, .. }) => {
            let signal =
                message.strip_prefix("killed by ").and_then(|rest| rest.split(" (").next());
            (signal.unwrap_or(&message).to_owned(), String::new())
        }
        Err(other) => (format!("{other:?}"), String::new()),
    };
    let (stdout, stderr) = log.0.into_inner().expect("a lock");
    Seen { end, output, stdout, stderr, ..Seen::default() }
}

fn files_of(folder: &Path, above: &str, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{above}{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        if path.is_dir() {
            files_of(&path, &format!("{name}/"), files);
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            let size = format!("{} bytes", bytes.len());
            files.insert(name, String::from_utf8(bytes).unwrap_or(size));
        }
    }
}

/// Replaces the folder of a job by `HOME`, the folder of the test by nothing, and addresses of objects
/// by `0x`.
fn comparable(text: &str, world: &str) -> String {
    let text = text.replace(&format!("{}/job-000000", world.trim_end_matches('/')), "HOME");
    let text = text.replace(world, "");
    let before = format!("{}/hero-jobs-", std::env::temp_dir().display());
    let mut pieces = text.split(&before);
    let first = pieces.next().unwrap_or_default().to_owned();
    let text = pieces.fold(first, |text, piece| {
        // `AAAAAA/job-BBBBBB/home`
        text + "HOME" + piece.get("AAAAAA/job-BBBBBB/home".len()..).unwrap_or_default()
    });
    let mut pieces = text.split("0x");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| {
        let rest = piece.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        text + "0x" + if piece.len() - rest.len() < 8 { piece } else { rest }
    })
}

struct Language {
    name: &'static str,
    program: &'static str,
    words: &'static [&'static str],
    /// The beginning of the line with the name of a script.
    heading: &'static str,
    scripts_min: usize,
    /// An extension whose scripts cannot run here.
    left_out: &'static str,
}

/// A script of the corpus.
struct Sample {
    name: String,
    source: String,
    /// The extension of its file, with the dot.
    extension: String,
}

fn scripts(language: &Language) -> Vec<Sample> {
    let mut scripts = Vec::new();
    let mut files: Vec<_> = fs::read_dir(format!("{CORPUS}/{}", language.name))
        .expect("there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    // Those in the shape of public reports, with the project and number of each.
    let reports = fs::read_dir(format!("{CORPUS}/reports")).expect("there");
    let reports = reports.map(|entry| entry.expect("readable").path());
    files.extend(reports.filter(|file| file.file_stem().is_some_and(|name| name == language.name)));
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).expect("readable");
        let extension = file.extension().expect("an extension").to_string_lossy();
        if extension == language.left_out {
            continue;
        }
        let room = file.file_stem().expect("a name").to_string_lossy();
        let room = if *room == *language.name { "reports".to_owned() } else { room.into_owned() };
        for section in format!("\n{text}").split(&format!("\n{} ", language.heading)).skip(1) {
            let (title, source) = section.split_once('\n').unwrap_or((section, ""));
            scripts.push(Sample {
                name: format!("{room}: {title}"),
                source: format!("{}\n", source.trim_end()),
                extension: format!(".{extension}"),
            });
        }
    }
    let names: BTreeSet<_> = scripts.iter().map(|sample| &sample.name).collect();
    assert!(names.len() == scripts.len(), "two scripts have the same name");
    assert!(scripts.len() >= language.scripts_min, "only {} scripts", scripts.len());
    scripts
}

/// Returns the listed differences of a language: the way and the script.
fn listed(language: &Language) -> BTreeSet<(String, String)> {
    let page = fs::read_to_string(PAGE).expect("readable");
    let headings: BTreeSet<&str> = page
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches(['#', ' ']))
        .collect();
    let text = fs::read_to_string(format!("{CORPUS}/differences")).expect("readable");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut found = BTreeSet::new();
    for line in lines {
        let words: Vec<&str> = line.split(" | ").collect();
        let [name, way, script, section] = words[..] else { panic!("not four parts: {line}") };
        assert!(headings.contains(section), "docs/scripts.md has no section {section:?}");
        if name == language.name {
            found.insert((way.to_owned(), script.to_owned()));
        }
    }
    found
}

/// Runs the scripts of a language in each way, the bare program first, and compares them with it.
fn compare(language: &Language, ways: &[Way]) {
    let scripts = scripts(language);
    let seen: Vec<Vec<Seen>> = std::thread::scope(|scope| {
        let run = |way: &'_ Way| scripts.iter().map(|sample| way.run(sample)).collect();
        let threads: Vec<_> = ways.iter().map(|way| scope.spawn(move || run(way))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let listed = listed(language);
    let (mut different, mut shown) = (BTreeSet::new(), Vec::new());
    for (way, jobs) in ways.iter().zip(&seen).skip(1) {
        for ((Sample { name, .. }, bare), job) in scripts.iter().zip(&seen[0]).zip(jobs) {
            if bare != job {
                let difference = (way.name.to_owned(), name.clone());
                if !listed.contains(&difference) {
                    shown.push(format!("{} {name}\n  bare {bare:?}\n  here {job:?}", way.name));
                }
                different.insert(difference);
            }
        }
    }
    println!("{}: {} scripts, {} unlisted differences", language.name, scripts.len(), shown.len());
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    let gone: Vec<_> = listed.difference(&different).collect();
    assert!(gone.is_empty(), "listed, but there is no difference: {gone:?}");
}

#[test]
fn python_scripts_run_as_by_hand() {
    let language = Language {
        name: "python",
        program: "/usr/bin/python3",
        words: &[],
        heading: "#:",
        scripts_min: 200,
        left_out: "",
    };
    let ways = [
        Way::new("bare", &language, None),
        Way::new("cold", &language, Some("warm = false")),
        Way::new("warm", &language, Some("warm = true\npreload = [\"json\", \"logging\"]")),
    ];
    let warm = ways[2].engine.as_ref().expect("an engine");
    warm.warm_up();
    let until = Instant::now() + Duration::from_mins(1);
    while !warm.warm.as_deref().is_some_and(Warm::is_ready) {
        assert!(Instant::now() < until, "the warm interpreter does not start");
        std::thread::yield_now();
    }
    compare(&language, &ways);
}

#[test]
fn bash_scripts_run_as_by_hand() {
    let language = Language {
        name: "bash",
        program: "/bin/bash",
        words: &[],
        heading: "#:",
        scripts_min: 35,
        left_out: "",
    };
    compare(&language, &[Way::new("bare", &language, None), Way::new("job", &language, Some(""))]);
}

#[test]
fn node_scripts_run_as_by_hand() {
    let language = Language {
        name: "node",
        program: "/usr/bin/node",
        words: &[],
        heading: "//:",
        scripts_min: 35,
        left_out: "",
    };
    if needs("node", || find_program(language.program).is_some()) {
        compare(
            &language,
            &[Way::new("bare", &language, None), Way::new("job", &language, Some(""))],
        );
    }
}

#[test]
fn v_scripts_run_as_by_hand() {
    if !needs("v", || find_program("v").is_some()) {
        return;
    }
    let compiles_vsh = needs("v-of-2024-or-later", compiles_shell_scripts);
    let language = Language {
        name: "v",
        program: "v",
        words: &["run"],
        heading: "//:",
        scripts_min: 25,
        left_out: if compiles_vsh { "" } else { "vsh" },
    };
    compare(&language, &[Way::new("bare", &language, None), Way::new("job", &language, Some(""))]);
}

/// Returns true if V can compile a script of the shell's kind without running it.
fn compiles_shell_scripts() -> bool {
    let world = World::new();
    let (script, binary) = (world.path("script.vsh"), world.path("binary"));
    fs::write(&script, "println('ran')\n").expect("written");
    let mut v = command(&find_program("v").expect("found"));
    v.env_clear().envs(basic_environment(world.path("").as_ref()));
    let ran = v.env("VNORUN", "1").args(["-o", &binary, &script]).output().expect("it runs");
    ran.status.success() && Path::new(&binary).exists()
}

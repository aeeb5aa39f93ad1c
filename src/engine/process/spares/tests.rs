//! Children that were made ahead: what they are like, when there are any, and that none stays.

use std::path::Path;
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::engine::Engine;
use crate::engine::process::CommandEngine;
use crate::engine::process::prepare::tests::{OBSERVABLES, World};

const BASH: &str = "command = [\"/bin/bash\", \"{script}\"]\nengine = \"command\"";
const PYTHON: &str = "warm = false";

fn spares(engine: &CommandEngine) -> &Spares {
    engine.spares.as_ref().expect("it makes some")
}

/// Runs jobs until that many children wait. A busy machine may take too long for that at first.
fn make(world: &World, engine: &CommandEngine, count: usize) -> Vec<i32> {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let others = std::mem::take(&mut spares(engine).lock().spares);
        drop(others);
        world.run(engine, "").expect("it does nothing");
        (0..count).for_each(|_| _ = engine.make_ahead());
        let pids = spares(engine).pids();
        if pids.len() == count {
            return pids;
        }
        assert!(Instant::now() < until, "nothing is made ahead");
    }
}

/// What a script printed after its process id, as a child that was made ahead. `begin` prints that.
fn as_spare(world: &World, engine: &CommandEngine, begin: &str, script: &str) -> String {
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let pids = make(world, engine, 1);
        let output = world.output(engine, &format!("{begin}\n{script}"));
        let (pid, rest) = output.split_once('\n').unwrap_or((&output, ""));
        if pids.iter().any(|spare| spare.to_string() == pid) {
            return rest.to_owned();
        }
        assert!(Instant::now() < until, "no job was a child that waited");
    }
}

/// The same as a child that was started when it was to run.
fn anew(world: &World, engine: &CommandEngine, begin: &str, script: &str) -> String {
    drop(spares(engine).take());
    let output = world.output(engine, &format!("{begin}\n{script}"));
    output.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned())
}

fn is_there(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn it_sees_of_itself_what_a_child_sees_that_is_started_anew() {
    let world = World::new();
    let engine = world.engine("python", PYTHON);
    let begin = "import os; print(os.getpid())";
    let lines = |text: String| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let spare = lines(as_spare(&world, &engine, begin, OBSERVABLES));
    let cold = lines(anew(&world, &engine, begin, OBSERVABLES));
    assert!(cold.len() > 40, "{cold:#?}");
    let different: Vec<_> = spare.iter().zip(&cold).filter(|(a, b)| a != b).collect();
    assert!(different.is_empty() && spare.len() == cold.len(), "{different:#?}");
}

#[test]
fn the_kernel_holds_it_as_it_holds_a_child_that_is_started_anew() {
    let world = World::new();
    let engine = world.engine_in("bash", BASH, "read = [\"/proc\"]");
    let script = "
        while read -r name rest; do
            case $name in
                Umask:|Uid:|Gid:|Groups:|Sig*|Cap*|NoNewPrivs:|Seccomp*|Threads:) echo $name $rest;;
            esac
        done < /proc/$$/status
        while read -r line; do echo $line; done < /proc/$$/limits
        echo /proc/$$/fd/*";
    let of_itself = |text: String| -> String {
        let words = text.lines().map(|line| {
            line.split('/').filter(|word| word.parse::<i32>().is_err()).collect::<String>()
        });
        words.collect::<Vec<_>>().join("\n")
    };
    let spare = of_itself(as_spare(&world, &engine, "echo $$", script));
    let cold = of_itself(anew(&world, &engine, "echo $$", script));
    assert!(cold.contains("NoNewPrivs: 1") && cold.contains("Seccomp: 2"), "{cold}");
    assert_eq!(spare, cold);
}

#[test]
fn one_that_waits_is_out_of_reach_of_jobs() {
    let world = World::new();
    let engine = world.engine("python", PYTHON);
    let until = Instant::now() + Duration::from_mins(1);
    loop {
        let pids = make(&world, &engine, 2);
        let script = format!(
            "import ctypes, os\nother = {}\nprint(os.getpid())\n\
             for name, tries in {{\n\
                 'memory': lambda: open(f'/proc/{{other}}/mem', 'rb'),\n\
                 'environ': lambda: open(f'/proc/{{other}}/environ', 'rb'),\n\
                 'maps': lambda: open(f'/proc/{{other}}/maps', 'rb'),\n\
                 'descriptors': lambda: os.listdir(f'/proc/{{other}}/fd'),\n\
                 'signal': lambda: os.kill(other, 0),\n\
                 'processors': lambda: os.sched_setaffinity(other, [0]),\n\
             }}.items():\n\
                 \ttry:\n\t\ttries(); print(name, 'ESCAPED')\n\
                 \texcept PermissionError: print(name, 'held')\n\
             print('trace', ctypes.CDLL(None).ptrace(16, other, 0, 0))\n",
            pids[1]
        );
        let output = world.output(&engine, &script);
        let (pid, rest) = output.split_once('\n').expect("it says who it is");
        let was_there = spares(&engine).pids().first() == Some(&pids[1]) && is_there(pids[1]);
        if pid == pids[0].to_string() && was_there {
            let expected = "memory held\nenviron held\nmaps held\ndescriptors held\nsignal held\n\
                            processors held\ntrace -1";
            assert_eq!(rest, expected);
            return;
        }
        assert!(Instant::now() < until, "no job was a child that waited, beside another");
    }
}

#[test]
fn one_that_died_while_it_waited_is_not_missed() {
    let world = World::new();
    let engine = world.engine("bash", BASH);
    let pids = make(&world, &engine, 1);
    kill_process(Pid::from_raw(pids[0]).expect("a pid"), Signal::KILL).expect("killed");
    let output = world.output(&engine, "echo $$");
    assert!(!output.is_empty() && output != pids[0].to_string(), "{output}");
    assert_eq!(spares(&engine).pids(), [0; 0]);
    assert!(!is_there(pids[0]), "nobody has reaped it");
}

#[test]
fn a_program_that_was_replaced_while_one_waits_for_it_runs_as_it_is_now() {
    let (world, elsewhere) = (World::new(), World::new());
    let program = elsewhere.program("tool", "#!/bin/sh\necho before\n");
    let engine = world
        .engine("tool", &format!("engine = \"command\"\ncommand = [{program:?}, \"{{script}}\"]"));
    make(&world, &engine, 1);
    let new = elsewhere.program("new", "#!/bin/sh\necho after\n");
    std::fs::rename(new, &program).expect("replaced");
    assert_eq!(world.output(&engine, ""), "after");
}

#[test]
fn a_program_that_is_gone_while_one_waits_for_it_is_named() {
    let (world, elsewhere) = (World::new(), World::new());
    let program = elsewhere.program("tool", "#!/no/interpreter\n");
    let engine = world
        .engine("tool", &format!("engine = \"command\"\ncommand = [{program:?}, \"{{script}}\"]"));
    // The program is looked at before any child is made, so only its interpreter can be missing.
    let cold = world.message(&engine, "");
    assert!(cold.contains(&program) && cold.contains("no such file"), "{cold}");
    let until = Instant::now() + Duration::from_mins(1);
    while spares(&engine).pids().is_empty() {
        assert_eq!(world.message(&engine, ""), cold);
        engine.make_ahead();
        assert!(Instant::now() < until, "nothing is made ahead");
    }
    assert_eq!(world.message(&engine, ""), cold);
}

#[test]
fn a_folder_that_is_not_there_is_told_as_of_any_child() {
    let world = World::new();
    let cwd = world.path("gone");
    let engine = world.engine("bash", &format!("{BASH}\ncwd = {cwd:?}"));
    std::fs::create_dir(&cwd).expect("made");
    make(&world, &engine, 1);
    drop(spares(&engine).take());
    std::fs::remove_dir(&cwd).expect("removed");
    let cold = world.message(&engine, "");
    engine.make_ahead();
    assert_eq!(world.message(&engine, ""), cold);
}

#[test]
fn a_child_that_waits_for_another_program_is_not_it() {
    let world = World::new();
    let engine = world.engine("bash", BASH);
    let sh = Path::new("/bin/sh");
    make(&world, &engine, 1);
    drop(spares(&engine).take());
    let spare = spares(&engine).spare(sh).expect("made");
    let pid = spare.waiting.running.pid();
    spares(&engine).lock().spares.push_back(spare);
    assert_ne!(world.output(&engine, "echo $$"), pid.to_string());
    assert!(!is_there(pid), "it still waits");
}

#[test]
fn none_is_made_for_a_job_that_comes_alone_and_none_stays_when_no_more_come() {
    let world = World::new();
    let engine = world.engine("bash", BASH);
    world.run(&engine, "").expect("it does nothing");
    assert_eq!((engine.make_ahead(), spares(&engine).pids().len()), (None, 0));
    let pids = make(&world, &engine, 3);
    let folders: Vec<PathBuf> = {
        let made = spares(&engine).lock();
        made.spares.iter().map(|spare| spare.scratch.path().to_owned()).collect()
    };
    assert!(folders.iter().all(|folder| folder.is_dir()));
    while let Some(left) = engine.put_away() {
        assert!(left <= FRESH);
        std::thread::park_timeout(left);
    }
    let stays: Vec<_> = pids.iter().filter(|pid| is_there(**pid)).collect();
    assert!(stays.is_empty(), "{stays:?}");
    assert!(folders.iter().all(|folder| !folder.exists()), "{folders:?}");
}

#[test]
fn one_that_has_waited_too_long_is_no_job() {
    let world = World::new();
    let engine = world.engine("bash", BASH);
    let pids = make(&world, &engine, 1);
    let old = Instant::now().checked_sub(FRESH).expect("the machine runs longer");
    spares(&engine).lock().spares[0].waiting.made_at = old;
    assert!(spares(&engine).take().is_none());
    assert!(!is_there(pids[0]), "it still waits");
}

#[test]
fn they_go_with_their_engine() {
    let world = World::new();
    let engine = world.engine("bash", BASH);
    let pids = make(&world, &engine, 2);
    drop(engine);
    assert!(pids.iter().all(|pid| !is_there(*pid)), "{pids:?}");
}

#[test]
fn a_compiled_script_and_a_fork_of_python_need_none() {
    let world = World::new();
    let compiled = "engine = \"command\"\ncommand = [\"{binary}\"]\n\
                    compile = [\"/bin/cp\", \"{script}\", \"{binary}\"]";
    assert!(world.engine("tool", compiled).spares.is_none());
    assert!(world.engine("python", "warm = true").spares.is_none());
}

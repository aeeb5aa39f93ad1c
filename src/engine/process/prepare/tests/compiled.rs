//! Tests of scripts that are compiled before they run.

use super::extensions::run_as;
use super::*;

/// Returns an engine whose compiler counts its runs and copies the script.
fn compiled(world: &World) -> CommandEngine {
    let counting = world.path("counting");
    let compiler = world.program(
        "compiler",
        &format!(
            "#!/bin/sh\necho run >> {counting}\n\
             if grep -q BAD \"$2\"; then echo \"$2:1: bad word\" >&2; exit 1; fi\n\
             (echo '#!/bin/sh'; cat \"$2\") > \"$1\"; chmod +x \"$1\"\n"
        ),
    );
    let keys = format!(
        "engine = \"command\"\ncommand = [\"{{binary}}\", \"word\"]\nextension = \".x\"\n\
         compile = [{compiler:?}, \"{{binary}}\", \"{{script}}\"]"
    );
    world.engine("x", &keys)
}

#[test]
fn concurrent_jobs_compile_a_script_once() {
    let world = World::new();
    let engine = compiled(&world);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(world.output(&engine, "echo \"$1 done\""), "word done"));
        }
    });
    let runs = || fs::read_to_string(world.path("counting")).expect("it ran").lines().count();
    assert_eq!(runs(), 1);
    assert_eq!(world.output(&engine, "echo other"), "other");
    assert_eq!(runs(), 2);
}

#[test]
fn a_compiler_error_is_the_error_and_is_not_cached() {
    let world = World::new();
    let engine = compiled(&world);
    for _ in 0..2 {
        let message = world.message(&engine, "BAD");
        assert_eq!(message, "does not compile: script.x:1: bad word");
    }
    let runs = fs::read_to_string(world.path("counting")).expect("it ran").lines().count();
    assert_eq!(runs, 2);
    assert_eq!(engine.unavailable(), None);
}

/// Returns an engine whose V is a link in the world to a V elsewhere, with its library.
fn with_linked_v(world: &World, elsewhere: &Path) -> CommandEngine {
    fs::create_dir_all(elsewhere.join("vlib/builtin")).expect("created");
    fs::write(elsewhere.join("vlib/builtin/head"), "#!/bin/sh\n").expect("written");
    // Its arguments are -o BINARY SCRIPT.
    let v = "#!/bin/sh\n\
        echo 'GC Warning: Could not open /proc/self/maps' >&2\n\
        if grep -q BAD $3; then\n  \
          echo \"$3:1:1: warning: old\" >&2; echo \"$3:2:1: error: bad\" >&2; exit 1\nfi\n\
        cat $(dirname $(readlink -f $0))/vlib/builtin/head || exit 1\n\
        [ \"$VNORUN\" = 1 ] || exit 0\n\
        (echo '#!/bin/sh'; echo echo $(basename $3); grep -v '^//' $3) > $2; chmod +x $2\n";
    fs::write(elsewhere.join("v"), v).expect("written");
    fs::set_permissions(elsewhere.join("v"), fs::Permissions::from_mode(0o755)).expect("set");
    std::os::unix::fs::symlink(elsewhere.join("v"), world.path("v")).expect("linked");
    let keys = format!("compile = [{:?}, \"-o\", \"{{binary}}\", \"{{script}}\"]", world.path("v"));
    world.engine("v", &keys)
}

#[test]
fn v_reads_its_library_where_its_link_leads_and_compiles_vsh_as_such() {
    let (world, elsewhere) = (World::new(), tempfile::tempdir().expect("a folder"));
    let engine = with_linked_v(&world, elsewhere.path());
    assert_eq!(run_as(&world, &engine, "echo 1", ""), Ok("script.v\n1".to_owned()));
    assert_eq!(run_as(&world, &engine, "echo 2", ".vsh"), Ok("script.vsh\n2".to_owned()));
}

#[test]
fn warning_of_the_collector_is_in_no_log_and_errors_come_first() {
    let (world, elsewhere) = (World::new(), tempfile::tempdir().expect("a folder"));
    let engine = with_linked_v(&world, elsewhere.path());
    assert_eq!(
        run_as(&world, &engine, "// BAD", ""),
        Err("does not compile: script.v:2:1: error: bad\nscript.v:1:1: warning: old".to_owned())
    );
    let warned = "echo 'GC Warning: pthread_getattr_np failed for main thread' >&2; exit 3";
    assert_eq!(run_as(&world, &engine, warned, ""), Err("exit code 3".to_owned()));
    assert!(!world.log().contains("GC Warning"), "{}", world.log());
    assert!(world.log().contains("error: bad"), "{}", world.log());
}

#[test]
fn gcc_compiles_a_program_that_runs() {
    let world = World::new();
    if !needs("gcc", || find_program("gcc").is_some()) {
        return;
    }
    let engine = world.engine(
        "c",
        "engine = \"command\"\ncommand = [\"{binary}\"]\nextension = \".c\"\n\
         compile = [\"gcc\", \"-o\", \"{binary}\", \"{script}\"]",
    );
    let source = "#include <stdio.h>\nint main(void) { puts(\"hello from c\"); return 0; }\n";
    assert_eq!(world.output(&engine, source), "hello from c");
    let message = world.message(&engine, "int main(void) { return x; }");
    assert!(message.starts_with("does not compile: script.c: In function"), "{message}");
}

//! Tests of the extensions of scripts, and of what node does with them.

use super::*;

/// Runs a script in a file with this extension.
pub(super) fn run_as(
    world: &World,
    engine: &CommandEngine,
    source: &str,
    extension: &str,
) -> Result<String, String> {
    let (env, inputs, deadline) =
        (BTreeMap::new(), Inputs::default(), Instant::now() + Duration::from_mins(5));
    let (job_id, caller_id, context_id) = ("job-1", "", "");
    let (env, inputs) = (&env, &inputs);
    let (args, params, secrets) =
        (&[][..], &crate::proto::job::Params::new(), &SecretValues::default());
    let bounds = &AskedBounds::default();
    let script = Script {
        job_id,
        caller_id,
        context_id,
        token_bounds: None,
        attempt: 1,
        traceparent: None,
        attempts_left: 0,
        started_at: None,
        state: None,
        event: None,
        source,
        extension,
        env,
        args,
        params,
        bounds,
        secrets,
        inputs,
        files: None,
        output_overflow: None,
        deadline,
    };
    match engine.run(&script, &Cancel::new(), &world.log) {
        Ok(success) => Ok(success.output.to_string()),
        Err(Failure::Script { message, .. } | Failure::Invalid { message }) => Err(message),
        Err(other) => panic!("no failure of the script: {other:?}"),
    }
}

#[test]
fn script_file_has_the_extension_of_its_job_if_its_type_has_it() {
    let world = World::new();
    let engine = world.engine(
        "x",
        "engine = \"command\"\ncommand = [\"/bin/sh\", \"{script}\"]\nextension = \".x\"\n\
         more_extensions = [\".y\"]\ncheck = [\"/bin/sh\", \"-n\", \"{script}\"]",
    );
    for (asked, name) in [("", "script.x"), (".x", "script.x"), (".y", "script.y")] {
        assert_eq!(run_as(&world, &engine, "basename $0", asked), Ok(name.to_owned()));
    }
    let message = "invalid job: extension `.z` is not an extension of its type: .x, .y".to_owned();
    assert_eq!(run_as(&world, &engine, "basename $0", ".z"), Err(message.clone()));
    assert_eq!(engine.check("", ".z"), Ok(Some(message)));
    assert!(engine.check("if", ".y").expect("checked").expect("wrong").contains("script.y"));
}

#[test]
fn typescript_runs_where_node_can_and_else_the_error_names_the_version() {
    let world = World::new();
    let engine = |name: &str, answer: &str| {
        let node = world.program(
            name,
            &format!(
                "#!/bin/sh\nif [ \"$1\" = -p ]; then echo '{answer}'; else basename -a -- \"$@\"; fi\n"
            ),
        );
        let keys = format!(
            "command = [{node:?}, \"{{script}}\"]\ncheck = [{node:?}, \"--check\", \"{{script}}\"]"
        );
        world.engine("node", &keys)
    };
    let new = engine("node-new", "");
    assert_eq!(run_as(&world, &new, "", ".ts"), Ok("script.ts".to_owned()));
    let with_option = engine("node-option", "--experimental-x");
    let expected = "--experimental-x\nscript.ts".to_owned();
    assert_eq!(run_as(&world, &with_option, "", ".ts"), Ok(expected));
    assert_eq!(run_as(&world, &with_option, "", ".js"), Ok("script.js".to_owned()));
    let old = engine("node-old", "v20.1.0");
    assert_eq!(run_as(&world, &old, "", ".mjs"), Ok("script.mjs".to_owned()));
    let message = run_as(&world, &old, "", ".ts").expect_err("too old");
    assert!(message.starts_with("cannot run TypeScript: node is v20.1.0"), "{message}");
    assert_eq!(old.check("", ".ts"), Ok(Some(message)));
}

#[test]
fn the_node_of_this_machine_runs_modules_and_says_what_it_does_with_typescript() {
    let world = World::new();
    let node = world.engine("node", "");
    if !needs("node", || node.unavailable().is_none()) {
        return;
    }
    let typescript = "const n: number = 6;\nconsole.log(n * 7);\n";
    match run_as(&world, &node, typescript, ".ts") {
        Ok(output) => assert_eq!(output, "42"),
        Err(message) => {
            assert!(message.starts_with("cannot run TypeScript: node is v"), "{message}");
        }
    }
    assert_eq!(node.check("import 'node:os'; await 1;", ".mjs"), Ok(None));
    assert!(node.check("require(", ".cjs").expect("checked").is_some());
}

//! Calls every registered function with unsuitable arguments: it returns a value or an error, and
//! never panics. New functions are included by themselves.

use super::*;

/// Shared by all cases.
static WORLD: OnceLock<ExampleWorld> = OnceLock::new();

/// Prepares what arguments refer to: a long text, a binary file, a link to itself.
const BEFORE: &str = r#"
    let long = "x"; long.pad(5000, "y");
    symlink("loop", "loop");
    run_silent(`printf '\377\376' > binary; touch empty`);
"#;

/// Prepares a deep value; too slow for every case.
const DEEP: &str = "let deep = #{}; for level in 0..1000 { deep = #{deep: deep}; }";

const STRINGS: &[&str] = &[
    "\"\"",
    "\"\\x00\"",
    "\"no such\"",
    "\"a\\u00ffb\"",
    "\"one\\ntwo\"",
    "long",
    "\"..\\x00\"",
    "\"-x\"",
    "\"*\"",
    "\"[(\"",
    "\"%\"",
    "\"{{ a\"",
    "\"binary\"",
    "\"empty\"",
    "\"loop\"",
    "\"loop/further\"",
    "\"/etc/shadow\"",
    "\"http://127.0.0.1:1/\"",
];
const NUMBERS: &[&str] =
    &["0", "1", "-1", "65536", "9223372036854775807", "-9223372036854775807 - 1"];
const FLOATS: &[&str] = &["0.0", "-1.5", "1.0e308 * 10.0", "0.0 / 0.0"];
const BOOLS: &[&str] = &["true", "false"];
const MAPS: &[&str] =
    &["#{}", "#{die: 1}", "#{die: false}", "#{odd: true}", "#{\"\": ()}", "#{\"a\\x00\": [[]]}"];
const ARRAYS: &[&str] = &["[]", "[(), [1]]", "[#{set: 1}]", "[deep]"];
const OTHERS: &[&str] = &["()", "'c'", "blob(3)", "|| 1", "deep", "timestamp()"];

/// Returns a random argument, mostly of the type.
fn argument(rng: &mut fastrand::Rng, kind: &str) -> String {
    let all = [STRINGS, NUMBERS, FLOATS, BOOLS, MAPS, ARRAYS, OTHERS];
    let of_kind = match kind {
        "string" => STRINGS,
        "int" => NUMBERS,
        "float" => FLOATS,
        "bool" => BOOLS,
        "map" => MAPS,
        "array" => ARRAYS,
        _ => OTHERS,
    };
    let values = if rng.u8(0..4) == 0 { all[rng.usize(0..all.len())] } else { of_kind };
    values[rng.usize(0..values.len())].to_owned()
}

/// Returns an expression for a value of a registered type.
fn object(type_name: &str, world: &ExampleWorld) -> String {
    match type_name {
        "Command" => "run(\"exit 1\")".to_owned(),
        "TextReplacerBuilder" => "text_replacer_new().pattern(\"a\")".to_owned(),
        "TextReplacer" => "text_replacer_new().pattern(\"a\").build()".to_owned(),
        "TemplateBuilder" => "template_builder_open(\"empty\")".to_owned(),
        "GitTree" => "git_tree_new(\".\")".to_owned(),
        "GitRepo" => {
            format!("git_tree_new(\"{}\").get(\"repository\")", world.path().display())
        }
        other => panic!("add an expression for {other}"),
    }
}

/// Returns all functions but `kill`, which could end any process of this machine.
fn harmless() -> impl Iterator<Item = &'static Function> {
    functions().filter(|function| function.name != "kill")
}

#[test]
fn kill_ends_matching_processes_and_rejects_wrong_arguments() {
    let world = ExampleWorld::new();
    // A duration that no other process uses.
    let seconds = format!("{}.{}", fastrand::u32(100_000_000..), fastrand::u64(1_000_000_000..));
    let sleeper = || {
        Service::start(ServiceSpec {
            program: "/bin/sleep".into(),
            args: vec![seconds.clone().into()],
            ..ServiceSpec::default()
        })
        .expect("sleep starts")
    };
    let (mut first, mut second) = (sleeper(), sleeper());
    let source = format!("kill(\"{seconds}\")");
    assert_eq!(world.run(sal(), &source), Ok("Successfully killed 2 processes".to_owned()));
    for sleeper in [&mut first, &mut second] {
        assert_eq!(sleeper.wait().expect("ended").code(), None);
    }
    for source in ["kill(())", "kill([])", "kill(\"\")", "kill(\" \\t\")", "kill(0)", "kill(-1)"] {
        refusal(sal(), &world, source);
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2))]

    #[test]
    fn unsuitable_arguments_do_not_make_a_function_panic(seed in proptest::prelude::any::<u64>()) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let world = WORLD.get_or_init(|| {
            let world = ExampleWorld::new();
            let make = format!("git init --quiet {}/repository", world.path().display());
            world.run(sal(), &format!("run_silent(\"{make}\")")).expect("a repository");
            world.run(sal(), BEFORE).expect("prepared");
            world
        });
        for function in harmless() {
            for signature in &function.signatures {
                let types = parameter_types(signature);
                let arguments: Vec<String> =
                    types.iter().map(|kind| argument(&mut rng, kind)).collect();
                let object =
                    function.receiver.map(|receiver| object(receiver, world) + ".").unwrap_or_default();
                let call = format!("{object}{}({})", function.name, arguments.join(", "));
                let deep = if call.contains("deep") { DEEP } else { "" };
                let source = format!("{BEFORE}{deep}{call}");
                let result = world.run_for(sal(), &source, Duration::from_secs(1));
                // Only errors are searched: an output may contain that word by chance.
                let message = result.err().map(|failure| failure.to_string()).unwrap_or_default();
                proptest::prop_assert!(
                    !message.contains("the engine panicked"), "{call}: {message}"
                );
            }
        }
    }
}

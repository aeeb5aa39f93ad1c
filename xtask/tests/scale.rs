//! The scale benchmark with loads that are small.

use std::path::Path;
use std::process::Command;

#[test]
#[expect(clippy::disallowed_methods, reason = "the programs as a developer starts them")]
fn small_loads_are_measured_and_printed() {
    let xtask = Path::new(env!("CARGO_BIN_EXE_xtask"));
    let hero = xtask.with_file_name("hero");
    assert!(
        hero.exists(),
        "{} does not exist: run cargo build, or test --workspace",
        hero.display()
    );
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("scale.toml");
    let mut command = Command::new(hero);
    command.arg("--config").arg(config).args(["dev", "--"]).arg(xtask);
    command.args(["scale", "--divide-by", "1000", "--only", "idle,many,due,deaths"]);
    // Other tests run meanwhile.
    let done = command.args(["--longest", "60000"]).output().expect("hero starts");
    let [out, err] =
        [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(done.status.success(), "{out}\n{err}");
    for row in [
        "idle units of hero dev ",
        "queues with five jobs each ",
        "idle actors beside them ",
        "a job for one of them ",
        "scheduled for later ",
        "sweeps beside all of them ",
        "hero job list --status scheduled ",
        "due at once ",
        "jobs of a dead actor ",
    ] {
        assert!(out.lines().any(|line| line.starts_with(row)), "no row {row:?} in:\n{out}");
    }
}

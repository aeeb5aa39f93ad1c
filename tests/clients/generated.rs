//! A client in TypeScript that the generator `@open-rpc/generator` makes of `docs/openrpc.json`: it compiles, and works.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Redis, Served, needs, npm};

/// Renames the methods, as docs/api.md says, and generates, compiles and runs the program.
const BUILD: &str = include_str!("generated.sh");
const PROGRAM: &str = include_str!("generated.ts");

#[expect(clippy::disallowed_methods, reason = "tests start the programs they test with")]
fn build(folder: &Path, args: &[&str]) -> Output {
    let packages = npm().expect("found").join("node_modules");
    std::os::unix::fs::symlink(packages, folder.join("node_modules")).expect("a link");
    std::fs::write(folder.join("program.ts"), PROGRAM).expect("writing the program");
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/openrpc.json");
    let mut shell = Command::new("sh");
    shell.args(["-euc", BUILD, "sh", document]).args(args);
    shell.current_dir(folder).output().expect("a shell")
}

#[test]
fn generated_client_compiles_and_calls_the_program() {
    if !needs("npm", || npm().is_some()) {
        return;
    }
    let redis = Redis::start();
    let site = Served::on(&redis);
    let _actor = site.hero.actor("osis-default-1").start();
    let token = site.token(&["generated", "--scope", "read,submit"]);
    let folder = tempfile::tempdir().expect("a folder");
    let done = build(folder.path(), &[&site.at("/rpc"), &token]);
    let said = String::from_utf8_lossy(&done.stdout);
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(said.ends_with("done\n"), "{said}{errors}");
}

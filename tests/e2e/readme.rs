//! The README: its first lines do what they say.

use hero::config::Require;
use hero::sandbox::Support;

use crate::support::{Hero, Redis, needs};

const README: &str = include_str!("../../README.md");

/// Returns the lines of the first block of the page; the first line opens the shell for the others.
fn first_lines() -> (&'static str, String) {
    let block = README.split("```sh\n").nth(1).expect("a block");
    let block = block.split("```").next().expect("its end");
    let (dev, rest) = block.split_once('\n').expect("lines");
    (dev, rest.to_owned())
}

#[test]
fn first_lines_of_the_readme_run_as_they_stand() {
    let (dev, lines) = first_lines();
    assert!(dev.starts_with("hero dev -- bash"), "{dev}");
    assert!(lines.lines().count() <= 4, "{lines}");
    if !needs("landlock", || Support::of_this_kernel().level() >= Require::Basic) {
        return;
    }
    let done = Hero::on(&Redis::absent(false)).run(&["dev", "--", "bash", "-c", &lines]).code(0);
    assert!(done.stdout.starts_with("42\nhello\nID "), "{done:#?}");
    let refused = done.stderr.contains("listing /home was refused; [type.bash.sandbox] read");
    assert!(refused, "{done:#?}");
    for state in ["finished  osis", "finished  python", "error     bash"] {
        assert!(done.stdout.contains(state), "{state}: {done:#?}");
    }
}

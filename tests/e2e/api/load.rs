//! What one caller can have at a time.

use serde_json::json;

use crate::support::{Hero, Redis, Served};

/// Counts the processes with these arguments.
fn processes(arguments: &[&str]) -> usize {
    let wanted: Vec<u8> =
        arguments.iter().flat_map(|part| [part.as_bytes(), b"\0"].concat()).collect();
    let all = std::fs::read_dir("/proc").expect("it is mounted").filter_map(Result::ok);
    all.filter(|of| std::fs::read(of.path().join("cmdline")).is_ok_and(|own| own == wanted)).count()
}

#[test]
fn scripts_of_one_caller_are_checked_a_few_at_a_time() {
    const CHECK: [&str; 2] = ["sleep", "0.3017"];
    let redis = Redis::start();
    let command = format!("[\"/bin/sh\", \"-c\", \"exec {}\", \"{{script}}\"]", CHECK.join(" "));
    let api = Served::with(Hero::on(&redis).set("type.bash.check", &command), &redis);
    let script = json!({ "script": "1", "script_type": "bash" });
    let most = std::thread::scope(|scope| {
        let check = || api.call("script.check", &script);
        let calls: Vec<_> = (0..16).map(|_| scope.spawn(check)).collect();
        let mut most = 0;
        while !calls.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            most = most.max(processes(&CHECK));
        }
        most
    });
    assert!((1..=4).contains(&most), "{most} at a time");
}

//! The settings in force: what a reload changes, and units that have others than the files.

use std::fs;

use nix::sys::signal::Signal;

use crate::support::{Hero, Process, Redis, wait_until};

/// Adds keys and tables to the configuration of a unit, and reloads it.
fn reload_with(unit: &Process, keys: &str, tables: &str) {
    let text = fs::read_to_string(unit.config()).expect("its file");
    fs::write(unit.config(), format!("{keys}{text}{tables}")).expect("written");
    unit.signal(Signal::SIGHUP);
}

#[test]
fn reload_names_each_key_with_both_values_in_the_log_and_in_the_record_of_changes() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let units = [hero.supervisor().start(), hero.actor("bash-default-1").start()];
    let lines = "[type.bash.env]\nDB_PASSWORD = \"hunter2\"\nMODE = \"b\"\n[limit.db]\nkey = \"db\"\nrunning = 2\n";
    for unit in &units {
        reload_with(unit, "", lines);
        for change in ["limit.db.running: none → 2", "type.bash.env.MODE: none → \"b\""] {
            wait_until("the log names it", || unit.err().contains(change));
        }
        assert!(!unit.err().contains("hunter2"), "{}", unit.err());
    }
    let changes = || hero.run(&["audit", "--what", "config", "--json"]).code(0).stdout;
    wait_until("it is recorded", || changes().contains("limit.db.running: none → 2"));
    let recorded = changes();
    assert!(recorded.contains("unit supervisor") && recorded.contains("reload"), "{recorded}");
    assert!(recorded.contains("DB_PASSWORD: none → ***"), "{recorded}");
    assert!(!recorded.contains("hunter2"), "{recorded}");
}

#[test]
fn unit_with_other_settings_is_named_by_check_doctor_and_explain_until_it_has_them() {
    let redis = Redis::start();
    let hero = Hero::on(&redis);
    let actor = hero.actor("bash-default-1").start();
    let said = format!("actor bash:default:1 (pid {}) runs with other settings", actor.pid());
    assert!(!hero.run(&["check"]).code(0).stderr.contains(&said));
    let changed = Hero::on(&redis).set("job.output_size_max", "\"2MiB\"");
    let said = format!("{said} than these: it has a configuration of 20");
    changed.run(&["check"]).code(0).says(&said).says(", this one is of 20");
    changed.run(&["exec", "-t", "bash", "-e", "exit 3"]).code(3).says(&said);
    let doctor = changed.run(&["doctor"]).stdout;
    assert!(doctor.contains(&said) && doctor.contains("systemctl reload"), "{doctor}");
    changed.run(&["exec", "--explain", "-t", "bash", "-e", "echo"]).code(0).says(&said);
    reload_with(&actor, "job.output_size_max = \"2MiB\"\n", "");
    let is_other = || changed.run(&["check"]).code(0).stderr.contains(&said);
    wait_until("it has them", || !is_other());
}

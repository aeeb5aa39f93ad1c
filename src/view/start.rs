//! The command that starts a unit on this machine.

use std::path::Path;

/// Returns true if systemd is the init system of this machine.
pub fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

/// Returns the command that starts a unit: with systemd for good, else in the foreground.
pub fn start_of(unit: &str) -> String {
    start(unit, has_systemd())
}

fn start(unit: &str, has_systemd: bool) -> String {
    let unit_of_systemd = format!("systemctl enable --now hero@{unit}");
    if has_systemd {
        return unit_of_systemd;
    }
    format!("hero run {unit} (where systemd runs: {unit_of_systemd})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_is_started_in_the_foreground_where_systemd_does_not_run() {
        assert_eq!(start("supervisor", true), "systemctl enable --now hero@supervisor");
        assert!(
            start("supervisor", false).starts_with("hero run supervisor (where systemd runs: ")
        );
    }
}

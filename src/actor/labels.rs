//! The labels of actors: those that are configured, and those that each has by itself.

use std::fs;
use std::sync::OnceLock;

use ring::digest::{SHA256, digest};

use super::machine;
use crate::client::host_name;
use crate::config::ActorUnit;
use crate::proto::labels::Labels;
use crate::proto::text::hexadecimal;

/// The digits of the name of a machine.
const MACHINE_DIGITS: usize = 12;

/// Returns all labels of an actor. The labels of its machine are read once: later, the sandbox of an `osis` process allows it
/// no more.
pub fn all_labels(unit: &ActorUnit) -> Labels {
    static OF_MACHINE: OnceLock<Labels> = OnceLock::new();
    let mut labels = unit.labels.clone();
    labels.extend(OF_MACHINE.get_or_init(of_machine).clone());
    let of_actor =
        [("group", unit.id.group.to_string()), ("instance", unit.id.instance.to_string())];
    labels.extend(legal(of_actor));
    labels
}

/// Leaves out values that are not legal, such as a name with control characters.
fn legal(given: impl IntoIterator<Item = (&'static str, String)>) -> Labels {
    let legal = |(name, value): (&str, String)| Some((name.parse().ok()?, value.parse().ok()?));
    given.into_iter().filter_map(legal).collect()
}

fn of_machine() -> Labels {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let host = host_name();
    let release = read("/etc/os-release");
    let memory = machine::total_memory().map(|bytes| bytes.to_string()).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    legal([
        ("arch", arch().to_owned()),
        ("cores", cores.to_string()),
        ("kernel", read("/proc/sys/kernel/osrelease").trim().to_owned()),
        ("machine", machine_name(read("/etc/machine-id").trim(), &host)),
        ("host", host),
        ("memory", memory),
        ("os", in_os_release(&release, "ID")),
        ("release", in_os_release(&release, "VERSION_ID")),
    ])
}

/// The architecture as Debian names it.
fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "i386",
        other => other,
    }
}

/// A short name that follows from the machine id, which itself is confidential: machine-id(5). A machine without one has
/// its host name.
fn machine_name(id: &str, host: &str) -> String {
    if id.is_empty() {
        return host.to_owned();
    }
    let text = format!("hero machine {id}");
    hexadecimal(&digest(&SHA256, text.as_bytes()).as_ref()[..MACHINE_DIGITS / 2])
}

fn in_os_release(text: &str, key: &str) -> String {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    value.unwrap_or_default().trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_has_a_short_name_that_does_not_tell_its_id() {
        let name = machine_name("0123456789abcdef0123456789abcdef", "web-1");
        assert!(name.len() == MACHINE_DIGITS && !name.contains("0123"), "{name}");
        assert_ne!(name, machine_name("1123456789abcdef0123456789abcdef", "web-1"));
        assert_eq!(machine_name("", "web-1"), "web-1");
    }

    #[test]
    fn release_is_read_as_the_file_has_it() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n";
        assert_eq!(
            (in_os_release(text, "ID").as_str(), in_os_release(text, "VERSION_ID").as_str()),
            ("debian", "12")
        );
        assert_eq!(in_os_release("", "ID"), "");
    }
}

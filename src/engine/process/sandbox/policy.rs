//! What children may touch, from the configuration. Pure: the kernel is asked elsewhere.

use std::path::{Path, PathBuf};

use crate::config::{SalConfig, SandboxConfig};

/// What children may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    /// Folders and files that may be read, and whose programs may be started, beside the system's.
    pub(super) read: Vec<PathBuf>,
    /// Folders and files that may be written as well, beside the child's own folder.
    pub(super) write: Vec<PathBuf>,
    pub(super) network: Network,
    /// Whether sockets of other programs may be reached by their names.
    pub(super) unix_sockets: bool,
    /// Whether modes may be changed by name, which Landlock does not hold.
    pub(super) chmod: bool,
    /// Whether it is cut off from signals to others.
    pub(super) own_signals: bool,
}

/// Whom children may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Network {
    Open,
    /// These TCP ports; with 53 among them, names may be asked for in datagrams.
    Ports(Vec<u16>),
    Closed,
}

impl Policy {
    pub(super) fn of_type(config: &SandboxConfig) -> Self {
        let network = match (config.network, config.ports.as_slice()) {
            (true, _) => Network::Open,
            (false, []) => Network::Closed,
            (false, ports) => Network::Ports(ports.to_vec()),
        };
        Self {
            read: config.read.clone(),
            write: config.write.clone(),
            network,
            unix_sockets: config.unix_sockets,
            chmod: config.chmod,
            own_signals: true,
        }
    }

    /// None if all is allowed: such scripts manage the machine, and so do their commands.
    pub(super) fn of_sal(config: &SalConfig) -> Option<Self> {
        let whole = |folders: &[PathBuf]| folders.iter().any(|folder| folder == Path::new("/"));
        if whole(&config.read) && whole(&config.write) && config.network {
            return None;
        }
        Some(Self {
            read: config.read.clone(),
            write: config.write.clone(),
            network: if config.network { Network::Open } else { Network::Closed },
            // Those of this machine are no other machine, and services are managed by them.
            unix_sockets: true,
            chmod: true,
            own_signals: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_is_closed_but_for_what_is_said() {
        let of = |network, ports: &[u16]| {
            let config = SandboxConfig { network, ports: ports.to_vec(), ..Default::default() };
            Policy::of_type(&config).network
        };
        assert_eq!(of(false, &[]), Network::Closed);
        assert_eq!(of(false, &[443]), Network::Ports(vec![443]));
        assert_eq!(of(true, &[]), Network::Open);
    }

    #[test]
    fn commands_of_sal_are_held_as_soon_as_its_functions_are() {
        assert_eq!(Policy::of_sal(&SalConfig::default()), None);
        let narrow = [
            SalConfig { read: vec!["/srv".into()], ..SalConfig::default() },
            SalConfig { write: Vec::new(), ..SalConfig::default() },
            SalConfig { network: false, ..SalConfig::default() },
        ];
        for config in narrow {
            let policy = Policy::of_sal(&config).expect("held");
            assert_eq!((policy.read, policy.write), (config.read, config.write));
            assert_eq!(policy.network == Network::Open, config.network);
        }
    }
}

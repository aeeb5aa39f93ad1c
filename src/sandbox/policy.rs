//! The access rights of children, from the configuration. Pure: does not ask the kernel.

use std::path::{Path, PathBuf};

use crate::config::{SalConfig, SandboxConfig};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Policy {
    /// Folders and files that may be read and executed, in addition to the system's.
    pub(super) read: Vec<PathBuf>,
    /// Folders and files that may be written too, in addition to the child's own folder.
    pub(super) write: Vec<PathBuf>,
    pub(super) network: Network,
    pub(super) unix_sockets: bool,
    /// True if modes may be changed, which Landlock does not control.
    pub(super) chmod: bool,
    pub(super) own_signals: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    Open,
    /// These TCP ports; with port 53, UDP for name resolution too.
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

    pub(super) fn may_listen(&self) -> bool {
        self.unix_sockets || self.network == Network::Open
    }

    /// `None` if everything is allowed: such scripts manage the machine, and so do their commands.
    pub(super) fn of_sal(config: &SalConfig) -> Option<Self> {
        let whole = |folders: &[PathBuf]| folders.iter().any(|folder| folder == Path::new("/"));
        if whole(&config.read) && whole(&config.write) && config.network {
            return None;
        }
        Some(Self {
            read: config.read.clone(),
            write: config.write.clone(),
            network: if config.network { Network::Open } else { Network::Closed },
            // Services of this machine are managed through them.
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
    fn network_is_closed_except_for_configured_ports() {
        let of = |network, ports: &[u16]| {
            let config = SandboxConfig { network, ports: ports.to_vec(), ..Default::default() };
            Policy::of_type(&config).network
        };
        assert_eq!(of(false, &[]), Network::Closed);
        assert_eq!(of(false, &[443]), Network::Ports(vec![443]));
        assert_eq!(of(true, &[]), Network::Open);
    }

    #[test]
    fn sal_commands_are_restricted_like_its_functions() {
        assert_eq!(Policy::of_sal(&SalConfig::default()), None);
        let narrow = [
            SalConfig { read: vec!["/srv".into()], ..SalConfig::default() },
            SalConfig { write: Vec::new(), ..SalConfig::default() },
            SalConfig { network: false, ..SalConfig::default() },
        ];
        for config in narrow {
            let policy = Policy::of_sal(&config).expect("restricted");
            assert_eq!((policy.read, policy.write), (config.read, config.write));
            assert_eq!(policy.network == Network::Open, config.network);
        }
    }
}

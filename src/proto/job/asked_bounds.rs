//! The bounds that a job asks for. Its script type says how far it may go.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::proto::target::IllegalName;
use crate::proto::units::{format_size, parse_size};

/// The memory that a job asks for, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemorySize(u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkAccess {
    Closed,
    Ports(BTreeSet<u16>),
    Open,
}

/// The bounds that a job asks for; `None` for the bounds of its type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AskedBounds {
    /// The memory of each process.
    pub memory: Option<MemorySize>,
    /// The memory of the job as a whole; as much as each process without it.
    pub job_memory: Option<MemorySize>,
    /// The processor time of each process.
    pub cpu: Option<Duration>,
    pub network: Option<NetworkAccess>,
}

impl AskedBounds {
    pub fn first_field(&self) -> Option<&'static str> {
        let fields = [
            ("memory", self.memory.is_some()),
            ("job_memory", self.job_memory.is_some()),
            ("cpu", self.cpu.is_some()),
            ("network", self.network.is_some()),
        ];
        fields.into_iter().find(|(_, is_asked)| *is_asked).map(|(field, _)| field)
    }
}

impl MemorySize {
    pub const FORM: &'static str =
        "a size from 16MiB to 1048576GiB with its unit such as 512MiB or 500MB";

    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for MemorySize {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        let bytes = value.parse().ok().or_else(|| parse_size(value).ok());
        match bytes {
            Some(bytes) if (16 << 20..=1 << 50).contains(&bytes) => Ok(Self(bytes)),
            _ => Err(IllegalName::new("memory", value, Self::FORM)),
        }
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format_size(self.0))
    }
}

impl NetworkAccess {
    pub const FORM: &'static str =
        "none, all, or at most 64 TCP ports such as 443,53; a host cannot be named";
}

impl FromStr for NetworkAccess {
    type Err = IllegalName;

    fn from_str(value: &str) -> Result<Self, IllegalName> {
        const PORTS_MAX: usize = 64;
        let port = |text: &str| text.trim().parse().ok().filter(|port| *port > 0);
        match value {
            "none" => Ok(Self::Closed),
            "all" => Ok(Self::Open),
            _ => match value.split(',').map(port).collect::<Option<BTreeSet<u16>>>() {
                Some(ports) if ports.len() <= PORTS_MAX => Ok(Self::Ports(ports)),
                _ => Err(IllegalName::new("network", value, Self::FORM)),
            },
        }
    }
}

impl fmt::Display for NetworkAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("none"),
            Self::Open => f.write_str("all"),
            Self::Ports(ports) => {
                let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
                f.write_str(&ports.join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_written_as_they_are_read() {
        for (text, written) in [("512MiB", "512MiB"), ("1GB", "1GB"), ("33554432", "32MiB")] {
            assert_eq!(text.parse::<MemorySize>().expect(text).to_string(), written);
        }
        for (text, written) in [("none", "none"), ("all", "all"), ("5432, 443,443", "443,5432")] {
            assert_eq!(text.parse::<NetworkAccess>().expect(text).to_string(), written);
        }
    }

    #[test]
    fn illegal_bounds_are_rejected() {
        for text in ["", "0", "1MiB", "512", "2PiB", "-1", "16EiB", "much"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
        let many = (1..=65).map(|port: u16| port.to_string()).collect::<Vec<_>>().join(",");
        for text in ["", "0", "65536", "443,", "http", "443;80", "NONE", &many] {
            assert!(text.parse::<NetworkAccess>().is_err(), "{text}");
        }
    }
}

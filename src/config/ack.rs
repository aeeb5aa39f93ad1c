//! `redis.ack`: the copies of a job that there must be before its submission is answered.

use std::fmt;
use std::str::FromStr;

use crate::proto::word_table::as_text;

/// The place where a write must have arrived before it is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// The memory of Redis.
    #[default]
    Memory,
    /// The append-only file, synchronised with the disk.
    Disk,
    /// The memory of so many replicas.
    Replicas(u8),
}

impl Ack {
    const REPLICAS_MAX: u8 = 16;
}

impl fmt::Display for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Disk => f.write_str("disk"),
            Self::Replicas(number) => write!(f, "replicas:{number}"),
        }
    }
}

impl FromStr for Ack {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = || text.strip_prefix("replicas:")?.parse().ok();
        match text {
            "memory" => Ok(Self::Memory),
            "disk" => Ok(Self::Disk),
            _ => number()
                .filter(|number| (1..=Self::REPLICAS_MAX).contains(number))
                .map(Self::Replicas)
                .ok_or_else(|| {
                    format!(
                        "must be memory, disk, or replicas:N with N from 1 to {}",
                        Self::REPLICAS_MAX
                    )
                }),
        }
    }
}

as_text!(Ack);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_reads_back_as_it_is_written() {
        for text in ["memory", "disk", "replicas:1", "replicas:16"] {
            assert_eq!(text.parse::<Ack>().map(|ack| ack.to_string()), Ok(text.to_owned()));
        }
        for wrong in
            ["", "Disk", "replicas", "replicas:0", "replicas:17", "replicas:-1", "replicas:999"]
        {
            assert!(wrong.parse::<Ack>().is_err(), "{wrong}");
        }
    }
}

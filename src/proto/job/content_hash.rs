//! The digest of a content.

use std::fmt;
use std::str::FromStr;

use crate::proto::target::{IllegalName, name};

name!(
    /// The SHA-256 of a content.
    ContentHash,
    "SHA-256",
    "64 of 0-9 and a-f",
    |name| name.len() == 64 && name.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
);

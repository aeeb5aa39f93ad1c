//! `[api]`: where the API and the page listen, and who may call.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config_error::{Fault, KeyPath};
use super::connection::{check_pair, empty_is_none};
use super::key_row::{HOUR, KIB, REDIS_STRING, SECOND, key_table};
use super::units::{duration, size};
use crate::config::toml_table::toml_table;
use crate::proto::access::Scope;
use crate::proto::target::is_word;
use crate::proto::word_table::as_text;

const SOCKET_PATH_MAX: usize = 107;

toml_table! {
    /// The API and the page, which each supervisor serves. docs/api.md has examples.
    pub struct ApiConfig in "api" {
        /// Where: `unix:///PATH` for a socket, or `ADDRESS:PORT` for TCP, such as `127.0.0.1:8470`. Port 0 is a free
        /// port. Empty: no API.
        listen: Vec<Listen> = vec![Listen::Unix(PathBuf::from("/run/hero/api.sock"))]
            => Texts, restart;
        /// The path below which everything is served, for a proxy, such as `/hero`.
        path: String = String::new() => Text, restart;
        /// The address of the page for people, with `path`, such as `https://hero.example.org/hero`: notifications and
        /// `hero job show` link to it, `hero job open` opens it. Empty: no links.
        public_url: Option<String> as "empty_is_none" = None => Text;
        /// Over TCP a browser may call the API by an address, as `localhost`, or by these names.
        hosts: Vec<String> = Vec::new() => Texts;
        /// The proxies whose headers X-Forwarded-For, X-Forwarded-Host and X-Forwarded-Proto count: addresses, or
        /// networks such as `10.0.0.0/8`.
        trusted_proxies: Vec<AddressRange> = Vec::new() => Texts;
        /// The certificates of the server with the chain, and the private key, in PEM. Without them TCP has no TLS:
        /// then listen on an address of this machine only. A reload reads them again.
        tls_cert_file: Option<PathBuf> as "empty_is_none" = None => File;
        tls_key_file: Option<PathBuf> as "empty_is_none" = None => File;
        /// Over a Unix socket, root and the members of `admin_group` may do everything; the members of `group` may
        /// read, submit, and stop and retry their own jobs. The socket belongs to `group`, with mode 0660.
        admin_group: String = "hero-admin".to_owned() => Text;
        group: String = "hero".to_owned() => Text;
        /// The unique keys that all callers share, as patterns in which `*` stands for any text. Any other key of a
        /// caller with bounds, or without the scope `operate`, belongs to it and to the context of its job.
        shared_unique_keys: Vec<String> = Vec::new() => Texts;
        /// Serves `/metrics` without a login.
        metrics_open: bool = false => Flag;
        /// The largest body of a request.
        body_size_max: u64 as "size" = 8 << 20 => Size(KIB, REDIS_STRING);
        /// The most calls of one batch.
        batch_max: usize = 100 => Number(1, 10_000);
        /// The most connections of known callers over TCP at once, and of the local socket; for callers that are not known there is
        /// a quarter as many besides.
        connections_max: usize = 1000 => Number(1, 100_000), restart;
        /// A client that does not send a request, or does not read its answer, within this time is disconnected.
        client_timeout: Duration as "duration" = Duration::from_secs(30) => Duration(SECOND, HOUR);
        /// The file that gets the addresses in use, one per line, for programs that ask for port 0.
        address_file: Option<PathBuf> as "empty_is_none" = None => File, restart;
    } with {
        /// `[api.keys.NAME]`: the callers that log in by a signature.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub keys: BTreeMap<String, ApiKey> = BTreeMap::new(),
    }
}

key_table! {
    /// A caller that logs in by a signature of secp256k1.
    ///
    ///     api.keys.ci.public_key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798"
    ///     api.keys.ci.scopes = ["read", "submit"]
    ///     api.keys.ci.types = ["python"]
    ///     api.keys.ci.groups = ["default"]
    ///     api.keys.ci.callers = ["ci"]
    ///     api.keys.ci.contexts = ["builds"]
    API_KEYS = "api.keys.NAME";

    /// Its public key of secp256k1, in hexadecimal digits.
    public_key: Text;

    /// Its scopes.
    scopes: SomeOf(&["read", "submit", "operate", "admin", "fleet"]);

    /// These bound its jobs, as the options of `hero token new` do; empty for all.
    types: Texts;
    groups: Texts;
    callers: Texts;
    contexts: Texts;
}

/// `[api.keys.NAME]`: a caller that logs in by a signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields, expecting = "a table")]
pub struct ApiKey {
    pub public_key: String,
    pub scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<String>,
}
crate::toml_table::only_as_table!(ApiKey);

impl ApiConfig {
    pub(super) fn check(&self) -> Result<(), Fault> {
        let table = KeyPath::of(&["api"]);
        for (index, one) in self.listen.iter().enumerate() {
            if self.listen[..index].contains(one) {
                return table.wrong("listen", format!("has `{one}` twice"));
            }
        }
        let is_path = |text: &str| {
            let legal = |part: &str| {
                is_word(part.as_bytes(), usize::MAX, b"-_.~") && part != "." && part != ".."
            };
            text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(legal))
        };
        if !self.path.is_empty() && !is_path(&self.path) {
            let message = "must begin with / and not end with it, such as \"/hero\"";
            return table.wrong("path", message);
        }
        if let Some(url) = &self.public_url {
            let is_url = url.starts_with("https://") || url.starts_with("http://");
            if !is_url || url.ends_with('/') || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
                let message =
                    "must be a url https://HOST/PATH or http://HOST/PATH without a / at its end";
                return table.wrong("public_url", message);
            }
        }
        check_pair("api", self.tls_cert_file.is_some(), self.tls_key_file.is_some())?;
        self.keys.iter().try_for_each(|(name, of_key)| of_key.check(name))
    }
}

impl ApiKey {
    fn check(&self, name: &str) -> Result<(), Fault> {
        let table = KeyPath::of(&["api", "keys", name]);
        if !is_caller_name(name) {
            let message = "must have a name of 1 to 64 of A-Z, a-z, 0-9, _, ., @ and -";
            return Err(Fault::new(table, message));
        }
        let is_hex = self.public_key.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_hex || ![66, 130].contains(&self.public_key.len()) {
            let message = "must be a public key of secp256k1: 66 or 130 hexadecimal digits";
            return table.wrong("public_key", message);
        }
        if self.scopes.is_empty() || self.scopes.iter().any(|one| one.parse::<Scope>().is_err()) {
            let scopes = Scope::ALL.map(Scope::as_str).join(", ");
            return table.wrong("scopes", format!("must be of {scopes}"));
        }
        Ok(())
    }
}

/// The word for all callers.
pub(super) const EVERYONE: &str = "*";

/// Returns true if a text is a legal name of a token or a key.
pub fn is_caller_name(name: &str) -> bool {
    is_word(name.as_bytes(), 64, b"_.@-")
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    Unix(PathBuf),
    /// A TCP port; 0 for a free one.
    Tcp(SocketAddr),
}
as_text!(Listen, AddressRange);

impl FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "expected an address such as \"unix:///run/hero/api.sock\" or \
                            \"127.0.0.1:8470\"";
        let Some(path) = text.strip_prefix("unix://") else {
            return text.parse().map(Self::Tcp).map_err(|_| FORM);
        };
        let is_short = path.len() <= SOCKET_PATH_MAX;
        let is_file = !path.contains('\0') && Path::new(path).file_name().is_some();
        if path.starts_with('/') && is_short && is_file {
            Ok(Self::Unix(path.into()))
        } else {
            Err(FORM)
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// An address, or a network of addresses such as `10.0.0.0/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    bits: u8,
}

impl AddressRange {
    pub fn contains(&self, address: IpAddr) -> bool {
        let shared = |own: u128, other: u128, width: u8| {
            let rest = u32::from(width - self.bits);
            own.checked_shr(rest) == other.checked_shr(rest)
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                shared(own.to_bits().into(), other.to_bits().into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => shared(own.to_bits(), other.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for AddressRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str =
            "expected an address or a network, such as \"127.0.0.1\" or \"10.0.0.0/8\"";
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| FORM)?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(width), str::parse).map_err(|_| FORM)?;
        if bits > width { Err(FORM) } else { Ok(Self { address, bits }) }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = if self.address.is_ipv4() { 32 } else { 128 };
        if self.bits == width {
            self.address.fmt(f)
        } else {
            write!(f, "{}/{}", self.address, self.bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn refusal(text: &str) -> String {
        Config::from_toml("hero.toml".as_ref(), text).expect_err(text).to_string()
    }

    #[test]
    fn addresses_are_read_and_others_rejected() {
        let text = "[api]\nlisten = [\"unix:///a/b.sock\", \"127.0.0.1:0\", \"[::1]:8470\"]";
        let api = Config::from_toml("hero.toml".as_ref(), text).expect("legal").api;
        let shown: Vec<String> = api.listen.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["unix:///a/b.sock", "127.0.0.1:0", "[::1]:8470"]);
        for wrong in ["", "8470", "localhost:8470", "unix://a", "unix:///", "http://127.0.0.1:1"] {
            let error = refusal(&format!("[api]\nlisten = [\"{wrong}\"]"));
            assert!(error.contains("expected an address such as"), "{error}");
        }
        let twice = "[api]\nlisten = [\"127.0.0.1:1\", \"127.0.0.1:1\"]";
        assert!(refusal(twice).contains("api.listen has `127.0.0.1:1` twice"));
    }

    #[test]
    fn networks_contain_their_addresses() {
        let has = |network: &str, address: &str| {
            let network: AddressRange = network.parse().expect(network);
            network.contains(address.parse().expect(address))
        };
        assert!(has("10.0.0.0/8", "10.9.8.7") && !has("10.0.0.0/8", "11.0.0.1"));
        assert!(has("127.0.0.1", "127.0.0.1") && !has("127.0.0.1", "127.0.0.2"));
        assert!(has("127.0.0.1", "::ffff:127.0.0.1"));
        assert!(has("0.0.0.0/0", "1.2.3.4") && has("fd00::/8", "fd12::1") && has("::/0", "::1"));
        assert!(!has("fd00::/8", "fe80::1") && !has("::/0", "1.2.3.4"));
        for wrong in ["", "10.0.0.0/33", "10.0.0.0/x", "host"] {
            assert!(wrong.parse::<AddressRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_settings_are_rejected_with_their_place() {
        let key = format!("02{}", "ab".repeat(32));
        for (text, expected) in [
            ("path = \"hero\"", "2:8: api.path must begin with /"),
            ("path = \"/hero/\"", "api.path must begin with / and not end with it"),
            ("path = \"/a/../b\"", "api.path must begin with /"),
            ("public_url = \"https://h/\"", "2:14: api.public_url must be a url"),
            ("tls_cert_file = \"/a\"", "2:17: api.tls_cert_file needs api.tls_key_file"),
            ("batch_max = 0", "2:13: api.batch_max must be from 1 to 10000, not 0"),
            ("keys.a = { public_key = \"02\", scopes = [\"read\"] }", "must be a public key"),
            (&format!("keys.a = {{ public_key = \"{key}\", scopes = [] }}"), "must be of read,"),
            (&format!("keys.\"a b\" = {{ public_key = \"{key}\", scopes = [] }}"), "a name of 1"),
        ] {
            let error = refusal(&format!("[api]\n{text}"));
            assert!(error.contains(expected), "{error}");
        }
    }
}

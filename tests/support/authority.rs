//! Certificates of an authority of its own, for servers with TLS.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// A certificate authority, and a certificate that it signed for this machine.
pub(crate) struct Authority {
    folder: PathBuf,
}

impl Authority {
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(DnType::CommonName, format!("authority {name}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).expect("an authority");
        let issuer = Issuer::new(params, key);
        let own_key = KeyPair::generate().expect("a key");
        let names = vec!["127.0.0.1".to_owned()];
        let own = CertificateParams::new(names).expect("an address");
        let own = own.signed_by(&own_key, &issuer).expect("a certificate");
        let write = |name: &str, text: String| {
            std::fs::write(folder.join(name), text).expect("writing a certificate");
        };
        write("ca.pem", authority.pem());
        write("cert.pem", own.pem());
        write("key.pem", own_key.serialize_pem());
        Self { folder }
    }

    /// The path of one of its files: `ca.pem`, `cert.pem`, `key.pem`.
    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// The same in TOML.
    pub(crate) fn quoted(&self, name: &str) -> String {
        format!("{:?}", self.file(name))
    }
}

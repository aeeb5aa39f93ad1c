//! TLS by certificate files, which are read again when they change the configuration is reloaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use crate::config::ApiConfig;

/// The time between two looks at the files.
const LOOK: Duration = Duration::from_secs(10);

/// The certificate in use. Its files may be replaced at any time.
pub(super) struct Tls {
    is_on: bool,
    loaded: Mutex<Loaded>,
}

#[derive(Default)]
struct Loaded {
    looked_at: Option<Instant>,
    content: Option<[Vec<u8>; 2]>,
    acceptor: Option<TlsAcceptor>,
}

impl Tls {
    pub(super) fn of(settings: &ApiConfig) -> Self {
        Self { is_on: settings.tls_cert_file.is_some(), loaded: Mutex::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Returns what accepts connections; `None` if there is no certificate that can be used.
    pub(super) fn acceptor(&self, settings: &ApiConfig) -> Option<TlsAcceptor> {
        let mut loaded = self.loaded.lock();
        if loaded.looked_at.is_some_and(|at| at.elapsed() < LOOK) {
            return loaded.acceptor.clone();
        }
        loaded.looked_at = Some(Instant::now());
        let files = (settings.tls_cert_file.as_deref(), settings.tls_key_file.as_deref());
        let (Some(certificate), Some(key)) = files else { return loaded.acceptor.clone() };
        match read(certificate, key) {
            Ok(content) if loaded.content.as_ref() == Some(&content) => {}
            Ok(content) => match acceptor(&content) {
                Ok(acceptor) => {
                    info!("the API has the certificate of {}", certificate.display());
                    loaded.acceptor = Some(acceptor);
                    loaded.content = Some(content);
                }
                Err(error) => warn!(
                    "cannot use the certificate {} of the API with the key {}: {error}",
                    certificate.display(),
                    key.display()
                ),
            },
            Err(error) => warn!("{error}"),
        }
        loaded.acceptor.clone()
    }
}

fn read(certificate: &Path, key: &Path) -> Result<[Vec<u8>; 2], String> {
    let file = |path: &Path| {
        std::fs::read(path).map_err(|error| {
            format!("cannot read {} for TLS of the API: {error}", PathBuf::from(path).display())
        })
    };
    Ok([file(certificate)?, file(key)?])
}

fn acceptor([certificate, key]: &[Vec<u8>; 2]) -> Result<TlsAcceptor, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

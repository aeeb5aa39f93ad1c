//! The TLS of a client.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// Returns the TLS of a client that trusts the authorities of a text in PEM, else the machine's, which
/// `SSL_CERT_FILE` and `SSL_CERT_DIR` may replace, as for openssl. The machine's are read from files.
///
/// # Errors
/// No authority, or one that cannot be read.
pub fn client_tls(authorities: Option<&[u8]>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let missing = if let Some(pem) = authorities {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        "it has no certificate in PEM"
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        "no certificate authority is known: install ca-certificates"
    };
    if roots.is_empty() {
        return Err(missing.to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_a_certificate_is_rejected() {
        let error = client_tls(Some(b"no certificate")).expect_err("rejected");
        assert_eq!(error, "it has no certificate in PEM");
        let cut = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        client_tls(Some(cut)).expect_err("no certificate");
    }
}

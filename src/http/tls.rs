//! The TLS of a client.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// Returns the TLS of a client that trusts the certificates of a text in PEM, of authorities or of servers themselves, else
/// the machine's authorities, which `SSL_CERT_FILE` and `SSL_CERT_DIR` may replace, as for openssl. The machine's are read
/// from files.
///
/// # Errors
/// No authority, or one that cannot be read.
pub fn client_tls(authorities: Option<&[u8]>) -> Result<ClientConfig, String> {
    let (mut roots, mut given) = (RootCertStore::empty(), Vec::new());
    let missing = if let Some(pem) = authorities {
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate.clone()).map_err(|error| error.to_string())?;
            given.push(certificate);
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
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let authorities = builder.build().map_err(|error| error.to_string())?;
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?.dangerous();
    let verifier = Arc::new(TrustedCertificates { authorities, given });
    Ok(config.with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// The verification by authorities, which also accepts a certificate that the configuration itself has: of a server whose
/// certificate no other authority has signed.
#[derive(Debug)]
struct TrustedCertificates {
    authorities: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for TrustedCertificates {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.authorities.verify_server_cert(own, others, name, ocsp, now);
        match verified {
            // Its time is checked before its issuer, and before whether an authority may be a server.
            Err(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::Other(_),
            )) if self.given.contains(own) => {
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, own, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, own, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
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

//! TLS to the database: whom we take for it.

use super::address::{DatabaseUrl, Root, Tls};
use crate::StoreError;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// The connector for an address; `ca` are the certificates that the configuration trusts.
pub(super) fn tls(address: &DatabaseUrl, ca: Option<&Path>) -> Result<ClientConfig, StoreError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let ca = match address.root() {
        Some(Root::File(path)) => Some(path.as_path()),
        Some(Root::System) => None,
        None => ca,
    };
    let wrong = |why: String| StoreError::Schema(format!("TLS to the database: {why}"));
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?;
    let checked = match address.tls() {
        Tls::Disable | Tls::Prefer => false,
        // As libpq does it: an authority that is configured is asked.
        Tls::Require => ca.is_some(),
        Tls::VerifyCa | Tls::VerifyFull => true,
    };
    if !checked {
        let verifier = Lenient { inner: None, provider };
        return Ok(builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth());
    }
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            let certificates = CertificateDer::pem_file_iter(path)
                .map_err(|error| wrong(format!("store.tls_ca {}: {error}", path.display())))?;
            for certificate in certificates {
                let certificate =
                    certificate.map_err(|error| wrong(format!("{}: {error}", path.display())))?;
                roots.add(certificate).map_err(|error| wrong(format!("{}: {error}", path.display())))?;
            }
            if roots.is_empty() {
                return Err(wrong(format!("store.tls_ca {} holds no certificate", path.display())));
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if address.tls() == Tls::VerifyFull {
        return Ok(builder.with_root_certificates(roots).with_no_client_auth());
    }
    let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| wrong(error.to_string()))?;
    let verifier = Lenient { inner: Some(inner), provider };
    Ok(builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// Checks who signed a certificate, or not even that, but not whose it is: libpq's `verify-ca` and `require`.
#[derive(Debug)]
struct Lenient {
    inner: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(inner) = &self.inner else { return Ok(ServerCertVerified::assertion()) };
        match inner.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

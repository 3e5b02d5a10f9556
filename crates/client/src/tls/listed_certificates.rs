//! Trusts authorities, and the certificates of servers that are in the same list.
//!
//! A certificate that its server has signed itself is its own authority, and the rules for chains forbid an authority as the
//! certificate of a server. Who lists it trusts it, so it is accepted like any other as far as it has not expired and is for
//! the name that was asked for.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

#[derive(Debug)]
pub(super) struct ListedCertificates {
    listed: Arc<[CertificateDer<'static>]>,
    chains: Arc<WebPkiServerVerifier>,
}

impl ListedCertificates {
    pub(super) fn new(
        roots: Arc<RootCertStore>,
        listed: Arc<[CertificateDer<'static>]>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let chains = WebPkiServerVerifier::builder_with_provider(roots, provider).build();
        let chains = chains.map_err(|error| Error::General(error.to_string()))?;
        Ok(Self { listed, chains })
    }
}

impl ServerCertVerifier for ListedCertificates {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // What it is used for; the dates are checked before that, and the name after it.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.listed.iter().any(|listed| listed == end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

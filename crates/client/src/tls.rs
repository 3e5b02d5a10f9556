//! Which servers a client trusts, and the certificate with which it identifies itself.

mod listed_certificates;

use std::{
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    sign::CertifiedKey,
};
use rustls_platform_verifier::Verifier;

use listed_certificates::ListedCertificates;

/// TLS of a [`Client`](crate::Client). The default trusts the authorities of the platform and has no certificate.
#[derive(Clone, Default)]
pub struct ClientTls {
    authorities: Option<Authorities>,
    identity: Option<Arc<Identity>>,
}

/// Authorities, and the same certificates as those of servers.
#[derive(Clone)]
struct Authorities {
    roots: Arc<RootCertStore>,
    listed: Arc<[CertificateDer<'static>]>,
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

/// Why certificates cannot be used; the end of a sentence that begins with their file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ClientTlsError(String);

impl ClientTls {
    /// Trusts these authorities, in PEM, instead of those of the platform. A server may also have one of these certificates
    /// itself, such as one that it has signed itself.
    ///
    /// # Errors
    ///
    /// The text has no certificate, or one that cannot be an authority.
    pub fn with_authorities(self, pem: &[u8]) -> Result<Self, ClientTlsError> {
        let mut roots = RootCertStore::empty();
        let listed = certificates(pem)?;
        for authority in &listed {
            let added = roots.add(authority.clone());
            added.map_err(|_| ClientTlsError("has a certificate that cannot be read".into()))?;
        }
        let authorities = Authorities { roots: Arc::new(roots), listed: listed.into() };
        Ok(Self { authorities: Some(authorities), ..self })
    }

    /// Identifies the client to servers that ask for a certificate: the chain and its private key, in PEM. It is sent to
    /// the origin of the given URL only.
    ///
    /// # Errors
    ///
    /// A text has another content, or the key is not that of the certificate.
    pub fn with_certificate(self, chain: &[u8], key: &[u8]) -> Result<Self, ClientTlsError> {
        let chain = certificates(chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            ClientTlsError("has no key beside it that can be used; expected PEM text, not encrypted".into())
        })?;
        let provider = aws_lc_rs::default_provider();
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider)
            .map_err(|error| ClientTlsError(format!("cannot be used with this key: {error}")))?;
        Ok(Self { identity: Some(Arc::new(Identity { chain, key })), ..self })
    }

    /// For another origin.
    pub(crate) fn without_certificate(&self) -> Self {
        Self { identity: None, ..self.clone() }
    }

    /// The settings of rustls. Where only `http` is used, no authorities are needed, so the client also works on machines
    /// without any.
    ///
    /// The provider is given explicitly: the default of the process belongs to the program that uses this crate,
    /// which may have installed another one or none.
    pub(crate) fn config(&self, is_plain: bool) -> Result<ClientConfig, rustls::Error> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions()?;
        let builder = match &self.authorities {
            Some(Authorities { roots, listed }) => {
                let verifier = ListedCertificates::new(Arc::clone(roots), Arc::clone(listed), provider)?;
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
            }
            None if is_plain => builder.with_root_certificates(RootCertStore::empty()),
            None => builder.dangerous().with_custom_certificate_verifier(Arc::new(Verifier::new(provider)?)),
        };
        let mut config = match &self.identity {
            Some(identity) => {
                builder.with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, ClientTlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(ClientTlsError(
            "has no certificate; expected PEM text that begins with -----BEGIN CERTIFICATE-----".into(),
        )),
        Err(_) => Err(ClientTlsError("is not valid PEM".into())),
    }
}

/// What is set, and no key.
impl Debug for ClientTls {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("ClientTls")
            .field("authorities", &self.authorities.as_ref().map(|authorities| authorities.listed.len()))
            .field("certificate", &self.identity.is_some())
            .finish()
    }
}

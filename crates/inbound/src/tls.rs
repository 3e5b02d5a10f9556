//! TLS of the listeners: certificate, key and the authorities of client certificates, read from files that are read again
//! when they change.
//!
//! Everything that a handshake needs is one immutable `rustls` configuration behind an atomic swap, so a handshake never
//! sees the certificate of one version of the files and the key or the authorities of another. A connection keeps the
//! certificate of the server it began with; that of its client is verified again when the authorities change. Files that cannot be used change nothing: those in use stay, and the log has the reason.
//!
//! The cryptography provider is passed explicitly; the default of the process belongs to the program that uses this crate.

mod certificate;
mod client_certificate;
mod der;
mod file_stamp;
mod files;
mod rotation;
mod verified_names;

use std::{
    fmt::{self, Display, Formatter},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use engine::AccessChanges;
use protocol::Timestamp;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer},
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

pub use file_stamp::FileStamp;

pub(crate) use client_certificate::{ClientCertificate, ended};
pub(crate) use rotation::follow;

pub(crate) use certificate::PRINCIPAL;
use certificate::Validity;
use verified_names::VerifiedNames;

/// A certificate that expires within this time is reported.
const EXPIRY_WARNING: Duration = Duration::from_secs(14 * 24 * 3_600);

/// The files of one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server and those of its issuers, in PEM.
    pub cert: PathBuf,
    /// The private key of the certificate, in PEM: PKCS#8, PKCS#1 or SEC1.
    pub key: PathBuf,
    /// The authorities of client certificates, in PEM; `None`: clients are not asked for one.
    pub client_ca: Option<PathBuf>,
}

impl TlsFiles {
    /// A certificate chain and its private key.
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        Self { cert: cert.into(), key: key.into(), client_ca: None }
    }

    /// Verifies client certificates with the authorities in this file. A client without a certificate can still connect;
    /// agents that accept [`AuthMethod::Mtls`](crate::AuthMethod::Mtls) accept the caller that a certificate names.
    #[must_use]
    pub fn client_ca(self, file: impl Into<PathBuf>) -> Self {
        Self { client_ca: Some(file.into()), ..self }
    }

    /// How the files look now, without reading them.
    fn stamps(&self) -> Stamps {
        let files = [&self.cert, &self.key].into_iter().chain(&self.client_ca);
        files.map(|path| FileStamp::of(path)).collect()
    }
}

/// Which of the files an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsFile {
    /// The certificate chain.
    Cert,
    /// The private key.
    Key,
    /// The authorities of client certificates.
    ClientCa,
}

/// Why files cannot be used for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    /// The kind of the file.
    pub file: TlsFile,
    /// Its path.
    pub path: PathBuf,
    /// What is wrong, and what to do, as the end of a sentence that begins with the file.
    pub reason: String,
}

impl Display for TlsError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "the file {} {}", self.path.display(), self.reason)
    }
}

impl std::error::Error for TlsError {}

/// One stamp for each file, in the order of the fields.
type Stamps = Vec<Option<FileStamp>>;

/// TLS of one or more listeners. What it was loaded from is read again when it changes.
pub struct ServerTls {
    files: TlsFiles,
    current: ArcSwap<LoadedFiles>,
    /// Of the authorities of client certificates.
    client_ca_changes: AccessChanges,
    verified_names: VerifiedNames,
    /// The files as they were when they were last read, usable or not.
    tried: Mutex<Stamps>,
}

/// One version of the files.
struct LoadedFiles {
    config: Arc<ServerConfig>,
    validity: Validity,
    client_ca: Option<ClientCa>,
}

impl LoadedFiles {
    /// The authorities of client certificates.
    fn authorities(&self) -> &[CertificateDer<'static>] {
        self.client_ca.as_ref().map(|client_ca| client_ca.certificates.as_slice()).unwrap_or_default()
    }
}

/// The authorities of client certificates.
struct ClientCa {
    certificates: Vec<CertificateDer<'static>>,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl ServerTls {
    /// Reads the files. The time decides whether the certificate is valid.
    ///
    /// # Errors
    ///
    /// A file cannot be read or has another content, the key is not that of the certificate, or the certificate has
    /// expired or is not valid yet.
    pub fn load(files: TlsFiles, now: Timestamp) -> Result<Arc<Self>, TlsError> {
        let tried = Mutex::new(files.stamps());
        let current = ArcSwap::from_pointee(load(&files, now)?);
        Ok(Arc::new(Self {
            files,
            current,
            client_ca_changes: AccessChanges::default(),
            verified_names: VerifiedNames::default(),
            tried,
        }))
    }

    /// The files that it is read from.
    pub fn files(&self) -> &TlsFiles {
        &self.files
    }

    /// Reads the files again. If they cannot be used, those in use stay; the log says which.
    pub fn reload(&self, now: Timestamp) {
        // Before they are read: what changes meanwhile is noticed.
        *self.tried() = self.files.stamps();
        match load(&self.files, now) {
            Ok(loaded) => {
                let cert = self.files.cert.display();
                tracing::info!(%cert, expires = %loaded.validity.not_after, "the TLS certificate was reloaded");
                let new = Arc::new(loaded);
                let replaced = self.current.swap(Arc::clone(&new));
                if replaced.authorities().iter().any(|one| !new.authorities().contains(one)) {
                    self.verified_names.forget(|| self.client_ca_changes.announce());
                } else if new.authorities() != replaced.authorities() {
                    self.client_ca_changes.announce();
                }
                self.warn_of_expiry(now);
            }
            Err(error) => {
                tracing::error!(%error, "the TLS files were not reloaded; those in use stay in use")
            }
        }
    }

    /// A text for the operator if the certificate expires soon.
    pub fn expiry_warning(&self, now: Timestamp) -> Option<String> {
        let not_after = self.current.load().validity.not_after;
        let left = not_after.as_millis().saturating_sub(now.as_millis());
        let is_soon = u128::try_from(left).unwrap_or_default() < EXPIRY_WARNING.as_millis();
        is_soon.then(|| {
            let cert = self.files.cert.display();
            format!("the TLS certificate {cert} expires at {not_after}; replace the file, which is read again by itself")
        })
    }

    /// Whether the files were read when they looked like this.
    fn has_tried(&self, stamps: &Stamps) -> bool {
        *self.tried() == *stamps
    }

    fn tried(&self) -> MutexGuard<'_, Stamps> {
        self.tried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn_of_expiry(&self, now: Timestamp) {
        if let Some(warning) = self.expiry_warning(now) {
            tracing::warn!("{warning}");
        }
    }

    /// What a handshake uses now.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().config)
    }

    /// Announces there when a name is verified again that was not since an authority was removed.
    pub(crate) fn announce_names_to(&self, changes: &AccessChanges) {
        self.verified_names.announce_to(changes);
    }

    /// The number of the last change of the authorities. What is used after this call is not older.
    pub(crate) fn client_ca_change(&self) -> u64 {
        self.client_ca_changes.count()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_tuple("ServerTls").field(&self.files).finish()
    }
}

/// Each of these once: several addresses may share one.
pub fn distinct<'a>(all: impl IntoIterator<Item = &'a Arc<ServerTls>>) -> Vec<Arc<ServerTls>> {
    let mut distinct: Vec<Arc<ServerTls>> = Vec::new();
    for tls in all {
        if !distinct.iter().any(|known| Arc::ptr_eq(known, tls)) {
            distinct.push(Arc::clone(tls));
        }
    }
    distinct
}

/// Whether a principal has the name of a client certificate, and none of these has verified one since an authority was
/// removed.
pub(crate) fn is_revoked_name(all: &[Arc<ServerTls>], principal: &str) -> bool {
    let mut verifying = all.iter().filter(|tls| tls.files.client_ca.is_some()).peekable();
    principal.starts_with(PRINCIPAL)
        && verifying.peek().is_some()
        && verifying.all(|tls| !tls.verified_names.contains(principal))
}

fn load(files: &TlsFiles, now: Timestamp) -> Result<LoadedFiles, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chain = files::certificates(TlsFile::Cert, &files.cert)?;
    let validity = valid_certificate(&files.cert, &chain, now)?;
    let key = files::private_key(&files.key)?;
    let certified = certified_key(files, chain, key, &provider)?;
    let client_ca = files.client_ca.as_deref().map(|path| client_ca(path, &provider)).transpose()?;
    let verifier = client_ca.as_ref().map(|client_ca| Arc::clone(&client_ca.verifier));
    let config = server_config(provider, certified, verifier).map_err(|error| TlsError {
        file: TlsFile::Cert,
        path: files.cert.clone(),
        reason: format!("cannot be used: {error}"),
    })?;
    Ok(LoadedFiles { config: Arc::new(config), validity, client_ca })
}

/// The validity of the server's own certificate, which has to include this time.
fn valid_certificate(
    path: &Path,
    chain: &[CertificateDer<'_>],
    now: Timestamp,
) -> Result<Validity, TlsError> {
    let problem = |reason: String| TlsError { file: TlsFile::Cert, path: path.to_owned(), reason };
    let validity = chain.first().and_then(|own| Validity::of(own));
    let validity = validity.ok_or_else(|| problem("has a certificate that cannot be read".into()))?;
    if now > validity.not_after {
        return Err(problem(format!("has a certificate that expired at {}; renew it", validity.not_after)));
    }
    if now < validity.not_before {
        let from = validity.not_before;
        return Err(problem(format!(
            "has a certificate that is valid from {from} on; check the clock of this machine"
        )));
    }
    Ok(validity)
}

fn certified_key(
    files: &TlsFiles,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let problem = |file, path: &Path, reason: String| TlsError { file, path: path.to_owned(), reason };
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            let cert = files.cert.display();
            let reason =
                format!("is not the key of the certificate in {cert}; use the pair that belongs together");
            problem(TlsFile::Key, &files.key, reason)
        }
        rustls::Error::InvalidCertificate(error) => {
            problem(TlsFile::Cert, &files.cert, format!("has a certificate that cannot be used: {error}"))
        }
        error => problem(TlsFile::Key, &files.key, format!("has a key that cannot be used: {error}")),
    })
}

/// Verifies the certificates of clients that send one.
fn client_ca(path: &Path, provider: &Arc<CryptoProvider>) -> Result<ClientCa, TlsError> {
    let problem = |reason: String| TlsError { file: TlsFile::ClientCa, path: path.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    let certificates = files::certificates(TlsFile::ClientCa, path)?;
    for authority in &certificates {
        roots
            .add(authority.clone())
            .map_err(|error| problem(format!("has a certificate that cannot be an authority: {error}")))?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    let verifier = builder.allow_unauthenticated().build();
    let verifier = verifier.map_err(|error| problem(format!("cannot be used: {error}")))?;
    Ok(ClientCa { certificates, verifier })
}

fn server_config(
    provider: Arc<CryptoProvider>,
    certified: CertifiedKey,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, rustls::Error> {
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12])?;
    let verifies_clients = verifier.is_some();
    let builder = match verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(OwnCertificate(Arc::new(certified))));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    if verifies_clients {
        // A resumed session would skip the verification, also after a certificate has expired.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// The one certificate of a listener, whatever name a client asks for.
#[derive(Debug)]
struct OwnCertificate(Arc<CertifiedKey>);

impl rustls::server::ResolvesServerCert for OwnCertificate {
    fn resolve(&self, _: rustls::server::ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

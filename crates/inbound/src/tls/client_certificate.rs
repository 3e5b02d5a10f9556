//! The certificate of a client during its connection, which may last longer than the certificate or its authorities.
//!
//! The handshake has verified it. When other authorities come into use it is verified again, once for each connection; a
//! change of the server's own certificate costs nothing.

use std::{
    fmt::{self, Debug, Formatter},
    future,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use engine::{AccessChanges, Clock};
use protocol::{Error, ErrorKind, Timestamp};
use rustls::pki_types::{CertificateDer, UnixTime};
use tokio::sync::watch;

use super::{
    ServerTls,
    certificate::{self, Validity},
};

/// A verified certificate that names its holder.
pub(crate) struct ClientCertificate {
    principal: Arc<str>,
    not_after: Timestamp,
    /// Its own and those of its issuers, as the client has sent them.
    chain: Vec<CertificateDer<'static>>,
    tls: Weak<ServerTls>,
    /// Those of the authorities.
    changes: AccessChanges,
    /// The number of the change after which it was verified last.
    verified_after: AtomicU64,
}

impl ClientCertificate {
    /// Of a handshake that began after this change of the authorities; `None` if it has no name that can be used.
    pub(crate) fn new(tls: &Arc<ServerTls>, change: u64, chain: &[CertificateDer<'_>]) -> Option<Self> {
        let own = chain.first()?;
        let principal = certificate::principal(own)?;
        tls.verified_names.add(&principal, || tls.client_ca_change() == change);
        Some(Self {
            principal,
            // The handshake accepts it until the end of that second.
            not_after: Timestamp::from_millis(Validity::of(own)?.not_after.as_millis() + 999),
            chain: chain.iter().map(|one| one.clone().into_owned()).collect(),
            tls: Arc::downgrade(tls),
            changes: tls.client_ca_changes.clone(),
            verified_after: AtomicU64::new(change),
        })
    }

    /// The caller that it names.
    pub(crate) fn principal(&self) -> &Arc<str> {
        &self.principal
    }

    /// The last moment of its validity.
    pub(crate) fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Checks that it is still valid.
    pub(crate) fn check(&self, now: Timestamp) -> Result<(), Error> {
        if now > self.not_after {
            return Err(refused("the client certificate has expired; connect again with a new one"));
        }
        self.check_authorities(now)
    }

    /// Checks that the authorities in use would verify it.
    pub(crate) fn check_authorities(&self, now: Timestamp) -> Result<(), Error> {
        let change = self.changes.count();
        if self.verified_after.load(Ordering::Relaxed) == change || self.is_verified(change, now) {
            self.verified_after.store(change, Ordering::Relaxed);
            return Ok(());
        }
        Err(refused("the client certificate is not from an authority of this server any more"))
    }

    fn is_verified(&self, change: u64, now: Timestamp) -> bool {
        let (Some(tls), [own, issuers @ ..]) = (self.tls.upgrade(), self.chain.as_slice()) else {
            return true;
        };
        // One that has expired is no reason to doubt its authorities.
        let at = now.as_millis().min(self.not_after.as_millis());
        let at = UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(at).unwrap_or_default()));
        let loaded = tls.current.load();
        let verifier = loaded.client_ca.as_ref().map(|client_ca| &client_ca.verifier);
        let is_verified =
            verifier.is_some_and(|verifier| verifier.verify_client_cert(own, issuers, at).is_ok());
        if is_verified {
            tls.verified_names.add(&self.principal, || self.changes.count() == change);
        }
        is_verified
    }

    /// Receives a notice of every later change of the authorities.
    pub(crate) fn authority_changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    /// Resolves when it is not valid any more.
    pub(crate) async fn ended(&self, clock: &Clock) {
        let mut changes = self.changes.subscribe();
        while self.check(clock.now()).is_ok() {
            tokio::select! {
                _ = changes.changed() => {}
                () = crate::access::access_watch::passed(clock, self.not_after) => {}
            }
        }
    }

    /// A certificate without authorities.
    #[cfg(test)]
    pub(crate) fn named(principal: &str) -> Self {
        Self {
            principal: principal.into(),
            not_after: Timestamp::from_millis(i64::MAX),
            chain: Vec::new(),
            tls: Weak::new(),
            changes: AccessChanges::default(),
            verified_after: AtomicU64::new(0),
        }
    }
}

/// Resolves when the certificate of a connection is not valid any more; never without one.
pub(crate) async fn ended(certificate: Option<&ClientCertificate>, clock: &Clock) {
    match certificate {
        Some(certificate) => certificate.ended(clock).await,
        None => future::pending().await,
    }
}

fn refused(text: &str) -> Error {
    Error::new(ErrorKind::Unauthenticated, text)
}

impl Debug for ClientCertificate {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_tuple("ClientCertificate").field(&self.principal).finish()
    }
}

//! Whether the caller of something that is open may still have it: a stream, a session, or a call that waits.
//!
//! Everything that is open waits for the notices of [`AccessChanges`], and for those of its client certificate, and then
//! checks its own caller as a new call would be checked. Where that fails it has been revoked. A credential that only
//! expires ends what can be resumed with a new one: streams and sessions, not calls that wait for their answer. A call that
//! ends at once costs one atomic read.

use std::{future, sync::Arc, time::Duration};

use engine::{AccessChanges, Clock, CurrentCatalog, EndUser, StreamEnd, Tenant};
use protocol::{Error, Timestamp};
use tokio::sync::watch;

use crate::{
    access::{
        auth::{
            Authenticator, Subject,
            schemes::{self, PresentedToken},
        },
        caller::Identity,
    },
    request::endpoint::unknown_agent,
    tls::ClientCertificate,
};

/// The longest time until the clock is read again: an operator may set it.
const MAX_SLEEP: Duration = Duration::from_secs(30);

/// What decides about callers. Has no part of the server that could keep it running.
pub(crate) struct AccessCheck {
    pub(crate) auth: Arc<Authenticator>,
    pub(crate) catalog: CurrentCatalog,
    pub(crate) changes: AccessChanges,
    pub(crate) clock: Clock,
}

/// The caller of something that is open.
#[derive(Clone)]
pub(crate) struct AccessWatch {
    pub(crate) check: Arc<AccessCheck>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) agent: String,
    pub(crate) identity: Identity,
    pub(crate) end_user: Option<Subject>,
    /// `None` if the caller is not identified by it.
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
    /// How many changes there were before the caller was verified.
    pub(crate) seen: u64,
}

impl AccessWatch {
    /// Resolves when the caller may not have it any more.
    pub(crate) async fn ended(self) -> StreamEnd {
        tokio::select! {
            biased;
            error = self.revoked() => StreamEnd::Revoked(error),
            () = self.expired() => StreamEnd::Expired,
        }
    }

    /// Resolves when it has been revoked, with the error that a new call would get. Cancel safe.
    pub(crate) async fn revoked(&self) -> Error {
        let mut changes = self.check.changes.subscribe();
        let mut authorities = self.certificate.as_ref().map(|certificate| certificate.authority_changes());
        let mut is_current = self.check.changes.count() == self.seen && self.certificate.is_none();
        loop {
            if !is_current && let Err(error) = self.verify() {
                return error;
            }
            is_current = false;
            tokio::select! {
                _ = changes.changed() => {}
                () = changed(authorities.as_mut()) => {}
            }
        }
    }

    /// Resolves when a credential of the caller has expired.
    pub(crate) async fn expired(&self) {
        match self.expires() {
            Some(time) => passed(&self.check.clock, time).await,
            None => future::pending().await,
        }
    }

    /// The last moment of the credentials that the agent asks for.
    fn expires(&self) -> Option<Timestamp> {
        let catalog = self.check.catalog.load();
        let settings = catalog.get(self.tenant.id(), &self.agent)?.settings();
        let caller = self.identity.with_agent(settings, &self.agent).ok()?;
        let end_user = self.end_user.as_ref().filter(|_| settings.end_user == EndUser::Required);
        let end_user = end_user.map(|subject| subject.expires);
        let certificate = self.certificate.as_ref().filter(|_| caller.has_certificate());
        let certificate = certificate.map(|certificate| certificate.not_after());
        caller.expires().into_iter().chain(end_user).chain(certificate).min()
    }

    /// Whether it has the same credentials as another one of the same caller.
    #[cfg(feature = "mcp")]
    pub(crate) fn has_credentials_of(&self, other: &Self) -> bool {
        self.identity == other.identity
            && self.end_user == other.end_user
            && self.certificate.as_ref().map(Arc::as_ptr) == other.certificate.as_ref().map(Arc::as_ptr)
    }

    /// Checks the caller again, except whether its credentials have expired.
    fn verify(&self) -> Result<(), Error> {
        let catalog = self.check.catalog.load();
        let registered = catalog.get(self.tenant.id(), &self.agent).filter(|agent| agent.settings().enabled);
        let settings = registered.ok_or_else(|| unknown_agent(&self.agent))?.settings();
        let identity = self.identity.with_agent(settings, &self.agent)?;
        let checked = self.check.auth.check(identity).and_then(|()| match &self.certificate {
            Some(certificate) if identity.has_certificate() => {
                certificate.check_authorities(self.check.clock.now())
            }
            Some(_) | None => Ok(()),
        });
        checked.map_err(|error| schemes::with_challenge(settings, PresentedToken::Token, error))?;
        match &self.end_user {
            Some(subject) if settings.end_user == EndUser::Required => {
                self.check.auth.check_end_user(subject)
            }
            Some(_) | None => Ok(()),
        }
    }
}

async fn changed(changes: Option<&mut watch::Receiver<()>>) {
    match changes {
        // The sender lives as long as the certificate.
        Some(changes) => {
            let _ = changes.changed().await;
        }
        None => future::pending().await,
    }
}

/// Resolves when a time has passed on this clock.
pub(crate) async fn passed(clock: &Clock, time: Timestamp) {
    loop {
        let left = time.as_millis().saturating_sub(clock.now().as_millis());
        let Ok(left) = u64::try_from(left) else { return };
        tokio::time::sleep(Duration::from_millis(left.saturating_add(1)).min(MAX_SLEEP)).await;
    }
}

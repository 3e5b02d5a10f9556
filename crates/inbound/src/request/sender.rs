//! Who sends a request: from where, what its credentials prove, and by what its calls are counted.

use std::{net::IpAddr, sync::Arc};

use engine::{AgentSettings, PrincipalCaps, RegisteredAgent, Scope, Tenant};
use http::request::Parts;
use protocol::Error;

use crate::{
    access::{
        access_watch::AccessWatch,
        auth::{Subject, VerifiedSender},
        caller::{self, Identity, Peer, Proof},
        rate_limit::RateKey,
    },
    request::{connection::Connection, endpoint::Endpoint},
    server_state::ServerState,
};

/// The sender of one request.
pub(crate) struct Sender {
    pub(crate) connection: Connection,
    address: Address,
    /// As far as its credentials prove it.
    pub(crate) identity: Identity,
    /// On whose behalf it acts, where a token proves that.
    end_user: Option<Subject>,
    /// How many changes of what decides about callers there were when the request arrived.
    access_changes: u64,
}

/// The address of a sender, as limits count it.
enum Address {
    /// The application that mounts the router does not tell it, and has to limit its callers itself.
    Unknown,
    /// On this machine, and the server is for this machine only.
    Local,
    Remote(IpAddr),
}

impl Sender {
    /// Before its credentials are verified: as the application has identified it.
    pub(crate) fn of(server: &ServerState, connection: Connection, head: &Parts) -> Self {
        let peer = connection.peer.or_else(|| Peer::of(&head.extensions));
        let is_local =
            |client: IpAddr| connection.listener.is_loopback() && client.to_canonical().is_loopback();
        let address = match server.origins.client_address(&head.headers, peer) {
            None => Address::Unknown,
            Some(client) if is_local(client) => Address::Local,
            Some(client) => Address::Remote(client),
        };
        Self {
            connection: Connection { peer, ..connection },
            address,
            identity: Identity::of(&head.extensions),
            end_user: None,
            access_changes: server.access.changes.count(),
        }
    }

    /// Takes over what verification has found. The application's word about the caller counts more.
    pub(crate) fn identify(&mut self, verified: VerifiedSender) {
        if self.identity.is_anonymous() {
            self.identity = verified.caller;
        }
        self.end_user = verified.end_user;
    }

    /// The name of the sender, as far as its credentials prove it.
    pub(crate) fn principal(&self) -> String {
        match &self.identity {
            Identity::Anonymous => "anonymous".to_owned(),
            Identity::Known(caller) => caller.principal().to_string(),
        }
    }

    /// Checks that an agent accepts the caller and its end user.
    pub(crate) fn check_accepted(&self, settings: &AgentSettings, agent: &str) -> Result<(), Error> {
        let identity = self.identity.with_agent(settings, agent)?;
        caller::check_end_user(identity, settings, self.end_user_name())
    }

    /// Whether the caller may call an agent.
    #[cfg(feature = "mcp")]
    pub(crate) fn may_call(&self, agent: &RegisteredAgent) -> bool {
        let settings = agent.settings();
        settings.enabled && self.check_accepted(settings, &agent.info().id).is_ok()
    }

    /// The caller with the agent: the owner of its tasks. A caller that the agent does not accept is anonymous; nothing
    /// but public data is read with that.
    pub(crate) fn scope(&self, endpoint: &Endpoint) -> Scope {
        match endpoint.registered() {
            Some(agent) => self.scope_with(&endpoint.tenant, agent),
            None => Scope::anonymous(endpoint.tenant.id(), endpoint.agent()),
        }
    }

    /// The caller with another agent.
    pub(crate) fn scope_with(&self, tenant: &Tenant, agent: &RegisteredAgent) -> Scope {
        match self.identity.with_agent(agent.settings(), &agent.info().id) {
            Ok(identity) => identity.scope(tenant.id(), agent, self.end_user_name()),
            Err(_) => agent.anonymous_scope().clone(),
        }
    }

    fn end_user_name(&self) -> Option<&Arc<str>> {
        self.end_user.as_ref().map(|subject| &subject.name)
    }

    /// By what the calls of the caller are counted; `None` for those that are not limited. All callers without a
    /// credential have the same principal, so they are counted by address: one of them must not lock out the others.
    pub(crate) fn rate_key(&self) -> Option<RateKey<'_>> {
        match (&self.identity, &self.address) {
            (Identity::Known(caller), _) => Some(match caller.proof() {
                Proof::ApiKey(key) => RateKey::ApiKey(&key.id),
                Proof::Application | Proof::Token(_) | Proof::StaticToken | Proof::Certificate => {
                    RateKey::Principal(caller.principal())
                }
            }),
            (Identity::Anonymous, Address::Remote(address)) => Some(RateKey::of_address(*address)),
            (Identity::Anonymous, Address::Unknown | Address::Local) => None,
        }
    }

    /// By what refused credentials are counted; `None` where callers without one are not limited either.
    pub(crate) fn refused_key(&self) -> Option<RateKey<'static>> {
        match self.address {
            Address::Remote(address) => Some(RateKey::of_refused(address)),
            Address::Unknown | Address::Local => None,
        }
    }

    /// What the caller may have at a time: no limit without a credential on loopback.
    pub(crate) fn caps(&self, server: &ServerState) -> PrincipalCaps {
        match (&self.identity, &self.address) {
            (Identity::Anonymous, Address::Local) => PrincipalCaps::default(),
            _ => server.engine.limits().per_principal,
        }
    }

    /// Watches whether the caller may still have what is open for it.
    pub(crate) fn watch(&self, server: &ServerState, endpoint: &Endpoint) -> AccessWatch {
        let has_certificate = self.identity.has_certificate();
        AccessWatch {
            check: Arc::clone(&server.access),
            tenant: Arc::clone(&endpoint.tenant),
            agent: endpoint.agent().to_owned(),
            identity: self.identity.clone(),
            end_user: self.end_user.clone(),
            certificate: self.connection.certificate.clone().filter(|_| has_certificate),
            seen: self.access_changes,
        }
    }

    /// Resolves when the caller may not have its call any more, with the error for it. Cancel safe.
    pub(crate) async fn revoked(&self, server: &ServerState, endpoint: &Endpoint) -> Error {
        let mut changes = server.access.changes.subscribe();
        if server.access.changes.count() == self.access_changes && !self.identity.has_certificate() {
            // The sender lives as long as the server.
            let _ = changes.changed().await;
        }
        self.watch(server, endpoint).revoked().await
    }
}

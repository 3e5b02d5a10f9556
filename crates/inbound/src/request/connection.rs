//! What is known about the connection of a request, beside its bytes.

use std::{net::IpAddr, sync::Arc};

use crate::{addresses::host::Listener, routes::RouteSet, tls::ClientCertificate};

/// How a client reaches the server: the scheme of its URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// The connection of a request. Cheap to clone, because every request has one.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) listener: Listener,
    /// What is served there.
    pub(crate) routes: RouteSet,
    pub(crate) scheme: Scheme,
    /// The address of the client; unknown in an application that mounts the router.
    pub(crate) peer: Option<IpAddr>,
    /// That of the client, which the handshake has verified.
    pub(crate) certificate: Option<Arc<ClientCertificate>>,
}

impl Connection {
    /// In an application that mounts the router: nothing is known.
    pub(crate) const APPLICATION: Self = Self {
        listener: Listener::Application,
        routes: RouteSet::All,
        scheme: Scheme::Http,
        peer: None,
        certificate: None,
    };
    /// On standard input of this process.
    #[cfg(feature = "mcp")]
    pub(crate) const STDIO: Self = Self { listener: Listener::Stdio, ..Self::APPLICATION };
}

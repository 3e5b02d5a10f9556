//! The addresses of a server of the library.

use inbound::{
    RouteSet,
    tls::{ServerTls, TlsFiles},
};

use crate::{
    listeners::ListenAddress,
    serve::{self, ServeError},
};

/// An address for [`Builder::serve_on`](super::Builder::serve_on).
///
/// ```no_run
/// use a2ad::{Server, agents::Echo, server::{Listen, TlsFiles}};
///
/// # async fn run() -> a2ad::Result<()> {
/// let tls = TlsFiles::new("cert.pem", "key.pem");
/// Server::builder()
///     .agent("echo", Echo)
///     .serve_on([Listen::new("127.0.0.1:4242"), Listen::new("127.0.0.1:4443").tls(tls)])
///     .await
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Listen {
    address: String,
    tls: Option<TlsFiles>,
    routes: RouteSet,
}

impl Listen {
    /// Plain HTTP at host and port, such as `127.0.0.1:4242`. Port 0 selects a free port.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), tls: None, routes: RouteSet::All }
    }

    /// HTTPS with this certificate. The files are read again when they change; open connections go on.
    #[must_use]
    pub fn tls(self, files: TlsFiles) -> Self {
        Self { tls: Some(files), ..self }
    }

    /// Serves the operators' API and health here and nothing else, and the operators' API nowhere else. An address that others
    /// can reach needs TLS.
    #[must_use]
    pub fn for_operators(self) -> Self {
        Self { routes: RouteSet::Operators, ..self }
    }

    async fn resolve(self) -> Result<ListenAddress, ServeError> {
        let address = serve::resolve(&self.address).await?;
        let now = engine::Clock::system().now();
        let tls = self.tls.map(|files| ServerTls::load(files, now)).transpose()?;
        Ok(ListenAddress { address, tls, routes: self.routes })
    }
}

/// Finds the addresses and reads the files.
pub(super) async fn resolve_all(
    listeners: impl IntoIterator<Item = Listen>,
) -> Result<Vec<ListenAddress>, ServeError> {
    let mut all = Vec::new();
    for listener in listeners {
        all.push(listener.resolve().await?);
    }
    if all.iter().any(|one| one.routes == RouteSet::Operators) {
        let for_callers = all.iter_mut().filter(|one| one.routes == RouteSet::All);
        for_callers.for_each(|one| one.routes = RouteSet::Callers);
    }
    Ok(all)
}

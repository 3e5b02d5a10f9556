//! The operators' API of a running server.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use a2ad::internal::ADMIN_TOKEN_FILE;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use outbound::dial::{DialError, Dialer, FetchLimits, UrlSource};
use protocol::model::Secret;
use store::{KeyFileError, KeyFolder, KeyOrigin, LockHolder};

use super::pinned_certificate;
use crate::cli::{
    failure::{Failure, code},
    output::Output,
};

const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), body: 16 << 20 };

/// Where the lock file of a store says that the operators' API is.
pub(super) struct ServerAddress {
    scheme: &'static str,
    address: SocketAddr,
    /// The file with the certificate of the server.
    certificate: Option<PathBuf>,
}

impl ServerAddress {
    /// `None` if the process does not listen.
    pub(super) fn of(holder: &LockHolder) -> Option<Self> {
        let certificate = holder.certificate.as_ref().map(PathBuf::from);
        let (scheme, address) = match &holder.operators {
            Some(url) => url.split_once("://")?,
            // Of a server before several addresses could be listened on.
            None => ("http", holder.address.as_deref()?),
        };
        let scheme = if scheme == "https" { "https" } else { "http" };
        Some(Self { scheme, address: reachable(address.parse().ok()?), certificate })
    }
}

/// A server and the token of its operators.
pub(super) struct ServerApi {
    server: ServerAddress,
    pub(super) token: Secret,
    dialer: Dialer,
}

impl ServerApi {
    /// The server at this address, with the token beside its store.
    pub(super) fn at(server: ServerAddress, store: &Path, output: &Output) -> Result<Self, Failure> {
        let token = read_token(store, output)?;
        let dialer = match &server.certificate {
            None => Dialer::new(),
            Some(file) => {
                let tls = pinned_certificate::client_config(file);
                let tls = tls.map_err(|text| Failure::new(code::ERROR, text))?;
                Dialer::builder().tls(tls).build()
            }
        };
        Ok(Self { server, token, dialer })
    }

    pub(super) fn url(&self) -> String {
        format!("{}://{}", self.server.scheme, self.server.address)
    }

    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, Failure> {
        // The address is that of a process of this machine, which the store's lock names; no proxy is used.
        let response = self.dialer.fetch(request, UrlSource::Operator, LIMITS).await;
        response.map_err(|error| unreachable(&self.url(), &error))
    }
}

/// Where a listener on all addresses can be reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn read_token(store: &Path, output: &Output) -> Result<Secret, Failure> {
    let folder = KeyFolder::of(store);
    let found = folder.read(ADMIN_TOKEN_FILE).map_err(|error| {
        let failure = Failure::new(code::AUTH, format!("the admin token cannot be read: {error}"));
        match error {
            KeyFileError::File { .. } | KeyFileError::Exposed { .. } => {
                failure.with_next("run as the user of the server")
            }
            KeyFileError::Invalid { .. } => failure,
        }
    })?;
    let found = found.ok_or_else(|| {
        let path = folder.path(ADMIN_TOKEN_FILE);
        let text = format!("there is no admin token at {}", path.display());
        Failure::new(code::AUTH, text).with_next("restart the server: that makes a new one")
    })?;
    if found.origin == KeyOrigin::FoundExposed {
        let path = found.path.display();
        output.message(&format!("a2ad: other users could read {path}; their permissions were removed"));
    }
    Ok(found.key)
}

fn unreachable(url: &str, error: &DialError) -> Failure {
    let code = match error {
        DialError::TimedOut => code::TIMEOUT,
        _ => code::ERROR,
    };
    let text = format!("the server {url}, which has the store open, cannot be asked: {error}");
    Failure::new(code, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_asked_on_loopback() {
        for (listens, asked) in [
            ("127.0.0.1:4242", "127.0.0.1:4242"),
            ("0.0.0.0:4242", "127.0.0.1:4242"),
            ("[::]:4242", "[::1]:4242"),
            ("10.0.0.5:80", "10.0.0.5:80"),
        ] {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), asked);
        }
    }
}

//! The operators' API of a running server.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    time::Duration,
};

use a2ad::internal::ADMIN_TOKEN_FILE;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::Full;
use outbound::dial::{DialError, Dialer, FetchLimits, UrlSource};
use protocol::{
    Dialect, Error, ErrorKind,
    json::{
        Raw,
        read::{Node, Path as Field},
        write::Writer,
    },
    model::Secret,
};
use store::{KeyFileError, KeyFolder, KeyOrigin};

use crate::cli::{
    failure::{Failure, code},
    output::Output,
};

const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), body: 16 << 20 };

/// A server and the token of its operators.
pub(super) struct ServerApi {
    address: SocketAddr,
    token: Secret,
    dialer: Dialer,
}

impl ServerApi {
    /// The server at this address, with the token beside its store.
    pub(super) fn at(address: SocketAddr, store: &Path, output: &Output) -> Result<Self, Failure> {
        let token = read_token(store, output)?;
        Ok(Self { address: reachable(address), token, dialer: Dialer::new() })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(super) async fn list(&self, agent: Option<&str>) -> Result<Vec<u8>, Failure> {
        let query = agent.map(|agent| {
            let pairs =
                url::form_urlencoded::Serializer::new(String::new()).append_pair("agent", agent).finish();
            format!("?{pairs}")
        });
        self.send(Method::GET, &query.unwrap_or_default(), Vec::new()).await
    }

    pub(super) async fn create(&self, agent: &str, owner: Option<&str>) -> Result<Vec<u8>, Failure> {
        let mut writer = Writer::new();
        writer.object(|out| {
            out.text("agent", agent);
            out.maybe_text("owner", owner);
        });
        self.send(Method::POST, "", writer.finish()).await
    }

    pub(super) async fn revoke(&self, id: &str) -> Result<Vec<u8>, Failure> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
        if id.is_empty() || !id.bytes().all(is_plain) {
            let text = format!("there is no valid API key with the id {id:?}");
            return Err(Failure::new(code::NOT_FOUND, text));
        }
        self.send(Method::DELETE, &format!("/{id}"), Vec::new()).await
    }

    /// Sends a request to `/console/api/keys` and what follows; returns the document.
    async fn send(&self, method: Method, rest: &str, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        let url = self.url();
        let invalid = |error: http::Error| Failure::usage(format!("the request cannot be sent: {error}"));
        let mut credential = HeaderValue::from_str(&format!("Bearer {}", self.token.expose()))
            .map_err(|error| invalid(error.into()))?;
        credential.set_sensitive(true);
        let request = Request::builder()
            .method(method)
            .uri(format!("{url}/console/api/keys{rest}"))
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::AUTHORIZATION, credential)
            .body(Full::new(Bytes::from(body)))
            .map_err(invalid)?;
        // The address is that of a process of this machine, which the store's lock names; no proxy is used.
        let response = self.dialer.fetch(request, UrlSource::Operator, LIMITS).await;
        let response = response.map_err(|error| unreachable(&url, &error))?;
        if response.status().is_success() {
            return Ok(response.into_body().to_vec());
        }
        Err(rejected(&url, response.status(), response.body()))
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

/// The error in a response.
fn rejected(url: &str, status: StatusCode, body: &[u8]) -> Failure {
    let decoded = Raw::parse(body)
        .ok()
        .and_then(|raw| Dialect::V1.decode_error_body(Node::new(raw, &Field::Root)).ok());
    let Some(Error { kind, message, .. }) = decoded else {
        let text = format!("the server {url} answered with HTTP status {status}");
        return Failure::new(code::PROTOCOL, text);
    };
    match kind {
        ErrorKind::Unauthenticated | ErrorKind::PermissionDenied => {
            let next = "the file with the token was changed since the server started: restart the server";
            Failure::new(code::AUTH, format!("the server {url} refused the request: {message}"))
                .with_next(next)
        }
        ErrorKind::AgentDisabled | ErrorKind::NotFound => Failure::new(code::NOT_FOUND, message),
        ErrorKind::InvalidParams => Failure::usage(message),
        ErrorKind::Unavailable | ErrorKind::RateLimited => Failure::new(code::ERROR, message),
        ErrorKind::MethodNotFound => {
            let text = format!("the server {url} has no API for operators; is it an older a2ad?");
            Failure::new(code::PROTOCOL, text)
        }
        _ => Failure::new(code::PROTOCOL, message),
    }
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

//! The first check of every request: does it name a host of this server, and may the page that
//! sends it call?
//!
//! The rules are in `host.rs` and `cross_origin.rs`. `/healthz` has no secrets and is asked by load balancers that know
//! no name, so it is served for any host. Public cards are for everybody, so pages of any origin may read them.

use http::{HeaderValue, Method, StatusCode, Version, header, request::Parts};
use protocol::{Error, ErrorKind, Violation, error::excerpt};

use crate::{
    addresses::{
        cross_origin::{self, ANY_ORIGIN, OriginVerdict},
        host::HostError,
    },
    request::exchange::Exchange,
    response::refusal::Refusal,
    routes::Access,
    server_state::ServerState,
};

/// Returns the origin whose pages may read the response, if they need CORS headers for that.
pub(crate) fn check(exchange: &Exchange) -> Result<Option<HeaderValue>, Refusal> {
    let Exchange { server, head, row, .. } = exchange;
    let listener = exchange.sender.connection.listener;
    let host = match server.hosts.check(listener, head.version, &head.uri, &head.headers) {
        Ok(host) => host,
        Err(reason) if is_probe(row.access, head, reason) => None,
        Err(reason) => return Err(refuse_host(server, reason, head)),
    };
    match server.callers.check(host.as_ref(), &head.headers) {
        OriginVerdict::Absent | OriginVerdict::Same => Ok(None),
        OriginVerdict::Allowed(origin) if cross_origin::is_preflight(&head.method, &head.headers) => {
            Err(Refusal::Preflight(origin))
        }
        OriginVerdict::Allowed(origin) => Ok(Some(origin)),
        OriginVerdict::Foreign => check_foreign_page(row.access, head).map(|()| None),
    }
}

/// Any page may read public cards, and ask whether it may.
fn check_foreign_page(access: Access, head: &Parts) -> Result<(), Refusal> {
    let is_read = [Method::GET, Method::HEAD].contains(&head.method);
    let is_preflight = cross_origin::is_preflight(&head.method, &head.headers);
    match access {
        Access::Public if is_read => Ok(()),
        Access::Public if is_preflight => Err(Refusal::Preflight(ANY_ORIGIN)),
        Access::Public
        | Access::Probe
        | Access::Open
        | Access::Caller
        | Access::Signed
        | Access::Operator
        | Access::Monitor => Err(refuse_origin(head)),
    }
}

/// Whether a request asks for the health of the process, in a form that needs no known host. HTTP/1.0 has no `Host`.
fn is_probe(access: Access, head: &Parts, reason: HostError) -> bool {
    let is_exempt = match reason {
        HostError::Foreign | HostError::Unconfigured => true,
        HostError::Missing => head.version < Version::HTTP_11,
        HostError::Repeated | HostError::Invalid => false,
    };
    is_exempt && access == Access::Probe
}

fn refuse_host(server: &ServerState, reason: HostError, head: &Parts) -> Refusal {
    let problem = match reason {
        HostError::Missing => "the header is missing; name the host and port of this server".to_owned(),
        HostError::Repeated => "the header is repeated; send it once".to_owned(),
        HostError::Invalid => {
            format!(
                "expected a host with or without a port, such as 127.0.0.1:4242, not {}",
                named_hosts(head)
            )
        }
        HostError::Foreign => {
            let text = format!(
                "{} is not a host of this server; use a name or address that it is configured for, or add this one to \
                 server.allowed_hosts",
                named_hosts(head)
            );
            return forbid("Host", &text);
        }
        HostError::Unconfigured => {
            let hosts = named_hosts(head);
            server.hosts_hint.call_once(|| {
                tracing::warn!(
                    %hosts,
                    "a request is refused because of its host: a mounted router serves loopback names only; set \
                     Builder::public_url, Builder::allowed_host or Builder::any_host"
                );
            });
            return forbid("Host", &format!("{hosts} is not a host of this server"));
        }
    };
    let error = Error::invalid_request(Violation::new("Host", problem));
    Refusal::Head(StatusCode::BAD_REQUEST, error)
}

/// The hosts in target and header, for an error text.
fn named_hosts(head: &Parts) -> String {
    let target = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    let header = head.headers.get(header::HOST).map(HeaderValue::as_bytes);
    let mut hosts: Vec<String> = target
        .into_iter()
        .chain(header)
        .map(|host| format!("{:?}", excerpt(&without_password(host))))
        .collect();
    hosts.dedup();
    hosts.join(" and ")
}

/// A host or an origin for an error text. A user name and password before it may be secrets.
fn without_password(authority: &[u8]) -> String {
    let text = String::from_utf8_lossy(authority);
    match text.rsplit_once('@') {
        Some((_, host)) => format!("…@{host}"),
        None => text.into_owned(),
    }
}

fn refuse_origin(head: &Parts) -> Refusal {
    let Some(origin) = head.headers.get(header::ORIGIN) else {
        let text = "pages of other origins may embed nothing of this server; add their origin to server.cors_origins \
                    and use CORS";
        return forbid("Sec-Fetch-Site", text);
    };
    let text = format!(
        "pages of {:?} may not call this server; add their origin to server.cors_origins",
        excerpt(&without_password(origin.as_bytes()))
    );
    forbid("Origin", &text)
}

/// Refuses what a page of another site may have sent.
fn forbid(header: &str, text: &str) -> Refusal {
    tracing::debug!(header, reason = text, "request refused");
    let error = Error::new(ErrorKind::PermissionDenied, format!("{header}: {text}"));
    Refusal::Head(StatusCode::FORBIDDEN, error)
}

//! The check of every request right after its route is found: does it name a host of this server, and may the page that
//! sends it call?
//!
//! The rules are in `host.rs` and `cross_origin.rs`. `/healthz` has no secrets and is asked by load balancers that know
//! no name, so it is served for any host. Public cards are for everybody, so pages of any origin may read them.

use http::{HeaderValue, Method, StatusCode, Version, header, request::Parts};
use protocol::{Error, ErrorKind, Violation, error::excerpt};

use crate::{
    cross_origin::{self, ANY_ORIGIN, OriginVerdict},
    host::{HostError, Listener},
    routes::Access,
    server_state::ServerState,
};

/// What happens to a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is handled. With an origin, the response gets the CORS headers that let its pages read it.
    Permitted(Option<HeaderValue>),
    /// It is a preflight of a page with this origin, which may call.
    Preflight(HeaderValue),
    /// It is refused with this status.
    Refused(StatusCode, Box<Error>),
}

impl Verdict {
    /// Takes the verdict out of its place.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Permitted(None))
    }
}

pub(crate) fn check(server: &ServerState, listener: Listener, access: Access, head: &Parts) -> Verdict {
    let host = match server.hosts.check(listener, head.version, &head.uri, &head.headers) {
        Ok(host) => host,
        Err(reason) if is_probe(access, head, reason) => None,
        Err(reason) => return refuse_host(reason, head),
    };
    match server.callers.check(host.as_ref(), &head.headers) {
        OriginVerdict::Absent | OriginVerdict::Same => Verdict::Permitted(None),
        OriginVerdict::Allowed(origin) if cross_origin::is_preflight(&head.method, &head.headers) => {
            Verdict::Preflight(origin)
        }
        OriginVerdict::Allowed(origin) => Verdict::Permitted(Some(origin)),
        OriginVerdict::Foreign => check_foreign_page(access, head),
    }
}

/// Any page may read public cards, and ask whether it may.
fn check_foreign_page(access: Access, head: &Parts) -> Verdict {
    let is_read = [Method::GET, Method::HEAD].contains(&head.method);
    let is_preflight = cross_origin::is_preflight(&head.method, &head.headers);
    match access {
        Access::Public if is_read => Verdict::Permitted(None),
        Access::Public if is_preflight => Verdict::Preflight(ANY_ORIGIN),
        Access::Public
        | Access::Probe
        | Access::Open
        | Access::Caller
        | Access::Signed
        | Access::Operator
        | Access::Monitor => refuse_origin(head),
    }
}

/// Whether a request asks for the health of the process, in a form that needs no known host. HTTP/1.0 has no `Host`.
fn is_probe(access: Access, head: &Parts, reason: HostError) -> bool {
    let is_exempt = match reason {
        HostError::Foreign => true,
        HostError::Missing => head.version < Version::HTTP_11,
        HostError::Repeated | HostError::Invalid => false,
    };
    is_exempt && access == Access::Probe
}

fn refuse_host(reason: HostError, head: &Parts) -> Verdict {
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
    };
    let error = Error::invalid_request(Violation::new("Host", problem));
    Verdict::Refused(StatusCode::BAD_REQUEST, Box::new(error))
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

fn refuse_origin(head: &Parts) -> Verdict {
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
fn forbid(header: &str, text: &str) -> Verdict {
    tracing::debug!(header, reason = text, "request refused");
    let error = Error::new(ErrorKind::PermissionDenied, format!("{header}: {text}"));
    Verdict::Refused(StatusCode::FORBIDDEN, Box::new(error))
}

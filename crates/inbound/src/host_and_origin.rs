//! The check of every request right after its route is found: does it name a host of this server, and may the page that
//! sends it call?
//!
//! The rules are in `host.rs` and `cross_origin.rs`. `/healthz` has no secrets and is asked by load balancers that know
//! no name, so it is served for any host. Public cards are for everybody, so pages of any origin may read them.

use axum::response::Response;
use http::{HeaderValue, Method, StatusCode, Version, header, request::Parts};
use protocol::{Error, ErrorKind, Violation, error::excerpt};

use crate::{
    cross_origin::{self, ANY_ORIGIN, OriginVerdict},
    exchange::Exchange,
    host::{HostError, Listener},
    routes::Access,
};

/// What happens to a request.
pub(crate) enum Decision {
    /// It is handled. With an origin, the response gets the CORS headers that let its pages read it.
    Handle(Option<HeaderValue>),
    /// It has been answered: a preflight.
    Respond(Response),
    /// It is refused with this status.
    Refuse(StatusCode, Error),
}

pub(crate) fn check(exchange: &Exchange, listener: Listener) -> Decision {
    let (server, head) = (&exchange.server, &exchange.head);
    let host = match server.hosts.check(listener, head.version, &head.uri, &head.headers) {
        Ok(host) => host,
        Err(reason) if is_probe(exchange, reason) => None,
        Err(reason) => return refuse_host(reason, head),
    };
    match server.callers.check(host.as_ref(), &head.headers) {
        OriginVerdict::Absent | OriginVerdict::Same => Decision::Handle(None),
        OriginVerdict::Allowed(origin) if cross_origin::is_preflight(&head.method, &head.headers) => {
            Decision::Respond(cross_origin::preflight_response(origin))
        }
        OriginVerdict::Allowed(origin) => Decision::Handle(Some(origin)),
        OriginVerdict::Foreign => check_foreign_page(exchange),
    }
}

/// Any page may read public cards, and ask whether it may.
fn check_foreign_page(exchange: &Exchange) -> Decision {
    let head = &exchange.head;
    let is_read = [Method::GET, Method::HEAD].contains(&head.method);
    let is_preflight = cross_origin::is_preflight(&head.method, &head.headers);
    match exchange.row.access {
        Access::Public if is_read => Decision::Handle(None),
        Access::Public if is_preflight => Decision::Respond(cross_origin::preflight_response(ANY_ORIGIN)),
        Access::Public | Access::Probe | Access::Open | Access::Caller => refuse_origin(head),
    }
}

/// Whether a request asks for the health of the process, in a form that needs no known host. HTTP/1.0 has no `Host`.
fn is_probe(exchange: &Exchange, reason: HostError) -> bool {
    let is_exempt = match reason {
        HostError::Foreign => true,
        HostError::Missing => exchange.head.version < Version::HTTP_11,
        HostError::Repeated | HostError::Invalid => false,
    };
    is_exempt && exchange.row.access == Access::Probe
}

fn refuse_host(reason: HostError, head: &Parts) -> Decision {
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
    Decision::Refuse(StatusCode::BAD_REQUEST, Error::invalid_request(Violation::new("Host", problem)))
}

/// The hosts in target and header, for an error text.
fn named_hosts(head: &Parts) -> String {
    let target = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    let header = head.headers.get(header::HOST).map(HeaderValue::as_bytes);
    let mut hosts: Vec<String> = target
        .into_iter()
        .chain(header)
        .map(|host| format!("{:?}", excerpt(&String::from_utf8_lossy(host))))
        .collect();
    hosts.dedup();
    hosts.join(" and ")
}

fn refuse_origin(head: &Parts) -> Decision {
    let Some(origin) = head.headers.get(header::ORIGIN) else {
        let text = "pages of other origins may embed nothing of this server; add their origin to server.cors_origins \
                    and use CORS";
        return forbid("Sec-Fetch-Site", text);
    };
    let text = format!(
        "pages of {:?} may not call this server; add their origin to server.cors_origins",
        excerpt(&String::from_utf8_lossy(origin.as_bytes()))
    );
    forbid("Origin", &text)
}

/// Refuses what a page of another site may have sent.
fn forbid(header: &str, text: &str) -> Decision {
    tracing::debug!(header, reason = text, "request refused");
    let error = Error::new(ErrorKind::PermissionDenied, format!("{header}: {text}"));
    Decision::Refuse(StatusCode::FORBIDDEN, error)
}

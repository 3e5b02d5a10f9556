//! Whether the sender of a request may use its route, by the [`Access`] of the route: which credentials are verified for
//! that, and what they permit. All of it is decided before the body is read, except for an agent that only the body names.

pub(crate) mod access_watch;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod caller;
pub(crate) mod open_streams;
pub(crate) mod rate_limit;

use engine::{AgentSettings, EndUser};
use http::header;
use protocol::{Error, ErrorKind};

use crate::{
    access::auth::{RequiredCredentials, Verification, VerifiedSender, schemes},
    addresses::{authority::Authority, forwarded, host::Listener},
    request::exchange::Exchange,
    routes::{Access, Handler},
};

/// Verifies the credentials of a request that matter to its agent; where only the body names the agent, to any.
/// Callers that the application has identified present none.
pub(crate) fn verify(exchange: &Exchange) -> Verification {
    use Access::{Caller, Monitor, Open, Operator, Probe, Public, Signed};
    let Exchange { server, sender, head, endpoint, row, .. } = exchange;
    let wanted = match row.access {
        Caller => wanted(exchange),
        Open if row.handler == Handler::OpenApi => wanted(exchange),
        Probe | Public | Open | Signed | Operator | Monitor => RequiredCredentials::default(),
    };
    if wanted == RequiredCredentials::default() {
        return Verification::Ready(Ok(VerifiedSender { caller: sender.identity.clone(), end_user: None }));
    }
    let refused =
        sender.refused_key().and_then(|key| server.rates.load().is_refused(endpoint.tenant.id(), key).err());
    let certificate = sender.connection.certificate.as_ref().map(|certificate| certificate.principal());
    server.auth.verify(&head.headers, certificate, wanted, refused)
}

fn wanted(exchange: &Exchange) -> RequiredCredentials {
    let of = |settings: &AgentSettings| RequiredCredentials {
        caller: settings.auth.verify_credentials(),
        end_user: settings.end_user == EndUser::Required,
    };
    let any = |one: RequiredCredentials, other: RequiredCredentials| RequiredCredentials {
        caller: one.caller || other.caller,
        end_user: one.end_user || other.end_user,
    };
    let mut wanted = of(exchange.endpoint.settings());
    if exchange.names_agent_in_body() || exchange.row.handler == Handler::Mcp {
        wanted = exchange.agents().map(|agent| of(agent.settings())).fold(wanted, any);
    }
    RequiredCredentials { caller: wanted.caller && exchange.sender.identity.is_anonymous(), ..wanted }
}

/// Takes over what verification has found.
pub(crate) fn identify(
    exchange: &mut Exchange,
    verified: Result<VerifiedSender, Error>,
) -> Result<(), Error> {
    let verified = verified.map_err(|error| {
        let presented = auth::presented(&exchange.head.headers);
        schemes::with_challenge(exchange.endpoint.settings(), presented, error)
    })?;
    exchange.sender.identify(verified);
    Ok(())
}

/// Checks the client certificate of the connection, where calls are served.
pub(crate) fn check_certificate(exchange: &Exchange) -> Result<(), Error> {
    match &exchange.sender.connection.certificate {
        Some(certificate) if exchange.row.access == Access::Caller => certificate.check(exchange.now()),
        Some(_) | None => Ok(()),
    }
}

/// Checks that the credentials permit what the route is for. An agent that only the body can name is decided when it is
/// decoded, and so is a disabled one where the body decides the dialect of the error.
pub(crate) fn check(exchange: &Exchange) -> Result<(), Error> {
    match exchange.row.access {
        Access::Probe | Access::Public | Access::Open => Ok(()),
        // The signature is verified when the body has named the task.
        Access::Signed => exchange.task_token().map(drop),
        Access::Operator => check_operator(exchange),
        Access::Monitor if is_from_this_machine(exchange) => Ok(()),
        Access::Monitor => check_operator(exchange),
        Access::Caller if exchange.names_agent_in_body() && permits_some_calls(exchange) => Ok(()),
        Access::Caller if exchange.names_agent_in_body() => check_credential(exchange).map_err(without_agent),
        Access::Caller if matches!(exchange.row.handler, Handler::Text | Handler::Run | Handler::Mcp) => {
            check_agent(exchange)
        }
        Access::Caller if !exchange.endpoint.settings().enabled => Ok(()),
        Access::Caller => check_credential(exchange),
    }
}

/// Checks that the agent is enabled and that the caller may call it.
pub(crate) fn check_agent(exchange: &Exchange) -> Result<(), Error> {
    if !exchange.endpoint.settings().enabled {
        return Err(exchange.endpoint.unknown_agent(&exchange.catalog));
    }
    check_credential(exchange)
}

fn check_credential(exchange: &Exchange) -> Result<(), Error> {
    exchange.sender.check_accepted(exchange.endpoint.settings(), exchange.endpoint.agent())
}

/// Whether some agent accepts the caller.
fn permits_some_calls(exchange: &Exchange) -> bool {
    let accepts =
        |settings: &AgentSettings, agent: &str| exchange.sender.identity.with_agent(settings, agent).is_ok();
    accepts(exchange.endpoint.settings(), exchange.endpoint.agent())
        || exchange.agents().any(|agent| accepts(agent.settings(), &agent.info().id))
}

fn check_operator(exchange: &Exchange) -> Result<(), Error> {
    let unserved = || Error::new(ErrorKind::NotFound, "nothing is served at this path");
    exchange.server.operators.as_ref().ok_or_else(unserved)?.check(&exchange.head.headers)
}

/// Whether only this machine can have sent the request: on a listener on loopback, and not by a proxy, as far as its
/// headers show that.
fn is_from_this_machine(exchange: &Exchange) -> bool {
    let Listener::Bound(address) = exchange.sender.connection.listener else { return false };
    let names_loopback = |host: &str| Authority::parse(host).is_some_and(|named| named.host.is_loopback());
    let target = exchange.head.uri.authority().map(|authority| authority.as_str());
    let host = exchange.head.headers.get(header::HOST).and_then(|value| value.to_str().ok());
    address.to_canonical().is_loopback()
        && target.into_iter().chain(host).all(names_loopback)
        && !forwarded::is_present(&exchange.head.headers)
}

/// The error for a caller that no agent accepts, without the name of one: only the body would tell which it calls.
fn without_agent(error: Error) -> Error {
    match error.kind {
        ErrorKind::Unauthenticated => {
            Error { message: "the call requires a credential that its agent accepts".to_owned(), ..error }
        }
        _ => error,
    }
}

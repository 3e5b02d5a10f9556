//! Capability checks: the one place where a request is checked against the agent's card and the compatibility profile
//! of its endpoint.
//!
//! [`check_operation`] precedes errors about the parameters, [`check_request`] follows them. A request to an unknown agent
//! passes both and is rejected by the engine.

pub(crate) mod extensions;
mod media;

use engine::{ExtendedCard, RegisteredAgent, Scope};
use http::HeaderMap;
use protocol::{Dialect, Error, ErrorKind, Operation, OperationKind, SendMessage};

use crate::{
    access::{auth::schemes::PresentedToken, caller::credential_required},
    request::endpoint::Endpoint,
};

/// Checks that the endpoint's profile and the agent support the operation.
pub(crate) fn check_operation(endpoint: &Endpoint, kind: OperationKind) -> Result<(), Error> {
    if endpoint.profile().send_only && kind != OperationKind::SendMessage {
        let text = "this agent supports only message sends that wait for the result";
        return Err(Error::new(ErrorKind::MethodNotFound, text));
    }
    if endpoint.registered().is_none() {
        return Ok(());
    }
    match kind {
        OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask
            if !endpoint.settings().streaming =>
        {
            let text = "this agent does not stream; send without streaming, or poll the task";
            Err(Error::new(endpoint.profile().stream_off, text))
        }
        _ => Ok(()),
    }
}

/// Checks a decoded request against the agent's card and settings. Returns the operation with the profile's changes
/// applied.
pub(crate) fn check_request(
    endpoint: &Endpoint,
    caller: &Scope,
    dialect: Dialect,
    headers: &HeaderMap,
    operation: Operation,
) -> Result<Operation, Error> {
    let Some(registered) = endpoint.registered() else { return Ok(operation) };
    if dialect.rules().requires_extensions {
        extensions::check(&endpoint.settings().extensions, headers, &operation)?;
    }
    match &operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => {
            if req.push.is_some() && !endpoint.settings().push {
                return Err(push_off());
            }
            check_media(endpoint, caller, registered, req)?;
        }
        Operation::CreatePushConfig(_)
        | Operation::GetPushConfig(_)
        | Operation::ListPushConfigs(_)
        | Operation::DeletePushConfig(_)
            if !endpoint.settings().push =>
        {
            return Err(push_off());
        }
        Operation::GetExtendedCard(_) => extended_card(endpoint, caller)?,
        _ => {}
    }
    Ok(apply_profile(endpoint, dialect, operation))
}

fn push_off() -> Error {
    let text = "push notifications are not supported by this agent; stream the task or poll it instead";
    Error::new(ErrorKind::PushNotificationNotSupported, text)
}

fn extended_card(endpoint: &Endpoint, caller: &Scope) -> Result<(), Error> {
    match endpoint.settings().extended_card {
        ExtendedCard::Open => Ok(()),
        ExtendedCard::Protected if !caller.is_anonymous() => Ok(()),
        ExtendedCard::Off => {
            let text = "this agent has no extended card; its public card is complete";
            Err(Error::new(ErrorKind::UnsupportedOperation, text))
        }
        ExtendedCard::Missing => {
            let text =
                "this agent's card declares an extended card, but none is configured; use the public card";
            Err(Error::new(ErrorKind::ExtendedCardNotConfigured, text))
        }
        ExtendedCard::Protected => {
            let text = "the extended card requires a credential";
            Err(credential_required(endpoint.settings(), PresentedToken::NoToken, text))
        }
    }
}

/// Checks the client's accepted output modes against the agent's output modes, and the message's media types against
/// its input modes. Where the profile's card shows other modes than the agent's own, both are accepted.
fn check_media(
    endpoint: &Endpoint,
    caller: &Scope,
    registered: &RegisteredAgent,
    req: &SendMessage,
) -> Result<(), Error> {
    let has_types = || req.message.parts.iter().any(|part| part.media_type.is_some());
    let check_input = endpoint.settings().check_media_types && has_types();
    // The common case: the request names no media types.
    if req.accepted_output_modes.is_empty() && !check_input {
        return Ok(());
    }
    // A skill that does not exist for the caller is treated like an unknown one, which the engine rejects.
    let skill = req.requested_skill();
    let skill = skill.as_deref();
    let modes = |own| with_profile_modes(own, endpoint.profile().card.modes);
    media::check_output(&modes(registered.output_modes(skill, caller)), &req.accepted_output_modes)?;
    if check_input {
        media::check_input(&modes(registered.input_modes(skill, caller)), &req.message.parts)?;
    }
    Ok(())
}

fn with_profile_modes<'a>(own: &'a [String], of_profile: &'a [&'a str]) -> Vec<&'a str> {
    own.iter().map(String::as_str).chain(of_profile.iter().copied()).collect()
}

fn apply_profile(endpoint: &Endpoint, dialect: Dialect, mut operation: Operation) -> Operation {
    if let (true, Operation::SendMessage(req)) = (endpoint.profile().send_only, &mut operation) {
        // The profile has no operation to fetch the task later.
        req.return_immediately = false;
    }
    if endpoint.profile().task_policy.always_include_history && !dialect.rules().includes_history_by_default {
        let length = match &mut operation {
            Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => &mut req.history_length,
            Operation::GetTask(req) => &mut req.history_length,
            _ => return operation,
        };
        *length = length.filter(|length| *length > 0);
    }
    operation
}

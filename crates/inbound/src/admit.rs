//! What may be asked of an agent: the one place where a request is held against what the agent's card promises and
//! what its house serves.
//!
//! Every binding asks twice: [`operation`] as soon as it knows which operation it is, before the parameters are read,
//! and [`request`] when it has them. What is asked of nobody, because there is no agent of that name, passes here and is
//! refused by the engine.

pub(crate) mod extensions;
mod media;

use engine::RegisteredAgent;
use http::HeaderMap;
use protocol::{Dialect, Error, ErrorKind, Operation, OperationKind, SendMessage};

use crate::server_state::{Endpoint, ServerState};

/// Who is shown an agent's extended card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExtendedCard {
    /// Nobody: there is none, and the public card says so.
    #[default]
    Off,
    /// Everybody.
    Open,
    /// Callers with a credential; none can be checked yet.
    Protected,
    /// Nobody, though the public card promises it: for testing clients.
    Missing,
}

/// Whether the house and the agent serve an operation at all.
pub(crate) fn operation(
    server_state: &ServerState,
    endpoint: &Endpoint<'_>,
    kind: OperationKind,
) -> Result<(), Error> {
    if endpoint.profile.send_only && kind != OperationKind::SendMessage {
        let text = "this agent serves sends that are answered at once, and nothing else";
        return Err(Error::new(ErrorKind::MethodNotFound, text));
    }
    if server_state.engine.agents().get(endpoint.agent).is_none() {
        return Ok(());
    }
    match kind {
        OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask
            if !endpoint.settings.streaming =>
        {
            let text = "this agent does not stream; send without streaming, or poll the task";
            Err(Error::new(endpoint.profile.stream_off, text))
        }
        _ => Ok(()),
    }
}

/// What is asked for as the house wants it, if it fits what the agent says of itself.
pub(crate) fn request(
    server_state: &ServerState,
    endpoint: &Endpoint<'_>,
    dialect: Dialect,
    headers: &HeaderMap,
    operation: Operation,
) -> Result<Operation, Error> {
    let Some(registered) = server_state.engine.agents().get(endpoint.agent) else { return Ok(operation) };
    if dialect.insists_on_extensions() {
        extensions::check(&endpoint.settings.extensions, headers, &operation)?;
    }
    match &operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => {
            if req.push.is_some() && !endpoint.settings.push {
                return Err(push_off());
            }
            check_media(endpoint, registered, req)?;
        }
        Operation::CreatePushConfig(_)
        | Operation::GetPushConfig(_)
        | Operation::ListPushConfigs(_)
        | Operation::DeletePushConfig(_)
            if !endpoint.settings.push =>
        {
            return Err(push_off());
        }
        Operation::GetExtendedCard(_) => extended_card(endpoint)?,
        _ => {}
    }
    Ok(as_house_wants(endpoint, dialect, operation))
}

fn push_off() -> Error {
    let text = "push notifications are not supported by this agent; stream the task or poll it instead";
    Error::new(ErrorKind::PushNotificationNotSupported, text)
}

fn extended_card(endpoint: &Endpoint<'_>) -> Result<(), Error> {
    match endpoint.settings.extended_card {
        ExtendedCard::Open => Ok(()),
        ExtendedCard::Off => {
            let text = "this agent has no extended card; its public card says everything";
            Err(Error::new(ErrorKind::UnsupportedOperation, text))
        }
        ExtendedCard::Missing => {
            let text = "this agent promises an extended card and has none; its public card says everything";
            Err(Error::new(ErrorKind::ExtendedCardNotConfigured, text))
        }
        ExtendedCard::Protected => {
            let text = "the extended card wants a credential, and none can be checked here yet";
            Err(endpoint.settings.wants_credential(text))
        }
    }
}

/// What the client can take against what the agent gives, and what it brings against what the agent takes. A house
/// that shows another mode than the agent's own takes and gives both.
fn check_media(
    endpoint: &Endpoint<'_>,
    registered: &RegisteredAgent,
    req: &SendMessage,
) -> Result<(), Error> {
    let says_types = || req.message.parts.iter().any(|part| part.media_type.is_some());
    let check_input = endpoint.settings.check_media_types && says_types();
    // Most requests say nothing of either.
    if req.accepted_output_modes.is_empty() && !check_input {
        return Ok(());
    }
    let profile = registered.info();
    let skill = req.asked_skill();
    let shown = endpoint.profile.card.mode;
    media::check_output(&media::given(profile, skill.as_deref(), shown), &req.accepted_output_modes)?;
    if check_input {
        media::check_input(&media::taken(profile, skill.as_deref(), shown), &req.message.parts)?;
    }
    Ok(())
}

fn as_house_wants(endpoint: &Endpoint<'_>, dialect: Dialect, mut operation: Operation) -> Operation {
    if let (true, Operation::SendMessage(req)) = (endpoint.profile.send_only, &mut operation) {
        // Nobody could ask later what became of it.
        req.return_immediately = false;
    }
    if endpoint.profile.task_policy.whole_history && !dialect.shows_history_unasked() {
        let length = match &mut operation {
            Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => &mut req.history_length,
            Operation::GetTask(req) => &mut req.history_length,
            _ => return operation,
        };
        *length = length.filter(|length| *length > 0);
    }
    operation
}

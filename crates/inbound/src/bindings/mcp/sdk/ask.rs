//! Asks a client a question while its call is open, up to a time limit.

use std::time::Duration;

use protocol::Error;
use rmcp::{
    ErrorData, RoleServer,
    model::{ClientResult, ServerRequest},
    service::{PeerRequestOptions, RequestContext, ServiceError},
};

use super::{
    convert::invalid_params,
    question::{Answer, Question},
};
use crate::request::exchange::Exchange;

/// The longest time for an answer. A call that waits keeps its session and its connection.
pub(super) const TIME_LIMIT: Duration = Duration::from_secs(10 * 60);
/// How long it may take to withdraw a question.
const WITHDRAW_LIMIT: Duration = Duration::from_secs(1);

/// How a question has ended.
pub(super) enum QuestionResult {
    Answered(Answer),
    /// No answer arrived in time.
    TimedOut,
    /// The call was cancelled meanwhile.
    Cancelled,
    /// The server shuts down.
    Closing,
    /// The caller may not have the call any more.
    Revoked(Error),
}

/// Asks, and withdraws the question if it is not answered.
pub(super) async fn ask(
    context: &RequestContext<RoleServer>,
    question: &Question,
    limit: Duration,
    exchange: &Exchange,
) -> Result<QuestionResult, ErrorData> {
    let request = ServerRequest::ElicitRequest(question.request());
    let sent = context.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
    let mut sent = match sent {
        Ok(sent) => sent,
        Err(error) => return Ok(QuestionResult::Answered(unanswered(&error))),
    };
    let (asked, reason) = tokio::select! {
        biased;
        response = &mut sent.rx => {
            return answered(question, response.unwrap_or(Err(ServiceError::TransportClosed)));
        }
        () = exchange.server.ready.closing() => (QuestionResult::Closing, "the server is shutting down"),
        error = exchange.sender.revoked(&exchange.server, &exchange.endpoint) => (QuestionResult::Revoked(error), "the caller may not call the agent any more"),
        () = context.ct.cancelled() => (QuestionResult::Cancelled, "the call was cancelled"),
        () = tokio::time::sleep(limit) => (QuestionResult::TimedOut, "the question was not answered in time"),
    };
    // A connection that ends takes no more messages.
    let _ = tokio::time::timeout(WITHDRAW_LIMIT, sent.cancel(Some(reason.to_owned()))).await;
    Ok(asked)
}

fn answered(
    question: &Question,
    response: Result<ClientResult, ServiceError>,
) -> Result<QuestionResult, ErrorData> {
    match response {
        Ok(ClientResult::ElicitResult(result)) => question.answer(result).map(QuestionResult::Answered),
        Ok(_) => Err(invalid_params("the answer to the elicitation is not one")),
        Err(error) => Ok(QuestionResult::Answered(unanswered(&error))),
    }
}

/// The client cannot answer.
fn unanswered(error: &ServiceError) -> Answer {
    tracing::debug!(%error, "a question was not answered");
    Answer::Rejected
}

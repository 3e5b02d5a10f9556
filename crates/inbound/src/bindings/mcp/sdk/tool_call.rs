//! One call of a tool: its progress, its questions and its result.

use std::time::Duration;

use protocol::{Part, SendMessage, TaskId};
use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{
        CallToolResponse, CallToolResult, ErrorCode, ProgressNotificationParam, ProgressToken,
        ProtocolVersion,
    },
    service::RequestContext,
};
use tokio_util::sync::CancellationToken;

use super::{
    ask::{self, QuestionResult},
    convert,
    question::{self, Answer, Question},
};
use crate::{
    bindings::mcp::{
        call::{self, Ended, Outcome, Progress},
        tools::{Output, Target},
    },
    request::exchange::Exchange,
};

/// The most questions that one call asks of a client that answers while it is open.
const MAX_QUESTIONS: usize = 32;

/// Estimated memory of a call that waits for an answer, beside the question.
const WAITING_BYTES: u64 = 4 << 10;

const REJECTED: &str = "the question of the agent was not answered, so its task was canceled";

/// Sends a message to the agent. Questions are asked as the client can be asked.
pub(super) async fn call(
    exchange: &mut Exchange,
    request: SendMessage,
    target: &Target,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let mut progress = ProgressSender::new(context);
    let (mut request, mut asked) = (request, None);
    for _ in 0..MAX_QUESTIONS {
        let ended = call::send(exchange, request, &context.ct, &mut progress).await;
        let (task, parts) = match ended.map(|ended| result(ended, target.output)) {
            Ok(Ok(result)) => return Ok(result.into()),
            Ok(Err(question)) => question,
            Err(error) => return Ok(convert::refused(&error).into()),
        };
        let capabilities = context.client_capabilities();
        let task = match task {
            Some(task) if question::can_answer(capabilities.as_ref()) => task,
            task => {
                let shown = question::without_form(task.as_ref(), &parts);
                return Ok(convert::failed(task.as_ref(), &shown).into());
            }
        };
        let question = Question::new(task, &parts);
        drop(parts);
        if sends_again(context) {
            return Ok(question.input_required().into());
        }
        // What the call has reserved for its message and the task is free while it waits.
        exchange.memory.shrink(WAITING_BYTES + question.size());
        let limit = time_limit(exchange, target);
        request = match ask::ask(context, &question, limit, exchange).await {
            Ok(QuestionResult::Answered(Answer::Accepted(request))) => *request,
            Ok(QuestionResult::Answered(Answer::Rejected)) => {
                return Ok(reject(exchange, question.task()).await.into());
            }
            Ok(QuestionResult::TimedOut) => {
                return Ok(unanswered(exchange, question.task(), target.output, limit).await.into());
            }
            // The task goes on waiting after the restart.
            Ok(QuestionResult::Closing) => {
                return Ok(convert::refused(&call::draining(Some(question.task()))).into());
            }
            Ok(QuestionResult::Revoked(error)) => return Ok(convert::refused(&error).into()),
            Ok(QuestionResult::Cancelled) => {
                call::cancel(exchange, question.task().clone()).await;
                return Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, "the call was cancelled", None));
            }
            Err(problem) => {
                let text = format!("the answer cannot be used: {}", problem.message);
                let shown = question::without_form(Some(question.task()), &[Part::text(text)]);
                return Ok(convert::failed(Some(question.task()), &shown).into());
            }
        };
        asked = Some(question.task().clone());
    }
    let shown = question::without_form(asked.as_ref(), &[Part::text("It asks again and again.")]);
    Ok(convert::failed(asked.as_ref(), &shown).into())
}

/// Whether the client answers questions by sending its call again.
fn sends_again(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// The result of a turn; an error is the question that it ended with.
fn result(ended: Ended, output: Output) -> Result<CallToolResult, (Option<TaskId>, Vec<Part>)> {
    let Ended { task, outcome } = ended;
    match outcome {
        Outcome::Done(parts) => Ok(convert::done(task.as_ref(), &parts, output)),
        Outcome::Failed(parts) => Ok(convert::failed(task.as_ref(), &parts)),
        Outcome::AsksForCredentials(parts) => {
            Ok(convert::failed(task.as_ref(), &question::for_credentials(task.as_ref(), &parts)))
        }
        Outcome::Asks(parts) => Err((task, parts)),
    }
}

/// How long an answer may take: no longer than the task waits for one.
fn time_limit(exchange: &Exchange, target: &Target) -> Duration {
    let waits = exchange.endpoint.registered().map(|registered| {
        registered.policy(target.skill.as_deref(), exchange.server.engine.limits()).interrupted_ttl
    });
    waits.map_or(ask::TIME_LIMIT, |waits| waits.min(ask::TIME_LIMIT))
}

/// The client has not answered in time. The task waits for an answer over A2A, unless it has ended meanwhile.
async fn unanswered(
    exchange: &mut Exchange,
    task: &TaskId,
    output: Output,
    limit: Duration,
) -> CallToolResult {
    match call::read(exchange, task).await.map(|ended| result(ended, output)) {
        Ok(Ok(result)) => result,
        Ok(Err(_)) | Err(_) => {
            let text = format!(
                "The question of the agent was not answered within {} s. Task {task} still waits: answer it over A2A, \
                 or call the tool again with what is asked for.",
                limit.as_secs()
            );
            convert::failed(Some(task), &[Part::text(text)])
        }
    }
}

/// The client does not answer, so the task is canceled.
pub(super) async fn reject(exchange: &mut Exchange, task: &TaskId) -> CallToolResult {
    call::cancel(exchange, task.clone()).await;
    convert::failed(Some(task), &[Part::text(REJECTED)])
}

/// Sends the progress messages of an agent to a client that has asked for them.
struct ProgressSender {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    cancellation: CancellationToken,
    count: u32,
}

impl ProgressSender {
    fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        let to = token.map(|token| (context.peer.clone(), token));
        Self { to, cancellation: context.ct.clone(), count: 0 }
    }
}

impl Progress for ProgressSender {
    async fn working(&mut self, text: String) {
        let Some((peer, token)) = &self.to else { return };
        self.count += 1;
        let mut notice = ProgressNotificationParam::new(token.clone(), f64::from(self.count));
        notice.message = Some(text).filter(|text| !text.is_empty());
        tokio::select! {
            sent = peer.notify_progress(notice) => if let Err(error) = sent {
                tracing::debug!(%error, "progress was not sent");
            },
            () = self.cancellation.cancelled() => {}
        }
    }
}

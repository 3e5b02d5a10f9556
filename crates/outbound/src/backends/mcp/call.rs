//! One call of a tool: from a free process to the reply.

mod progress;
mod remote_task;

use std::{sync::Arc, time::Duration};

use engine::{AgentResult, OnCrash, Scope, metrics::BackendKind};
use futures_util::future::BoxFuture;
use protocol::{Part, TaskId};
use tokio::time::{Instant, sleep_until};

use self::progress::Reports;
use super::{
    McpServer,
    answer::{self, answer, answers, rejection, unanswerable},
    messages::{Answer, Answers, CallError, InputRequired, Requests, Response},
    parked::{ParkedCall, lost_text},
    reply::{self, State},
    sdk::{Asked, Event, OpenCall},
    server::{Lease, Server},
    slots::{ContextKey, Unavailable},
};
use crate::backend::{Backend, Call, Failure, Reply};

/// How long before the turn's deadline a call fails with a text of its own.
const DEADLINE_MARGIN: Duration = Duration::from_millis(500);
/// How often a call is sent, because the server did not receive it or only asks for the same call again.
const MAX_ROUNDS: u32 = 10;
/// Grows with each round: 4.5 s in all.
const ROUND_DELAY: Duration = Duration::from_millis(100);
const INVALID_PARAMS: i32 = -32602;

/// The backend of one tool.
pub(super) struct McpTool {
    pub(super) server: McpServer,
    pub(super) tool: String,
    /// The argument that gets the message of the call.
    pub(super) message_argument: Option<String>,
}

/// How following an open call ended.
enum DriveResult {
    Ended(Reply),
    /// The server wants the same call again, with this state.
    SendAgain(String),
    /// The server did not receive the call.
    NotSent,
}

impl Backend for McpTool {
    fn kind(&self) -> BackendKind {
        BackendKind::Mcp
    }

    fn target(&self) -> String {
        self.server().config.transport.target()
    }

    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>> {
        Box::pin(async move { self.run(&call).await })
    }

    fn may_ask(&self) -> bool {
        self.server().config.elicitation
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        self.server().parked.abandon(scope, task);
    }
}

impl McpTool {
    async fn run(&self, call: &Call<'_>) -> AgentResult<Reply> {
        let message = &call.turn.message;
        match call.state::<State>()? {
            None => self.send(call, Answers::default()).await,
            Some(State::SendAgain) => match rejection(message) {
                Some(_) => Ok(Reply::fail(format!("the client declined what {} requires", self.name()))),
                None => self.send(call, Answers::default()).await,
            },
            Some(State::Open { token }) => self.resume(call, &token).await,
            Some(State::Input { requests, state }) => match self.answers(call, &requests).await? {
                Ok(answers) => self.send(call, Answers { answers, state }).await,
                Err(problem) => {
                    let kept = State::Input { requests: requests.clone(), state };
                    Ok(reply::ask(self.name(), &requests, Some(&problem), &kept))
                }
            },
            Some(State::Task { id, requests }) => match self.answers(call, &requests).await? {
                Ok(answers) => self.answer_task(call, &id, answers).await,
                Err(problem) => {
                    let kept = State::Task { id, requests: requests.clone() };
                    Ok(reply::ask(self.name(), &requests, Some(&problem), &kept))
                }
            },
        }
    }

    /// The client's answers to these questions.
    async fn answers(
        &self,
        call: &Call<'_>,
        requests: &Requests,
    ) -> AgentResult<Result<Vec<(String, Answer)>, String>> {
        match answers(&call.turn.message, requests) {
            Ok(given) => answer::checked(given, call.turn).await,
            Err(problem) => Ok(Err(problem)),
        }
    }

    /// Sends the call, again if the server did not receive it or only asks for that.
    async fn send(&self, call: &Call<'_>, mut with: Answers) -> AgentResult<Reply> {
        let mut was_received = false;
        for round in 1..=MAX_ROUNDS {
            let driven = match self.open(call, with.clone()).await {
                Ok(Some((open, lease))) => self.drive(call, open, lease).await?,
                Ok(None) => DriveResult::NotSent,
                Err(reply) => return Ok(reply),
            };
            match driven {
                DriveResult::Ended(reply) => return Ok(reply),
                DriveResult::SendAgain(state) => {
                    was_received = true;
                    with = Answers { answers: Vec::new(), state: Some(state) };
                }
                DriveResult::NotSent => {}
            }
            tokio::select! {
                () = tokio::time::sleep(ROUND_DELAY * round) => {}
                () = call.cancelled().cancelled() => return Ok(cancelled()),
            }
        }
        let text = format!("the MCP server {} did not accept the call", self.name());
        Ok(if was_received { Reply::fail(text) } else { Reply::retry(text) })
    }

    /// Waits for a process and sends the call to it; `None` if that has just ended. The error is the reply when nothing
    /// was sent.
    async fn open(&self, call: &Call<'_>, with: Answers) -> Result<Option<(OpenCall, Lease)>, Reply> {
        let mut lease = self.lease(call).await?;
        let endpoint = Arc::clone(lease.endpoint());
        let sent = tokio::select! {
            sent = endpoint.connection.call(self, call, with) => sent,
            () = call.cancelled().cancelled() => return Err(cancelled()),
            () = sleep_until(deadline(call).min(self.silence_end())) => return Err(self.timed_out(call)),
        };
        match sent {
            Ok(open) => {
                lease.call_begins();
                Ok(Some((open, lease)))
            }
            Err(CallError::NotSent) => Ok(None),
            Err(error) => Err(reply::reply(self.name(), Err(error))),
        }
    }

    async fn lease(&self, call: &Call<'_>) -> Result<Lease, Reply> {
        let (server, name) = (self.server(), self.name());
        let context = ContextKey { scope: call.turn.scope.clone(), context: call.turn.context_id.clone() };
        let result = tokio::select! {
            result = server.lease(context) => result,
            () = call.cancelled().cancelled() => return Err(cancelled()),
            () = sleep_until(deadline(call)) => {
                return Err(Reply::fail(format!("the MCP server {name} was busy until the deadline")));
            }
        };
        if result.as_ref().is_ok_and(|lease| !lease.endpoint().connection.server_asks()) {
            call.turn.will_not_ask();
        }
        result.map_err(|unavailable| match unavailable {
            Unavailable::Auth { challenge } => reply::credentials_for(name, &challenge, &State::SendAgain),
            Unavailable::Failed => {
                let text = format!("the MCP server {name} does not start; try again later");
                Reply::retry(text).with_cause(server.health().last_start_failure.map(|(error, _)| error))
            }
            Unavailable::Stopped => Reply::retry(format!("the MCP server {name} is stopped")),
        })
    }

    /// Follows an open call until it ends or asks.
    async fn drive(&self, call: &Call<'_>, mut open: OpenCall, mut lease: Lease) -> AgentResult<DriveResult> {
        let mut silence_end = self.silence_end();
        let mut reports = Reports::default();
        loop {
            let end = silence_end.min(deadline(call));
            tokio::select! {
                // The server's events come last, so that a server which reports without a pause delays nothing else.
                biased;
                () = call.cancelled().cancelled() => return Ok(DriveResult::Ended(cancelled())),
                () = sleep_until(end) => {
                    self.server().probe(Arc::clone(lease.endpoint()));
                    return Ok(DriveResult::Ended(self.timed_out(call)));
                }
                () = sleep_until(reports.next_at()), if reports.is_due() => reports.send(call).await?,
                event = open.next() => match event {
                    Event::Progress(notice) => {
                        silence_end = self.silence_end();
                        reports.add(notice);
                    }
                    Event::Asked(asked) => {
                        reports.send(call).await?;
                        let parked = ParkedCall { open, asked, lease, question: call.turn.open_question() };
                        return Ok(DriveResult::Ended(self.ask(call, parked)));
                    }
                    Event::Ended(result) => {
                        open.unread_progress().into_iter().for_each(|notice| reports.add(notice));
                        reports.send(call).await?;
                        lease.call_ended();
                        return self.ended(call, result, lease).await;
                    }
                },
            }
        }
    }

    async fn ended(
        &self,
        call: &Call<'_>,
        result: Result<Response, CallError>,
        lease: Lease,
    ) -> AgentResult<DriveResult> {
        let reply = match result {
            Ok(Response::Task(task)) => self.follow_task(call, task, lease).await?,
            Ok(Response::InputRequired(InputRequired { requests, state: Some(state) }))
                if requests.is_empty() =>
            {
                return Ok(DriveResult::SendAgain(state));
            }
            Err(CallError::NotSent) => return Ok(DriveResult::NotSent),
            // A proxy in front of the server may answer with 503 while the server works on the call.
            Err(CallError::Closed | CallError::Http { status: 503 }) => self.interrupted(call),
            Err(CallError::Server { code: INVALID_PARAMS, message, data }) => {
                // The arguments fit the schema that we know, which may be an old one.
                self.server().refresh_tools();
                reply::reply(self.name(), Err(CallError::Server { code: INVALID_PARAMS, message, data }))
            }
            result => reply::reply(self.name(), result),
        };
        Ok(DriveResult::Ended(reply))
    }

    /// Asks the client, unless no answer could be checked: then the call is cancelled.
    fn ask(&self, call: &Call<'_>, parked: ParkedCall) -> Reply {
        match unanswerable([&parked.asked.question]) {
            Some(problem) => {
                // Before the cancellation, so that also a server ends the call that ignores that.
                let _ = parked.asked.answer.send(Answer::Cancel);
                reply::not_asked(self.name(), &problem)
            }
            None => self.park(call, parked, None),
        }
    }

    /// The call stays open while the client answers. `problem` is what was wrong with its last answer.
    fn park(&self, call: &Call<'_>, parked: ParkedCall, problem: Option<&str>) -> Reply {
        let requests = vec![(String::new(), parked.asked.question.clone())];
        let token = self.server().park(&call.turn.scope, call.turn.task_id.clone(), parked);
        reply::ask(self.name(), &requests, problem, &State::Open { token })
    }

    /// Answers the question of an open call and follows it further.
    async fn resume(&self, call: &Call<'_>, token: &str) -> AgentResult<Reply> {
        let Some(parked) = self.server().unpark(&call.turn.task_id, token) else {
            let (parts, reason) = (vec![Part::text(lost_text(self.name()))], Some("elicitation_lost"));
            return Ok(Reply::Failed(Failure { parts, reason, retryable: false, cause: None }));
        };
        let given = match answer(&call.turn.message, &parked.asked.question) {
            Ok(given) => given.checked(call.turn).await?,
            Err(problem) => Err(problem),
        };
        let given = match given {
            Ok(given) => given,
            Err(problem) => {
                let parked = ParkedCall { question: call.turn.open_question(), ..parked };
                return Ok(self.park(call, parked, Some(&problem)));
            }
        };
        let ParkedCall { open, asked: Asked { answer, .. }, lease, .. } = parked;
        // If the server no longer waits for it, the end of the call follows.
        let _ = answer.send(given);
        match self.drive(call, open, lease).await? {
            DriveResult::Ended(reply) => Ok(reply),
            DriveResult::SendAgain(state) => {
                self.send(call, Answers { state: Some(state), ..Answers::default() }).await
            }
            DriveResult::NotSent => Ok(self.interrupted(call)),
        }
    }

    /// The server ended in the middle of the call, which may have had effects.
    fn interrupted(&self, call: &Call<'_>) -> Reply {
        let text = format!("the MCP server {} ended before it answered", self.name());
        match call.turn.on_crash {
            OnCrash::Fail => Reply::fail(text),
            _ => Reply::retry(text),
        }
    }

    fn timed_out(&self, call: &Call<'_>) -> Reply {
        let name = self.name();
        if Instant::now() >= deadline(call) {
            return Reply::fail(format!("the MCP server {name} did not answer before the deadline"));
        }
        let seconds = self.server().config.timeout.as_secs_f32();
        Reply::fail(format!("the MCP server {name} neither answered nor reported progress for {seconds} s"))
    }

    fn silence_end(&self) -> Instant {
        Instant::now() + self.server().config.timeout
    }

    fn server(&self) -> &Arc<Server> {
        self.server.inner()
    }

    fn name(&self) -> &str {
        &self.server().config.name
    }
}

fn deadline(call: &Call<'_>) -> Instant {
    call.turn.deadline.checked_sub(DEADLINE_MARGIN).unwrap_or(call.turn.deadline)
}

/// The outcome of a cancelled run is ignored.
fn cancelled() -> Reply {
    Reply::fail("the call was cancelled")
}

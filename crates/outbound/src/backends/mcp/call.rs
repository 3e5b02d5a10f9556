//! One call of a tool: from a free process to the reply.

use std::{sync::Arc, time::Duration};

use engine::{AgentResult, OnCrash};
use futures_util::future::BoxFuture;
use protocol::Part;
use tokio::time::{Instant, sleep_until};

use super::{
    McpServer, Tool,
    answer::{answer, answers},
    messages::{Answer, CallError, InputRequired, Progress, RemoteTask, Response, TaskUpdate},
    parked::ParkedCall,
    reply::{self, State},
    sdk::{Asked, Event, OpenCall, Request},
    server::{Endpoint, Lease, Server},
    slots::Unavailable,
};
use crate::backend::{Backend, Call, Failure, Reply};

/// Minimum time between two progress messages of a call; of the notices between them, the last one is reported.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
/// How long before the turn's deadline a call fails with a text of its own.
const DEADLINE_MARGIN: Duration = Duration::from_millis(500);
/// How often a call looks for another process when its own has ended before anything was sent.
const MAX_ENDPOINTS: usize = 3;
/// How often a server may ask for the same call again without asking for anything.
const MAX_ROUNDS: u32 = 10;
const ROUND_DELAY: Duration = Duration::from_millis(100);
const INVALID_PARAMS: i32 = -32602;

/// The backend of one tool.
pub(super) struct McpTool {
    pub(super) server: McpServer,
    pub(super) tool: String,
}

/// What is sent with the call after the server has asked for input.
#[derive(Default)]
struct Answers {
    answers: Vec<(String, Answer)>,
    state: Option<String>,
}

impl Backend for McpTool {
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>> {
        Box::pin(async move { self.run(&call).await })
    }
}

impl McpTool {
    async fn run(&self, call: &Call<'_>) -> AgentResult<Reply> {
        let message = &call.turn.message;
        match call.state::<State>()? {
            None | Some(State::SendAgain) => self.send(call, Answers::default()).await,
            Some(State::Open { token }) => self.resume(call, &token).await,
            Some(State::Input { requests, state }) => match answers(message, &requests) {
                Ok(answers) => self.send(call, Answers { answers, state }).await,
                Err(problem) => {
                    let kept = State::Input { requests: requests.clone(), state };
                    Ok(reply::ask(self.name(), &requests, Some(&problem), &kept))
                }
            },
            Some(State::Task { id, requests }) => match answers(message, &requests) {
                Ok(answers) => self.continue_task(call, &id, answers).await,
                Err(problem) => {
                    let kept = State::Task { id, requests: requests.clone() };
                    Ok(reply::ask(self.name(), &requests, Some(&problem), &kept))
                }
            },
        }
    }

    /// Sends the call, again if the server only asks for that.
    async fn send(&self, call: &Call<'_>, mut with: Answers) -> AgentResult<Reply> {
        for round in 1..=MAX_ROUNDS {
            let (open, lease) = match self.open(call, &mut with).await {
                Ok(opened) => opened,
                Err(reply) => return Ok(reply),
            };
            match self.drive(call, open, lease).await? {
                Driven::Ended(reply) => return Ok(reply),
                Driven::SendAgain(state) => with.state = Some(state),
            }
            tokio::time::sleep(ROUND_DELAY * round).await;
        }
        Ok(Reply::fail(format!("the MCP server {} asked for the same call {MAX_ROUNDS} times", self.name())))
    }

    /// Waits for a process and sends the call to it. The error is the reply when nothing was sent.
    async fn open(&self, call: &Call<'_>, with: &mut Answers) -> Result<(OpenCall, Lease), Reply> {
        for _ in 0..MAX_ENDPOINTS {
            let mut lease = self.lease(call).await?;
            let request = Request {
                tool: &self.tool,
                arguments: call.arguments,
                meta: vec![
                    ("a2ad/idempotencyKey", call.idempotency_key().to_owned()),
                    ("a2ad/attempt", call.attempt().to_string()),
                    ("a2ad/taskId", call.turn.task_id.to_string()),
                ],
                answers: with.answers.clone(),
                state: with.state.clone(),
            };
            lease.call_begins();
            let endpoint = Arc::clone(lease.endpoint());
            let sent = tokio::select! {
                sent = endpoint.connection.call(request) => sent,
                () = call.cancelled().cancelled() => return Err(cancelled()),
                () = sleep_until(deadline(call).min(self.silence_end())) => return Err(self.timed_out(call)),
            };
            match sent {
                Ok(open) => return Ok((open, lease)),
                Err(CallError::Closed) => {}
                Err(error) => {
                    lease.call_ended();
                    return Err(reply::reply(self.name(), Err(error)));
                }
            }
        }
        Err(Reply::retry(format!("the MCP server {} ends whenever it is called", self.name())))
    }

    async fn lease(&self, call: &Call<'_>) -> Result<Lease, Reply> {
        let (server, name) = (self.server(), self.name());
        let result = tokio::select! {
            result = server.lease(&call.turn.context_id) => result,
            () = call.cancelled().cancelled() => return Err(cancelled()),
            () = sleep_until(deadline(call)) => {
                let max = server.config.pool.max;
                let text = format!(
                    "all processes of the MCP server {name} were busy until the deadline; pool.max is {max}"
                );
                return Err(Reply::fail(text));
            }
        };
        result.map_err(|unavailable| match unavailable {
            Unavailable::Auth { challenge } => reply::credentials_for(name, &challenge),
            Unavailable::Failed => {
                Reply::retry(format!("the MCP server {name} does not start; try again later"))
            }
            Unavailable::Stopped => Reply::retry(format!("the MCP server {name} is stopped")),
        })
    }

    /// Follows an open call until it ends or asks.
    async fn drive(&self, call: &Call<'_>, mut open: OpenCall, mut lease: Lease) -> AgentResult<Driven> {
        let mut silence_end = self.silence_end();
        let mut reports = Reports::default();
        loop {
            let end = silence_end.min(deadline(call));
            tokio::select! {
                biased;
                () = call.cancelled().cancelled() => return Ok(Driven::Ended(cancelled())),
                event = open.next() => match event {
                    Event::Progress(notice) => {
                        silence_end = self.silence_end();
                        reports.last = Some(notice);
                    }
                    Event::Asked(asked) => {
                        reports.send(call).await?;
                        return Ok(Driven::Ended(self.park(call, ParkedCall { open, asked, lease })));
                    }
                    Event::Ended(result) => {
                        reports.send(call).await?;
                        lease.call_ended();
                        return self.ended(call, result, lease).await;
                    }
                },
                () = sleep_until(reports.next_at()), if reports.last.is_some() => reports.send(call).await?,
                () = sleep_until(end) => {
                    self.server().probe(Arc::clone(lease.endpoint()));
                    return Ok(Driven::Ended(self.timed_out(call)));
                }
            }
        }
    }

    async fn ended(
        &self,
        call: &Call<'_>,
        result: Result<Response, CallError>,
        lease: Lease,
    ) -> AgentResult<Driven> {
        let reply = match result {
            Ok(Response::Task(task)) => self.follow_task(call, task, lease).await?,
            Ok(Response::InputRequired(InputRequired { requests, state: Some(state) }))
                if requests.is_empty() =>
            {
                return Ok(Driven::SendAgain(state));
            }
            Err(CallError::Closed) => self.interrupted(lease.endpoint()).await,
            Err(CallError::Server { code: INVALID_PARAMS, message, data }) => {
                // The arguments fit the schema that we know, which may be an old one.
                self.server().refresh_tools();
                reply::reply(self.name(), Err(CallError::Server { code: INVALID_PARAMS, message, data }))
            }
            result => reply::reply(self.name(), result),
        };
        Ok(Driven::Ended(reply))
    }

    /// The call stays open while the client answers.
    fn park(&self, call: &Call<'_>, parked: ParkedCall) -> Reply {
        self.park_again(call, parked, None)
    }

    fn park_again(&self, call: &Call<'_>, parked: ParkedCall, problem: Option<&str>) -> Reply {
        let requests = vec![(String::new(), parked.asked.question.clone())];
        let token = self.server().parked.park(call.turn.task_id.clone(), parked);
        reply::ask(self.name(), &requests, problem, &State::Open { token })
    }

    /// Answers the question of an open call and follows it further.
    async fn resume(&self, call: &Call<'_>, token: &str) -> AgentResult<Reply> {
        let Some(parked) = self.server().parked.take(&call.turn.task_id, token) else {
            let text = format!("the MCP server {} was restarted while it waited for the answer", self.name());
            let (parts, reason) = (vec![Part::text(text)], Some("elicitation_lost"));
            return Ok(Reply::Failed(Failure { parts, reason, retryable: false }));
        };
        let given = match answer(&call.turn.message, &parked.asked.question) {
            Ok(given) => given,
            Err(problem) => return Ok(self.park_again(call, parked, Some(&problem))),
        };
        let ParkedCall { open, asked: Asked { answer, .. }, lease } = parked;
        // If the server no longer waits for it, the end of the call follows.
        let _ = answer.send(given);
        match self.drive(call, open, lease).await? {
            Driven::Ended(reply) => Ok(reply),
            Driven::SendAgain(state) => {
                self.send(call, Answers { state: Some(state), ..Answers::default() }).await
            }
        }
    }

    async fn continue_task(
        &self,
        call: &Call<'_>,
        id: &str,
        answers: Vec<(String, Answer)>,
    ) -> AgentResult<Reply> {
        let lease = match self.lease(call).await {
            Ok(lease) => lease,
            Err(reply) => return Ok(reply),
        };
        if let Err(error) = lease.endpoint().connection.answer_task(id, answers).await {
            return Ok(reply::reply(self.name(), Err(error)));
        }
        let task = RemoteTask { id: id.to_owned(), poll_interval: Duration::ZERO };
        self.follow_task(call, task, lease).await
    }

    /// Polls a task of the server until it ends or asks.
    async fn follow_task(&self, call: &Call<'_>, task: RemoteTask, lease: Lease) -> AgentResult<Reply> {
        let RemoteTask { id, mut poll_interval } = task;
        let connection = &lease.endpoint().connection;
        let mut reported = None;
        loop {
            let next = Instant::now() + poll_interval;
            tokio::select! {
                () = sleep_until(next.min(deadline(call))) => {}
                () = call.cancelled().cancelled() => {
                    connection.cancel_task(&id).await;
                    return Ok(cancelled());
                }
            }
            if Instant::now() >= deadline(call) {
                connection.cancel_task(&id).await;
                return Ok(self.timed_out(call));
            }
            match connection.task(&id).await {
                Ok(TaskUpdate::Working { message, poll_interval: interval }) => {
                    poll_interval = interval;
                    if let Some(text) = message.filter(|text| reported.as_ref() != Some(text)) {
                        call.progress(vec![Part::text(&text)]).await?;
                        reported = Some(text);
                    }
                }
                Ok(TaskUpdate::Asks(requests)) => {
                    let kept = State::Task { id, requests: requests.clone() };
                    return Ok(reply::ask(self.name(), &requests, None, &kept));
                }
                Ok(TaskUpdate::Ended(result)) => {
                    return Ok(reply::reply(self.name(), result.map(Response::Complete)));
                }
                Ok(TaskUpdate::Cancelled) => {
                    return Ok(Reply::fail(format!("the MCP server {} has cancelled the task", self.name())));
                }
                Err(CallError::Closed) => return Ok(self.interrupted(lease.endpoint()).await),
                Err(error) => return Ok(reply::reply(self.name(), Err(error))),
            }
        }
    }

    /// The server ended in the middle of the call: whether it may be repeated depends on the tool.
    async fn interrupted(&self, endpoint: &Endpoint) -> Reply {
        let line = endpoint.last_line().await;
        let mut text = format!("the MCP server {} ended before it answered", self.name());
        if !line.is_empty() {
            text = format!("{text}; its last output: {line}");
        }
        let repeatable = self.server().tool(&self.tool).as_ref().map(Tool::on_crash) == Some(OnCrash::Retry);
        if repeatable { Reply::retry(text) } else { Reply::fail(text) }
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

/// How following an open call ended.
enum Driven {
    Ended(Reply),
    /// The server wants the same call again, with this state.
    SendAgain(String),
}

/// The progress messages of a call.
#[derive(Default)]
struct Reports {
    /// Not sent yet.
    last: Option<Progress>,
    sent_at: Option<Instant>,
}

impl Reports {
    fn next_at(&self) -> Instant {
        self.sent_at.map_or_else(Instant::now, |at| at + PROGRESS_INTERVAL)
    }

    async fn send(&mut self, call: &Call<'_>) -> AgentResult<()> {
        if let Some(notice) = self.last.take() {
            self.sent_at = Some(Instant::now());
            call.progress(reply::progress(&notice)).await?;
        }
        Ok(())
    }
}

fn deadline(call: &Call<'_>) -> Instant {
    call.turn.deadline.checked_sub(DEADLINE_MARGIN).unwrap_or(call.turn.deadline)
}

/// The outcome of a cancelled run is ignored.
fn cancelled() -> Reply {
    Reply::fail("the call was cancelled")
}

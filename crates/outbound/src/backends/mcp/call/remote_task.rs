//! A call that the server continues as a task of its own, which is polled.

use std::time::Duration;

use engine::AgentResult;
use protocol::Part;
use tokio::time::{Instant, sleep_until};

use super::{McpTool, cancelled, deadline};
use crate::{
    backend::{Call, Reply},
    backends::mcp::{
        answer::unanswerable,
        messages::{Answer, CallError, RemoteTask, Response, TaskUpdate},
        reply::{self, State},
        server::Lease,
    },
};

/// Minimum time until the next poll after one that did not reach the server.
const POLL_AGAIN: Duration = Duration::from_secs(1);

impl McpTool {
    /// Asks for credentials; the next turn follows the same task.
    fn credentials_for_task(&self, id: String, challenge: &str) -> Reply {
        let kept = State::Task { id, requests: Vec::new() };
        reply::credentials_for(self.name(), challenge, &kept)
    }

    /// Answers the questions of a task and follows it further.
    pub(super) async fn answer_task(
        &self,
        call: &Call<'_>,
        id: &str,
        answers: Vec<(String, Answer)>,
    ) -> AgentResult<Reply> {
        let lease = match self.lease(call).await {
            Ok(lease) => lease,
            Err(reply) => return Ok(reply),
        };
        let answered = tokio::select! {
            answered = lease.endpoint().connection.answer_task(id, answers) => answered,
            () = call.cancelled().cancelled() => return Ok(cancelled()),
        };
        match answered {
            Ok(()) => {}
            Err(CallError::Auth { challenge }) => {
                return Ok(self.credentials_for_task(id.to_owned(), &challenge));
            }
            Err(error) => return Ok(reply::reply(self.name(), Err(error))),
        }
        let task = RemoteTask { id: id.to_owned(), poll_interval: Duration::ZERO };
        self.follow_task(call, task, lease).await
    }

    /// Polls a task of the server until it ends or asks.
    pub(super) async fn follow_task(
        &self,
        call: &Call<'_>,
        task: RemoteTask,
        lease: Lease,
    ) -> AgentResult<Reply> {
        let RemoteTask { id, mut poll_interval } = task;
        let connection = &lease.endpoint().connection;
        let mut reported = None;
        loop {
            let next = Instant::now() + poll_interval;
            let poll = async {
                sleep_until(next).await;
                connection.task(&id).await
            };
            let update = tokio::select! {
                update = poll => update,
                () = call.cancelled().cancelled() => {
                    connection.cancel_task(&id).await;
                    return Ok(cancelled());
                }
                () = sleep_until(deadline(call)) => {
                    connection.cancel_task(&id).await;
                    return Ok(self.timed_out(call));
                }
            };
            match update {
                Ok(TaskUpdate::Working { message, poll_interval: interval }) => {
                    poll_interval = interval;
                    if let Some(text) = message.filter(|text| reported.as_ref() != Some(text)) {
                        call.progress(vec![Part::text(&text)]).await?;
                        reported = Some(text);
                    }
                }
                Ok(TaskUpdate::Asks(requests)) => {
                    if let Some(problem) = unanswerable(requests.iter().map(|(_, question)| question)) {
                        connection.cancel_task(&id).await;
                        return Ok(reply::not_asked(self.name(), &problem));
                    }
                    let kept = State::Task { id, requests: requests.clone() };
                    return Ok(reply::ask(self.name(), &requests, None, &kept));
                }
                Ok(TaskUpdate::Ended(result)) => {
                    return Ok(reply::reply(self.name(), result.map(Response::Complete)));
                }
                Ok(TaskUpdate::Cancelled) => {
                    return Ok(Reply::fail(format!("the MCP server {} has cancelled the task", self.name())));
                }
                // The server works on the call, so it is neither failed nor sent again because of one poll.
                Err(CallError::NotSent | CallError::Http { status: 429 | 503 }) => {
                    poll_interval = poll_interval.max(POLL_AGAIN);
                }
                Err(CallError::Auth { challenge }) => return Ok(self.credentials_for_task(id, &challenge)),
                Err(CallError::Closed) => return Ok(self.interrupted(call)),
                Err(error) => return Ok(reply::reply(self.name(), Err(error))),
            }
        }
    }
}

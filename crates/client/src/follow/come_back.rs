//! What is asked of the agent again: another stream, or the task itself.

use std::time::Duration;

use protocol::{Dialect, Event, GetTask, Operation, Reply, SubscribeToTask, Task, TaskId};

use super::{FIRST_POLL, Follow, Opening, State};
use crate::Error;

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(3);

impl Follow<'_> {
    /// Stays away for a while; a message whose fate is unknown is not sent again to agents that would take it for
    /// another.
    pub(super) fn lost(&mut self, retry: Option<Duration>, error: Error) -> Result<(), Error> {
        if self.task_id.is_none() && !self.replays {
            return Err(error);
        }
        let half_shown = self.client.dialect() == Dialect::Draft
            && matches!(self.opening, Opening::Send)
            && !self.moved_on;
        if half_shown {
            // There a task is shown in several frames of one number; the last of them may be missing.
            self.cursor = None;
        }
        let pause = retry.unwrap_or_else(|| (FIRST_RETRY * 2_u32.pow(self.attempt.min(8))).min(LAST_RETRY));
        self.attempt += 1;
        self.state = State::Away(pause.min(LAST_RETRY));
        Ok(())
    }

    /// Opens another stream. Says whether the agent could be reached.
    pub(super) async fn come_back(&mut self) -> Result<bool, Error> {
        self.came_back = true;
        let (opening, opened) = match (&self.task_id, self.cursor) {
            (None, _) => {
                let operation = Operation::SendStreamingMessage(self.req.clone());
                (Opening::Send, self.client.stream(operation).await)
            }
            (Some(id), Some(cursor)) => {
                (Opening::After(cursor), self.client.resume(subscribe(id), cursor).await)
            }
            (Some(_), None) if self.client.dialect() == Dialect::Draft => {
                self.state = State::Polling(FIRST_POLL);
                return Ok(true);
            }
            (Some(id), None) => (Opening::Subscribe, self.client.stream(subscribe(id)).await),
        };
        match opened {
            Ok(stream) => {
                (self.opening, self.shown_at, self.shown, self.moved_on) = (opening, None, None, false);
                self.state = State::Open(stream);
                Ok(true)
            }
            Err(error) if error.is_passing() => self.lost(None, error).map(|()| false),
            // Over by now, or not to be subscribed to.
            Err(error) if error.is_unsupported() => {
                self.state = State::Polling(FIRST_POLL);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the task and tells what is new. Says whether the agent could be reached.
    pub(super) async fn poll(&mut self, pause: Duration) -> Result<bool, Error> {
        let read = self.read_task().await;
        self.state = State::Polling(pause);
        match read {
            Err(error) if error.is_passing() => Ok(false),
            Err(error) => Err(error),
            Ok(None) => Ok(true),
            Ok(Some(task)) => {
                self.tell_missing(&task);
                let update = self.seen.new_status(&task);
                let settled = task.status.state.is_settled();
                self.seen.take(&Event::Task(task));
                self.told.extend(update.map(Event::Status));
                if settled {
                    self.state = State::Done;
                }
                Ok(true)
            }
        }
    }

    /// Tells what the agent keeps and has not been heard. What contradicts it was told and stays told.
    pub(super) async fn check_the_end(&mut self) {
        let Ok(Some(task)) = self.read_task().await else { return };
        for update in self.seen.missing(&task) {
            if update.append || !self.seen.knows(&update.artifact.id) {
                self.tell(Event::Artifact(update));
            }
        }
    }

    pub(super) async fn read_task(&self) -> Result<Option<Task>, Error> {
        let Some(id) = &self.task_id else { return Ok(None) };
        let get = GetTask { id: id.clone(), history_length: self.req.history_length, tenant: None };
        match self.client.call(Operation::GetTask(get)).await? {
            Reply::Task(task) => Ok(Some(task)),
            _ => Ok(None),
        }
    }
}

fn subscribe(id: &TaskId) -> Operation {
    Operation::SubscribeToTask(SubscribeToTask { id: id.clone(), tenant: None })
}

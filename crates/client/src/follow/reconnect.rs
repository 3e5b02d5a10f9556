//! Reconnecting: requests another stream, or reads the task.

use std::time::Duration;

use protocol::{Event, GetTask, Task};

use super::{FIRST_POLL, Follow, Opening, State};
use crate::Error;

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(3);

impl Follow<'_> {
    /// Schedules a reconnect with backoff. If the fate of the message is unknown, it is not sent again to an
    /// agent that would treat it as a new one.
    pub(super) fn lost(&mut self, retry: Option<Duration>, error: Error) -> Result<(), Error> {
        if self.task_id.is_none() && !self.deduplicates {
            return Err(error);
        }
        let snapshot_incomplete = !self.client.dialect().rules().streams_whole_tasks
            && matches!(self.opening, Opening::Send)
            && !self.past_snapshot;
        if snapshot_incomplete {
            // The frames of a split snapshot have one sequence number; the last of them may be missing.
            self.cursor = None;
        }
        let pause = retry.unwrap_or_else(|| (FIRST_RETRY * 2_u32.pow(self.attempt.min(8))).min(LAST_RETRY));
        self.attempt += 1;
        self.state = State::Disconnected(pause.min(LAST_RETRY));
        Ok(())
    }

    /// Opens another stream. Returns whether the agent could be reached.
    pub(super) async fn reconnect(&mut self) -> Result<bool, Error> {
        self.reconnected = true;
        let (opening, opened) = match (&self.task_id, self.cursor) {
            (None, _) => (Opening::Send, self.client.stream(self.req.clone()).await),
            (Some(id), Some(cursor)) => (Opening::After(cursor), self.client.resume(id, cursor).await),
            (Some(_), None) if !self.client.dialect().rules().streams_whole_tasks => {
                self.state = State::Polling(FIRST_POLL);
                return Ok(true);
            }
            (Some(id), None) => (Opening::Subscribe, self.client.subscribe(id).await),
        };
        match opened {
            Ok(stream) => {
                (self.opening, self.snapshot_seq, self.snapshot_status, self.past_snapshot) =
                    (opening, None, None, false);
                self.state = State::Open(stream);
                Ok(true)
            }
            Err(error) if error.is_retryable() => self.lost(None, error).map(|()| false),
            // The task is finished, or subscribing is not supported.
            Err(error) if error.is_unsupported() => {
                self.state = State::Polling(FIRST_POLL);
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads the task and delivers what is new. Returns whether the agent could be reached.
    pub(super) async fn poll(&mut self, pause: Duration) -> Result<bool, Error> {
        let read = self.read_task().await;
        self.state = State::Polling(pause);
        match read {
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(error),
            Ok(None) => Ok(true),
            Ok(Some(task)) => {
                self.deliver_missing(&task);
                let update = self.delivered.new_status(&task);
                let settled = task.status.state.is_settled();
                self.delivered.apply(&Event::Task(task));
                self.pending.extend(update.map(Event::Status));
                if settled {
                    self.state = State::Done;
                }
                Ok(true)
            }
        }
    }

    /// Delivers artifacts that the agent has stored but not sent. Events already delivered are not revised.
    pub(super) async fn deliver_missing_artifacts(&mut self) {
        let Ok(Some(task)) = self.read_task().await else { return };
        for update in self.delivered.difference(&task) {
            if update.append || !self.delivered.has_artifact(&update.artifact.id) {
                self.deliver(Event::Artifact(update));
            }
        }
    }

    pub(super) async fn read_task(&self) -> Result<Option<Task>, Error> {
        let Some(id) = &self.task_id else { return Ok(None) };
        let get = GetTask { history_length: self.req.history_length, ..GetTask::from(id) };
        self.client.get_task(get).await.map(Some)
    }
}

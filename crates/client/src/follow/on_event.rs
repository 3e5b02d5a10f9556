//! Handling of received frames. No requests are made here.

use std::time::Duration;

use protocol::{
    Event, Task,
    json::read::{Node, Path},
    model::StatusUpdate,
};

use super::{FIRST_POLL, Follow, Opening, State};
use crate::{Error, delivered_task::status_of};

impl Follow<'_> {
    pub(super) fn on_event(&mut self, seq: Option<u64>, event: Event) {
        let first = self.snapshot_seq.is_none();
        let snapshot_seq = *self.snapshot_seq.get_or_insert(seq);
        if first {
            self.on_first_event(event);
        } else {
            // After the snapshot the agent may repeat events that were delivered before the reconnect.
            if matches!((self.opening, seq), (Opening::After(last), Some(seq)) if seq <= last) {
                return;
            }
            // The snapshot showed the task before this event.
            self.snapshot_status = None;
            self.past_snapshot |= seq > snapshot_seq;
            self.attempt = 0;
            self.on_later_event(event);
        }
        self.cursor = self.cursor.max(seq);
    }

    fn on_first_event(&mut self, event: Event) {
        let is_split = !self.client.dialect().rules().streams_whole_tasks;
        match (event, self.opening) {
            (event @ (Event::Task(_) | Event::Message(_)), Opening::Send) => self.on_later_event(event),
            // A split snapshot starts with the status.
            (event @ Event::Status(_), Opening::Send) if is_split => self.deliver(event),
            (Event::Status(update), Opening::After(_)) if is_split => {
                self.snapshot_status = Some(update.status);
            }
            (Event::Task(task), Opening::After(_)) if !has_gap(&task) => {
                self.deliver_missing(&task);
                self.snapshot_status = Some(task.status);
            }
            (Event::Task(task), _) => {
                self.deliver_missing(&task);
                if let Some(update) = self.delivered.new_status(&task) {
                    self.on_status(update);
                }
            }
            (event, Opening::Send) => self.on_later_event(event),
            (Event::Message(message), _) => self.on_later_event(Event::Message(message)),
            (Event::Status(_) | Event::Artifact(_), _) => self.state = State::Polling(FIRST_POLL),
        }
    }

    fn on_later_event(&mut self, event: Event) {
        match event {
            Event::Status(update) => self.on_status(update),
            Event::Message(message) => {
                self.deliver(Event::Message(message));
                self.state = State::Done;
            }
            event => self.deliver(event),
        }
    }

    fn on_status(&mut self, update: StatusUpdate) {
        if !update.status.state.is_settled() {
            self.deliver(Event::Status(update));
        } else if self.reconnected {
            self.state = State::Ending(update);
        } else {
            self.deliver(Event::Status(update));
            self.state = State::Done;
        }
    }

    /// The agent has ended the stream. Returns whether to reconnect.
    pub(super) fn ended(&mut self, retry: Option<Duration>) -> Result<bool, Error> {
        if let (Some(status), Some(task)) = (self.snapshot_status.take(), self.delivered.task())
            && status.state.is_settled()
        {
            self.state = State::Ending(status_of(task, status));
            return Ok(false);
        }
        if self.delivered.status().is_some_and(|status| status.state.is_settled()) {
            self.state = State::Done;
            return Ok(false);
        }
        let problem = "the agent ended the stream before the task was settled";
        self.lost(retry, self.client.lost(problem))?;
        Ok(true)
    }
}

/// The agent cannot replay the missed events and sends a snapshot of the whole task instead.
fn has_gap(task: &Task) -> bool {
    let gap = task.metadata.as_ref().and_then(|metadata| {
        Node::new(metadata.as_raw(), &Path::Root).object().ok()?.flag("gap").ok().flatten()
    });
    gap.unwrap_or_default()
}

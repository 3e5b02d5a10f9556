//! What each frame of a stream means for whoever follows. Nothing is asked of the agent here.

use std::time::Duration;

use protocol::{
    Dialect, Event, Task,
    json::read::{Node, Path},
    model::StatusUpdate,
};

use super::{FIRST_POLL, Follow, Opening, State};
use crate::{Error, seen::status_of};

impl Follow<'_> {
    pub(super) fn hear(&mut self, seq: Option<u64>, event: Event) {
        let first = self.shown_at.is_none();
        let shown_at = *self.shown_at.get_or_insert(seq);
        if first {
            self.hear_first(event);
        } else {
            // What was told before the break may be repeated behind the opening.
            if matches!((self.opening, seq), (Opening::After(last), Some(seq)) if seq <= last) {
                return;
            }
            // The task was shown as of the event before this one.
            self.shown = None;
            self.moved_on |= seq > shown_at;
            self.attempt = 0;
            self.hear_more(event);
        }
        self.cursor = self.cursor.max(seq);
    }

    fn hear_first(&mut self, event: Event) {
        let draft = self.client.dialect() == Dialect::Draft;
        match (event, self.opening) {
            (event @ (Event::Task(_) | Event::Message(_)), Opening::Send) => self.hear_more(event),
            // In the draft the status is all that can be shown of a task.
            (event @ Event::Status(_), Opening::Send) if draft => self.tell(event),
            (Event::Status(update), Opening::After(_)) if draft => self.shown = Some(update.status),
            (Event::Task(task), Opening::After(_)) if !has_gap(&task) => {
                self.tell_missing(&task);
                self.shown = Some(task.status);
            }
            (Event::Task(task), _) => {
                self.tell_missing(&task);
                if let Some(update) = self.seen.new_status(&task) {
                    self.hear_status(update);
                }
            }
            (event, Opening::Send) => self.hear_more(event),
            (Event::Message(message), _) => self.hear_more(Event::Message(message)),
            (Event::Status(_) | Event::Artifact(_), _) => self.state = State::Polling(FIRST_POLL),
        }
    }

    fn hear_more(&mut self, event: Event) {
        match event {
            Event::Status(update) => self.hear_status(update),
            Event::Message(message) => {
                self.tell(Event::Message(message));
                self.state = State::Done;
            }
            event => self.tell(event),
        }
    }

    fn hear_status(&mut self, update: StatusUpdate) {
        if !update.status.state.is_settled() {
            self.tell(Event::Status(update));
        } else if self.came_back {
            self.state = State::Ending(update);
        } else {
            self.tell(Event::Status(update));
            self.state = State::Done;
        }
    }

    /// The agent has ended the stream. Says whether it must be taken up again.
    pub(super) fn ended(&mut self, retry: Option<Duration>) -> Result<bool, Error> {
        if let (Some(status), Some(task)) = (self.shown.take(), self.seen.task())
            && status.state.is_settled()
        {
            self.state = State::Ending(status_of(task, status));
            return Ok(false);
        }
        if self.seen.status().is_some_and(|status| status.state.is_settled()) {
            self.state = State::Done;
            return Ok(false);
        }
        self.lost(retry, Error::transport("the agent ended the stream before the task was settled"))?;
        Ok(true)
    }
}

/// The agent says that it cannot tell what came since: what it shows is the whole task.
fn has_gap(task: &Task) -> bool {
    let gap = task.metadata.as_ref().and_then(|metadata| {
        Node::new(metadata.as_raw(), &Path::Root).object().ok()?.flag("gap").ok().flatten()
    });
    gap.unwrap_or_default()
}

//! Turns an agent's updates into events.

use bytes::Bytes;
use protocol::{Event, Message, TaskState, Timestamp, model::ArtifactUpdate};

use super::{CurrentState, PublicIds};
use crate::{
    agent::{Outcome, Update, authentication},
    store::{JournalChange, Visibility},
};

/// The events to record and the resulting state.
#[derive(Clone, Debug)]
pub struct Advanced {
    /// Events in log order.
    pub events: Vec<Event>,
    /// State and visibility after the events.
    pub current: CurrentState,
    /// The last checkpoint among the updates.
    pub saved: Option<Bytes>,
    /// The steps among the updates.
    pub journal: JournalChange,
    /// The turn has ended; later updates are dropped.
    pub ended: bool,
}

impl Advanced {
    /// Whether there is nothing to record.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.saved.is_none() && self.journal == JournalChange::Keep
    }
}

/// Turns updates, and the outcome if there is one, into events.
///
/// The first update decides the task's visibility for good: a bare message hides it, anything else makes it
/// visible. Within a turn nothing follows the event that ends it.
pub fn advance(
    names: &PublicIds,
    current: CurrentState,
    updates: Vec<Update>,
    outcome: Option<Outcome>,
    now: Timestamp,
) -> Advanced {
    let out =
        Advanced { events: Vec::new(), current, saved: None, journal: JournalChange::Keep, ended: false };
    let mut recorder = Recorder { names, now, out };
    for update in updates {
        if recorder.out.ended {
            break;
        }
        recorder.update(update);
    }
    if let (false, Some(outcome)) = (recorder.out.ended, outcome) {
        recorder.end(outcome);
    }
    recorder.out
}

struct Recorder<'a> {
    names: &'a PublicIds,
    now: Timestamp,
    out: Advanced,
}

impl Recorder<'_> {
    fn update(&mut self, update: Update) {
        match update {
            Update::Working(None) if self.out.current.state == TaskState::Working => self.make_visible(),
            Update::Working(message) => self.status(TaskState::Working, message),
            Update::Artifact { artifact, append, last } => {
                if self.out.current.state == TaskState::Submitted {
                    self.status(TaskState::Working, None);
                }
                self.make_visible();
                self.out.events.push(Event::Artifact(ArtifactUpdate {
                    task_id: self.names.task.clone(),
                    context_id: self.names.context.clone(),
                    artifact,
                    append,
                    last_chunk: last,
                    metadata: None,
                }));
            }
            Update::Save(bytes) => self.out.saved = Some(bytes),
            Update::Step(step) => match &mut self.out.journal {
                JournalChange::Write(steps) => steps.push(step),
                none => *none = JournalChange::Write(vec![step]),
            },
            Update::Message(message) if self.out.current.visibility == Visibility::Undecided => {
                // The reply is a bare message: the task stays hidden, so its id is removed.
                let message = Message { task_id: None, ..self.names.assign(message) };
                self.out.current =
                    CurrentState { state: TaskState::Completed, visibility: Visibility::Hidden };
                self.out.events.push(Event::Message(message));
                self.out.ended = true;
            }
            Update::Message(message) => self.settle(TaskState::Completed, Some(message)),
        }
    }

    fn end(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Done { artifacts, message } => {
                for artifact in artifacts {
                    self.update(Update::Artifact { artifact, append: false, last: true });
                }
                self.settle(TaskState::Completed, message);
            }
            Outcome::Message(message) => self.update(Update::Message(message)),
            Outcome::Failed { message, .. } => self.settle(TaskState::Failed, message),
            Outcome::Rejected { message } => self.settle(TaskState::Rejected, message),
            Outcome::NeedInput { message } => self.settle(TaskState::InputRequired, Some(message)),
            Outcome::NeedAuth { message } => {
                self.settle(TaskState::AuthRequired, Some(authentication::with_schemes(message)));
            }
            Outcome::With { updates, outcome } => {
                for update in updates {
                    if !self.out.ended {
                        self.update(update);
                    }
                }
                if !self.out.ended {
                    self.end(*outcome);
                }
            }
        }
    }

    fn settle(&mut self, state: TaskState, message: Option<Message>) {
        self.status(state, message);
        self.out.ended = true;
    }

    fn status(&mut self, state: TaskState, message: Option<Message>) {
        self.make_visible();
        self.out.current.state = state;
        let message = message.map(|message| self.names.assign(message));
        self.out.events.push(self.names.status(state, message, self.now));
    }

    fn make_visible(&mut self) {
        self.out.current.visibility = Visibility::Visible;
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Artifact, Part, Role};

    use super::*;

    fn run(visibility: Visibility, updates: Vec<Update>, outcome: Option<Outcome>) -> Advanced {
        let names = PublicIds { task: "t".into(), context: "c".into() };
        let current = CurrentState { state: TaskState::Submitted, visibility };
        advance(&names, current, updates, outcome, Timestamp::from_millis(0))
    }

    fn message() -> Message {
        Message::new("m", Role::Agent, vec![Part::text("hi")])
    }

    fn artifact() -> Update {
        Update::Artifact { artifact: Artifact::new("a", vec![Part::text("x")]), append: false, last: true }
    }

    #[test]
    fn message_as_first_update_hides_the_task() {
        let updates =
            run(Visibility::Undecided, vec![Update::Message(message()), artifact()], Some(Outcome::done()));
        assert!(matches!(updates.events.as_slice(), [Event::Message(_)]));
        assert_eq!(
            updates.current,
            CurrentState { state: TaskState::Completed, visibility: Visibility::Hidden }
        );
    }

    #[test]
    fn message_after_another_update_completes_the_task() {
        let updates =
            run(Visibility::Undecided, vec![Update::Working(None), Update::Message(message())], None);
        assert!(
            matches!(&updates.events[1], Event::Status(update) if update.status.message.as_ref().is_some_and(|sent| {
                sent.parts == message().parts && sent.task_id.as_ref().is_some_and(|id| id.as_str() == "t")
            }))
        );
        assert_eq!(
            updates.current,
            CurrentState { state: TaskState::Completed, visibility: Visibility::Visible }
        );
        assert!(updates.ended);
    }

    #[test]
    fn artifact_of_a_submitted_task_is_preceded_by_working() {
        let updates = run(Visibility::Visible, vec![artifact()], Some(Outcome::done()));
        let states: Vec<_> = updates
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Status(update) => Some(update.status.state),
                _ => None,
            })
            .collect();
        assert_eq!(states, [TaskState::Working, TaskState::Completed]);
    }
}

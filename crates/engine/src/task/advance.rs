//! What an agent says becomes what is recorded.

use bytes::Bytes;
use protocol::{Event, Message, TaskState, Timestamp, model::ArtifactUpdate};

use super::{Names, Standing};
use crate::{
    agent::{Outcome, Update},
    store::Visibility,
};

/// What is recorded, and where the task stands then.
#[derive(Debug)]
pub struct Advanced {
    /// The events, in order.
    pub events: Vec<Event>,
    /// Where the task stands after them.
    pub standing: Standing,
    /// The last thing saved.
    pub saved: Option<Bytes>,
    /// The turn is over; whatever else was said is dropped.
    pub ended: bool,
}

/// Turns updates, and the outcome when there is one, into events.
///
/// The first update decides whether there is a task for clients to see: a bare message hides it for good,
/// anything else shows it for good. Within a turn nothing follows the event that ends it.
pub fn advance(
    names: &Names,
    standing: Standing,
    said: Vec<Update>,
    outcome: Option<Outcome>,
    now: Timestamp,
) -> Advanced {
    let mut turn =
        Recording { names, now, out: Advanced { events: Vec::new(), standing, saved: None, ended: false } };
    for update in said {
        if turn.out.ended {
            break;
        }
        turn.update(update);
    }
    if let (false, Some(outcome)) = (turn.out.ended, outcome) {
        turn.end(outcome);
    }
    turn.out
}

struct Recording<'a> {
    names: &'a Names,
    now: Timestamp,
    out: Advanced,
}

impl Recording<'_> {
    fn update(&mut self, update: Update) {
        match update {
            Update::Working(None) if self.out.standing.state == TaskState::Working => self.show(),
            Update::Working(message) => self.status(TaskState::Working, message),
            Update::Artifact { artifact, append, last } => {
                if self.out.standing.state == TaskState::Submitted {
                    self.status(TaskState::Working, None);
                }
                self.show();
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
            Update::Message(message) if self.out.standing.visibility == Visibility::Undecided => {
                // A bare answer belongs to no task a client could ask for.
                let message = Message { task_id: None, ..message };
                self.out.standing = Standing { state: TaskState::Completed, visibility: Visibility::Hidden };
                self.out.events.push(Event::Message(message));
                self.out.ended = true;
            }
            Update::Message(message) => self.end(Outcome::Done { message: Some(message) }),
        }
    }

    fn end(&mut self, outcome: Outcome) {
        let (state, message) = match outcome {
            Outcome::Done { message } => (TaskState::Completed, message),
            Outcome::Failed { message, .. } => (TaskState::Failed, message),
            Outcome::Rejected { message } => (TaskState::Rejected, message),
            Outcome::NeedInput { message } => (TaskState::InputRequired, Some(message)),
            Outcome::NeedAuth { message } => (TaskState::AuthRequired, Some(message)),
        };
        self.status(state, message);
        self.out.ended = true;
    }

    fn status(&mut self, state: TaskState, message: Option<Message>) {
        self.show();
        self.out.standing.state = state;
        self.out.events.push(self.names.status(state, message, self.now));
    }

    fn show(&mut self) {
        self.out.standing.visibility = Visibility::Visible;
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Artifact, Part, Role};

    use super::*;

    fn run(visibility: Visibility, said: Vec<Update>, outcome: Option<Outcome>) -> Advanced {
        let names = Names { task: "t".into(), context: "c".into() };
        let standing = Standing { state: TaskState::Submitted, visibility };
        advance(&names, standing, said, outcome, Timestamp::from_millis(0))
    }

    fn message() -> Message {
        Message::new("m", Role::Agent, vec![Part::text("hi")])
    }

    fn artifact() -> Update {
        Update::Artifact { artifact: Artifact::new("a", vec![Part::text("x")]), append: false, last: true }
    }

    #[test]
    fn a_message_said_first_is_no_task() {
        let said =
            run(Visibility::Undecided, vec![Update::Message(message()), artifact()], Some(Outcome::done()));
        assert!(matches!(said.events.as_slice(), [Event::Message(_)]));
        assert_eq!(said.standing, Standing { state: TaskState::Completed, visibility: Visibility::Hidden });
    }

    #[test]
    fn a_message_said_later_completes_the_task() {
        let said = run(Visibility::Undecided, vec![Update::Working(None), Update::Message(message())], None);
        assert!(matches!(&said.events[1], Event::Status(update) if update.status.message == Some(message())));
        assert_eq!(said.standing, Standing { state: TaskState::Completed, visibility: Visibility::Visible });
        assert!(said.ended);
    }

    #[test]
    fn a_bare_working_while_working_is_dropped_but_decides() {
        let said = run(Visibility::Undecided, vec![Update::Working(None), Update::Working(None)], None);
        assert_eq!(said.events.len(), 1);
        assert_eq!(said.standing.visibility, Visibility::Visible);
    }

    #[test]
    fn an_artifact_is_made_while_working() {
        let said = run(Visibility::Visible, vec![artifact()], Some(Outcome::done()));
        let states: Vec<_> = said
            .events
            .iter()
            .filter_map(|event| match event {
                Event::Status(update) => Some(update.status.state),
                _ => None,
            })
            .collect();
        assert_eq!(states, [TaskState::Working, TaskState::Completed]);
    }

    #[test]
    fn saving_decides_nothing() {
        let said = run(Visibility::Undecided, vec![Update::Save(Bytes::from_static(b"1"))], None);
        assert_eq!((said.events.len(), said.standing.visibility), (0, Visibility::Undecided));
        assert_eq!(said.saved.as_deref(), Some(b"1".as_slice()));
    }
}

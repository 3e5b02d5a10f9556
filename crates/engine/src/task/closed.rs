//! Artifacts of turns that are over: nobody changes them any more.

use std::{collections::HashSet, sync::Arc};

use protocol::{ArtifactId, Event, TaskState};

use crate::{
    agent::Update,
    log::{Corrupt, Entry},
};

/// The artifacts a task had when its turn began, and the number of that turn.
#[derive(Clone, Debug, Default)]
pub struct Closed {
    artifacts: HashSet<ArtifactId>,
    turn: i64,
}

impl Closed {
    /// Reads them off the whole log: what was there before the last end of the task.
    pub fn read(log: &[Arc<Entry>], turn: i64) -> Result<Self, Corrupt> {
        let (mut open, mut artifacts) = (HashSet::new(), HashSet::new());
        for entry in log {
            match entry.event()? {
                Event::Artifact(update) => {
                    open.insert(update.artifact.id.clone());
                }
                Event::Status(update) if update.status.state.is_terminal() => artifacts.extend(open.drain()),
                _ => {}
            }
        }
        Ok(Self { artifacts, turn })
    }

    /// Whether a task in this state and turn has any.
    pub fn may_exist(state: TaskState, turn: i64) -> bool {
        turn > 1 || state.is_terminal()
    }

    /// Gives artifacts a new name where the agent uses one that is taken: it makes another of the kind.
    pub(crate) fn keep(&self, said: &mut [Update]) {
        for update in said {
            if let Update::Artifact { artifact, .. } = update
                && self.artifacts.contains(&artifact.id)
            {
                artifact.id = format!("{}-{}", artifact.id, self.turn).into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::{Artifact, Part, Timestamp, model::ArtifactUpdate};

    use super::*;
    use crate::{log::Log, task::Names};

    #[test]
    fn what_was_finished_stays_and_what_is_new_has_a_name_of_its_own() {
        let names = Names { task: "t".into(), context: "c".into() };
        let made = |id: &str| {
            let artifact = Artifact::new(id, vec![Part::text("x")]);
            let update = ArtifactUpdate {
                task_id: "t".into(),
                context_id: "c".into(),
                artifact,
                append: false,
                last_chunk: true,
                metadata: None,
            };
            (Event::Artifact(update), None)
        };
        let status = |state| (names.status(state, None, Timestamp::from_millis(0)), None);
        let log =
            Log::pack([made("one"), status(TaskState::Completed), status(TaskState::Working), made("two")]);
        let closed = Closed::read(log.entries(), 2).unwrap();
        let mut said = ["one", "two"].map(|id| {
            let artifact = Artifact::new(id, vec![Part::text("y")]);
            Update::Artifact { artifact, append: false, last: true }
        });
        closed.keep(&mut said);
        let ids = said.iter().map(|update| match update {
            Update::Artifact { artifact, .. } => artifact.id.to_string(),
            _ => String::new(),
        });
        assert_eq!(ids.collect::<Vec<_>>(), ["one-2", "two"]);
    }
}

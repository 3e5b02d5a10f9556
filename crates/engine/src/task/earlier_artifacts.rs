//! Protects the artifacts of earlier turns of a reopened task: later turns must not change them.

use std::{collections::HashSet, sync::Arc};

use protocol::ArtifactId;

use super::artifact_log::ArtifactLog;
use crate::{
    agent::Update,
    log::{Corrupt, Entry},
};

/// The artifacts a task had when its current turn started, and the number of that turn.
#[derive(Clone, Debug, Default)]
pub struct EarlierArtifacts {
    artifacts: HashSet<ArtifactId>,
    turn: i64,
}

impl EarlierArtifacts {
    /// The artifacts of turns that have ended; `turn` is the number of the current one.
    pub fn new(artifacts: HashSet<ArtifactId>, turn: i64) -> Self {
        Self { artifacts, turn }
    }

    /// Collects from the whole log the artifacts recorded before the task's last terminal state.
    pub fn from_log(log: &[Arc<Entry>], turn: i64) -> Result<Self, Corrupt> {
        Ok(Self::new(ArtifactLog::of(log)?.ended, turn))
    }

    /// Renames new artifacts whose id belongs to an earlier turn: appends the turn number.
    pub(crate) fn rename_reused(&self, updates: &mut [Update]) {
        for update in updates {
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
    use protocol::{Artifact, Event, Part, TaskState, Timestamp, model::ArtifactUpdate};

    use super::*;
    use crate::{log::Log, task::PublicIds};

    #[test]
    fn reused_artifact_id_of_an_earlier_turn_gets_the_turn_number() {
        let names = PublicIds { task: "t".into(), context: "c".into() };
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
        let earlier = EarlierArtifacts::from_log(log.entries(), 2).unwrap();
        let mut updates = ["one", "two"].map(|id| {
            let artifact = Artifact::new(id, vec![Part::text("y")]);
            Update::Artifact { artifact, append: false, last: true }
        });
        earlier.rename_reused(&mut updates);
        let ids = updates.iter().map(|update| match update {
            Update::Artifact { artifact, .. } => artifact.id.to_string(),
            _ => String::new(),
        });
        assert_eq!(ids.collect::<Vec<_>>(), ["one-2", "two"]);
    }
}

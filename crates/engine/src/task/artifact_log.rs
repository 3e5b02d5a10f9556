//! What a log records about artifacts, collected entry by entry without decoding their content.

use std::{collections::HashSet, sync::Arc};

use protocol::ArtifactId;

use crate::log::{Corrupt, Entry, Kind};

/// The artifacts of a log up to some entry.
#[derive(Clone, Debug, Default)]
pub struct ArtifactLog {
    /// Those whose last chunk is not recorded.
    pub open: HashSet<ArtifactId>,
    /// Those recorded before the last terminal state.
    pub ended: HashSet<ArtifactId>,
    /// Those recorded since.
    pub current: HashSet<ArtifactId>,
}

impl ArtifactLog {
    /// Collects a whole log.
    pub fn of(log: &[Arc<Entry>]) -> Result<Self, Corrupt> {
        let mut artifacts = Self::default();
        for entry in log {
            artifacts.add(entry)?;
        }
        Ok(artifacts)
    }

    /// Adds the next entry; returns the artifact it belongs to.
    pub fn add(&mut self, entry: &Entry) -> Result<Option<ArtifactId>, Corrupt> {
        if matches!(entry.kind(), Kind::Status(state) if state.is_terminal()) {
            self.ended.extend(self.current.drain());
        }
        let Some(chunk) = entry.chunk()? else { return Ok(None) };
        if chunk.last_chunk {
            self.open.remove(&chunk.artifact_id);
        } else if !self.open.contains(&chunk.artifact_id) {
            self.open.insert(chunk.artifact_id.clone());
        }
        if !self.current.contains(&chunk.artifact_id) {
            self.current.insert(chunk.artifact_id.clone());
        }
        Ok(Some(chunk.artifact_id))
    }
}

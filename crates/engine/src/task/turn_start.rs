//! Finds the start of the current turn in a log that is read once, entry by entry.

use std::collections::{HashSet, VecDeque};

use protocol::{ArtifactId, Message};

use super::{
    artifact_log::ArtifactLog,
    fold::{MAX_HISTORY, messages},
};
use crate::log::{Corrupt, Entry, Seq};

/// The message that started a turn, and the task before it.
#[derive(Debug)]
pub struct TurnStart {
    /// Sequence number of the status update that the message caused.
    pub seq: Seq,
    /// The message, whatever its role.
    pub message: Message,
    /// The task's history before it.
    pub history: Vec<Message>,
    /// The artifacts that were open before it.
    pub open: HashSet<ArtifactId>,
    /// The artifacts that its attempts have recorded so far.
    pub recorded: HashSet<ArtifactId>,
}

/// Collects a log. Messages recorded after the turn started belong to the next turn, so that every attempt has
/// the same input: the turn started with the last message but `unanswered`.
#[derive(Debug)]
pub struct TurnStartFinder {
    unanswered: usize,
    artifacts: ArtifactLog,
    /// The newest messages of the history, and how many were dropped before them.
    history: VecDeque<Message>,
    dropped: usize,
    /// The newest `unanswered + 1` messages of the user; the oldest one is the result.
    candidates: VecDeque<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    seq: Seq,
    message: Message,
    /// Length of the whole history before the message.
    history: usize,
    open: HashSet<ArtifactId>,
    recorded: HashSet<ArtifactId>,
}

impl TurnStartFinder {
    /// For a task with this many unanswered messages.
    pub fn new(unanswered: i64) -> Self {
        Self {
            unanswered: usize::try_from(unanswered).unwrap_or_default(),
            artifacts: ArtifactLog::default(),
            history: VecDeque::new(),
            dropped: 0,
            candidates: VecDeque::new(),
        }
    }

    /// Adds the next entry.
    pub fn add(&mut self, seq: Seq, entry: &Entry) -> Result<(), Corrupt> {
        if let Some(artifact) = self.artifacts.add(entry)? {
            for candidate in &mut self.candidates {
                if !candidate.recorded.contains(&artifact) {
                    candidate.recorded.insert(artifact.clone());
                }
            }
        }
        if let Some(message) = entry.user_message()? {
            self.candidates.push_back(Candidate {
                seq,
                message: message.clone(),
                history: self.dropped + self.history.len(),
                open: self.artifacts.open.clone(),
                recorded: HashSet::new(),
            });
            if self.candidates.len() > self.unanswered + 1 {
                self.candidates.pop_front();
            }
        }
        self.history.extend(messages(entry)?.into_iter().flatten().cloned());
        let needed = self.candidates.front().map_or(self.dropped, |first| first.history);
        while self.dropped + MAX_HISTORY < needed && self.history.pop_front().is_some() {
            self.dropped += 1;
        }
        Ok(())
    }

    /// The start of the turn, and all artifacts of the log; `None` if the log has too few messages.
    pub fn finish(mut self) -> Option<(TurnStart, ArtifactLog)> {
        if self.candidates.len() <= self.unanswered {
            return None;
        }
        let Candidate { seq, message, history, open, recorded } = self.candidates.pop_front()?;
        self.history.truncate(history - self.dropped);
        let start = TurnStart { seq, message, history: self.history.into(), open, recorded };
        Some((start, self.artifacts))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use protocol::{Artifact, Event, Part, Role, TaskState, Timestamp, model::ArtifactUpdate};

    use super::*;
    use crate::{
        log::{Log, NewEntry},
        task::PublicIds,
    };

    fn names() -> PublicIds {
        PublicIds { task: "t".into(), context: "c".into() }
    }

    fn message(text: &str) -> Message {
        Message::new(text, Role::User, vec![Part::text(text)])
    }

    fn user(text: &str) -> NewEntry {
        let status = names().status(TaskState::Working, None, Timestamp::from_millis(0));
        (status, Some(Arc::new(message(text))))
    }

    fn ends(text: &str) -> NewEntry {
        (names().status(TaskState::Completed, Some(message(text)), Timestamp::from_millis(0)), None)
    }

    fn chunk(id: &str, last_chunk: bool) -> NewEntry {
        let update = ArtifactUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            artifact: Artifact::new(id, vec![Part::text("x")]),
            append: true,
            last_chunk,
            metadata: None,
        };
        (Event::Artifact(update), None)
    }

    fn find(unanswered: i64, events: Vec<NewEntry>) -> Option<(TurnStart, ArtifactLog)> {
        let mut finder = TurnStartFinder::new(unanswered);
        for (seq, entry) in (1..).zip(Log::pack(events).entries()) {
            finder.add(seq, entry).unwrap();
        }
        finder.finish()
    }

    fn ids(set: &HashSet<ArtifactId>) -> Vec<&str> {
        let mut ids: Vec<_> = set.iter().map(ArtifactId::as_str).collect();
        ids.sort_unstable();
        ids
    }

    fn events() -> Vec<NewEntry> {
        vec![
            user("one"),
            chunk("a", false),
            chunk("b", true),
            ends("done"),
            user("two"),
            chunk("c", false),
            user("three"),
            chunk("d", false),
        ]
    }

    #[test]
    fn turn_starts_with_the_last_message_but_the_unanswered_ones() {
        for (unanswered, seq, text, history) in [
            (0, 7, "three", &["one", "done", "two"][..]),
            (1, 5, "two", &["one", "done"]),
            (2, 1, "one", &[]),
        ] {
            let (start, _) = find(unanswered, events()).unwrap();
            assert_eq!((start.seq, start.message.text().as_str()), (seq, text));
            assert_eq!(start.history.iter().map(Message::text).collect::<Vec<_>>(), history);
        }
        assert!(find(3, events()).is_none() && find(0, Vec::new()).is_none());
    }

    #[test]
    fn artifacts_before_and_since_the_start_are_separate() {
        let (start, artifacts) = find(1, events()).unwrap();
        assert_eq!((ids(&start.open), ids(&start.recorded)), (vec!["a"], vec!["c", "d"]));
        assert_eq!(ids(&artifacts.ended), ["a", "b"]);
        assert_eq!(ids(&artifacts.open), ["a", "c", "d"]);
    }

    #[test]
    fn history_keeps_the_newest_messages() {
        let texts: Vec<_> = (0..MAX_HISTORY + 20).map(|number| number.to_string()).collect();
        for unanswered in [0, 5] {
            let (start, _) = find(unanswered, texts.iter().map(|text| user(text)).collect()).unwrap();
            let end = texts.len() - 1 - usize::try_from(unanswered).unwrap();
            assert_eq!(start.message.text(), texts[end]);
            let history: Vec<_> = start.history.iter().map(Message::text).collect();
            assert_eq!(history, texts[end - MAX_HISTORY..end]);
        }
    }
}

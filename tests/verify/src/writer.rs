//! The agent `slow-writer` as the proofs use it: a document to request, and what a finished document must look
//! like.
//!
//! Its text has one numbered line per section, so that a section lost or written twice by a resumed run is
//! detected. Deliberately not here: streams of a document, and when the server is killed.

use serde_json::Value;
use testkit::json::{artifact_text, state, status_text};

/// The document requested from `slow-writer`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Document {
    pub(crate) sections: u64,
    pub(crate) delay_millis: u64,
}

pub(crate) const AGENT: &str = "slow-writer";

impl Document {
    /// The text of the message that requests it.
    pub(crate) fn text(self) -> String {
        format!("sections={} delay={}ms", self.sections, self.delay_millis)
    }

    /// The number of sections that a message requests.
    pub(crate) fn sections_of(text: &str) -> Option<u64> {
        text.split(' ').find_map(|setting| setting.strip_prefix("sections="))?.parse().ok()
    }

    /// The fault in the document of a task as read, if any.
    pub(crate) fn fault_in(self, task: &Value) -> Option<String> {
        if state(task) != "TASK_STATE_COMPLETED" {
            return Some(format!("is {}: {}", state(task), status_text(task)));
        }
        let text = artifact_text(task);
        let lines: Vec<&str> = text.lines().collect();
        let wrong = (1..).zip(&lines).find(|(number, line)| !self.is_section(*number, line));
        match wrong {
            Some((number, line)) => Some(format!("has {line:?} instead of section {number}")),
            None if lines.len() as u64 != self.sections => {
                Some(format!("has {} of {} sections", lines.len(), self.sections))
            }
            None => None,
        }
    }

    fn is_section(self, number: u64, line: &str) -> bool {
        line.starts_with(&format!("Section {number} of {}:", self.sections))
    }
}

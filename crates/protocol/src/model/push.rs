//! Where a task's events are posted to.

use std::fmt;

use crate::{ConfigId, TaskId};

/// A webhook registered for one task.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfig {
    /// Its name within the task; made by the server when the client gives none.
    pub id: Option<ConfigId>,
    /// The task; absent when the config rides on the message that creates it.
    pub task_id: Option<TaskId>,
    /// An absolute http or https URL.
    pub url: String,
    /// Sent along so that the receiver recognises us.
    pub token: Option<Secret>,
    /// How we authenticate there.
    pub authentication: Option<PushAuth>,
    /// The tenant named in the request.
    pub tenant: Option<String>,
}

/// An HTTP authentication scheme with its credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct PushAuth {
    /// `Bearer`, `Basic`, …: at least one. A2A 1.0 knows one only, the first.
    pub schemes: Vec<String>,
    /// What follows the scheme in the header.
    pub credentials: Option<Secret>,
}

/// A text that must not reach a log.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

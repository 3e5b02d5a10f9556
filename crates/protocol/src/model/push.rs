//! Webhook registrations for push notifications.

use std::fmt;

use crate::{ConfigId, Json, TaskId};

/// A webhook registered for one task.
#[derive(Clone, Debug, PartialEq)]
pub struct PushConfig {
    /// Unique within the task; assigned by the server when the client gives none.
    pub id: Option<ConfigId>,
    /// The task; absent when the config is part of the message that creates the task.
    pub task_id: Option<TaskId>,
    /// An absolute http or https URL.
    pub url: String,
    /// Sent with each notification so that the receiver can verify the sender.
    pub token: Option<Secret>,
    /// How the server authenticates to the webhook.
    pub authentication: Option<PushAuth>,
    /// The tenant named in the request.
    pub tenant: Option<String>,
}

impl PushConfig {
    /// A webhook at this URL; every other field is empty.
    pub fn new(url: impl Into<String>) -> Self {
        Self { id: None, task_id: None, url: url.into(), token: None, authentication: None, tenant: None }
    }
}

/// An HTTP authentication scheme with its credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct PushAuth {
    /// `Bearer`, `Basic`, …: at least one. A2A 1.0 supports one only; the first is used there.
    pub schemes: Vec<String>,
    /// The part of the `Authorization` header after the scheme.
    pub credentials: Option<Secret>,
    /// A JSON object of members that the specification does not define. Only the JSON of the draft and 0.3 has room for
    /// them.
    pub extra: Option<Json>,
}

impl PushAuth {
    /// One scheme with its credentials.
    pub fn new(scheme: impl Into<String>, credentials: Option<Secret>) -> Self {
        Self { schemes: vec![scheme.into()], credentials, extra: None }
    }
}

/// A string that must not be logged: its `Debug` output is masked.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret string.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The plain text, for the code that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Secret(…)")
    }
}

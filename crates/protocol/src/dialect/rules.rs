//! How the dialects differ where a rule is a value: one row per dialect.
//!
//! What cannot be stated as a value is code of the dialect's folder.

use super::{Dialect, draft, v1, v03};

/// What a version allows its clients, and how it names things.
#[derive(Debug)]
pub struct DialectRules {
    /// The version as people read it, in headers, logs and output.
    pub label: &'static str,
    /// The version to write in headers and cards.
    pub version: &'static str,
    /// The number used in the store.
    pub(super) number: u8,
    /// The header that lists extensions, in requests and responses.
    pub extensions_header: Option<&'static str>,
    /// The media type of HTTP+JSON bodies.
    pub media_type: &'static str,
    /// Whether a client that does not declare a required extension is rejected.
    pub requires_extensions: bool,
    /// Whether clients accept a plain JSON error as the response to a streaming request.
    pub accepts_plain_stream_errors: bool,
    /// Whether clients choose task ids: an unknown id creates a task.
    pub clients_choose_task_ids: bool,
    /// Whether a message to a completed or failed task opens its next turn.
    pub reopens_finished_tasks: bool,
    /// Whether a send can be answered with a message instead of a task. Without it every send creates a visible task.
    pub supports_message_replies: bool,
    /// Whether the metadata of a request becomes the metadata of its task.
    pub copies_request_metadata: bool,
    /// Whether tasks include their history when the request has no `historyLength`.
    pub includes_history_by_default: bool,
    /// Whether a subscription stays open when the task is interrupted.
    pub subscription_survives_interruption: bool,
    /// Whether every message has an id.
    pub has_message_ids: bool,
    /// Whether a stream sends a whole task as one frame. Otherwise it is split into its status and its artifacts.
    pub streams_whole_tasks: bool,
    /// Whether a stream identifies an artifact by its index among the task's artifacts.
    pub streams_artifact_indexes: bool,
    /// Whether subscribing to a finished task yields its final status instead of an error.
    pub replays_final_status: bool,
}

/// In the order of [`Dialect::ALL`].
const RULES: [DialectRules; 4] = [
    DialectRules {
        label: "draft",
        version: draft::VERSION,
        number: 1,
        extensions_header: None,
        media_type: "application/json",
        requires_extensions: false,
        accepts_plain_stream_errors: false,
        clients_choose_task_ids: true,
        reopens_finished_tasks: true,
        supports_message_replies: false,
        copies_request_metadata: true,
        includes_history_by_default: false,
        subscription_survives_interruption: false,
        has_message_ids: false,
        streams_whole_tasks: false,
        streams_artifact_indexes: true,
        replays_final_status: true,
    },
    DialectRules { number: 2, ..V03 },
    DialectRules { number: 3, ..V03 },
    DialectRules {
        label: "1.0",
        version: v1::VERSION,
        number: 0,
        extensions_header: Some("a2a-extensions"),
        media_type: "application/a2a+json",
        requires_extensions: true,
        accepts_plain_stream_errors: true,
        subscription_survives_interruption: true,
        replays_final_status: false,
        ..V03
    },
];

const V03: DialectRules = DialectRules {
    label: "0.3",
    version: v03::VERSION,
    number: 2,
    extensions_header: Some("x-a2a-extensions"),
    media_type: "application/json",
    requires_extensions: false,
    accepts_plain_stream_errors: false,
    clients_choose_task_ids: false,
    reopens_finished_tasks: false,
    supports_message_replies: true,
    copies_request_metadata: false,
    includes_history_by_default: true,
    subscription_survives_interruption: false,
    has_message_ids: true,
    streams_whole_tasks: true,
    streams_artifact_indexes: false,
    replays_final_status: true,
};

impl Dialect {
    /// The rules of this dialect.
    pub fn rules(self) -> &'static DialectRules {
        &RULES[self as usize]
    }
}

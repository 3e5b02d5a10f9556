//! Reads tasks of A2A 1.0 as JSON.

use serde_json::Value;

/// The id of a task; an error names what was found instead.
pub fn task_id(task: &Value) -> Result<String, String> {
    task["id"].as_str().map(str::to_owned).ok_or_else(|| format!("the task has no id: {task}"))
}

/// The state of a task; empty if it has none.
pub fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_default()
}

/// Whether a task in this state has ended.
pub fn is_terminal(state: &str) -> bool {
    matches!(
        state,
        "TASK_STATE_COMPLETED" | "TASK_STATE_FAILED" | "TASK_STATE_CANCELED" | "TASK_STATE_REJECTED"
    )
}

/// The text of the message in a task's status.
pub fn status_text(task: &Value) -> String {
    texts(&task["status"]["message"])
}

/// The code with which the server explains a status: `metadata.a2ad.reason` of its message.
pub fn reason(status: &Value) -> Option<&str> {
    status["message"]["metadata"]["a2ad"]["reason"].as_str()
}

/// The text of all artifacts of a task.
pub fn artifact_text(task: &Value) -> String {
    task["artifacts"].as_array().into_iter().flatten().map(texts).collect()
}

/// The texts in the parts of a message or an artifact, joined.
pub fn texts(parent: &Value) -> String {
    parent["parts"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

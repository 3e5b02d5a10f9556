//! Reduces the server's tasks and events to what the model predicts, without what the server may choose freely.

use serde_json::{Value, json};

/// A task in the form of [`super::reference::Task::shown`].
pub(crate) fn task(task: &Value) -> Value {
    let history_entry = |message: &Value| match message["role"].as_str() {
        Some("ROLE_USER") => json!(["ROLE_USER", text(&message["parts"]), message["messageId"]]),
        _ => json!([message["role"], text(&message["parts"])]),
    };
    let artifact = |artifact: &Value| json!([artifact["artifactId"], texts(&artifact["parts"])]);
    json!({
        "id": task["id"],
        "context": task["contextId"],
        "status": status(&task["status"]),
        "history": items(&task["history"]).iter().map(history_entry).collect::<Vec<_>>(),
        "artifacts": items(&task["artifacts"]).iter().map(artifact).collect::<Vec<_>>(),
    })
}

/// An event in the form of [`super::reference::Event::shown`].
pub(crate) fn event(result: &Value) -> Value {
    let update = &result["artifactUpdate"];
    if update.is_object() {
        let artifact = &update["artifact"];
        return json!({
            "artifact": artifact["artifactId"],
            "texts": texts(&artifact["parts"]),
            "append": update["append"] == true,
        });
    }
    status(&result["statusUpdate"]["status"])
}

fn status(status: &Value) -> Value {
    let agent_text = status["message"].is_object().then(|| text(&status["message"]["parts"]));
    let reason = testkit::json::reason(status);
    json!({"state": status["state"], "text": agent_text, "reason": reason, "at": status["timestamp"]})
}

fn text(parts: &Value) -> String {
    texts(parts).concat()
}

fn texts(parts: &Value) -> Vec<&str> {
    items(parts).iter().filter_map(|part| part["text"].as_str()).collect()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}

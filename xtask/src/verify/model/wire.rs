//! What the server shows, reduced to what the reference says: tasks and events without what the server may choose.

use serde_json::{Value, json};

/// A task as [`super::reference::Task::shown`] tells it.
pub(crate) fn task(task: &Value) -> Value {
    let said = |message: &Value| match message["role"].as_str() {
        Some("ROLE_USER") => json!(["ROLE_USER", text(&message["parts"]), message["messageId"]]),
        _ => json!([message["role"], text(&message["parts"])]),
    };
    let artifact = |artifact: &Value| json!([artifact["artifactId"], texts(&artifact["parts"])]);
    json!({
        "id": task["id"],
        "context": task["contextId"],
        "status": status(&task["status"]),
        "history": items(&task["history"]).iter().map(said).collect::<Vec<_>>(),
        "artifacts": items(&task["artifacts"]).iter().map(artifact).collect::<Vec<_>>(),
    })
}

/// An event as [`super::reference::Event::shown`] tells it.
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
    let said = status["message"].is_object().then(|| text(&status["message"]["parts"]));
    json!({"state": status["state"], "said": said, "at": status["timestamp"]})
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

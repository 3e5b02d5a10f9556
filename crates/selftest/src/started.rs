//! A record of the tasks that the checks start on a server, so that those still open can be cancelled at the end.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{StreamExt as _, stream};
use serde_json::Value;

use super::{
    http::Server,
    json::{self, ValueChecks as _, quote},
    test_client::request,
};

/// The time limit of all cancel requests together.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The number of cancel requests that are sent concurrently.
const MAX_CONCURRENT_CANCELS: usize = 8;
/// The paths of a task's id and state in responses and events of all protocol generations.
const TASK_PATHS: [(&str, &str); 6] = [
    ("result.id", "result.status.state"),
    ("result.taskId", "result.status.state"),
    ("result.task.id", "result.task.status.state"),
    ("result.statusUpdate.taskId", "result.statusUpdate.status.state"),
    ("task.id", "task.status.state"),
    ("id", "status.state"),
];

/// The tasks of a server by request path and task id; the value is whether the task was open when last seen.
#[derive(Clone, Debug)]
pub(crate) struct Started {
    host: String,
    tasks: Arc<Mutex<BTreeMap<(String, String), bool>>>,
}

impl Started {
    pub(crate) fn at(host: &str) -> Self {
        Self { host: host.to_owned(), tasks: Arc::default() }
    }

    /// Records the task that a request starts, if the request contains the task's id.
    pub(crate) fn note_request(&self, path: &str, body: &str) {
        let Ok(request) = json::parse(body) else { return };
        let sends = request.text("method").is_ok_and(|method| method.starts_with("tasks/send"));
        // Some checks send an empty id, which every server rejects.
        if let (true, Ok(id)) = (sends, request.text("params.id"))
            && !id.is_empty()
        {
            self.note(path, id, true);
        }
    }

    /// Records the task in a response or an event.
    pub(crate) fn note_response(&self, path: &str, answer: &Value) {
        for (id, state) in TASK_PATHS {
            if let (Ok(id), Ok(state)) = (answer.text(id), answer.text(state)) {
                self.note(path, id, !is_terminal(state));
            }
        }
    }

    fn note(&self, path: &str, id: &str, open: bool) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.insert((path.to_owned(), id.to_owned()), open);
    }

    /// Cancels every task that may still be open and returns the ids of those that remain open.
    pub(crate) async fn cancel_all(&self) -> Vec<String> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let open: Vec<(String, String)> =
            tasks.into_iter().filter(|task| task.1).map(|task| task.0).collect();
        let server = Server::at(&self.host);
        let cancelled = stream::iter(&open).map(|(path, id)| {
            let server = &server;
            async move { (!cancel(server, path, id).await).then(|| id.clone()) }
        });
        let all = cancelled.buffer_unordered(MAX_CONCURRENT_CANCELS).filter_map(std::future::ready).collect();
        tokio::time::timeout(TIMEOUT, all)
            .await
            .unwrap_or_else(|_| open.into_iter().map(|task| task.1).collect())
    }
}

/// Cancels a task with the method name before 1.0 and then with that of 1.0; returns whether the task is terminal.
async fn cancel(server: &Server, path: &str, id: &str) -> bool {
    for (cancel, get) in [("tasks/cancel", "tasks/get"), ("CancelTask", "GetTask")] {
        let params = format!(r#"{{"id":{}}}"#, quote(id));
        if server.post(path, &request(cancel, &params)).await.is_ok_and(|answer| is_over(&answer)) {
            return true;
        }
        // The task may have finished before the cancel request, or may not exist.
        match server.post(path, &request(get, &params)).await {
            Ok(answer) if is_over(&answer) || answer.is("error.code", -32001).is_ok() => return true,
            _ => {}
        }
    }
    false
}

fn is_over(answer: &Value) -> bool {
    let state = answer.text("result.status.state").or_else(|_| answer.text("result.task.status.state"));
    state.is_ok_and(is_terminal)
}

fn is_terminal(state: &str) -> bool {
    let plain = state.to_ascii_lowercase();
    let plain = plain.strip_prefix("task_state_").unwrap_or(&plain);
    matches!(plain, "completed" | "failed" | "canceled" | "cancelled" | "rejected")
}

//! Registers webhooks, and checks what became of them.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use super::server::{DeadLetter, call_all};

/// Webhooks that a task may have.
const MAX_WEBHOOKS: usize = 10;

/// How a webhook is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// For a task that has ended.
    Operation,
    /// With the message that starts a task.
    Message,
}

/// What became of a request to register a webhook.
#[derive(Debug)]
pub(crate) struct Registration {
    pub(crate) url: String,
    pub(crate) way: Way,
    /// The id that the client chose for it.
    pub(crate) config: String,
    pub(crate) response: Value,
}

/// Registers each URL in both ways.
pub(crate) async fn register(address: SocketAddr, urls: &[String]) -> Vec<Registration> {
    let mut registrations = register_by(Way::Operation, address, urls).await;
    registrations.extend(register_by(Way::Message, address, urls).await);
    registrations
}

/// Registers each URL in one way.
pub(crate) async fn register_by(way: Way, address: SocketAddr, urls: &[String]) -> Vec<Registration> {
    let tasks = match way {
        Way::Operation => start_tasks(address, urls.len().div_ceil(MAX_WEBHOOKS)).await,
        Way::Message => Vec::new(),
    };
    let configs: Vec<String> = urls.iter().map(|_| unique("webhook")).collect();
    let call = |(index, (url, config)): (usize, (&String, &String))| match way {
        Way::Operation => {
            let task = &tasks[index / MAX_WEBHOOKS];
            ("CreateTaskPushNotificationConfig", json!({"taskId": task, "id": config, "url": url}))
        }
        Way::Message => ("SendMessage", message(json!({"id": config, "url": url}))),
    };
    let calls: Vec<_> = urls.iter().zip(&configs).enumerate().map(call).collect();
    let responses = call_all(address, &calls).await;
    let registration = |((url, config), response): ((&String, String), Value)| Registration {
        url: url.clone(),
        way,
        config,
        response,
    };
    urls.iter().zip(configs).zip(responses).map(registration).collect()
}

/// The number of tasks that a registration of this many URLs in both ways makes, if this many are accepted.
pub(crate) fn task_count(urls: usize, accepted: usize) -> usize {
    urls.div_ceil(MAX_WEBHOOKS) + accepted
}

/// Makes tasks, which have ended, and returns their ids.
pub(crate) async fn start_tasks(address: SocketAddr, count: usize) -> Vec<String> {
    let calls: Vec<_> = (0..count).map(|_| ("SendMessage", message(Value::Null))).collect();
    let responses = call_all(address, &calls).await;
    let id = |response: Value| response["result"]["task"]["id"].as_str().unwrap().to_owned();
    responses.into_iter().map(id).collect()
}

fn message(webhook: Value) -> Value {
    let mut params = testkit::rpc::message(&*unique("message"), "hello", false);
    if !webhook.is_null() {
        params["configuration"]["taskPushNotificationConfig"] = webhook;
    }
    params
}

fn unique(prefix: &str) -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    format!("{prefix}-{}", LAST.fetch_add(1, Ordering::Relaxed))
}

impl Registration {
    /// Checks that the webhook was refused, with exactly this reason: the response has nothing else about the URL.
    pub(crate) fn check_refused(&self, reason: &str) {
        let problem = format!("no notification can be sent to it: {reason}");
        let field = match self.way {
            Way::Operation => "url",
            Way::Message => "configuration.taskPushNotificationConfig.url",
        };
        let mut error = self.response["error"].clone();
        error["data"][0]["metadata"].as_object_mut().map(|metadata| metadata.remove("timestamp"));
        let expected = json!({
            "code": -32602,
            "message": format!("{field}: {problem}"),
            "data": [
                {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "INVALID_PARAMS",
                    "domain": "a2a-protocol.org",
                    "metadata": {},
                },
                {
                    "@type": "type.googleapis.com/google.rpc.BadRequest",
                    "fieldViolations": [{"field": field, "description": problem}],
                },
            ],
        });
        assert_eq!(error, expected, "{} {:?}: {}", self.url, self.way, self.response);
    }

    /// Checks that the webhook was registered.
    pub(crate) fn check_accepted(&self) {
        assert!(self.response.get("result").is_some(), "{} {:?}: {}", self.url, self.way, self.response);
    }

    /// Checks that the webhook was registered, and each of its notifications given up after this many attempts, for one
    /// of these reasons.
    pub(crate) fn check_dead(&self, letters: &[DeadLetter], attempts: u64, reasons: &[&str]) {
        self.check_accepted();
        check_dead(letters, &self.config, attempts, reasons);
    }
}

/// Checks that the webhook with this id has dead letters, all after this many attempts and for one of these reasons.
pub(crate) fn check_dead(letters: &[DeadLetter], config: &str, attempts: u64, reasons: &[&str]) {
    let mut own = letters.iter().filter(|letter| letter.config == config).peekable();
    assert!(own.peek().is_some(), "{config} has no dead letter");
    for letter in own {
        assert!(letter.attempts == attempts && reasons.contains(&&*letter.error), "{letter:?}");
    }
}

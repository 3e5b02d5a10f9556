//! Many different messages of the draft dialect at once to one finished task: each of them must be one turn of it.
//!
//! The draft has no message ids, so a client cannot repeat a message that was answered with "unavailable" without the
//! risk of sending it twice. Deliberately not here: identical messages, which the draft takes for repetitions.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::http::Connection;
use crate::random::Random;
use crate::trial::in_parallel;

const TASKS: usize = 10;
const SENDERS: usize = 64;

/// Runs the races, one task after the other; returns the number of turns and the findings.
pub(super) async fn race(address: SocketAddr, random: &mut Random) -> Result<(usize, Vec<String>)> {
    let mut findings = Vec::new();
    for _ in 0..TASKS {
        let task = random.uuid().to_string();
        send(address, task.clone(), "first".to_owned()).await?;
        let senders = (0..SENDERS).map(|number| send(address, task.clone(), format!("turn {number}")));
        for response in in_parallel(senders).await {
            let response = response?;
            if response["result"]["status"]["state"] != "completed" {
                findings.push(format!("task {task}: a message of {SENDERS} got {response}"));
            }
        }
        findings.extend(missing_turns(address, &task).await?);
    }
    Ok((TASKS * SENDERS, findings))
}

/// Every text must be in the history exactly once.
async fn missing_turns(address: SocketAddr, task: &str) -> Result<Option<String>> {
    let response = call(address, "tasks/get", json!({"id": task, "historyLength": 2 * SENDERS})).await?;
    let history = response["result"]["history"].as_array().cloned().unwrap_or_default();
    let texts = history.iter().filter(|message| message["role"] == "user");
    let texts: Vec<&str> = texts.filter_map(|message| message["parts"][0]["text"].as_str()).collect();
    let different: BTreeSet<&str> = texts.iter().copied().collect();
    let complete = texts.len() == SENDERS + 1 && different.len() == texts.len();
    Ok((!complete)
        .then(|| format!("task {task} has {} messages, {} different", texts.len(), different.len())))
}

async fn send(address: SocketAddr, task: String, text: String) -> Result<Value> {
    let message = json!({"role": "user", "parts": [{"type": "text", "text": text}]});
    call(address, "tasks/send", json!({"id": task, "message": message})).await
}

async fn call(address: SocketAddr, method: &str, params: Value) -> Result<Value> {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut connection = Connection::open(address).await?;
    let response = connection.post_json("/a2a/echo", &[], request.as_bytes()).await?;
    serde_json::from_slice(&response.body).with_context(|| format!("no JSON in response to {method}"))
}

//! Creates and reads tasks in bulk: fills a store before a proof begins, and reads many tasks over several
//! connections.
//!
//! Deliberately not here: what a proof does with them.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use uuid::Uuid;

use super::random::Random;
use super::rpc::{Caller, Failure, message};
use super::trial::in_parallel;
use super::view::{View, text_digest};

const CONNECTIONS: u64 = 64;
const READERS: usize = 8;

/// A created task and the messageId of the call that created it.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) task: String,
    call: Uuid,
}

impl Sent {
    /// The fault in the echoed text of a task as read, if any.
    pub(crate) fn fault_in(&self, task: &Value) -> Option<String> {
        let outcome = View::of(task).ok().and_then(|view| view.outcome());
        match outcome {
            None => Some(format!("has not ended: {}", task["status"])),
            Some(outcome) if outcome.text != text_digest(&echoed(self.call)) => {
                Some("has a text that differs from the one sent".to_owned())
            }
            Some(_) => None,
        }
    }
}

/// Sends `tasks` messages to `echo` over many connections; all tasks have completed when this returns.
pub(crate) async fn finished(address: SocketAddr, tasks: u64, random: &mut Random) -> Result<Vec<Sent>> {
    send(address, tasks, random, |call| ("echo", message(call, &echoed(call), false))).await
}

/// Sends `tasks` messages with the same text and does not wait for their tasks to end.
pub(crate) async fn begun(
    address: SocketAddr,
    agent: &'static str,
    text: &str,
    tasks: u64,
    random: &mut Random,
) -> Result<Vec<Sent>> {
    let text = text.to_owned();
    send(address, tasks, random, move |call| (agent, message(call, &text, true))).await
}

async fn send(
    address: SocketAddr,
    tasks: u64,
    random: &mut Random,
    request: impl Fn(Uuid) -> (&'static str, Value) + Clone + Send + 'static,
) -> Result<Vec<Sent>> {
    let senders = (0..CONNECTIONS).map(|sender| {
        let share = (tasks + sender) / CONNECTIONS;
        let (mut random, request) = (random.branch(), request.clone());
        async move {
            let mut caller = Caller::new(address);
            let mut sent = Vec::new();
            for _ in 0..share {
                let call = random.uuid();
                let (agent, params) = request(call);
                let response = caller.call(agent, "SendMessage", params).await?;
                let task = View::of(&response["task"]).map_err(Failure::Unusable)?.task;
                sent.push(Sent { task, call });
            }
            Ok::<_, Failure>(sent)
        }
    });
    joined(in_parallel(senders).await)
}

/// Reads tasks of one agent over a few connections; the value is `None` for an unknown id.
pub(crate) async fn read(
    address: SocketAddr,
    agent: &'static str,
    ids: &[String],
) -> Result<Vec<(String, Option<Value>)>> {
    let readers = ids.chunks(ids.len().div_ceil(READERS).max(1)).map(|share| {
        let share = share.to_vec();
        async move {
            let mut caller = Caller::new(address);
            let mut found = Vec::with_capacity(share.len());
            for id in share {
                let task = caller.get(agent, &id).await?;
                found.push((id, task));
            }
            Ok::<_, Failure>(found)
        }
    });
    joined(in_parallel(readers).await)
}

/// All shares together; an error if one failed.
fn joined<T>(shares: Vec<Result<Vec<T>, Failure>>) -> Result<Vec<T>> {
    Ok(shares.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The number of an agent's tasks in a state, from the total of its list.
pub(crate) async fn count(caller: &mut Caller, agent: &str, state: &str) -> Result<u64> {
    let filter = json!({"status": state, "pageSize": 1});
    let page = caller.call(agent, "ListTasks", filter).await?;
    page["totalSize"].as_u64().with_context(|| format!("the page has no total: {page}"))
}

fn echoed(call: Uuid) -> String {
    format!("stored {call}")
}

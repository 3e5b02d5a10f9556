//! Clients that call one skill after the other until they are stopped.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::Value;
use testkit::json::{artifact_text, state};
use tokio::task::JoinSet;

use crate::{
    random::Random,
    rpc::{Caller, Failure, message},
};

const AGENT: &str = "main";
/// The skills, each with a text and how the result begins.
const CALLS: [(&str, &str, &str); 5] = [
    ("steady", "hello", "hello"),
    ("cat", "hello", "{\"text\":\"hello\"}"),
    ("kept", "{}", "{\"arguments\""),
    ("replaced", "{}", "{\"arguments\""),
    // It runs while several versions come and go.
    ("writer", "the sea sections=10 delay=20ms", ""),
];
/// Clients for each skill.
const CLIENTS: usize = 2;

/// The running clients.
pub(super) struct Clients {
    running: JoinSet<Called>,
    stopped: Arc<AtomicBool>,
}

/// What clients have seen.
#[derive(Default)]
pub(super) struct Called {
    /// By skill.
    pub(super) completed: BTreeMap<&'static str, u64>,
    /// Calls that failed.
    pub(super) findings: Vec<String>,
}

impl Clients {
    pub(super) fn start(address: SocketAddr, random: &mut Random) -> Self {
        let stopped = Arc::<AtomicBool>::default();
        let client = |call| {
            let client = Client { caller: Caller::new(address), random: random.branch(), call };
            client.run(Arc::clone(&stopped))
        };
        let running = CALLS.into_iter().flat_map(|call| [call; CLIENTS]).map(client).collect();
        Self { running, stopped }
    }

    /// Stops the clients after their last calls.
    pub(super) async fn end(self) -> Called {
        self.stopped.store(true, Ordering::Relaxed);
        let mut all = Called::default();
        for called in self.running.join_all().await {
            all.findings.extend(called.findings);
            for (skill, count) in called.completed {
                *all.completed.entry(skill).or_default() += count;
            }
        }
        all
    }
}

struct Client {
    caller: Caller,
    random: Random,
    call: (&'static str, &'static str, &'static str),
}

impl Client {
    async fn run(mut self, stopped: Arc<AtomicBool>) -> Called {
        let (skill, _, expected) = self.call;
        let mut called = Called::default();
        let count = called.completed.entry(skill).or_default();
        while !stopped.load(Ordering::Relaxed) {
            match self.send().await {
                Ok(task) if state(&task) == "TASK_STATE_COMPLETED" && result(&task).starts_with(expected) => {
                    *count += 1;
                }
                Ok(task) => called.findings.push(format!("a call of {skill} ended as {task}")),
                Err(failure) => called.findings.push(format!("a call of {skill} failed: {failure}")),
            }
        }
        called
    }

    async fn send(&mut self) -> Result<Value, Failure> {
        let (skill, text, _) = self.call;
        let mut params = message(self.random.uuid(), text, false);
        params["metadata"]["skillId"] = skill.into();
        Ok(self.caller.call(AGENT, "SendMessage", params).await?["task"].take())
    }
}

/// The result of a task as text: its data, else its text.
fn result(task: &Value) -> String {
    let data = &task["artifacts"][0]["parts"][0]["data"];
    if data.is_null() { artifact_text(task) } else { data.to_string() }
}

//! T-R9: the idempotency storm. Each key is sent up to twenty times at once over many connections, to wait, to
//! stream and to return at once, with connections reset in the middle of replies, with the server killed and
//! started again half-way, and sometimes with another body. There are exactly as many tasks as keys.
//!
//! `plan.rs` decides what is sent, `sender.rs` sends it, `judge.rs` compares. Follow-up messages are part of it:
//! tasks that wait for input are answered under repeated keys, and each answer is one turn. Deliberately not
//! here: other bindings and replicas.

mod judge;
mod plan;
mod sender;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use self::judge::Judge;
use self::plan::{Plan, Target};
use self::sender::{Storm, task_of};
use super::lists::walk;
use super::random::Random;
use super::rpc::{Caller, Failure};
use super::trial::{Seen, Stand, Trial};
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--sends N] [--seed S] [--binary PATH]";

const DEFAULT_SENDS: u64 = 100_000;
/// Makes it likely that there is a reset, a misuse and a follow-up message among them.
const LEAST_SENDS: u64 = 1_000;
const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("T-R9", "--sends", DEFAULT_SENDS, args)?;
    ensure!(trial.size >= LEAST_SENDS, "T-R9 proves nothing with less than {LEAST_SENDS} sends");
    trial.run(async |stand| campaign(&trial, stand).await)
}

async fn campaign(trial: &Trial, stand: &Stand) -> Result<Seen> {
    let mut random = Random::new(trial.seed);
    let plan = Plan::new(&mut random, trial.size);
    let server = Server::start(&stand.program, &stand.store).await?;
    let waiting =
        make_waiting(&mut random, plan.waiting, server.address).await.context("before the storm")?;
    let (storm, second) = (plan.storm.clone(), plan.second.clone());
    let state = Arc::new(Storm::new(plan, waiting, server.address));

    let server = state.send_all(storm.clone(), kill_and_restart(&state, server, stand)).await?;
    state.send_all(state.plan.ask_again(&storm), async {}).await;
    state.send_all(second.clone(), async {}).await;
    state.send_all(state.plan.ask_again(&second), async {}).await;

    compare(&state, server.address).await.context("after the storm")?;
    let status = server.terminate(STOP_LIMIT).await?;
    if !status.success() {
        state.judge().find(format!("the server answered SIGTERM with {status}"));
    }
    Ok(seen(&state))
}

/// Makes the tasks that the follow-up messages answer.
async fn make_waiting(
    random: &mut Random,
    count: usize,
    address: SocketAddr,
) -> Result<Vec<String>, Failure> {
    let mut caller = Caller::new(address);
    let mut waiting = Vec::with_capacity(count);
    for number in 0..count {
        let parts = json!([{"text": format!("request {number}")}]);
        let message = json!({"messageId": random.uuid().to_string(), "role": "ROLE_USER", "parts": parts});
        waiting.push(task_of(&caller.call("approver", "SendMessage", json!({"message": message})).await?)?);
    }
    Ok(waiting)
}

async fn kill_and_restart(storm: &Storm, server: Server, stand: &Stand) -> Result<Server> {
    storm.address.send_replace(None);
    server.kill().await?;
    let server = Server::start(&stand.program, &stand.store).await.context("after the kill")?;
    storm.address.send_replace(Some(server.address));
    Ok(server)
}

/// Compares the answers with each other and with what the server has to show.
async fn compare(storm: &Storm, address: SocketAddr) -> Result<(), Failure> {
    storm.judge().compare_answers(&storm.plan, &storm.waiting);
    let mut caller = Caller::new(address);
    for agent in ["echo", "slow-writer"] {
        let mut listed = Vec::new();
        let total = walk(&mut caller, agent, json!({}), |task| listed.push(task)).await?;
        storm.judge().compare_list(&storm.plan, agent, &listed, total);
    }
    for (number, id) in storm.waiting.iter().enumerate() {
        let task = caller.call("approver", "GetTask", json!({"id": id})).await?;
        storm.judge().compare_turns(&storm.plan, number, &task);
    }
    let mut listed: Vec<Value> = Vec::new();
    let total = walk(&mut caller, "approver", json!({}), |task| listed.push(task)).await?;
    if total != storm.waiting.len() as u64 || listed.len() != storm.waiting.len() {
        let what = format!("{} tasks waited for input, the list says {total}", storm.waiting.len());
        storm.judge().find(what);
    }
    Ok(())
}

fn seen(storm: &Storm) -> Seen {
    let mut judge = std::mem::replace(&mut *storm.judge(), Judge::new(0));
    let (cuts, tally) = (storm.cuts.load(Ordering::Relaxed), judge.tally());
    for name in ["first", "replayed", "reused", "lost"] {
        if !tally.contains_key(name) {
            judge.find(format!("nothing is proved: no answer was {name}"));
        }
    }
    if cuts == 0 {
        judge.find("nothing is proved: the kill met no call in flight".to_owned());
    }
    let turns = storm.plan.keys.iter().filter(|key| matches!(key.target, Target::Turn(_))).count();
    let figures = json!({
        "sends": tally.values().sum::<u64>(),
        "keys": storm.plan.keys.len(),
        "new_tasks": storm.plan.keys.len() - turns,
        "turns": turns,
        "answers": tally,
        "cuts": cuts,
        "postponed": storm.postponed.load(Ordering::Relaxed),
        "kills": 1,
    });
    Seen { figures, findings: judge.findings }
}

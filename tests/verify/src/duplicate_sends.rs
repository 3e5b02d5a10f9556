//! duplicate_sends: idempotency under concurrency. Each key is sent up to twenty times at once over many
//! connections, waiting, streaming or returning immediately, with connections reset in the middle of responses,
//! with the server killed and restarted half-way, and sometimes with a different body. There must be exactly as
//! many tasks as keys.
//!
//! `plan.rs` decides what is sent, `sender.rs` sends it, `checker.rs` compares. Follow-up messages are included:
//! tasks that wait for input are answered under repeated keys, and each key is one turn; and so are racing messages of
//! the draft, which have no keys (`draft_turns.rs`). Deliberately not here: other bindings and replicas.

mod checker;
mod draft_turns;
mod plan;
mod sender;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use self::checker::Checker;
use self::plan::{Plan, Target};
use self::sender::{SendState, task_of};
use super::random::Random;
use super::rpc::{Caller, Failure, message};
use super::trial::{ProofResult, Setup, Trial, stop};
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--sends N] [--seed S] [--binary PATH]";

const DEFAULT_SENDS: u64 = 100_000;
/// Makes it likely that the plan has a reset, a misused key and a follow-up message.
const LEAST_SENDS: u64 = 1_000;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("duplicate_sends", "--sends", DEFAULT_SENDS, args)?;
    ensure!(trial.size >= LEAST_SENDS, "duplicate_sends needs at least {LEAST_SENDS} sends");
    trial.run(async |setup| campaign(&trial, setup).await)
}

async fn campaign(trial: &Trial, setup: &Setup) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let plan = Plan::new(&mut random, trial.size);
    let server = Server::start(&setup.program, &setup.store).await?;
    let waiting =
        create_waiting_tasks(&mut random, plan.waiting, server.address).await.context("before the sends")?;
    let (first, second) = (plan.first.clone(), plan.second.clone());
    let state = Arc::new(SendState::new(plan, waiting, server.address));

    let server = state.send_all(first.clone(), kill_and_restart(&state, server, setup)).await?;
    state.send_all(state.plan.resend_each(&first), async {}).await;
    state.send_all(second.clone(), async {}).await;
    state.send_all(state.plan.resend_each(&second), async {}).await;

    compare(&state, server.address).await.context("after the sends")?;
    let mut result = proof_result(&state);
    // After the comparison of lists, which these tasks are not in.
    let (turns, findings) = draft_turns::race(server.address, &mut random).await.context("in the draft")?;
    result.figures["draft_turns"] = turns.into();
    result.findings.extend(findings);
    stop(server, &mut result.findings).await?;
    Ok(result)
}

/// Creates the tasks that the follow-up messages answer.
async fn create_waiting_tasks(
    random: &mut Random,
    count: usize,
    address: SocketAddr,
) -> Result<Vec<String>, Failure> {
    let mut caller = Caller::new(address);
    let mut waiting = Vec::with_capacity(count);
    for number in 0..count {
        let params = message(random.uuid(), &format!("request {number}"), false);
        waiting.push(task_of(&caller.call("approver", "SendMessage", params).await?)?);
    }
    Ok(waiting)
}

async fn kill_and_restart(state: &SendState, server: Server, setup: &Setup) -> Result<Server> {
    state.address.send_replace(None);
    server.kill().await?;
    let server = Server::start(&setup.program, &setup.store).await.context("after the kill")?;
    state.address.send_replace(Some(server.address));
    Ok(server)
}

/// Compares the responses with each other and with the tasks of the server.
async fn compare(state: &SendState, address: SocketAddr) -> Result<(), Failure> {
    state.checker().compare_responses(&state.plan, &state.waiting);
    let mut caller = Caller::new(address);
    for agent in ["echo", "slow-writer"] {
        let mut listed = Vec::new();
        let total = caller.list(agent, json!({}), |task| listed.push(task)).await?;
        state.checker().compare_list(&state.plan, agent, &listed, total);
    }
    for (number, id) in state.waiting.iter().enumerate() {
        let task = caller.call("approver", "GetTask", json!({"id": id})).await?;
        state.checker().compare_turns(&state.plan, number, &task);
    }
    let mut listed: Vec<Value> = Vec::new();
    let total = caller.list("approver", json!({}), |task| listed.push(task)).await?;
    if total != state.waiting.len() as u64 || listed.len() != state.waiting.len() {
        let what =
            format!("{} tasks waited for input, the total of the list is {total}", state.waiting.len());
        state.checker().add_finding(what);
    }
    Ok(())
}

fn proof_result(state: &SendState) -> ProofResult {
    let mut checker = std::mem::replace(&mut *state.checker(), Checker::new(0));
    let (cuts, tally) = (state.cuts.load(Ordering::Relaxed), checker.tally());
    for name in ["first", "replayed", "reused", "lost"] {
        if !tally.contains_key(name) {
            checker.add_finding(format!("nothing is proved: no response was {name}"));
        }
    }
    if cuts == 0 {
        checker.add_finding("nothing is proved: the kill interrupted no call".to_owned());
    }
    let turns = state.plan.keys.iter().filter(|key| matches!(key.target, Target::FollowUp(_))).count();
    let figures = json!({
        "sends": tally.values().sum::<u64>(),
        "keys": state.plan.keys.len(),
        "new_tasks": state.plan.keys.len() - turns,
        "turns": turns,
        "answers": tally,
        "cuts": cuts,
        "postponed": state.postponed.load(Ordering::Relaxed),
        "kills": 1,
    });
    ProofResult { figures, findings: checker.findings }
}

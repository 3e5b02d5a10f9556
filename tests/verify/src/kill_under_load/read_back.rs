//! Reads the server for the checker: after each restart the tasks acknowledged before it, and at the end
//! everything, by `GetTask` and by reading all lists.
//!
//! Deliberately not here: what follows from the reads (`checker.rs`).

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::json::{is_terminal, state};
use tokio::time::sleep;

use super::checker::Checker;
use super::history::History;
use super::load::cancel;
use crate::rpc::{Caller, Failure};
use crate::trial::in_parallel;

const READERS: usize = 4;
const BATCH: usize = 128;
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// A task's agent and id.
pub(crate) type TaskRef = (&'static str, String);

/// Reads the tasks in `due`, oldest first, until all are read or the future is dropped. A task leaves `due` once it
/// was read after a restart and has ended; one that is still open is read again after the next restart.
pub(crate) async fn after_restart(
    checker: &mut Checker,
    history: &History,
    due: &mut VecDeque<TaskRef>,
    address: SocketAddr,
) -> Result<(), Failure> {
    cancel_orphans(checker, history, address).await?;
    for _ in 0..due.len().div_ceil(BATCH) {
        let batch: Vec<TaskRef> = due.iter().take(BATCH).cloned().collect();
        let open = read(checker, &batch, address).await?;
        due.drain(..batch.len());
        due.extend(open);
    }
    Ok(())
}

/// Waits until every task has ended, cancelling the held ones, and returns how long that took. A task that is still
/// open at the limit is a finding.
pub(crate) async fn settle(
    checker: &mut Checker,
    history: &History,
    agents: &[&'static str],
    address: SocketAddr,
    limit: Duration,
) -> Result<Duration, Failure> {
    let started = Instant::now();
    loop {
        let open = list_all(checker, agents, address).await?;
        if open.is_empty() {
            return Ok(started.elapsed());
        }
        if started.elapsed() > limit {
            open.iter().for_each(|(_, id)| checker.stuck(id));
            return Ok(started.elapsed());
        }
        cancel_held(checker, history, &open, address).await?;
        wait_for(checker, open, address, limit.saturating_sub(started.elapsed())).await?;
    }
}

/// Compares everything: each acknowledged task by id, and each list as a whole.
pub(crate) async fn compare_everything(
    checker: &mut Checker,
    agents: &[&'static str],
    address: SocketAddr,
) -> Result<(), Failure> {
    for &agent in agents {
        let task_refs: Vec<TaskRef> = checker.acknowledged(agent).into_iter().map(|id| (agent, id)).collect();
        read(checker, &task_refs, address).await?;
        let mut listed = HashSet::new();
        let with_artifacts = json!({"includeArtifacts": true});
        let total = Caller::new(address)
            .list(agent, with_artifacts, |task| {
                checker.check_listed(&task, &mut listed);
            })
            .await?;
        checker.finish_list(agent, &listed, total);
    }
    Ok(())
}

/// Registers every task of every list and returns the open ones.
async fn list_all(
    checker: &mut Checker,
    agents: &[&'static str],
    address: SocketAddr,
) -> Result<Vec<TaskRef>, Failure> {
    let mut open = Vec::new();
    for &agent in agents {
        Caller::new(address)
            .list(agent, json!({}), |task| {
                checker.see_listed(&task);
                if let (false, Some(id)) = (is_terminal(state(&task)), task["id"].as_str()) {
                    open.push((agent, id.to_owned()));
                }
            })
            .await?;
    }
    Ok(open)
}

async fn wait_for(
    checker: &mut Checker,
    mut open: Vec<TaskRef>,
    address: SocketAddr,
    limit: Duration,
) -> Result<(), Failure> {
    let started = Instant::now();
    while !open.is_empty() && started.elapsed() < limit {
        sleep(SETTLE_PAUSE).await;
        open = read(checker, &open, address).await?;
    }
    Ok(())
}

/// Cancels tasks held for clients that lost their connection before they received the id: no client will cancel
/// them, and over many boots they would fill the server's run slots.
async fn cancel_orphans(
    checker: &mut Checker,
    history: &History,
    address: SocketAddr,
) -> Result<(), Failure> {
    let mut caller = Caller::new(address);
    let mut orphans = Vec::new();
    caller
        .list("echo", json!({"status": "TASK_STATE_WORKING"}), |task| {
            if checker.is_orphan(&task) {
                orphans.push(task);
            }
        })
        .await?;
    for task in orphans {
        cancel(&mut caller, history, task["id"].as_str().unwrap_or_default()).await?;
        // Only after the cancel: a registered task counts as known and is no orphan.
        checker.see_listed(&task);
    }
    Ok(())
}

async fn cancel_held(
    checker: &Checker,
    history: &History,
    open: &[TaskRef],
    address: SocketAddr,
) -> Result<(), Failure> {
    let mut caller = Caller::new(address);
    for (_, id) in open.iter().filter(|(_, id)| checker.is_held(id)) {
        cancel(&mut caller, history, id).await?;
    }
    Ok(())
}

/// Reads the given tasks over a few connections, passes them to the checker, and returns those that are still open.
async fn read(
    checker: &mut Checker,
    task_refs: &[TaskRef],
    address: SocketAddr,
) -> Result<Vec<TaskRef>, Failure> {
    let shares = task_refs.chunks(task_refs.len().div_ceil(READERS).max(1));
    let mut open = Vec::new();
    for share in in_parallel(shares.map(|share| read_share(share.to_vec(), address))).await {
        for (task_ref, found) in share? {
            if !checker.read(&task_ref.1, found.as_ref()) {
                open.push(task_ref);
            }
        }
    }
    Ok(open)
}

async fn read_share(
    task_refs: Vec<TaskRef>,
    address: SocketAddr,
) -> Result<Vec<(TaskRef, Option<Value>)>, Failure> {
    let mut caller = Caller::new(address);
    let mut found = Vec::with_capacity(task_refs.len());
    for (agent, id) in task_refs {
        let task = caller.get(agent, &id).await?;
        found.push(((agent, id), task));
    }
    Ok(found)
}

//! Reads the server for the judge: after each restart what was acknowledged before it, and at the end
//! everything, by `GetTask` and by walking the lists.
//!
//! Deliberately not here: what follows from the reads (`judge.rs`).

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::judge::Judge;
use super::ledger::Ledger;
use super::load::cancel;
use crate::verify::lists::walk;
use crate::verify::rpc::{Caller, Failure, TASK_NOT_FOUND};
use crate::verify::view::is_terminal;

pub(crate) const AGENTS: [&str; 2] = ["echo", "slow-writer"];
const READERS: usize = 4;
const BATCH: usize = 128;
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

/// A task and the agent that has it.
pub(crate) type Place = (&'static str, String);

/// Reads what is due, oldest first, until it is through or dropped: a task leaves `due` once it was read after
/// a restart and has ended; one that is still open comes up again after the next.
pub(crate) async fn after_restart(
    judge: &mut Judge,
    ledger: &Ledger,
    due: &mut VecDeque<Place>,
    address: SocketAddr,
) -> Result<(), Failure> {
    cancel_orphans(judge, ledger, address).await?;
    for _ in 0..due.len().div_ceil(BATCH) {
        let batch: Vec<Place> = due.iter().take(BATCH).cloned().collect();
        let open = read(judge, &batch, address).await?;
        due.drain(..batch.len());
        due.extend(open);
    }
    Ok(())
}

/// Waits until every task there is has ended and says how long that took; held ones are cancelled. What is
/// still open at the limit is stuck.
pub(crate) async fn settle(
    judge: &mut Judge,
    ledger: &Ledger,
    address: SocketAddr,
    limit: Duration,
) -> Result<Duration, Failure> {
    let started = Instant::now();
    loop {
        let open = meet_all(judge, address).await?;
        if open.is_empty() {
            return Ok(started.elapsed());
        }
        if started.elapsed() > limit {
            open.iter().for_each(|(_, id)| judge.stuck(id));
            return Ok(started.elapsed());
        }
        cancel_held(judge, ledger, &open, address).await?;
        wait_for(judge, open, address, limit.saturating_sub(started.elapsed())).await?;
    }
}

/// Compares everything: each acknowledged task by itself, and each list as a whole.
pub(crate) async fn everything(judge: &mut Judge, address: SocketAddr) -> Result<(), Failure> {
    for agent in AGENTS {
        let places: Vec<Place> = judge.acknowledged(agent).into_iter().map(|id| (agent, id)).collect();
        read(judge, &places, address).await?;
        let mut met = HashSet::new();
        let with_artifacts = json!({"includeArtifacts": true});
        let total = walk(&mut Caller::new(address), agent, with_artifacts, |task| {
            judge.meet_in_list(&task, &mut met);
        })
        .await?;
        judge.close_list(agent, &met, total);
    }
    Ok(())
}

/// Enters every task of every list and returns the open ones.
async fn meet_all(judge: &mut Judge, address: SocketAddr) -> Result<Vec<Place>, Failure> {
    let mut open = Vec::new();
    for agent in AGENTS {
        walk(&mut Caller::new(address), agent, json!({}), |task| {
            judge.meet(&task);
            let state = task["status"]["state"].as_str().unwrap_or_default();
            if let (false, Some(id)) = (is_terminal(state), task["id"].as_str()) {
                open.push((agent, id.to_owned()));
            }
        })
        .await?;
    }
    Ok(open)
}

async fn wait_for(
    judge: &mut Judge,
    mut open: Vec<Place>,
    address: SocketAddr,
    limit: Duration,
) -> Result<(), Failure> {
    let started = Instant::now();
    while !open.is_empty() && started.elapsed() < limit {
        sleep(SETTLE_PAUSE).await;
        open = read(judge, &open, address).await?;
    }
    Ok(())
}

/// Cancels what is held for clients that were cut off before they learned of it: nobody else will, and held
/// tasks would fill the server's run slots over many boots.
async fn cancel_orphans(judge: &mut Judge, ledger: &Ledger, address: SocketAddr) -> Result<(), Failure> {
    let mut caller = Caller::new(address);
    let mut orphans = Vec::new();
    walk(&mut caller, "echo", json!({"status": "TASK_STATE_WORKING"}), |task| {
        if judge.is_orphan(&task) {
            orphans.push(task);
        }
    })
    .await?;
    for task in orphans {
        cancel(&mut caller, ledger, task["id"].as_str().unwrap_or_default()).await?;
        // Only now: once it is entered, it counts as known and is no orphan any more.
        judge.meet(&task);
    }
    Ok(())
}

async fn cancel_held(
    judge: &Judge,
    ledger: &Ledger,
    open: &[Place],
    address: SocketAddr,
) -> Result<(), Failure> {
    let mut caller = Caller::new(address);
    for (_, id) in open.iter().filter(|(_, id)| judge.is_held(id)) {
        cancel(&mut caller, ledger, id).await?;
    }
    Ok(())
}

/// Reads the given tasks over a few connections, has them judged, and returns those that are still open.
async fn read(judge: &mut Judge, places: &[Place], address: SocketAddr) -> Result<Vec<Place>, Failure> {
    let mut readers = JoinSet::new();
    for share in places.chunks(places.len().div_ceil(READERS).max(1)) {
        readers.spawn(read_share(share.to_vec(), address));
    }
    let mut open = Vec::new();
    while let Some(share) = readers.join_next().await {
        for (place, found) in share.expect("a reader neither panics nor is cancelled")? {
            if !judge.read(&place.1, found.as_ref()) {
                open.push(place);
            }
        }
    }
    Ok(open)
}

async fn read_share(places: Vec<Place>, address: SocketAddr) -> Result<Vec<(Place, Option<Value>)>, Failure> {
    let mut caller = Caller::new(address);
    let mut found = Vec::with_capacity(places.len());
    for (agent, id) in places {
        let task = match caller.call(agent, "GetTask", json!({"id": id})).await {
            Ok(task) => Some(task),
            Err(Failure::Error { code: TASK_NOT_FOUND, .. }) => None,
            Err(failure) => return Err(failure),
        };
        found.push(((agent, id), task));
    }
    Ok(found)
}

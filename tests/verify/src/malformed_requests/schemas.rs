//! Values for recursive and doubling schemas: expressions of any number of operators, as deep as a request may be, whose
//! innermost value is wrong. To refuse one must be quick and need little memory, and must disturb no other caller. The
//! schemas are of arguments (in the file, of an MCP server, of an OpenAPI document) and of results.

mod languages;
mod mcp_server;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub(crate) use self::mcp_server::{COMMAND, serve};

use self::languages::{AGENT, Language, Source, configuration};
use super::super::random::Random;
use super::super::request_bombs::memory;
use super::super::rpc::{Caller, message};
use super::super::trial::{Setup, stop};
use crate::server::{Launch, Server};

const DEPTHS: [usize; 4] = [5, 10, 20, 30];
const MAX_GROWTH_BYTES: u64 = 8 << 20;
/// Requests beside which another caller is served.
const FLOOD: usize = 1_000;
const SENDERS: usize = 8;

/// Figures and findings.
pub(super) async fn examine(setup: &Setup, limit: Duration, seed: u64) -> Result<(Value, Vec<String>)> {
    let store = setup.store.with_file_name("schemas.db");
    let folder = store.parent().context("the store has no folder")?;
    let launch = Launch::with_config(&store, &configuration(folder)?)?;
    let server = Server::start_with(&launch, &setup.program, &store).await?;
    let process = server.id().context("the server has no process")?;
    let (mut findings, mut rows) = (Vec::new(), Vec::new());
    let combinations = Source::ALL.into_iter().flat_map(|source| Language::ALL.map(|one| (source, one)));
    for (source, language) in combinations {
        // What the first requests compile and allocate is kept for the next ones.
        refusal(server.address, source, language, 3).await?;
        for depth in DEPTHS {
            memory::reset_peak(process);
            let before = memory::read(process)?.now;
            let started = Instant::now();
            let refused = refusal(server.address, source, language, depth).await;
            let took = started.elapsed();
            let grown = memory::read(process)?.peak.saturating_sub(before);
            let skill = source.skill(language);
            rows.push(json!([skill, depth, took.as_micros() as f64 / 1_000.0, grown >> 10]));
            let what = format!("{skill}, depth {depth}");
            findings.extend(refused.err().map(|error| format!("{what}: {error:#}")));
            if took > limit || grown > MAX_GROWTH_BYTES {
                findings.push(format!("{what}: {took:?} and {} KiB", grown >> 10));
            }
        }
    }
    let beside = flood(server.address, seed, &mut findings).await?;
    stop(server, &mut findings).await?;
    let figures = json!({"skill_depth_ms_kib": rows, "calls_beside_the_flood": beside});
    Ok((figures, findings))
}

/// Sends one of `depth` objects, and expects that it is refused with the name of the innermost field.
async fn refusal(address: SocketAddr, source: Source, language: Language, depth: usize) -> Result<()> {
    // The body of an operation is a member of the arguments.
    let levels = if source == Source::OpenApi { depth - 1 } else { depth };
    let nested = (1..levels).fold(json!({"lit": "x"}), |inner, _| json!({"op0": inner}));
    let arguments = if source == Source::OpenApi { json!({"body": nested}) } else { nested };
    let skill = source.skill(language);
    let params = json!({
        "message": {
            "messageId": format!("m-{skill}-{depth}-{:?}", Instant::now()),
            "role": "ROLE_USER",
            "parts": [{"data": arguments}],
        },
        "metadata": {"skillId": skill},
    });
    let sent = Caller::new(address).call(AGENT, "SendMessage", params).await?;
    let text = sent.to_string();
    let state = if source == Source::Result { "FAILED" } else { "REJECTED" };
    ensure!(text.contains(state) && text.contains("op0.lit: "), "not refused: {text}");
    Ok(())
}

/// Sends many at once; meanwhile calls of another caller must complete. Returns their number.
async fn flood(address: SocketAddr, seed: u64, findings: &mut Vec<String>) -> Result<u64> {
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        senders.spawn(async move {
            for _ in 0..FLOOD / SENDERS {
                refusal(address, Source::Input, Language::Recursive(20), 30).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
    }
    let (mut random, mut calls) = (Random::new(seed), 0);
    while !senders.is_empty() {
        let params = message(random.uuid(), "beside", false);
        let sent = Caller::new(address).call("echo", "SendMessage", params).await?;
        if sent["task"]["status"]["state"] != "TASK_STATE_COMPLETED" {
            findings.push(format!("a call beside refused requests: {sent}"));
        }
        calls += 1;
        while let Some(ended) = senders.try_join_next() {
            ended??;
        }
    }
    Ok(calls)
}

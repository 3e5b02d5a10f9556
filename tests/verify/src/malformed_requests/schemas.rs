//! Arguments for recursive schemas: expressions of any number of operators, as deep as a request may be, whose innermost
//! value is wrong. To refuse one must be quick and need little memory, and must disturb no other caller.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::random::Random;
use super::super::request_bombs::memory;
use super::super::rpc::{Caller, message};
use super::super::trial::{Setup, stop};
use crate::server::{Launch, Server};

/// The operators of each expression language.
const OPERATORS: [usize; 4] = [2, 5, 10, 20];
const DEPTHS: [usize; 4] = [5, 10, 20, 30];
const MAX_GROWTH_BYTES: u64 = 8 << 20;
/// Requests beside which another caller is served.
const FLOOD: usize = 1_000;
const SENDERS: usize = 8;

/// Figures and findings.
pub(super) async fn examine(setup: &Setup, limit: Duration, seed: u64) -> Result<(Value, Vec<String>)> {
    let store = setup.store.with_file_name("schemas.db");
    let launch = Launch::with_config(&store, &configuration())?;
    let server = Server::start_with(&launch, &setup.program, &store).await?;
    let process = server.id().context("the server has no process")?;
    let (mut findings, mut rows) = (Vec::new(), Vec::new());
    // What the first requests allocate is kept for the next ones.
    refusal(server.address, 2, 1).await?;
    for operators in OPERATORS {
        for depth in DEPTHS {
            memory::reset_peak(process);
            let before = memory::read(process)?.now;
            let started = Instant::now();
            let refused = refusal(server.address, operators, depth).await;
            let took = started.elapsed();
            let grown = memory::read(process)?.peak.saturating_sub(before);
            rows.push(json!([operators, depth, took.as_micros() / 1_000, grown >> 10]));
            let what = format!("{operators} operators, depth {depth}");
            findings.extend(refused.err().map(|error| format!("{what}: {error:#}")));
            if took > limit || grown > MAX_GROWTH_BYTES {
                findings.push(format!("{what}: {took:?} and {} KiB", grown >> 10));
            }
        }
    }
    let beside = flood(server.address, seed, &mut findings).await?;
    stop(server, &mut findings).await?;
    let figures = json!({"operators_depth_ms_kib": rows, "calls_beside_the_flood": beside});
    Ok((figures, findings))
}

fn configuration() -> String {
    let languages = OPERATORS.map(|operators| {
        let operator = |number| {
            format!(
                r##"{{type = "object", required = ["op{number}"], properties = {{op{number} = {{"$ref" = "#/$defs/e"}}}}}}"##
            )
        };
        let alternatives: Vec<String> = (0..operators).map(operator).collect();
        let alternatives = alternatives.join(", ");
        let lit = r#"{type = "object", required = ["lit"], properties = {lit = {type = "number"}}}"#;
        format!(
            r##"[skills.e{operators}]
command = {{ argv = ["cat"] }}
input_schema = {{"$ref" = "#/$defs/e", "$defs" = {{e = {{oneOf = [{alternatives}, {lit}]}}}}}}

[agents.e{operators}]
skills = ["e{operators}"]

"##
        )
    });
    let agents = languages.concat();
    format!(
        "[server]\ndefault_agent = \"echo\"\n\n[skills.echo]\nbuiltin = \"echo\"\n\n[agents.echo]\nskills = [\"echo\"]\n\n{agents}"
    )
}

/// Sends one of `depth` objects, and expects that it is refused with the name of the innermost field.
async fn refusal(address: SocketAddr, operators: usize, depth: usize) -> Result<()> {
    let innermost = json!({"lit": "x"});
    let arguments = (1..depth).fold(innermost, |inner, _| json!({"op0": inner}));
    let params = json!({"message": {
        "messageId": format!("m-{operators}-{depth}-{:?}", Instant::now()),
        "role": "ROLE_USER",
        "parts": [{"data": arguments}],
    }});
    let sent = Caller::new(address).call(&format!("e{operators}"), "SendMessage", params).await?;
    let text = sent.to_string();
    ensure!(text.contains("REJECTED") && text.contains("op0.lit: "), "not refused: {text}");
    Ok(())
}

/// Sends many at once; meanwhile calls of another caller must complete. Returns their number.
async fn flood(address: SocketAddr, seed: u64, findings: &mut Vec<String>) -> Result<u64> {
    let mut senders = JoinSet::new();
    for _ in 0..SENDERS {
        senders.spawn(async move {
            for _ in 0..FLOOD / SENDERS {
                refusal(address, 20, 30).await?;
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

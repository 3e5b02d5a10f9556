//! `cargo bench -p a2ad-inbound --bench rate_limits -- [--rounds N] [--calls N] [--sends N]`: what rate limits and caps
//! cost, as two tables in Markdown.
//!
//! The first has the nanoseconds of one check of a rate, for one principal and for many in turn, on one thread. The
//! second has the sends a second of 16 callers with and without limits, through the HTTP service without a socket and
//! with a store that does not sync, in rounds in which both take turns; the ratio is that of the medians.

#![allow(clippy::unwrap_used, reason = "a program for measurements fails on an unexpected error")]
#![allow(clippy::print_stdout, reason = "the table is its output")]

use std::{hint::black_box, sync::Arc, time::Instant};

use a2ad_inbound::{Caller, HttpService, RateCheck, RateLimits, Ready, ServerOptions};
use axum::body::Body;
use engine::{Catalog, Clock, Engine, Feed, Limits, PrincipalCaps};
use http::Request;
use store::{Sqlite, SqliteOptions};
use tower::Service as _;

const CALLERS: usize = 16;
const SEND: &str = r#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}}"#;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // `cargo test` runs this program too, without this flag.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let number = |flag: &str, default: usize| {
        let at = args.iter().position(|arg| arg == flag);
        at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let (rounds, calls, sends) =
        (number("--rounds", 7), number("--calls", 500_000), number("--sends", 4_000));
    println!("| principals | ns per check, best of {rounds} |\n|---|---|");
    for principals in [1, 100, 100_000] {
        let best = (0..rounds).map(|_| nanos_per_check(principals, calls)).fold(f64::INFINITY, f64::min);
        println!("| {principals} | {best:.0} |");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(compare_sends(rounds, sends));
}

fn nanos_per_check(principals: usize, calls: usize) -> f64 {
    let check = RateCheck::new(principals);
    // The first check of a key inserts it.
    for call in 0..principals {
        black_box(check.check(call));
    }
    let started = Instant::now();
    for call in 0..calls {
        black_box(check.check(call));
    }
    started.elapsed().as_nanos() as f64 / calls as f64
}

async fn compare_sends(rounds: usize, sends: usize) {
    let rate = "1000000/s".parse().ok();
    let rate_limits = RateLimits { per_key: rate, per_tenant: rate, per_agent: rate };
    let caps = PrincipalCaps { tasks: 1_000, streams: 1_000, interrupted: 100, stored: 1 << 40 };
    let unlimited = Measured::new(RateLimits::default(), PrincipalCaps::default());
    let limited = Measured::new(rate_limits, caps);
    let mut rates = [Vec::new(), Vec::new()];
    for round in 0..=rounds {
        for (measured, rates) in [&unlimited, &limited].into_iter().zip(&mut rates) {
            let rate = measured.sends_per_second(sends).await;
            // The first round fills caches.
            rates.extend((round > 0).then_some(rate));
        }
    }
    let [without, with] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    println!("\n| sends/s without limits | with limits | ratio |\n|---|---|---|");
    println!("| {without:.0} | {with:.0} | {:.3} |", with / without);
}

/// A server in this process.
struct Measured {
    service: HttpService,
    _folder: tempfile::TempDir,
}

impl Measured {
    fn new(rate_limits: RateLimits, per_principal: PrincipalCaps) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (feed, clock) = (Feed::default(), Clock::system());
        let options = SqliteOptions { sync: false, ..SqliteOptions::at(folder.path().join("a2ad.db")) };
        let store = Arc::new(Sqlite::open(&options, feed.clone(), &clock).unwrap());
        let catalog = Catalog::new("echo", outbound::agents::demo());
        let limits = Limits { per_principal, ..Limits::default() };
        let engine = Engine::start(store, feed, catalog, clock, limits);
        let options = ServerOptions { rate_limits, ..ServerOptions::default() };
        Self { service: HttpService::new(engine, options, Ready::default()), _folder: folder }
    }

    async fn sends_per_second(&self, sends: usize) -> f64 {
        let started = Instant::now();
        let mut callers = tokio::task::JoinSet::new();
        for number in 0..CALLERS {
            let mut service = self.service.clone();
            callers.spawn(async move {
                for _ in 0..sends / CALLERS {
                    let mut request = Request::post("/a2a/echo").header("a2a-version", "1.0");
                    request.extensions_mut().unwrap().insert(Caller::new(format!("caller-{number}")));
                    let response = service.call(request.body(Body::from(SEND)).unwrap()).await.unwrap();
                    assert_eq!(response.status(), 200);
                }
            });
        }
        callers.join_all().await;
        sends as f64 / started.elapsed().as_secs_f64()
    }
}

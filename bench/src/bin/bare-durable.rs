//! `bare-durable --listen ADDR --dir DIR`: the bare server with a shared `fdatasync` before every response.
//!
//! It is the upper bound for a durable server on this stack and this disk.

use std::path::PathBuf;

use a2ad_bench::args::Args;
use a2ad_bench::bare;
use a2ad_bench::sync_log::SyncLog;
use anyhow::Context;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = Args::from_env()?;
    let address: String = args.required("--listen")?;
    let folder: PathBuf = args.required("--dir")?;
    args.finish()?;
    let log = SyncLog::open(&folder)?;
    let listener =
        TcpListener::bind(&address).await.with_context(|| format!("cannot listen on {address}"))?;
    bare::serve(listener, bare::router().layer(middleware::from_fn_with_state(log, sync_first))).await
}

async fn sync_first(State(log): State<SyncLog>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    log.append().await;
    response
}

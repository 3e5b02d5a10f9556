//! `bare-axum --listen ADDR`: the bare server, without storage.

use a2ad_bench::args::Args;
use a2ad_bench::bare;
use anyhow::Context;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = Args::from_env()?;
    let address: String = args.required("--listen")?;
    args.finish()?;
    let listener =
        TcpListener::bind(&address).await.with_context(|| format!("cannot listen on {address}"))?;
    bare::serve(listener, bare::router()).await
}

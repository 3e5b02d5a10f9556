//! `load send|stream --address ADDR --path PATH --connections N (--seconds S | --calls N) [--threads N]`:
//! calls one server from many keep-alive connections and prints one line of JSON.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use a2ad_bench::args::Args;
use a2ad_bench::call::Mode;
use a2ad_bench::load::{Load, Until};
use anyhow::{Context, bail};

fn main() -> anyhow::Result<()> {
    let load = load_from(Args::from_env()?)?;
    let report = load.run()?;
    if let Some(error) = &report.first_error {
        eprintln!("{} calls failed, the first with: {error}", report.errors);
    }
    println!("{}", report.line());
    Ok(())
}

fn load_from(mut args: Args) -> anyhow::Result<Load> {
    let mode: Mode = args.word().context("say what to call: send or stream")?.parse()?;
    let until = match (args.optional::<f64>("--seconds")?, args.optional("--calls")?) {
        (Some(seconds), None) => Until::Elapsed(Duration::try_from_secs_f64(seconds)?),
        (None, Some(calls)) => Until::Calls(calls),
        _ => bail!("give either --seconds or --calls"),
    };
    let load = Load {
        mode,
        address: args.required::<SocketAddr>("--address")?,
        path: args.required("--path")?,
        connections: args.required::<NonZeroUsize>("--connections")?.get(),
        threads: args.optional::<NonZeroUsize>("--threads")?.map_or_else(threads, NonZeroUsize::get),
        until,
    };
    args.finish()?;
    Ok(load)
}

/// Half the cores: the other half is the server's.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

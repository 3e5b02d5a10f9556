//! `load MODE --address ADDR --path PATH …`: calls one server and prints the results as lines of JSON.
//!
//! - `send|send-push|send-rest|send-grpc|stream|get|list|walk|list-since --connections N (--seconds S | --calls N)
//!   [--ids FILE] [--threads N]`: one call after the other on each connection; `send-grpc-multiplexed` keeps eight in
//!   progress on each. `send` writes ids of the tasks it created to the file, `get` and `list-since` read them from it.
//!   `send-push` needs `--webhooks URL,URL,…`, of which each call registers one. Over gRPC PATH is the tenant.
//! - `idle --streams N --seconds S`: holds subscriptions to a task without events.
//! - `fanout --subscribers N --events N [--threads N]`: one task of the slow writer with many subscribers.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use a2ad_bench::args::Args;
use a2ad_bench::call::Mode;
use a2ad_bench::fanout::Fanout;
use a2ad_bench::idle::Idle;
use a2ad_bench::load::{Load, Until};
use a2ad_bench::request::AgentEndpoint;
use anyhow::{Context, Result, bail, ensure};

/// Approximate number of ids that a long `send` writes to the file.
const IDS: u64 = 20_000;
/// Number of times that `list-since` chooses from.
const TIMES: usize = 500;

fn main() -> Result<()> {
    let mut args = Args::from_env()?;
    let subcommand = args.subcommand().context(
        "no mode given; expected send, send-push, send-rest, send-grpc, send-grpc-multiplexed, stream, get, list, walk, list-since, idle or fanout",
    )?;
    let endpoint = AgentEndpoint { address: args.required("--address")?, path: args.required("--path")? };
    match subcommand.as_str() {
        "idle" => idle(args, endpoint),
        "fanout" => fanout(args, endpoint),
        _ => calls(args, endpoint, subcommand.parse()?),
    }
}

fn calls(mut args: Args, endpoint: AgentEndpoint, mode: Mode) -> Result<()> {
    let until = match (args.optional("--seconds")?, args.optional("--calls")?) {
        (Some(seconds), None) => Until::Elapsed(Duration::try_from_secs_f64(seconds)?),
        (None, Some(calls)) => Until::Calls(calls),
        _ => bail!("give either --seconds or --calls"),
    };
    let ids: Option<PathBuf> = args.optional("--ids")?;
    let known: Vec<String> = match (&ids, mode) {
        (Some(file), Mode::Get | Mode::ListSince) => {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            text.lines().map(str::to_owned).collect()
        }
        (None, Mode::Get | Mode::ListSince) => {
            bail!("this mode needs --ids FILE with the ids of existing tasks")
        }
        _ => Vec::new(),
    };
    let known = match mode {
        Mode::ListSince => times(&endpoint, &known)?,
        Mode::SendPush => args.required::<String>("--webhooks")?.split(',').map(str::to_owned).collect(),
        _ => known,
    };
    let wanted = ids.filter(|_| mode == Mode::Send);
    let keep_every = match until {
        Until::Calls(calls) => usize::try_from((calls / IDS).max(1))?,
        Until::Elapsed(_) => 1,
    };
    let load = Load {
        mode,
        endpoint,
        connections: args.required::<NonZeroUsize>("--connections")?.get(),
        threads: threads(&mut args)?,
        until,
        known: known.into(),
        keep_every: wanted.is_some().then_some(keep_every),
    };
    args.finish()?;
    let report = load.run()?;
    if let Some(error) = &report.first_error {
        eprintln!("{} calls failed, the first with: {error}", report.errors);
    }
    if let Some(file) = wanted {
        fs::write(&file, report.kept.join("\n"))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    println!("{}", report.to_json());
    Ok(())
}

/// Status times of some of these tasks, from all over the list.
fn times(endpoint: &AgentEndpoint, tasks: &[String]) -> Result<Vec<String>> {
    let some: Vec<String> = tasks.iter().step_by((tasks.len() / TIMES).max(1)).cloned().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(endpoint.status_times(&some))
}

fn idle(mut args: Args, endpoint: AgentEndpoint) -> Result<()> {
    let streams = args.required::<NonZeroUsize>("--streams")?.get();
    let idle = Idle { endpoint, streams, time: Duration::try_from_secs_f64(args.required("--seconds")?)? };
    args.finish()?;
    let kept = idle.run(&mut io::stdout())?;
    ensure!(kept == streams, "{} of {streams} streams were closed early", streams - kept);
    Ok(())
}

fn fanout(mut args: Args, endpoint: AgentEndpoint) -> Result<()> {
    let fanout = Fanout {
        endpoint,
        subscribers: args.required::<NonZeroUsize>("--subscribers")?.get(),
        events: args.required("--events")?,
        threads: threads(&mut args)?,
    };
    args.finish()?;
    println!("{}", fanout.run()?);
    Ok(())
}

/// Half of the cores by default: the other half is for the server.
fn threads(args: &mut Args) -> Result<usize> {
    let half = || std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    Ok(args.optional::<NonZeroUsize>("--threads")?.map_or_else(half, NonZeroUsize::get))
}

//! `load MODE --address ADDR --path PATH …`: calls one server and prints what came of it as lines of JSON.
//!
//! - `send|send-rest|send-grpc|stream|get|list|walk|list-since --connections N (--seconds S | --calls N) [--ids FILE]
//!   [--threads N]`: one call after the other on each connection. `send` writes ids of tasks it made to the file,
//!   `get` and `list-since` read them there. For `send-grpc` PATH is the tenant.
//! - `idle --streams N --seconds S`: holds subscriptions to a task that does nothing.
//! - `fanout --subscribers N --events N [--threads N]`: one task of the slow writer with many readers.

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
use a2ad_bench::request::Door;
use anyhow::{Context, Result, bail, ensure};

/// How many ids a long `send` writes down.
const IDS: u64 = 20_000;
/// How many times a `list-since` knows.
const TIMES: usize = 500;

fn main() -> Result<()> {
    let mut args = Args::from_env()?;
    let word = args.word().context(
        "say what to do: send, send-rest, send-grpc, stream, get, list, walk, list-since, idle or fanout",
    )?;
    let door = Door { address: args.required("--address")?, path: args.required("--path")? };
    match word.as_str() {
        "idle" => idle(args, door),
        "fanout" => fanout(args, door),
        _ => calls(args, door, word.parse()?),
    }
}

fn calls(mut args: Args, door: Door, mode: Mode) -> Result<()> {
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
        (None, Mode::Get | Mode::ListSince) => bail!("say with --ids which tasks there are"),
        _ => Vec::new(),
    };
    let known = if mode == Mode::ListSince { times(&door, &known)? } else { known };
    let wanted = ids.filter(|_| mode == Mode::Send);
    let keep_every = match until {
        Until::Calls(calls) => usize::try_from((calls / IDS).max(1))?,
        Until::Elapsed(_) => 1,
    };
    let load = Load {
        mode,
        door,
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
    println!("{}", report.line());
    Ok(())
}

/// Times at which some of these tasks, from all over the list, were completed.
fn times(door: &Door, tasks: &[String]) -> Result<Vec<String>> {
    let some: Vec<String> = tasks.iter().step_by((tasks.len() / TIMES).max(1)).cloned().collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(door.status_times(&some))
}

fn idle(mut args: Args, door: Door) -> Result<()> {
    let streams = args.required::<NonZeroUsize>("--streams")?.get();
    let idle = Idle { door, streams, time: Duration::try_from_secs_f64(args.required("--seconds")?)? };
    args.finish()?;
    let kept = idle.run(&mut io::stdout())?;
    ensure!(kept == streams, "{} of {streams} streams did not last", streams - kept);
    Ok(())
}

fn fanout(mut args: Args, door: Door) -> Result<()> {
    let fanout = Fanout {
        door,
        subscribers: args.required::<NonZeroUsize>("--subscribers")?.get(),
        events: args.required("--events")?,
        threads: threads(&mut args)?,
    };
    args.finish()?;
    println!("{}", fanout.run()?);
    Ok(())
}

/// Half the cores unless told: the other half is the server's.
fn threads(args: &mut Args) -> Result<usize> {
    let half = || std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1));
    Ok(args.optional::<NonZeroUsize>("--threads")?.map_or_else(half, NonZeroUsize::get))
}

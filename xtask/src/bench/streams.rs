//! Streams of `a2ad`: memory of one idle stream, and event rate with many subscribers.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{sleep, timeout};

use super::contender::{Contender, open_files_allowed};
use super::dirs::BenchDirs;
use super::figures::{Fields, thousands};
use super::plan::Plan;
use super::server::Server;

/// Open files a process needs in addition to its streams.
const OTHER_FILES: u64 = 256;
/// Streams opened and closed before the first memory reading, so that one-time costs are not counted.
const WARM_UP_STREAMS: u64 = 16;
/// Time limit for opening all streams.
const OPEN_LIMIT: Duration = Duration::from_secs(60);
/// How long the streams are held open, and how long they have been open at the second memory reading.
const HELD_SECONDS: u64 = 4;
const MEASURE_AFTER: Duration = Duration::from_secs(2);

/// Memory of subscriptions that receive no events.
pub(super) struct Idle {
    wanted: u64,
    streams: u64,
    /// In KiB, without streams and with all of them.
    before: u64,
    with: u64,
}

impl Idle {
    pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<Self> {
        let files = open_files_allowed(plan.streams + OTHER_FILES).await?;
        let streams = files.saturating_sub(OTHER_FILES).min(plan.streams);
        ensure!(streams > 0, "no more than {files} files may be open here");
        eprintln!("{streams} idle streams");
        let folder = dirs.fresh_folder("round")?;
        let server = Server::start(dirs, Contender::A2ad, &folder, Some(files)).await?;
        let idle = |streams: u64, seconds: u64| {
            let mut load = server.load_command(dirs, "idle", Contender::A2ad.path("idle"), Some(files));
            load.args(["--streams", &streams.to_string(), "--seconds", &seconds.to_string()]);
            load
        };
        // One-time costs must not be divided among the streams.
        ensure!(
            idle(WARM_UP_STREAMS, 0).output().await?.status.success(),
            "the warm-up streams could not be opened"
        );
        let before = server.resident()?;
        let mut load = idle(streams, HELD_SECONDS).spawn().context("cannot start the load")?;
        let mut output_lines = BufReader::new(load.stdout.take().context("the load has no output")?).lines();
        let line = timeout(OPEN_LIMIT, output_lines.next_line())
            .await
            .context("the streams did not open in time")??;
        let open = Fields::decode(line.unwrap_or_default().as_bytes())?.get("open")?;
        ensure!(open as u64 == streams, "{open} of {streams} streams are open");
        sleep(MEASURE_AFTER).await;
        let with = server.resident()?;
        ensure!(load.wait().await?.success(), "the streams were closed too early");
        server.kill().await?;
        Ok(Self { wanted: plan.streams, streams, before, with })
    }

    pub(super) fn describe(&self, text: &mut String) -> Result<()> {
        let Self { wanted, streams, before, with } = *self;
        writeln!(
            text,
            "\n## Idle streams\n\n\
             Subscriptions to one task that waits, each on its own connection; resident memory of a server that has had\n\
             a few, and of the same with all of them open. What the kernel keeps for the sockets is not in it.\n"
        )?;
        if streams < wanted {
            writeln!(
                text,
                "This machine does not allow a process the files for {}.\n",
                thousands(wanted as f64)
            )?;
        }
        text.push_str("| streams | MiB before | MiB with them | KiB each |\n|--:|--:|--:|--:|\n");
        writeln!(
            text,
            "| {} | {:.1} | {:.1} | {:.1} |",
            thousands(streams as f64),
            before as f64 / 1024.0,
            with as f64 / 1024.0,
            with.saturating_sub(before) as f64 / streams as f64
        )?;
        Ok(())
    }
}

/// One long task with many subscribers.
pub(super) struct Fanout(Fields);

impl Fanout {
    pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<Self> {
        eprintln!("{} events for {} subscribers", plan.events, plan.subscribers);
        let folder = dirs.fresh_folder("round")?;
        let server = Server::start(dirs, Contender::A2ad, &folder, None).await?;
        let output = server
            .load_command(dirs, "fanout", "/a2a/slow-writer", None)
            .args(["--events", &plan.events.to_string(), "--subscribers", &plan.subscribers.to_string()])
            .output()
            .await
            .context("cannot start the load")?;
        ensure!(output.status.success(), "the subscribers did not all get the same events, each once");
        server.kill().await?;
        Fields::decode(&output.stdout).map(Self)
    }

    pub(super) fn describe(&self, text: &mut String) -> Result<()> {
        let Self(fields) = self;
        writeln!(
            text,
            "\n## Fan-out\n\n\
             One task of the slow writer with {} events of {} bytes, read by {} subscribers from the first event on: live,\n\
             where the writer sets the pace, and once more from the log when the task has ended. Every subscriber got\n\
             the same bytes both times, each event once and none missing.\n",
            thousands(fields.get("events")?),
            fields.get("bytes_an_event")?,
            fields.get("subscribers")?
        )?;
        text.push_str("| read | seconds | deliveries/s |\n|---|--:|--:|\n");
        for (what, name) in [("live", "live"), ("from the log", "stored")] {
            let seconds = fields.get(&format!("{name}_s"))?;
            let rate = thousands(fields.get(&format!("{name}_deliveries_per_s"))?);
            writeln!(text, "| {what} | {seconds:.2} | {rate} |")?;
        }
        Ok(())
    }
}

//! Streams of `a2ad`: what one costs that waits, and how many events go to many at once.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{sleep, timeout};

use super::contender::{Contender, open_files_allowed};
use super::figures::{Fields, thousands};
use super::places::Places;
use super::plan::Plan;
use super::server::Server;

/// Open files a process needs beside its streams.
const OTHER_FILES: u64 = 256;
/// How many streams a server has had before its memory is looked at.
const FEW: u64 = 16;
/// How long all streams may take to open.
const OPEN_LIMIT: Duration = Duration::from_secs(60);
/// How long they are held, and how long they have been when the memory is looked at.
const HELD_SECONDS: u64 = 4;
const LOOKED_AT: Duration = Duration::from_secs(2);

/// The memory of subscriptions on which nothing happens.
pub(super) struct Idle {
    wanted: u64,
    streams: u64,
    /// In KiB, before the first and with all of them.
    before: u64,
    with: u64,
}

impl Idle {
    pub(super) async fn measure(plan: &Plan, places: &Places) -> Result<Self> {
        let files = open_files_allowed(plan.streams + OTHER_FILES).await?;
        let streams = files.saturating_sub(OTHER_FILES).min(plan.streams);
        ensure!(streams > 0, "no more than {files} files may be open here");
        eprintln!("{streams} idle streams");
        let folder = places.fresh_folder("round")?;
        let server = Server::start(places, Contender::A2ad, &folder, Some(files)).await?;
        let idle = |streams: u64, seconds: u64| {
            let mut load = server.load_command(places, "idle", Contender::A2ad.path("idle"), Some(files));
            load.args(["--streams", &streams.to_string(), "--seconds", &seconds.to_string()]);
            load
        };
        // So that what is paid once is not shared out to the streams.
        ensure!(idle(FEW, 0).output().await?.status.success(), "not even a few streams can be opened");
        let before = server.resident()?;
        let mut load = idle(streams, HELD_SECONDS).spawn().context("cannot start the load")?;
        let mut said = BufReader::new(load.stdout.take().context("the load has no output")?).lines();
        let line = timeout(OPEN_LIMIT, said.next_line()).await.context("the streams do not open")??;
        let open = Fields::decode(line.unwrap_or_default().as_bytes())?.get("open")?;
        ensure!(open as u64 == streams, "{open} of {streams} streams are open");
        sleep(LOOKED_AT).await;
        let with = server.resident()?;
        ensure!(load.wait().await?.success(), "the streams did not last");
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

/// One long task with many readers.
pub(super) struct Fanout(Fields);

impl Fanout {
    pub(super) async fn measure(plan: &Plan, places: &Places) -> Result<Self> {
        eprintln!("{} events for {} subscribers", plan.events, plan.subscribers);
        let folder = places.fresh_folder("round")?;
        let server = Server::start(places, Contender::A2ad, &folder, None).await?;
        let output = server
            .load_command(places, "fanout", "/a2a/slow-writer", None)
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

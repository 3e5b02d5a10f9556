//! `cargo xtask verify slowhttptest`: slow clients that others wrote, as a second opinion beside the proof `stuck_sockets`.
//!
//! The program of the Debian package opens connections that send the head or the body of a request slowly, and asks the
//! server for a response meanwhile. It has to end because the server has closed every connection, and the server has to have
//! answered all the time. Deliberately not here: its slow readers, whose response fits into the buffers of the kernel, so that
//! the server sees an idle connection; the proof `slow_readers` has large ones.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use testkit::process::Server;

use crate::{interop::debian::Package, program};

pub(crate) const OPTIONS: &str = "[--connections N]";

const PACKAGE: Package = Package { name: "slowhttptest", program: "slowhttptest", variable: "SLOWHTTPTEST" };

/// Name and options of each attack.
const ATTACKS: &[(&str, &[&str])] = &[
    ("slow heads", &["-H", "-i", "2"]),
    ("slow bodies", &["-B", "-i", "2", "-s", "8192", "-f", "application/json"]),
];

/// A connection that is stuck for longer is one that the server has not closed.
const SECONDS: &str = "60";

pub(crate) fn run(options: &[String]) -> Result<()> {
    let connections = match options {
        [] => "1000",
        [name, number] if name == "--connections" => number,
        _ => bail!("unknown options {options:?}; possible: {OPTIONS}"),
    };
    let a2ad = program::build()?;
    let folder = program::target()?.join("slowhttptest");
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let tool = PACKAGE.program(&folder).await?;
        let data = folder.join("data");
        if data.exists() {
            fs::remove_dir_all(&data)?;
        }
        fs::create_dir_all(&data)?;
        let server = Server::start(&a2ad, &data.join("a2ad.db")).await?;
        for (name, options) in ATTACKS {
            attack(&tool, name, options, connections, &server)?;
        }
        server.terminate(Duration::from_secs(60)).await?;
        Ok(())
    })
}

fn attack(tool: &Path, name: &str, options: &[&str], connections: &str, server: &Server) -> Result<()> {
    let started = Instant::now();
    let mut command = Command::new(tool);
    command.args(options).args(["-c", connections, "-r", "500", "-l", SECONDS, "-p", "3"]);
    command.args(["-u", &format!("{}/", server.url())]);
    let output = command.output().with_context(|| format!("{} could not be started", tool.display()))?;
    let report = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "slowhttptest failed during {name}: {report}");
    ensure!(report.contains("No open connections left"), "{name}: connections are left open: {report}");
    let answered = report.lines().filter(|line| line.contains("service available")).collect::<Vec<_>>();
    let unavailable = answered.iter().filter(|line| line.contains("NO")).count();
    ensure!(
        !answered.is_empty() && unavailable == 0,
        "{name}: the server was not available {unavailable} times: {report}"
    );
    println!(
        "{name}: {connections} connections, all closed after {} s, server always available",
        started.elapsed().as_secs()
    );
    Ok(())
}

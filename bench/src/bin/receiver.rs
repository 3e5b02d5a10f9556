//! `receiver --ports N`: receives push notifications, and does what the lines of standard input say until its end.
//!
//! Its first line is the URLs of its ports, separated by commas. `hold` forgets what has arrived and holds responses
//! back, `release` sends them, and `wait N` prints, when N notifications have arrived since `hold`, how many of them
//! came after the release and in what time, as a line of JSON.

use std::io::{self, BufRead as _};

use a2ad_bench::args::Args;
use a2ad_bench::receiver::Receiver;
use anyhow::{Context, Result, bail};

fn main() -> Result<()> {
    let mut args = Args::from_env()?;
    let ports = args.required("--ports")?;
    args.finish()?;
    // This thread reads commands; one other serves all ports, so that the server has the rest of the cores.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (receiver, urls) = runtime.block_on(Receiver::listen(ports))?;
    println!("{}", urls.join(","));
    for line in io::stdin().lock().lines() {
        let line = line?;
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("hold", "") => receiver.hold(),
            ("release", "") => receiver.release(),
            ("wait", number) => {
                let delivered = receiver.wait(number.parse().context("wait takes a number")?)?;
                println!(
                    r#"{{"notifications":{},"seconds":{}}}"#,
                    delivered.notifications,
                    delivered.time.as_secs_f64()
                );
            }
            (command, _) => bail!("unknown command `{command}`; expected hold, release or wait N"),
        }
    }
    Ok(())
}

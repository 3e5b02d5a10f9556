//! Measures all contenders, round by round, in every cell.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;

use super::contender::Contender;
use super::dirs::BenchDirs;
use super::figures::{Sample, ratios, spread, write_calls};
use super::plan::Plan;
use super::server::{Cell, Limit, Server};

const CELLS: [Cell; 5] = [
    Cell { mode: "send", connections: 1 },
    Cell { mode: "send", connections: 16 },
    Cell { mode: "send", connections: 64 },
    Cell { mode: "send", connections: 256 },
    Cell { mode: "stream", connections: 64 },
];
const WARM_UP: (Cell, Limit) = (Cell { mode: "send", connections: 16 }, Limit::Seconds(0.5));

pub(super) struct Beside {
    /// One sample a round, by cell and contender.
    samples: BTreeMap<(usize, Contender), Vec<Sample>>,
}

impl Beside {
    pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<Self> {
        let mut samples: BTreeMap<_, Vec<Sample>> = BTreeMap::new();
        for round in 0..plan.rounds {
            let mut order = Contender::ALL;
            // Rotated, so that no contender always runs after the same other one.
            order.rotate_left(round % Contender::ALL.len());
            for contender in order {
                eprintln!("round {} of {}: {}", round + 1, plan.rounds, contender.name());
                let folder = dirs.fresh_folder("round")?;
                let server = Server::start(dirs, contender, &folder, None).await?;
                server.load(dirs, WARM_UP.0, WARM_UP.1, None).await?;
                for (number, cell) in CELLS.into_iter().enumerate() {
                    let sample = server.load(dirs, cell, Limit::Seconds(plan.seconds), None).await?;
                    samples.entry((number, contender)).or_default().push(sample);
                }
                server.kill().await?;
            }
        }
        Ok(Self { samples })
    }

    pub(super) fn failed_calls(&self) -> u64 {
        self.samples.values().flatten().map(|sample| sample.errors).sum()
    }

    pub(super) fn describe(&self, text: &mut String) -> Result<()> {
        text.push_str("## Calls\n\n");
        text.push_str("Medians over the rounds; in brackets the least and the greatest ratio of a round; ");
        text.push_str("max is the slowest call of all rounds.\n\n");
        text.push_str("| call, connections | contender | calls/s | p50 ms | p99 ms | max ms ");
        text.push_str("| × bare-axum | × official-sdk |\n|---|---|--:|--:|--:|--:|--:|--:|\n");
        for (number, Cell { mode, connections }) in CELLS.into_iter().enumerate() {
            for contender in Contender::ALL {
                write!(text, "| {mode}, {connections} | {} ", contender.name())?;
                write_calls(text, &self.samples[&(number, contender)])?;
                let of_bare = self.ratio(number, contender, Contender::BareAxum);
                let of_sdk = self.ratio(number, contender, Contender::OfficialSdk);
                writeln!(text, "| {of_bare} | {of_sdk} |")?;
            }
        }
        Ok(())
    }

    fn ratio(&self, cell: usize, contender: Contender, base: Contender) -> String {
        if contender == base {
            return "1".to_owned();
        }
        spread(ratios(&self.samples[&(cell, contender)], &self.samples[&(cell, base)], |sample| sample.rate))
    }
}

//! Push notifications of `a2ad`: what a webhook adds to a send, and how fast notifications are delivered.
//!
//! Delivery is paused by a receiver that holds its responses back: the server then waits for the few requests that it
//! has in flight, and everything else stays in the store. Nothing fails, so the figures contain no retry and no open
//! circuit breaker, and delivery goes on at once when the responses are released.

mod receiver;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;

use self::receiver::{Arrived, Receiver};
use super::contender::Contender;
use super::dirs::BenchDirs;
use super::figures::{Sample, median, ratios, spread, thousands, write_calls};
use super::plan::Plan;
use super::server::{Cell, Limit, Server};

const RECEIVERS: usize = 100;
const CONNECTIONS: usize = 64;
const WARM_UP: Limit = Limit::Seconds(0.3);

/// Webhooks may be on the loopback interface, and requests whose responses are held back do not time out.
const SETTINGS: [(&str, &str); 3] = [
    ("A2AD_OUTBOUND__ALLOW", r#"["127.0.0.0/8"]"#),
    ("A2AD_OUTBOUND__ALLOW_HTTP", "true"),
    ("A2AD_PUSH__TIMEOUT", "1h"),
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Case {
    /// The base of the ratios.
    NoWebhook,
    Paused,
    PausedMany,
    Running,
}

impl Case {
    const ALL: [Self; 4] = [Self::NoWebhook, Self::Paused, Self::PausedMany, Self::Running];

    fn sends(self) -> &'static str {
        match self {
            Self::NoWebhook => "no webhook",
            Self::Paused => "delivery paused",
            Self::PausedMany => "delivery paused, 100 receivers",
            Self::Running => "delivery running",
        }
    }

    /// What is delivered; `None` if nothing is.
    fn deliveries(self) -> Option<&'static str> {
        match self {
            Self::NoWebhook => None,
            Self::Paused => Some("backlog, one receiver"),
            Self::PausedMany => Some("backlog, 100 receivers"),
            Self::Running => Some("while the sends go on, one receiver"),
        }
    }
}

/// The measurements by case, one a round.
pub(super) struct Push(BTreeMap<Case, Vec<Round>>);

struct Round {
    sample: Sample,
    /// CPU time of the server per call in microseconds.
    server_us: f64,
    delivered: Option<Delivered>,
}

struct Delivered {
    arrived: Arrived,
    /// CPU time after the sends per notification in microseconds; means nothing where delivery ran during the sends.
    server_us: f64,
    receiver_us: f64,
}

impl Delivered {
    /// CPU time of both processes per second.
    fn cores(&self) -> f64 {
        self.arrived.rate() * (self.server_us + self.receiver_us) / 1e6
    }
}

impl Push {
    pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<Self> {
        let mut rounds: BTreeMap<_, Vec<Round>> = BTreeMap::new();
        let mut receiver = Receiver::start(dirs, RECEIVERS).await?;
        for round in 0..plan.rounds {
            let folder = dirs.fresh_folder("round")?;
            let server = Server::start_with(dirs, Contender::A2ad, &folder, None, &SETTINGS).await?;
            for case in Case::ALL {
                Round::measure(dirs, &server, &mut receiver, case, WARM_UP).await?;
            }
            let mut order = Case::ALL;
            // Rotated, so that no case always runs after the same other one.
            order.rotate_left(round % Case::ALL.len());
            for case in order {
                eprintln!("round {} of {}: {}", round + 1, plan.rounds, case.sends());
                let limit = Limit::Seconds(plan.seconds);
                let measured = Round::measure(dirs, &server, &mut receiver, case, limit).await?;
                rounds.entry(case).or_default().push(measured);
            }
            server.kill().await?;
        }
        Ok(Self(rounds))
    }

    pub(super) fn failed_calls(&self) -> u64 {
        self.0.values().flatten().map(|round| round.sample.errors).sum()
    }

    pub(super) fn describe(&self, text: &mut String) -> Result<()> {
        self.describe_sends(text)?;
        self.describe_deliveries(text)
    }

    fn describe_sends(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "\n## Push notifications\n\n\
             `a2ad` alone: blocking sends with and without a webhook in the same call, in turns on one server, from {CONNECTIONS}\n\
             connections. Delivery is paused by a receiver that reads the requests and holds its responses back: at most 16\n\
             requests to a host are in flight, 256 in all, and the other notifications wait in the store. When it runs, the\n\
             receiver responds at once, and its work and that of the deliveries is done by the same cores. Ratios are to the\n\
             sends without a webhook in the same round.\n"
        )?;
        text.push_str("| sends | calls/s | p50 ms | p99 ms | max ms | calls/s × no webhook ");
        text.push_str("| server µs/call | µs/call × no webhook |\n|---|--:|--:|--:|--:|--:|--:|--:|\n");
        let base = &self.0[&Case::NoWebhook];
        for case in Case::ALL {
            let rounds = &self.0[&case];
            write!(text, "| {} ", case.sends())?;
            write_calls(text, &rounds.iter().map(|round| round.sample).collect::<Vec<_>>())?;
            let server = median(rounds.iter().map(|round| round.server_us).collect());
            let ratio = |field| match case {
                Case::NoWebhook => "1".to_owned(),
                _ => spread(ratios(rounds, base, field)),
            };
            let (of_rate, of_time) = (ratio(|round| round.sample.rate), ratio(|round| round.server_us));
            writeln!(text, "| {of_rate} | {server:.1} | {of_time} |")?;
        }
        Ok(())
    }

    fn describe_deliveries(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "\nThe notifications of these sends, each with the completed task, its token and a signature, counted once where\n\
             they arrive: the backlog of a paused delivery from the release of the responses, and those of a running delivery\n\
             from the start of the sends, both to the last arrival. A delivery is three reads, a request and a commit with a\n\
             sync. With one receiver the limit is that 16 are in progress at a time: fewer of them share a commit, and the\n\
             cores are not all busy. With {RECEIVERS} receivers, and so 256 in progress, it is the processors.\n"
        )?;
        text.push_str("| deliveries | notifications | deliveries/s | × sends without webhook ");
        text.push_str("| × one receiver | server µs each | receiver µs each | cores busy |\n");
        text.push_str("|---|--:|--:|--:|--:|--:|--:|--:|\n");
        let sends: Vec<f64> = self.0[&Case::NoWebhook].iter().map(|round| round.sample.rate).collect();
        let one = self.delivered(Case::Paused, |delivered| delivered.arrived.rate());
        for case in Case::ALL {
            let Some(name) = case.deliveries() else { continue };
            let rate = self.delivered(case, |delivered| delivered.arrived.rate());
            let middle = |field| median(self.delivered(case, field));
            let of = |base: &[f64]| spread(rate.iter().zip(base).map(|(rate, base)| rate / base).collect());
            write!(
                text,
                "| {name} | {} | {} | {} | {} ",
                thousands(middle(|delivered| delivered.arrived.notifications)),
                thousands(median(rate.clone())),
                of(&sends),
                if case == Case::Paused { "1".to_owned() } else { of(&one) },
            )?;
            if case == Case::Running {
                text.push_str("| – | – | – |\n");
                continue;
            }
            writeln!(
                text,
                "| {:.0} | {:.0} | {:.1} |",
                middle(|delivered| delivered.server_us),
                middle(|delivered| delivered.receiver_us),
                middle(Delivered::cores)
            )?;
        }
        Ok(())
    }

    /// A figure of the deliveries of a case, round by round.
    fn delivered(&self, case: Case, field: fn(&Delivered) -> f64) -> Vec<f64> {
        self.0[&case].iter().filter_map(|round| round.delivered.as_ref()).map(field).collect()
    }
}

impl Round {
    /// Ends when all notifications of the sends have arrived.
    async fn measure(
        dirs: &BenchDirs,
        server: &Server,
        receiver: &mut Receiver,
        case: Case,
        limit: Limit,
    ) -> Result<Self> {
        let urls = match case {
            Case::NoWebhook => return Self::measure_sends(dirs, server, None, limit).await,
            Case::Paused | Case::Running => receiver.url(),
            Case::PausedMany => receiver.urls(),
        };
        receiver.hold().await?;
        if case == Case::Running {
            receiver.release().await?;
        }
        let mut round = Self::measure_sends(dirs, server, Some(&urls), limit).await?;
        let before = (server.cpu_time()?, receiver.cpu_time()?);
        if case != Case::Running {
            receiver.release().await?;
        }
        let arrived = receiver.wait(round.sample.calls as u64).await?;
        let spent = (server.cpu_time()? - before.0, receiver.cpu_time()? - before.1);
        let micros_each = |time: Duration| time.as_secs_f64() * 1e6 / arrived.notifications;
        let (server_us, receiver_us) = (micros_each(spent.0), micros_each(spent.1));
        round.delivered = Some(Delivered { arrived, server_us, receiver_us });
        Ok(round)
    }

    async fn measure_sends(
        dirs: &BenchDirs,
        server: &Server,
        webhooks: Option<&str>,
        limit: Limit,
    ) -> Result<Self> {
        let before = server.cpu_time()?;
        let sample = match webhooks {
            None => server.load(dirs, Cell { mode: "send", connections: CONNECTIONS }, limit, None).await?,
            Some(urls) => server.load_with_webhooks(dirs, CONNECTIONS, limit, urls).await?,
        };
        let spent = server.cpu_time()? - before;
        Ok(Self { sample, server_us: spent.as_secs_f64() * 1e6 / sample.calls, delivered: None })
    }
}

//! The ways in which receivers fail, each for one task in five; the other tasks of the same receiver are accepted at once.

use std::time::Duration;

use crate::webhooks::ledger::Arrival;
use crate::webhooks::receiver::Answer;

/// The wait that a receiver asks for, in seconds.
const RETRY_AFTER: u64 = 2;
/// Longer than the time limit of the server.
const STALL: Duration = Duration::from_secs(4);
/// How many of the first attempts fail.
const FAILING: usize = 2;

/// How a receiver fails.
pub(super) struct Fault {
    pub(super) name: &'static str,
    /// The response to attempt 0, 1, …; `None` accepts.
    answer: fn(attempt: usize) -> Option<Answer>,
    /// The fault does not fill the places for requests to this host, so that its other notifications have to be prompt.
    pub(super) is_prompt: bool,
    /// How the notifications end.
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Delivered,
    /// After the last attempt.
    GivenUp,
    /// At the first attempt; the webhook is disabled.
    Disabled,
}

/// All receivers that are not down.
pub(super) static FAULTS: &[Fault] = &[
    Fault {
        name: "500 and 503",
        answer: |attempt| match attempt {
            0 => Some(Answer::Refuse(500, None)),
            1 => Some(Answer::Refuse(503, None)),
            _ => None,
        },
        is_prompt: false,
        end: End::Delivered,
    },
    Fault {
        name: "429 with Retry-After",
        answer: |attempt| (attempt == 0).then_some(Answer::Refuse(429, Some(RETRY_AFTER))),
        is_prompt: false,
        end: End::Delivered,
    },
    Fault {
        name: "stall",
        answer: |attempt| (attempt == 0).then_some(Answer::Stall(STALL)),
        is_prompt: false,
        end: End::Delivered,
    },
    Fault {
        name: "reset",
        answer: |attempt| (attempt < FAILING).then_some(Answer::Reset),
        is_prompt: false,
        end: End::Delivered,
    },
    Fault { name: "410", answer: |_| Some(Answer::Refuse(410, None)), is_prompt: true, end: End::Disabled },
    Fault { name: "400", answer: |_| Some(Answer::Refuse(400, None)), is_prompt: true, end: End::GivenUp },
    Fault {
        name: "redirect",
        answer: |_| Some(Answer::Refuse(302, None)),
        is_prompt: true,
        end: End::GivenUp,
    },
];

impl Fault {
    /// Whether this task is one that fails. The numbers of the tasks of a receiver differ by the number of receivers.
    pub(super) fn hits(&self, number: u64) -> bool {
        (number / FAULTS.len() as u64).is_multiple_of(5)
    }

    pub(super) fn answer(&self, number: u64, attempt: usize) -> Answer {
        let fault = if self.hits(number) { (self.answer)(attempt) } else { None };
        fault.unwrap_or(Answer::Accept(Duration::ZERO))
    }

    /// For tasks whose notifications cannot be delivered: how many requests there are at least, if all notifications have
    /// this many attempts together.
    pub(super) fn requests_until_death(&self, number: u64, attempts: usize) -> Option<usize> {
        match self.end {
            End::Delivered => None,
            _ if !self.hits(number) => None,
            End::GivenUp => Some(attempts),
            End::Disabled => Some(1),
        }
    }

    /// What is wrong with the attempts for a task, in the order of their arrival.
    pub(super) fn problem(&self, number: u64, arrivals: &[Arrival], attempts: usize) -> Option<String> {
        if !self.hits(number) {
            return (arrivals.iter().any(|arrival| !arrival.accepted))
                .then(|| "refused without a fault".into());
        }
        let early = arrivals.windows(2).find(|pair| {
            let waited = pair[1].at.saturating_duration_since(pair[0].at);
            self.asks_to_wait(&pair[0])
                && pair[1].id == pair[0].id
                && waited < Duration::from_secs(RETRY_AFTER)
        });
        if early.is_some() {
            return Some("Retry-After was not followed".into());
        }
        match self.end {
            End::Disabled if arrivals.len() != 1 => {
                Some(format!("{} requests after 410", arrivals.len() - 1))
            }
            End::GivenUp if most_attempts(arrivals) > attempts => {
                Some(format!("{} attempts instead of {attempts}", most_attempts(arrivals)))
            }
            End::Delivered | End::GivenUp | End::Disabled => None,
        }
    }

    fn asks_to_wait(&self, arrival: &Arrival) -> bool {
        !arrival.accepted && matches!((self.answer)(0), Some(Answer::Refuse(_, Some(_))))
    }
}

/// The most attempts for one notification.
fn most_attempts(arrivals: &[Arrival]) -> usize {
    arrivals.iter().map(|one| arrivals.iter().filter(|other| other.id == one.id).count()).max().unwrap_or(0)
}

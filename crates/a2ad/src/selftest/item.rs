//! The catalogue's words: an item, how it is checked, and what a check may find.

use std::fmt;

use futures_util::future::BoxFuture;

use super::fixture::Fixture;

/// A document of the mission and what it asks for.
pub(super) struct Seed {
    /// `S0` to `S4`.
    pub(super) name: &'static str,
    /// In order, without a gap.
    pub(super) items: &'static [Item],
}

/// One thing that is asked for.
pub(super) struct Item {
    pub(super) number: u16,
    pub(super) what: &'static str,
    pub(super) check: Check,
}

/// How an item is checked.
pub(super) enum Check {
    /// By asking a server.
    Wire(Run),
    /// By an ordinary test of this name, which runs with the others: `crate/tests/file.rs::name`.
    Test(&'static str),
    /// Not at all, until this step of the roadmap is done.
    NotYet(Step),
}

/// Asks and judges.
pub(super) type Run = for<'a> fn(&'a Fixture) -> BoxFuture<'a, Checked>;

/// What a check comes to.
pub(super) type Checked = Result<(), Trouble>;

/// Why an item has not passed.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server does something else.
    Wrong { expected: String, got: String },
    /// The server has not got what the check needs.
    Absent(String),
    /// The server is right, but for this, which the machine does not let be checked.
    ButFor(String),
}

pub(super) fn wrong(expected: impl fmt::Display, got: impl fmt::Display) -> Trouble {
    Trouble::Wrong { expected: expected.to_string(), got: got.to_string() }
}

/// The steps of the roadmap that own what is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Bindings,
    Push,
    Tools,
    Identity,
    Orchestration,
    Guardrails,
    Client,
    Console,
    Product,
}

impl fmt::Display for Step {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Bindings => "step 4, every binding",
            Self::Push => "step 5, push that arrives",
            Self::Tools => "step 6, tools everywhere",
            Self::Identity => "step 7, identity",
            Self::Orchestration => "step 8, orchestration",
            Self::Guardrails => "step 9, guardrails and approvals",
            Self::Client => "step 10, client and lab",
            Self::Console => "step 13, console",
            Self::Product => "step 14, product",
        })
    }
}

/// An item that a function of the same file checks.
macro_rules! wire {
    ($number:literal, $what:literal, $check:path) => {
        $crate::selftest::Item {
            number: $number,
            what: $what,
            check: $crate::selftest::Check::Wire(|at| Box::pin($check(at))),
        }
    };
}
pub(super) use wire;

/// An item that an ordinary test checks.
pub(super) const fn test(number: u16, what: &'static str, name: &'static str) -> Item {
    Item { number, what, check: Check::Test(name) }
}

/// An item of a later step.
pub(super) const fn not_yet(number: u16, what: &'static str, step: Step) -> Item {
    Item { number, what, check: Check::NotYet(step) }
}

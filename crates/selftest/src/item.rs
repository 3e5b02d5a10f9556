//! The types of the catalogue: an item, how it is checked, and the result of a check.

use std::fmt;

use futures_util::future::BoxFuture;

use super::fixture::Fixture;

/// A group of items that cover one protocol generation or compatibility profile.
pub(crate) struct Group {
    /// `S0` to `S4`.
    pub(crate) name: &'static str,
    /// Ordered by number, starting at 1, without gaps.
    pub(crate) items: &'static [Item],
}

/// One requirement. Its id is the group's name and the number, such as `S1-49`.
pub(crate) struct Item {
    pub(crate) number: u16,
    /// What the check verifies, in one sentence.
    pub(crate) what: &'static str,
    pub(crate) check: Check,
}

/// How an item is checked.
pub(crate) enum Check {
    /// By requests to a server.
    Wire(CheckFn),
    /// By an ordinary test of this name: `crates/NAME/tests/FILE.rs::FUNCTION`.
    Test(&'static str),
    /// Not checked: the item depends on this feature, which is not built yet.
    NotYet(Feature),
}

/// Sends the requests of one item and verifies the responses.
pub(crate) type CheckFn = for<'a> fn(&'a Fixture) -> BoxFuture<'a, CheckResult>;

pub(crate) type CheckResult = Result<(), CheckError>;

/// Why an item has not passed.
#[derive(Debug)]
pub(crate) enum CheckError {
    /// The server's behaviour differs from the requirement.
    Mismatch { expected: String, got: String },
    /// The server lacks an agent, a skill or a capability that the check needs.
    NotOffered(String),
    /// Everything passed except this part, which cannot be checked on this machine.
    PartlyChecked(String),
}

pub(crate) fn mismatch(expected: impl fmt::Display, got: impl fmt::Display) -> CheckError {
    CheckError::Mismatch { expected: expected.to_string(), got: got.to_string() }
}

/// Features that are not built yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    TenantsAndCards,
    Tools,
    Identity,
    Orchestration,
    Guardrails,
    Client,
    Console,
}

impl fmt::Display for Feature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::TenantsAndCards => "tenants, schemas and signed cards",
            Self::Tools => "tools as skills",
            Self::Identity => "authentication and authorisation",
            Self::Orchestration => "pipelines and orchestration",
            Self::Guardrails => "guardrails and approvals",
            Self::Client => "outbound calls and client features",
            Self::Console => "web console",
        })
    }
}

/// An item that is checked by the given function.
macro_rules! wire {
    ($number:literal, $what:literal, $check:path) => {
        $crate::Item { number: $number, what: $what, check: $crate::Check::Wire(|at| Box::pin($check(at))) }
    };
}
pub(crate) use wire;

/// An item that is checked by an ordinary test.
pub(crate) const fn test(number: u16, what: &'static str, name: &'static str) -> Item {
    Item { number, what, check: Check::Test(name) }
}

/// An item that depends on a feature that is not built yet.
pub(crate) const fn not_yet(number: u16, what: &'static str, feature: Feature) -> Item {
    Item { number, what, check: Check::NotYet(feature) }
}

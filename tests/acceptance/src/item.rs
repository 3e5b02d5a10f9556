//! The types of the list: an item, how it is checked, and the result of a check.

use std::fmt;

use futures_util::future::BoxFuture;

use super::{backend::Backend, fixture::Fixture};

/// A group of items that cover one version of the protocol or one compatibility profile.
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
    /// By requests to an agent, once for each kind of backend in `on`. Those in `until` are expected to fail.
    Agents { run: CheckFn, on: &'static [Backend], until: Until },
    /// By an ordinary test of this name: `crates/NAME/tests/FILE.rs::FUNCTION`.
    Test(&'static str),
    /// Not checked: this step of the plan will build it.
    NotYet(u8),
}

/// Kinds of backends that do not satisfy an item yet.
#[derive(Clone, Copy)]
pub(crate) struct Until {
    /// The step of the plan that will change it.
    pub(crate) step: u8,
    pub(crate) backends: &'static [Backend],
}

/// Sends the requests of one item and verifies the responses.
pub(crate) type CheckFn = for<'a> fn(&'a Fixture) -> BoxFuture<'a, CheckResult>;

pub(crate) type CheckResult = Result<(), CheckError>;

/// The behaviour differs from the requirement.
#[derive(Debug)]
pub(crate) struct CheckError {
    pub(crate) expected: String,
    pub(crate) got: String,
}

pub(crate) fn mismatch(expected: impl fmt::Display, got: impl fmt::Display) -> CheckError {
    CheckError { expected: expected.to_string(), got: got.to_string() }
}

/// An item that is checked by the given function.
macro_rules! wire {
    ($number:literal, $what:literal, $check:path) => {
        $crate::Item { number: $number, what: $what, check: $crate::Check::Wire(|at| Box::pin($check(at))) }
    };
}
pub(crate) use wire;

/// An item about what agents do: checked with a built-in agent and with users' own tools of each kind. `on` lists the kinds
/// if some cannot do it by their nature, such as HTTP functions, which cannot ask; `until` those that do it from a later
/// step on.
macro_rules! agents {
    ($number:literal, $what:literal, $check:path) => {
        agents!($number, $what, $check, on [Builtin, Mcp, Http, Command], until 0 [])
    };
    ($number:literal, $what:literal, $check:path, on [$($on:ident),*]) => {
        agents!($number, $what, $check, on [$($on),*], until 0 [])
    };
    ($number:literal, $what:literal, $check:path, on [$($on:ident),*], until $step:literal [$($later:ident),*]) => {
        $crate::Item {
            number: $number,
            what: $what,
            check: $crate::Check::Agents {
                run: |at| Box::pin($check(at)),
                on: &[$($crate::Backend::$on),*],
                until: $crate::item::Until { step: $step, backends: &[$($crate::Backend::$later),*] },
            },
        }
    };
}
pub(crate) use agents;

/// An item that is checked by an ordinary test.
pub(crate) const fn test(number: u16, what: &'static str, name: &'static str) -> Item {
    Item { number, what, check: Check::Test(name) }
}

/// An item that a later step will build.
pub(crate) const fn not_yet(number: u16, what: &'static str, step: u8) -> Item {
    Item { number, what, check: Check::NotYet(step) }
}

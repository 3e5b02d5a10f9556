//! The types of the list: an item, how it is checked, and the result of a check.

use std::{fmt, sync::LazyLock};

use futures_util::future::BoxFuture;

use super::{backend::Backend, fixture::Fixture, s0, s1, s2, s3, s4};

/// The groups of requirements, with their checks.
const GROUPS: [(&str, &[(u16, Check)]); 5] =
    [("S0", s0::CHECKS), ("S1", s1::CHECKS), ("S2", s2::CHECKS), ("S3", s3::CHECKS), ("S4", s4::CHECKS)];

/// One requirement. Its id is the group's name and the number, such as `S1-49`.
pub(crate) struct Item {
    /// `S0` to `S4`.
    pub(crate) group: &'static str,
    pub(crate) number: u16,
    /// What has to hold, in one sentence.
    pub(crate) what: &'static str,
    pub(crate) check: Check,
}

impl Item {
    pub(crate) fn id(&self) -> String {
        format!("{}-{}", self.group, self.number)
    }
}

/// All requirements, in the order of `requirements.txt`.
pub(crate) static ITEMS: LazyLock<Vec<Item>> = LazyLock::new(|| {
    let lines = include_str!("requirements.txt").lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).filter_map(parse).collect()
});

/// Reads a line: the id, the sentence, and in brackets the step or the test, if there is no check.
fn parse(line: &'static str) -> Option<Item> {
    let (id, what) = line.split_once(' ')?;
    let (group, number) = id.split_once('-')?;
    let (number, (group, checks)) = (number.parse().ok()?, GROUPS.iter().find(|known| known.0 == group)?);
    let (what, note) = what.split_once("  [").unwrap_or((what, ""));
    let note = note.trim_end_matches(']');
    let check = match note.strip_prefix("step ") {
        Some(step) => Check::NotYet(step.parse().ok()?),
        None if !note.is_empty() => Check::Test(note),
        None => checks.iter().find(|check| check.0 == number)?.1,
    };
    Some(Item { group, number, what, check })
}

/// How an item is checked.
#[derive(Clone, Copy)]
pub(crate) enum Check {
    /// By requests to a server.
    Wire(CheckFn),
    /// By requests to an agent, once for each kind of backend in `on`. Those that are in `until` too are expected to fail.
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

/// A check by requests to a server.
macro_rules! wire {
    ($check:path) => {
        $crate::Check::Wire(|at| Box::pin($check(at)))
    };
}
pub(crate) use wire;

/// A check of what agents do, made with a built-in agent and with users' own tools of each kind. `on` lists the kinds if some
/// cannot do it by their nature, such as HTTP functions, which cannot ask; `until` those of them that do it from a later step
/// on.
macro_rules! agents {
    ($check:path $(, until $step:literal [$($later:ident),*])?) => {
        agents!($check, on [Builtin, Mcp, Http, Command] $(, until $step [$($later),*])?)
    };
    ($check:path, on [$($on:ident),*]) => {
        agents!($check, on [$($on),*], until 0 [])
    };
    ($check:path, on [$($on:ident),*], until $step:literal [$($later:ident),*]) => {
        $crate::Check::Agents {
            run: |at| Box::pin($check(at)),
            on: &[$($crate::Backend::$on),*],
            until: $crate::item::Until { step: $step, backends: &[$($crate::Backend::$later),*] },
        }
    };
}
pub(crate) use agents;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn every_requirement_is_listed_once_in_order_and_no_check_is_left_over() {
        let ids: Vec<String> = ITEMS.iter().map(Item::id).collect();
        let counts = [("S0", 50), ("S1", 93), ("S2", 51), ("S3", 74), ("S4", 46)];
        let expected =
            counts.iter().flat_map(|(name, count)| (1..=*count).map(move |n| format!("{name}-{n}")));
        assert_eq!(ids, expected.collect::<Vec<_>>());
        let is_wire = |item: &&Item| matches!(item.check, Check::Wire(_) | Check::Agents { .. });
        let checks = GROUPS.iter().map(|group| group.1.len()).sum::<usize>();
        assert_eq!(ITEMS.iter().filter(is_wire).count(), checks);
    }

    #[test]
    fn every_named_test_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for item in ITEMS.iter() {
            let Check::Test(name) = item.check else { continue };
            let (file, function) = name.split_once("::").unwrap();
            let text = fs::read_to_string(root.join(file)).unwrap();
            assert!(text.contains(&format!("fn {function}(")), "{}: {name}", item.id());
        }
    }
}

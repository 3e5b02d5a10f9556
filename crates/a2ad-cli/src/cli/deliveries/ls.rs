//! `a2ad deliveries ls`: lists notifications that were not delivered.

use clap::Args;
use protocol::json::read::{Object, Read};

use crate::cli::{
    failure::Failure,
    named_value::NamedValue,
    operators::{Access, List, OperatorFlags, counted},
};

const STATES: [&str; 2] = ["pending", "dead"];

#[derive(Debug, Args)]
pub(in crate::cli) struct LsFlags {
    /// Only deliveries in this state: pending or dead.
    #[arg(long, value_name = "STATE", value_parser = NamedValue { names: &STATES, parse: parse_state })]
    state: Option<&'static str>,
    /// Print at most N deliveries; 0 prints all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    operator: OperatorFlags,
}

fn parse_state(text: &str) -> Result<&'static str, String> {
    STATES.into_iter().find(|state| *state == text).ok_or_else(|| "expected pending or dead".to_owned())
}

pub(super) fn run(flags: &LsFlags) -> Result<u8, Failure> {
    let access = Access::open(&flags.operator)?;
    let deliveries = List { nouns: ["delivery", "deliveries"], filters: &[("state", flags.state)], row };
    deliveries.print_pages(&access, &flags.operator, flags.limit)
}

fn row(object: &Object<'_, '_>) -> Read<[String; 7]> {
    let attempts = object.need("attempts", "a number", |node| node.int32())?;
    let time = match object.text("nextAttemptAt")? {
        Some(next) => next,
        None => object.need_text("diedAt")?,
    };
    Ok([
        object.need_text("id")?,
        object.need_text("task")?,
        object.need_text("state")?,
        object.need_text("host")?,
        counted(usize::try_from(attempts).unwrap_or(0), "attempt", "attempts"),
        time,
        object.text("error")?.unwrap_or_default(),
    ])
}

//! `a2ad agents enable` and `disable`.

use clap::{Args, builder::NonEmptyStringValueParser};
use engine::SwitchState;
use http::Method;

use crate::cli::{
    failure::{Failure, code},
    operators::{Access, OperatorFlags, segment},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct SwitchFlags {
    /// Id of the agent: the first column of a2ad agents ls.
    #[arg(value_name = "AGENT", value_parser = NonEmptyStringValueParser::new())]
    agent: String,
    #[command(flatten)]
    operator: OperatorFlags,
}

pub(super) fn run(flags: &SwitchFlags, state: SwitchState) -> Result<u8, Failure> {
    let SwitchFlags { agent, operator } = flags;
    let access = Access::open_for_agent(operator, agent)?;
    let (action, done) = match state {
        SwitchState::Enabled => ("enable", "enabled"),
        SwitchState::Disabled => ("disable", "disabled"),
    };
    let switched = access.send(Method::POST, &format!("/agents/{}/{action}", segment(agent)), Vec::new());
    let document =
        switched.map_err(|failure| failure.with_hint_if_not_found("a2ad agents ls lists the ids"))?;
    access.output.message(&format!("a2ad: {done} the agent {agent:?} {}", access.place()));
    if operator.json {
        access.output.document(&document)?;
    }
    Ok(code::SUCCESS)
}

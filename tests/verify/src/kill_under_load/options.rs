//! The options of kill_under_load.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

use crate::random::fresh_seed;

pub(crate) const USAGE: &str = "[--kills N] [--seed S] [--control] [--binary PATH]";

const DEFAULT_KILLS: u64 = 20;
/// The control run stops at the first loss; this is only its upper limit.
const DEFAULT_CONTROL_KILLS: u64 = 60;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) kills: u64,
    pub(crate) seed: u64,
    /// Run against a server that replies before it commits, and succeed only if the loss is found.
    pub(crate) control: bool,
    /// A prebuilt program; without it, the one of the test profile is built.
    pub(crate) program: Option<PathBuf>,
}

impl Options {
    pub(crate) fn parse(args: &[String]) -> Result<Self> {
        let (mut kills, mut seed, mut control, mut program) = (None, None, false, None);
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--kills" => kills = Some(number(arg, args.next())?),
                "--seed" => seed = Some(number(arg, args.next())?),
                "--control" => control = true,
                "--binary" => program = Some(args.next().context("--binary takes a path")?.into()),
                _ => bail!("kill_under_load: unknown argument {arg}; expected {USAGE}"),
            }
        }
        let default = if control { DEFAULT_CONTROL_KILLS } else { DEFAULT_KILLS };
        let kills = kills.unwrap_or(default);
        if kills == 0 {
            bail!("--kills must be at least 1");
        }
        Ok(Self { kills, seed: seed.unwrap_or_else(fresh_seed), control, program })
    }
}

fn number<T: FromStr>(name: &str, value: Option<&String>) -> Result<T> {
    value.and_then(|value| value.parse().ok()).with_context(|| format!("{name} takes a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_override_defaults() {
        let given = parse("--kills 3 --seed 9 --control --binary x").unwrap();
        let expected = Options { kills: 3, seed: 9, control: true, program: Some("x".into()) };
        assert_eq!(given, expected);
        assert_eq!(parse("").unwrap().kills, DEFAULT_KILLS);
        assert_eq!(parse("--control").unwrap().kills, DEFAULT_CONTROL_KILLS);
    }

    #[test]
    fn invalid_options_are_refused_with_their_name() {
        for (line, name) in [("--kill 3", "--kill"), ("--kills", "--kills"), ("--seed x", "--seed")] {
            assert!(parse(line).unwrap_err().to_string().contains(name), "{line}");
        }
        assert!(parse("--kills 0").is_err());
    }
}

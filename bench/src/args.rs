//! Command-line arguments of the benchmark programs: `--name value` pairs after at most one subcommand.
//!
//! Every argument must be consumed: one that is left over is an error, never ignored.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// The arguments of one program that are not consumed yet.
pub struct Args {
    subcommand: Option<String>,
    flags: BTreeMap<String, String>,
}

impl Args {
    /// The arguments of this process.
    pub fn from_env() -> Result<Self> {
        Self::new(std::env::args().skip(1))
    }

    /// Splits `arguments` into the subcommand and the flags.
    pub fn new(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut arguments = arguments.peekable();
        let subcommand = arguments.next_if(|first| !first.starts_with("--"));
        let mut flags = BTreeMap::new();
        while let Some(name) = arguments.next() {
            if !name.starts_with("--") {
                bail!("expected a flag, found `{name}`");
            }
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            flags.insert(name, value);
        }
        Ok(Self { subcommand, flags })
    }

    /// Consumes the subcommand.
    pub fn subcommand(&mut self) -> Option<String> {
        self.subcommand.take()
    }

    /// Consumes a flag that may be absent.
    pub fn optional<T>(&mut self, name: &str) -> Result<Option<T>>
    where
        T: FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let Some(value) = self.flags.remove(name) else { return Ok(None) };
        value.parse().map(Some).with_context(|| format!("{name} cannot be `{value}`"))
    }

    /// Consumes a flag that must be present.
    pub fn required<T>(&mut self, name: &str) -> Result<T>
    where
        T: FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        self.optional(name)?.with_context(|| format!("{name} is missing"))
    }

    /// Rejects arguments that were not consumed.
    pub fn finish(self) -> Result<()> {
        match self.subcommand.as_ref().or(self.flags.keys().next()) {
            Some(left) => bail!("unknown argument `{left}`"),
            None => Ok(()),
        }
    }
}

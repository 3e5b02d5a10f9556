//! Command-line arguments of the bench's programs: `--name value` pairs after at most one leading word.
//!
//! Every argument must be taken by somebody: a flag that is left over is an error, never ignored.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// The arguments of one program, handed out one by one.
pub struct Args {
    word: Option<String>,
    flags: BTreeMap<String, String>,
}

impl Args {
    /// The arguments of this process.
    pub fn from_env() -> Result<Self> {
        Self::new(std::env::args().skip(1))
    }

    /// Splits `arguments` into the leading word and the flags.
    pub fn new(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut arguments = arguments.peekable();
        let word = arguments.next_if(|first| !first.starts_with("--"));
        let mut flags = BTreeMap::new();
        while let Some(name) = arguments.next() {
            if !name.starts_with("--") {
                bail!("expected a flag, found `{name}`");
            }
            let value = arguments.next().with_context(|| format!("{name} needs a value"))?;
            flags.insert(name, value);
        }
        Ok(Self { word, flags })
    }

    /// Takes the leading word.
    pub fn word(&mut self) -> Option<String> {
        self.word.take()
    }

    /// Takes a flag that may be absent.
    pub fn optional<T>(&mut self, name: &str) -> Result<Option<T>>
    where
        T: FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        let Some(value) = self.flags.remove(name) else { return Ok(None) };
        value.parse().map(Some).with_context(|| format!("{name} cannot be `{value}`"))
    }

    /// Takes a flag that must be there.
    pub fn required<T>(&mut self, name: &str) -> Result<T>
    where
        T: FromStr,
        T::Err: std::error::Error + Send + Sync + 'static,
    {
        self.optional(name)?.with_context(|| format!("{name} is missing"))
    }

    /// Refuses whatever nobody took.
    pub fn finish(self) -> Result<()> {
        match self.word.as_ref().or(self.flags.keys().next()) {
            Some(left) => bail!("unknown argument `{left}`"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Result<Args> {
        Args::new(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_and_flags_are_taken_once() {
        let mut args = args("send --connections 64").unwrap();
        assert_eq!(args.word().as_deref(), Some("send"));
        assert_eq!(args.required::<usize>("--connections").unwrap(), 64);
        assert_eq!(args.optional::<usize>("--connections").unwrap(), None);
        args.finish().unwrap();
    }

    #[test]
    fn nothing_is_ignored() {
        assert!(args("--connections").is_err());
        assert!(args("send 64").is_err());
        assert!(args("--typo 1").unwrap().finish().is_err());
        assert!(args("send").unwrap().finish().is_err());
    }
}

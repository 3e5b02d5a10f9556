//! Parses a flag whose value is one of a few names. Completions offer the names; other spellings are accepted too.

use std::ffi::OsStr;

use clap::{
    Arg, Command,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
    error::ErrorKind,
};

/// `names` are shown by completions and help; `parse` may accept more.
#[derive(Clone)]
pub(super) struct NamedValue<T> {
    pub(super) names: &'static [&'static str],
    pub(super) parse: fn(&str) -> Result<T, String>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for NamedValue<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        (self.parse)(&text).map_err(|problem| {
            let flag = arg.map(|arg| format!(" for '{arg}'")).unwrap_or_default();
            let text = format!("invalid value '{text}'{flag}: {problem}");
            clap::Error::raw(ErrorKind::ValueValidation, text + "\n").with_cmd(command)
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().map(PossibleValue::new)))
    }
}

//! The configuration file, as far as it is known: every key has a default, and a wrong one is named with its line.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use serde::{Deserialize, Deserializer, de::Error as _};

/// What a file says; what it does not say is `None`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) server: Server,
    pub(crate) store: Store,
    pub(crate) limits: Limits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Server {
    pub(crate) listen: Option<SocketAddr>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Store {
    pub(crate) url: Option<PathBuf>,
    pub(crate) retention: Retention,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Retention {
    pub(crate) max_age: Option<Span>,
    /// 0 is no limit.
    pub(crate) max_tasks: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) max_body: Option<Size>,
    pub(crate) max_task: Option<Size>,
    pub(crate) concurrent: Option<std::num::NonZeroUsize>,
    pub(crate) run_time: Option<Span>,
}

/// Reads a file's text. The error names the line, shows it, and says what was expected.
pub(crate) fn parse(text: &str) -> Result<File, toml::de::Error> {
    toml::from_str(text)
}

/// A duration such as `"250ms"`, `"10s"`, `"10m"`, `"24h"`, `"7d"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const UNITS: [(&str, u64); 5] =
            [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        let text = String::deserialize(deserializer)?;
        let millis = measure(&text, &UNITS);
        let wanted =
            || D::Error::custom(format!("{text:?} is not a duration; write 250ms, 10s, 10m, 24h or 7d"));
        Ok(Self(Duration::from_millis(millis.ok_or_else(wanted)?)))
    }
}

/// A size such as `"64KiB"` or `"16MiB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)];
        let text = String::deserialize(deserializer)?;
        let wanted = || D::Error::custom(format!("{text:?} is not a size; write 512B, 64KiB, 16MiB or 1GiB"));
        Ok(Self(measure(&text, &UNITS).ok_or_else(wanted)?))
    }
}

/// A whole number followed by one of these units.
fn measure(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let factor = units.iter().find(|known| known.0 == unit.trim())?.1;
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_key_is_read() {
        let file = parse(
            r#"
            [server]
            listen = "127.0.0.1:1"
            [store]
            url = "x.db"
            retention = { max_age = "2s", max_tasks = 7 }
            [limits]
            max_body = "1MiB"
            max_task = "64KiB"
            concurrent = 3
            run_time = "10m"
            "#,
        )
        .unwrap();
        assert_eq!(file.server.listen, Some(SocketAddr::from(([127, 0, 0, 1], 1))));
        assert_eq!(file.store.retention.max_age, Some(Span(Duration::from_secs(2))));
        assert_eq!(file.store.retention.max_tasks, Some(7));
        assert_eq!(file.limits.max_task, Some(Size(65_536)));
        assert_eq!(file.limits.concurrent.map(usize::from), Some(3));
    }

    #[test]
    fn a_wrong_key_or_value_is_named_with_its_line() {
        let cases = [
            ("[limits]\nconcurent = 3", "line 2", "concurent"),
            ("[limits]\nmax_body = \"16\"", "line 2", "16MiB"),
            ("[limits]\nrun_time = \"soon\"", "line 2", "10m"),
            ("[limits]\nconcurrent = 0", "line 2", "nonzero"),
            ("[serve]\n", "line 1", "serve"),
            ("[store]\nretention = { max_age = 5 }", "line 2", "string"),
        ];
        for (text, line, word) in cases {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(line) && error.contains(word), "{error}");
        }
    }
}

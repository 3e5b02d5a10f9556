//! Reads `A2AD_LOG`. A word that is no level is reported instead of being taken for the name of a target.

use protocol::nearest;
use tracing_subscriber::EnvFilter;

const DEFAULT: &str = "info";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The filter, and one sentence for each part of the setting that cannot be used.
pub(super) fn parse(variable: &str, setting: &str) -> (EnvFilter, Vec<String>) {
    let pieces = || setting.split(',').map(str::trim).filter(|piece| !piece.is_empty());
    let mut usable: Vec<&str> = pieces().filter(|piece| wrong_level(piece).is_none()).collect();
    if !usable.iter().any(|piece| is_level(piece)) {
        // Otherwise a filter for one target would disable all others.
        usable.insert(0, DEFAULT);
    }
    let usable = usable.join(",");
    let mut problems: Vec<String> = pieces()
        .filter_map(wrong_level)
        .map(|level| {
            let hint = nearest(level, LEVELS);
            let hint = hint.map(|level| format!("; did you mean {level}?")).unwrap_or_default();
            format!(
                "{variable}: {level:?} is not a log level{hint}; expected {}, alone or as TARGET=LEVEL such as \
                 a2ad::call=off; logging with {usable:?}",
                LEVELS.join(", ")
            )
        })
        .collect();
    let filter = EnvFilter::try_new(&usable).unwrap_or_else(|error| {
        problems.push(format!("{variable}: {setting:?} cannot be used: {error}; logging with {DEFAULT:?}"));
        EnvFilter::new(DEFAULT)
    });
    (filter, problems)
}

/// What stands in the place of a level and is none.
fn wrong_level(piece: &str) -> Option<&str> {
    let level = match piece.rsplit_once('=') {
        Some((_, level)) => level.trim(),
        // A path of modules without a level means all of its lines.
        None if piece.contains("::") || piece.contains('[') => return None,
        None => piece,
    };
    (!is_level(level) && !piece.contains('[')).then_some(level)
}

fn is_level(text: &str) -> bool {
    LEVELS.iter().any(|known| known.eq_ignore_ascii_case(text)) || matches!(text.as_bytes(), [b'0'..=b'5'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_level_is_reported_and_the_rest_is_used() {
        for setting in
            ["", "debug", "WARN", "info,a2ad::call=off", "a2ad::call", "hyper=2, error", "a[b]=info"]
        {
            let (_, problems) = parse("V", setting);
            assert!(problems.is_empty(), "{setting}: {problems:?}");
        }
        for (setting, words) in [
            ("loudly", "\"loudly\" is not a log level; expected off, "),
            ("debgu", "\"debgu\" is not a log level; did you mean debug?; "),
            ("a2ad=verbose", "\"verbose\" is not"),
            ("warn,a2ad::call=of", "did you mean off?; expected off, error"),
        ] {
            let (filter, problems) = parse("V", setting);
            assert!(problems.len() == 1 && problems[0].contains(words), "{setting}: {problems:?}");
            let used = if setting.starts_with("warn") { "warn" } else { "info" };
            assert_eq!(filter.to_string(), used);
        }
    }
}

//! Parses `A2AD_LOG`. A misspelt level is reported instead of being parsed as a target name.

use protocol::nearest;
use tracing_subscriber::EnvFilter;

const DEFAULT: &str = "info";
/// The MCP library logs whole messages, at every level.
const MCP_LIBRARY: &str = "rmcp";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The filter, and one message for each part of the setting that cannot be used.
pub(super) fn parse(variable: &str, setting: &str) -> (EnvFilter, Vec<String>) {
    let directives = || setting.split(',').map(str::trim).filter(|directive| !directive.is_empty());
    let mut usable: Vec<&str> = directives().filter(|directive| invalid_level(directive).is_none()).collect();
    if !usable.iter().any(|directive| is_level(directive)) {
        // Otherwise a filter for one target would disable all others.
        usable.insert(0, DEFAULT);
    }
    let silenced = format!("{MCP_LIBRARY}=off");
    if !usable.iter().any(|directive| directive.starts_with(MCP_LIBRARY)) {
        usable.push(&silenced);
    }
    let usable = usable.join(",");
    let mut problems: Vec<String> = directives()
        .filter_map(invalid_level)
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

/// The invalid level of one directive, if it has one.
fn invalid_level(directive: &str) -> Option<&str> {
    let level = match directive.rsplit_once('=') {
        Some((_, level)) => level.trim(),
        // A module path without a level enables all of its levels.
        None if directive.contains("::") || directive.contains('[') => return None,
        None => directive,
    };
    (!is_level(level) && !directive.contains('[')).then_some(level)
}

fn is_level(text: &str) -> bool {
    LEVELS.iter().any(|known| known.eq_ignore_ascii_case(text)) || matches!(text.as_bytes(), [b'0'..=b'5'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_levels_are_reported_and_the_rest_is_used() {
        for setting in
            ["", "debug", "WARN", "info,a2ad::call=off", "a2ad::call", "hyper=2, error", "a[b]=info"]
        {
            let (_, problems) = parse("V", setting);
            assert!(problems.is_empty(), "{setting}: {problems:?}");
        }
        for (setting, expected) in [
            ("loudly", "\"loudly\" is not a log level; expected off, "),
            ("debgu", "\"debgu\" is not a log level; did you mean debug?; "),
            ("a2ad=verbose", "\"verbose\" is not"),
            ("warn,a2ad::call=of", "did you mean off?; expected off, error"),
        ] {
            let (filter, problems) = parse("V", setting);
            assert!(problems.len() == 1 && problems[0].contains(expected), "{setting}: {problems:?}");
            let used = if setting.starts_with("warn") { "warn" } else { "info" };
            assert_eq!(filter.to_string(), format!("rmcp=off,{used}"));
        }
    }

    #[test]
    fn mcp_library_is_silent_unless_it_is_named() {
        assert_eq!(parse("V", "debug").0.to_string(), "rmcp=off,debug");
        assert_eq!(parse("V", "rmcp=debug").0.to_string(), "rmcp=debug,info");
    }
}

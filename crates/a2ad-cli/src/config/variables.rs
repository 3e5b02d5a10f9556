//! The environment variables of the program, and warnings for unknown ones.

use protocol::nearest;

use super::keys;

/// The path of the configuration file.
pub(super) const CONFIG: &str = "A2AD_CONFIG";

/// The variables besides `A2AD_SECTION__KEY`, which exists for every key of the file.
const NAMES: [&str; 5] = [CONFIG, "A2AD_LISTEN", "A2AD_LOG", "A2AD_STORE", "A2AD_URL"];

/// The environment variables that are valid UTF-8.
pub(crate) fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// One warning for each unknown variable with the prefix `A2AD_`. Variables that set a key of the file are checked
/// with the file.
pub(crate) fn unknown(variables: &[(String, String)]) -> Vec<String> {
    let is_unknown = |name: &str| {
        name.starts_with("A2AD_")
            && !name["A2AD_".len()..].contains("__")
            // A command that the server runs may itself call agents.
            && !name.starts_with("A2AD_CALL_")
            && !NAMES.contains(&name)
    };
    let mut names: Vec<&str> =
        variables.iter().map(|variable| variable.0.as_str()).filter(|name| is_unknown(name)).collect();
    names.sort_unstable();
    names.into_iter().map(warning).collect()
}

fn warning(name: &str) -> String {
    let hint = match nearest_variable(name) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("known variables: {}, and A2AD_SECTION__KEY for a key of the file", NAMES.join(", ")),
    };
    format!("the environment variable {name} is unknown and has no effect; {hint}")
}

/// The nearest known variable; `None` if none is similar.
pub(super) fn nearest_variable(name: &str) -> Option<String> {
    let of_keys = keys::fixed_tables().flat_map(|table| {
        let section = table.path.replace('.', "__");
        table.names().map(move |key| format!("{section}__{key}").to_uppercase())
    });
    let own = NAMES.into_iter().map(|name| without_prefix(name).to_owned());
    let known: Vec<String> = own.chain(of_keys).collect();
    // Compared without the common prefix, which would make all names similar.
    let found = nearest(without_prefix(name), known.iter().map(String::as_str))?;
    Some(format!("A2AD_{found}"))
}

fn without_prefix(name: &str) -> &str {
    name.strip_prefix("A2AD_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_suggest_the_nearest_known_variable() {
        let variables = |names: &[&str]| -> Vec<(String, String)> {
            names.iter().map(|name| ((*name).to_owned(), String::new())).collect()
        };
        assert!(
            unknown(&variables(&["A2AD_LOG", "A2AD_LIMITS__WIAT", "A2AD_CALL_TASK", "PATH", "MY_A2AD_X"]))
                .is_empty()
        );
        let reported = unknown(&variables(&["A2AD_SERVER_LISTEN", "A2AD_LISEN", "A2AD_COLOUR_SCHEME"]));
        assert!(
            reported[0].contains("A2AD_COLOUR_SCHEME")
                && reported[0].contains("known variables: A2AD_CONFIG, "),
            "{reported:?}"
        );
        assert!(
            reported[1].contains("A2AD_LISEN ") && reported[1].ends_with("did you mean A2AD_LISTEN?"),
            "{reported:?}"
        );
        assert!(reported[2].ends_with("did you mean A2AD_SERVER__LISTEN?"), "{reported:?}");
    }
}

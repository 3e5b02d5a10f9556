//! Texts of operators as logs and reports show them: without the secrets that people write into them, although there are
//! variables for those.

/// What is shown instead of a secret.
pub const MASK: &str = "***";

/// A program with its arguments, in one line.
pub fn masked_command(argv: &[String]) -> String {
    let mut follows_name = false;
    let shown = argv.iter().map(|argument| {
        let is_value = std::mem::replace(&mut follows_name, is_name_of_secret(argument));
        if is_value { MASK.to_owned() } else { masked(argument).unwrap_or_else(|| argument.clone()) }
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// An option or a URL without its secrets; `None` if it has none.
pub fn masked(text: &str) -> Option<String> {
    masked_option(text).or_else(|| masked_url(text))
}

/// Whether the next argument is a secret: `--token`.
pub fn is_name_of_secret(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains('=') && is_secret_name(argument)
}

/// Whether a name of a member or of an option is one of a secret. The name of a variable is none.
pub fn is_secret_name(name: &str) -> bool {
    const WORDS: [&str; 8] =
        ["secret", "password", "passwd", "token", "apikey", "credential", "authorization", "private"];
    let plain = name.to_lowercase().replace(['-', '_'], "");
    !plain.ends_with("env") && WORDS.iter().any(|word| plain.contains(word))
}

/// `--token=…` without its value.
fn masked_option(text: &str) -> Option<String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| name.starts_with('-'))?;
    (is_secret_name(name) && !value.is_empty()).then(|| format!("{name}={MASK}"))
}

/// A URL without user, password and the values of its query.
fn masked_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let (head, query) = rest.split_once('?').map_or((rest, None), |(head, query)| (head, Some(query)));
    let (authority, path) = head.split_at(head.find('/').unwrap_or(head.len()));
    let host = authority.rsplit_once('@').map(|(_, host)| host);
    if host.is_none() && query.is_none_or(str::is_empty) {
        return None;
    }
    let authority = host.map_or_else(|| authority.to_owned(), |host| format!("{MASK}@{host}"));
    let query = query.map_or_else(String::new, |query| {
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) => format!("{name}={MASK}"),
            None => MASK.to_owned(),
        });
        format!("?{}", pairs.collect::<Vec<_>>().join("&"))
    });
    Some(format!("{scheme}://{authority}{path}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_arguments_and_urls_are_not_shown() {
        let argv = [
            "sync",
            "--api-key",
            "k1",
            "--token=k2",
            "--verbose",
            "http://u:k3@h/p?q=k4",
            "--token-env",
            "NAME",
        ];
        let shown = masked_command(&argv.map(str::to_owned));
        assert_eq!(shown, "sync --api-key *** --token=*** --verbose http://***@h/p?q=*** --token-env NAME");
    }
}

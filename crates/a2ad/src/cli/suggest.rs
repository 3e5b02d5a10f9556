//! Commands that are suggested: pasted into a shell, they reach the same agent in the same way.

/// `a2ad VERB WORDS`, as a shell takes it. The words may come from an agent, so a shell must not act on them.
pub(super) fn command<'a>(verb: &str, words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().fold(format!("a2ad {verb}"), |command, word| format!("{command} {}", quoted(word)))
}

/// A word that a shell takes for itself.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_every_word_for_itself() {
        let words = ["http://h:1/a?b=c&d", "task_1", "$(id)", "it's", "", "--header", "X: VALUE"];
        let expected = r"a2ad tasks get 'http://h:1/a?b=c&d' task_1 '$(id)' 'it'\''s' '' --header 'X: VALUE'";
        assert_eq!(command("tasks get", words), expected);
    }
}

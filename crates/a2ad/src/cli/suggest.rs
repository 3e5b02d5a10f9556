//! Commands that are suggested: pasted into a shell, they reach the same agent in the same way.

/// `a2ad VERB WORDS FLAGS`, as a shell takes it. The words may come from an agent: a shell must not act on them, and we
/// must not take them for flags, so they come last and behind a `--` where one looks like a flag.
pub(super) fn command(verb: &str, words: &[&str], flags: &[String]) -> String {
    let flags = flags.iter().map(String::as_str);
    let words = words.iter().copied();
    let all: Vec<&str> = match words.clone().any(|word| word.starts_with('-')) {
        true => flags.chain(["--"]).chain(words).collect(),
        false => words.chain(flags).collect(),
    };
    all.into_iter().fold(format!("a2ad {verb}"), |command, word| format!("{command} {}", quoted(word)))
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
        let words = ["http://h:1/a?b=c&d", "task_1", "$(id)", "it's", ""];
        let flags = ["--header", "X: VALUE"].map(str::to_owned);
        let expected = r"a2ad tasks get 'http://h:1/a?b=c&d' task_1 '$(id)' 'it'\''s' '' --header 'X: VALUE'";
        assert_eq!(command("tasks get", &words, &flags), expected);
    }

    #[test]
    fn no_word_is_taken_for_a_flag() {
        let flags = ["--dialect", "0.3"].map(str::to_owned);
        for word in ["--bearer-env=MY_SECRET", "-f", "--", "-"] {
            let shown = quoted(word);
            let expected = format!("a2ad reply --dialect 0.3 -- echo {shown} TEXT");
            assert_eq!(command("reply", &["echo", word, "TEXT"], &flags), expected);
            assert_eq!(command("tasks get", &["echo", word], &[]), format!("a2ad tasks get -- echo {shown}"));
        }
        assert_eq!(command("serve", &[], &flags), "a2ad serve --dialect 0.3");
    }
}

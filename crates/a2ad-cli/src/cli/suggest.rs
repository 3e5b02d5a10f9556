//! Builds suggested commands: pasted into a shell, they reach the same agent with the same flags.

/// `a2ad COMMAND ARGS FLAGS`, quoted for a shell. Arguments may come from an agent, so a shell must not expand them
/// and a2ad must not parse them as flags: if one begins with `-`, all arguments follow a `--`.
pub(super) fn command(subcommand: &str, args: &[&str], flags: &[String]) -> String {
    let flags = flags.iter().map(String::as_str);
    let args = args.iter().copied();
    let all: Vec<&str> = match args.clone().any(|arg| arg.starts_with('-')) {
        true => flags.chain(["--"]).chain(args).collect(),
        false => args.chain(flags).collect(),
    };
    all.into_iter().fold(format!("a2ad {subcommand}"), |command, arg| format!("{command} {}", quoted(arg)))
}

/// Quotes one argument for a POSIX shell.
fn quoted(arg: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:@%+,".contains(&byte);
    if !arg.is_empty() && arg.bytes().all(plain) {
        return arg.to_owned();
    }
    format!("'{}'", arg.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        let args = ["http://h:1/a?b=c&d", "task_1", "$(id)", "it's", ""];
        let flags = ["--header", "X: VALUE"].map(str::to_owned);
        let expected = r"a2ad tasks get 'http://h:1/a?b=c&d' task_1 '$(id)' 'it'\''s' '' --header 'X: VALUE'";
        assert_eq!(command("tasks get", &args, &flags), expected);
    }

    #[test]
    fn arguments_are_never_parsed_as_flags() {
        let flags = ["--dialect", "0.3"].map(str::to_owned);
        for arg in ["--bearer-env=MY_SECRET", "-f", "--", "-"] {
            let shown = quoted(arg);
            let expected = format!("a2ad reply --dialect 0.3 -- echo {shown} TEXT");
            assert_eq!(command("reply", &["echo", arg, "TEXT"], &flags), expected);
            assert_eq!(command("tasks get", &["echo", arg], &[]), format!("a2ad tasks get -- echo {shown}"));
        }
        assert_eq!(command("serve", &[], &flags), "a2ad serve --dialect 0.3");
    }
}

//! The help: what a2ad is, its commands in groups, and an example of each.

use clap::Command;

/// What the help of the program begins with.
pub(super) const ABOUT: &str = "\
a2ad puts MCP servers, HTTP functions, OpenAPI documents and commands behind agents that other programs call over A2A
(Agent2Agent). Tasks are durable: they survive crashes and restarts. It is one binary and needs no API key.";

/// The commands in groups, each with an example.
const GROUPS: [(&str, &[(&str, &str)]); 4] = [
    (
        "Call agents",
        &[
            ("agents", "a2ad agents http://localhost:4242"),
            ("card", "a2ad card demo"),
            ("skills", "a2ad skills demo"),
            ("send", "a2ad send demo 'How far is the moon?'"),
            ("stream", "a2ad stream slow-writer 'Write about tea'"),
            ("reply", "a2ad reply approver TASK yes"),
            ("tasks", "a2ad tasks ls demo --state working"),
            ("inbox", "a2ad inbox --listen 127.0.0.1:9000"),
        ],
    ),
    (
        "Serve agents",
        &[
            ("serve", "a2ad serve --config a2ad.toml --listen 127.0.0.1:4242"),
            ("add", "a2ad add mcp files -- npx -y @modelcontextprotocol/server-filesystem ."),
            ("check", "a2ad check a2ad.toml"),
            ("mcp", "a2ad mcp --config a2ad.toml"),
        ],
    ),
    (
        "Operate a server",
        &[
            ("keys", "a2ad keys new research --owner alice"),
            ("ops", "a2ad ops tasks --state working"),
            ("deliveries", "a2ad deliveries ls"),
            ("audit", "a2ad audit --follow"),
            ("backup", "a2ad backup copy.db --store a2ad.db"),
            ("restore", "a2ad restore copy.db --store a2ad.db"),
            ("token", "a2ad token --sub alice"),
        ],
    ),
    (
        "Develop",
        &[
            ("try", "a2ad try greet Ada"),
            ("explain", "a2ad explain message.json"),
            ("selftest", "a2ad selftest --url http://localhost:4242"),
            ("completions", "a2ad completions bash > ~/.local/share/bash-completion/completions/a2ad"),
        ],
    ),
];

/// The template of the program's help; the commands are listed in groups instead of in one list.
const TEMPLATE: &str = "{about}\n\n{usage-heading} {usage}\n\n{before-help}Options:\n{options}{after-help}";

/// Adds the groups and the examples to the commands.
pub(super) fn with_groups_and_examples(program: Command) -> Command {
    let groups = groups(&program);
    let examples = GROUPS.iter().flat_map(|(_, commands)| *commands);
    let program = examples.fold(program, |program, (name, example)| {
        program.mut_subcommand(name, |command| {
            let more = command.get_after_help().map(|more| format!("\n\n{more}")).unwrap_or_default();
            command.after_help(format!("Example:\n  {example}{more}"))
        })
    });
    program.before_help(groups).help_template(TEMPLATE)
}

fn groups(program: &Command) -> String {
    let about = |name: &str| {
        let command = program.find_subcommand(name)?;
        command.get_about().map(|about| about.to_string())
    };
    let mut text = String::new();
    for (group, commands) in GROUPS {
        text += &format!("{group}:\n");
        for (name, _) in commands {
            text += &format!("  {name:<13}{}\n", about(name).unwrap_or_default());
        }
        text.push('\n');
    }
    text + "a2ad COMMAND --help shows an example of each."
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::CommandLine;

    #[test]
    fn every_command_is_in_a_group_and_its_example_is_valid() {
        let program = with_groups_and_examples(CommandLine::command());
        let mut listed: Vec<&str> =
            GROUPS.iter().flat_map(|(_, commands)| commands.iter().map(|(name, _)| *name)).collect();
        listed.sort_unstable();
        let mut all: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
        all.sort_unstable();
        assert_eq!(listed, all);
        for (name, example) in GROUPS.iter().flat_map(|(_, commands)| *commands) {
            // As a shell would, without its redirection.
            let words = example.split(" > ").next().unwrap().replace('\'', "");
            let parsed = program.clone().try_get_matches_from(words.split(' '));
            assert!(parsed.is_ok(), "{name}: {}", parsed.unwrap_err());
        }
    }
}

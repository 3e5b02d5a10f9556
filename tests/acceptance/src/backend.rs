//! The kinds of backends that agents are checked with, and the skills of each in the configuration.

use std::fmt::Write as _;

use crate::{
    json::quote,
    tools::{TOOLS, command, mcp_server},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// Agents that come with the program.
    Builtin,
    /// A tool of an MCP server.
    Mcp,
    /// An HTTP function.
    Http,
    /// A command.
    Command,
}

impl Backend {
    /// The same configuration with skills of this kind instead of the built-in agents: each table of a skill is replaced,
    /// as are the lists of skills with everything. `program` is this program, `functions` the host of the functions.
    pub(crate) fn configure(self, config: &str, program: &str, functions: &str) -> String {
        if self == Self::Builtin {
            return config.to_owned();
        }
        let of_skill = ["[skills.", "builtin = ", "tags = ", "examples = "];
        let is_skill = |line: &&str| of_skill.iter().any(|start| line.starts_with(start));
        let rest: Vec<&str> = config.lines().filter(|line| !is_skill(line)).collect();
        let all = TOOLS.map(quote).join(", ");
        let mut text = rest.join("\n").replace(r#"["*"]"#, &format!("[{all}]"));
        let program = quote(program);
        if self == Self::Mcp {
            let server = quote(mcp_server::COMMAND);
            let _ = write!(
                text,
                "\n[mcp.tools]\ncommand = [{program}, {server}, {all}]\npool = {{ max = 16 }}\n"
            );
        }
        for tool in TOOLS {
            let backend = match self {
                Self::Mcp => format!(r#"mcp = {{ server = "tools", tool = "{tool}" }}"#),
                Self::Http => format!(r#"http = {{ url = "http://{functions}/{tool}" }}"#),
                Self::Builtin | Self::Command => {
                    let mode = quote(command::COMMAND);
                    format!(r#"command = {{ argv = [{program}, {mode}, "{tool}"], protocol = "jsonl" }}"#)
                }
            };
            let _ = write!(text, "\n[skills.{tool}]\ndescription = \"The tool {tool}\"\n{backend}\n");
        }
        text
    }
}

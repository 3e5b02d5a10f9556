//! What operators' commands read of the configuration: the store, the agents and the options of
//! API keys, and the values of all keys as they are written.
//!
//! Deliberately not read: everything that depends on secrets, programs or other files, because a shell of an operator
//! has not all that the server has. Only problems in what is read are reported.

use std::path::PathBuf;

use a2ad::internal::AuditOptions;
use engine::AuthMethod;
use inbound::{ApiKeyOptions, ConfigReport};

use super::{
    AUTH_NAMES, Error, Problems, Section, Source, agents, auth, overrides, read_file, report, sections,
    source_directory,
    tree::{self, Item},
    values::text,
};

/// What is known about a server without its secrets.
#[derive(Debug)]
pub(crate) struct OperatorView {
    pub(crate) store: PathBuf,
    pub(crate) agents: Vec<AgentView>,
    /// The agent at `/`; empty if there is none.
    pub(crate) default_agent: String,
    pub(crate) api_keys: ApiKeyOptions,
    /// `None`: there is no audit log.
    pub(crate) audit: Option<AuditOptions>,
    /// Every key with its value.
    pub(crate) report: ConfigReport,
}

/// An agent of the file, or of the demo.
#[derive(Debug)]
pub(crate) struct AgentView {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// Whether the file enables it.
    pub(crate) enabled: bool,
    /// Whether it lists API keys among what it accepts.
    pub(crate) accepts_api_keys: bool,
}

/// Reads the file and the environment.
pub(crate) fn operator_view(source: Source<'_>) -> Result<OperatorView, Error> {
    let text = source.file.map(read_file).transpose()?.unwrap_or_default();
    let file = source.file.map(|file| file.path.display().to_string());
    let directory = source_directory(source.file.map(|file| file.path.as_path()));
    let problems = Problems::default();
    let mut tree = tree::parse(&text, &problems);
    for (path, location, value) in overrides(source) {
        tree.set(&path, location, value, &problems);
    }
    let root = Section::root(&tree, &problems);
    let agents = agent_views(&root);
    let enabled: Vec<_> = agents.iter().map(|agent| (agent.id.as_str(), agent.enabled)).collect();
    let store = sections::store(&root.open("store")).url;
    let view = OperatorView {
        audit: sections::audit(&root.open("audit"), &directory, &store),
        store,
        default_agent: agents::default_agent(&root.open("server"), &enabled),
        agents,
        report: report::report(&tree, file.clone()),
        api_keys: auth::api_keys(&root.open("auth").open("api_keys")),
    };
    let lines = problems.into_lines(file.as_deref());
    if lines.is_empty() { Ok(view) } else { Err(Error::Invalid(lines)) }
}

fn agent_views(root: &Section<'_>) -> Vec<AgentView> {
    let agents = root.open("agents");
    let view = |id: String| {
        let agent = agents.open(&id);
        AgentView {
            name: agent.get("name", text),
            enabled: agent.value("enabled", Item::boolean),
            // API keys are not among what `[auth]` configures for agents that list nothing.
            accepts_api_keys: agent
                .each("auth", |item| item.one_of(&AUTH_NAMES))
                .is_some_and(|methods| methods.contains(&AuthMethod::ApiKey)),
            id,
        }
    };
    agents::ids(root).into_iter().map(view).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ConfigFile;
    use super::*;

    fn view(text: &str) -> Result<OperatorView, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a2ad.toml");
        std::fs::write(&path, text).unwrap();
        operator_view(Source { file: Some(&ConfigFile::named(path)), ..Source::default() })
    }

    /// Neither the variables nor the programs of the server exist here.
    #[test]
    fn what_only_the_server_has_is_not_needed() {
        let view = view(
            r#"
            auth = { secret_env = "A2AD_TEST_UNSET", api_keys = { prefix = "acme_" } }
            [store]
            url = "tasks.db"
            [mcp.files]
            command = ["no-such-program-anywhere"]
            [skills.fx]
            http = { url = "http://127.0.0.1:9000/fx", bearer_env = "A2AD_TEST_UNSET" }
            [agents.open]
            skills = ["fx"]
            enabled = false
            [agents.closed]
            skills = ["fx"]
            auth = ["api-key", "jwt"]
            "#,
        )
        .unwrap();
        assert_eq!(view.store, PathBuf::from("tasks.db"));
        assert_eq!(view.api_keys.prefix, "acme_");
        let agents: Vec<_> = view.agents.iter().map(|agent| (&*agent.id, agent.accepts_api_keys)).collect();
        assert_eq!(agents, [("open", false), ("closed", true)]);
        assert_eq!((view.agents[0].enabled, view.default_agent.as_str()), (false, "closed"));
    }

    #[test]
    fn agents_without_a_table_are_those_of_the_server() {
        let ids = |text: &str| -> Vec<String> {
            view(text).unwrap().agents.into_iter().map(|agent| agent.id).collect()
        };
        assert_eq!(ids("[skills.hello]\nbuiltin = \"echo\""), ["main"]);
        assert_eq!(ids("[server]\nskills_dir = \"skills\""), ["main"]);
        assert_eq!(ids("[server]\nskills_dir = \"\""), ids(""));
        assert!(ids("").contains(&"echo".to_owned()));
    }

    #[test]
    fn problems_of_what_is_read_are_reported() {
        for wrong in ["[agents.a]\nauth = [\"key\"]", "[auth]\napi_keys = { prefix = 7 }", "x = 1", "["] {
            assert!(view(wrong).is_err(), "{wrong}");
        }
    }
}

//! What a builder knows of skills with backends: HTTP functions, commands, MCP servers and OpenAPI documents.

use std::{path::PathBuf, sync::Arc};

use engine::{OnCrash, RunSettings};
#[cfg(feature = "mcp")]
use outbound::backends::mcp::McpConfig;
#[cfg(feature = "openapi")]
use outbound::backends::openapi::OpenApiConfig;
use outbound::{
    backends::{
        command::CommandTool,
        http::{HttpConfig, HttpFunction},
    },
    dial::Dialer,
    process::{Launch, Launcher},
    schema::Schema,
    skill::{InputForm, Interface},
};

use super::{
    Builder, Card, NOT_A_PLAIN_NAME, ServeError,
    agents::{BuilderAgent, Work},
    is_plain_name,
};
use crate::assembly::{
    BackendConfigs, Provider, Selection, Selector, SkillAgent, SkillBackend, SkillConfig, SkillSource,
};
#[cfg(feature = "openapi")]
use crate::assembly::{Document, document_skills};

/// The agent that has all skills when no agent lists any.
const MAIN_AGENT: &str = "main";

/// A skill with its backend, for [`Builder::skill`].
#[derive(Clone, Debug)]
pub struct Skill {
    backend: FunctionConfig,
    description: Option<String>,
    input_schema: Option<Schema>,
    output_schema: Option<Schema>,
    interface: Interface,
    runs: RunSettings,
}

#[derive(Clone, Debug)]
enum FunctionConfig {
    Http(HttpConfig),
    Command(CommandTool),
}

/// An OpenAPI document, for [`Builder::openapi`].
#[cfg(feature = "openapi")]
pub struct OpenApi {
    /// A file, or a URL with `http://` or `https://`.
    pub document: String,
    /// Which operations are skills, and how they are called. The builder sets the name.
    pub config: OpenApiConfig,
}

/// A list of skills, for [`Builder::agent`].
pub struct Skills(pub(super) Vec<String>);

impl Skills {
    pub(crate) fn new<S: Into<String>>(selectors: impl IntoIterator<Item = S>) -> Self {
        Self(selectors.into_iter().map(Into::into).collect())
    }
}

/// The backends of a builder.
#[derive(Default)]
pub(super) struct BuilderBackends {
    skills: Vec<SkillConfig>,
    /// Made into skills when the server starts, because they need the dialler.
    functions: Vec<(String, Skill)>,
    configs: BackendConfigs,
    #[cfg(feature = "mcp")]
    servers: Vec<McpConfig>,
    #[cfg(feature = "openapi")]
    documents: Vec<(String, OpenApi)>,
}

impl Skill {
    fn new(backend: FunctionConfig) -> Self {
        Self {
            backend,
            description: None,
            input_schema: None,
            output_schema: None,
            interface: Interface::default(),
            runs: RunSettings::default(),
        }
    }

    /// What the card says about it.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// What the arguments must be; default: any object. Callers find the schema on the card.
    #[must_use]
    pub fn input_schema(self, schema: Schema) -> Self {
        Self { input_schema: Some(schema), ..self }
    }

    /// What a data part of the result must be.
    #[must_use]
    pub fn output_schema(self, schema: Schema) -> Self {
        Self { output_schema: Some(schema), ..self }
    }

    /// The function gets the whole message, files included, and the conversation before it: `docs/backends.md` has its form.
    /// Default: one JSON object of arguments.
    #[must_use]
    pub fn message_input(self) -> Self {
        let interface = Interface { input: Some(InputForm::Message), ..self.interface };
        Self { interface, ..self }
    }

    /// The media types of the parts that it accepts, such as `image/*`; default: those that the input schema has a place for.
    #[must_use]
    pub fn input_modes<S: Into<String>>(self, modes: impl IntoIterator<Item = S>) -> Self {
        let input_modes = Some(modes.into_iter().map(Into::into).collect());
        Self { interface: Interface { input_modes, ..self.interface }, ..self }
    }

    /// The media types of its results.
    #[must_use]
    pub fn output_modes<S: Into<String>>(self, modes: impl IntoIterator<Item = S>) -> Self {
        let output_modes = Some(modes.into_iter().map(Into::into).collect());
        Self { interface: Interface { output_modes, ..self.interface }, ..self }
    }

    /// How runs are limited and recovered.
    #[must_use]
    pub fn run_settings(self, settings: RunSettings) -> Self {
        Self { runs: settings, ..self }
    }

    fn config(self, id: String, configs: &BackendConfigs) -> Result<SkillConfig, String> {
        if let (FunctionConfig::Http(config), true) = (&self.backend, self.interface.takes_message()) {
            config.check_message_input()?;
        }
        let backend = match self.backend {
            FunctionConfig::Http(config) => SkillBackend::Ready {
                kind: "http",
                backend: Arc::new(HttpFunction::new(&config, configs.dialer.clone())?),
                on_crash: OnCrash::Retry,
            },
            FunctionConfig::Command(tool) => SkillBackend::Ready {
                kind: "command",
                on_crash: tool.protocol.on_crash(),
                backend: Arc::new(CommandTool { launcher: configs.launcher.clone(), ..tool }),
            },
        };
        Ok(SkillConfig {
            description: self.description,
            input_schema: self.input_schema,
            output_schema: self.output_schema,
            interface: self.interface,
            runs: self.runs,
            ..SkillConfig::new(id, backend)
        })
    }
}

impl From<HttpConfig> for Skill {
    fn from(config: HttpConfig) -> Self {
        Self::new(FunctionConfig::Http(config))
    }
}

impl From<CommandTool> for Skill {
    fn from(tool: CommandTool) -> Self {
        Self::new(FunctionConfig::Command(tool))
    }
}

impl From<Launch> for Skill {
    fn from(Launch { argv, env, cwd, memory }: Launch) -> Self {
        CommandTool { env, cwd, memory, ..CommandTool::new(Launcher::default(), argv) }.into()
    }
}

#[cfg(feature = "openapi")]
impl<S: Into<String>> From<S> for OpenApi {
    fn from(document: S) -> Self {
        Self { document: document.into(), config: OpenApiConfig::new("") }
    }
}

#[cfg(feature = "openapi")]
impl OpenApi {
    fn load(self, name: &str, dialer: &Dialer) -> Result<Document, String> {
        let Self { document, config } = self;
        let mut config = OpenApiConfig { name: name.into(), ..config };
        if document.contains("://") {
            config.document_url = Some(document.clone());
            return Ok(Document::Fetched { url: document, config: Box::new(config) });
        }
        let text = std::fs::read_to_string(&document)
            .map_err(|error| format!("the file {document} cannot be read: {error}"))?;
        document_skills(&text, &config, dialer)
            .map(Document::Read)
            .map_err(|error| format!("{document}: {error}"))
    }
}

impl Builder {
    /// Adds a skill with an HTTP function or a command behind it. Agents list it as `ID`, and Rust agents can call it by that
    /// id ([`Turn::call`](crate::Turn::call)).
    ///
    /// Without any agent, all skills, MCP servers and documents make one agent, `main`.
    pub fn skill(mut self, id: impl Into<String>, skill: impl Into<Skill>) -> Self {
        self.backends.functions.push((id.into(), skill.into()));
        self
    }

    /// Adds an MCP server, whose tools become skills. Agents list them as `mcp:NAME/TOOL` or `mcp:NAME/*`.
    ///
    /// It starts in the background, and its tools are skills as soon as it has listed them.
    #[cfg(feature = "mcp")]
    pub fn mcp(mut self, name: impl Into<String>, server: impl Into<McpConfig>) -> Self {
        self.backends.servers.push(McpConfig { name: name.into(), ..server.into() });
        self
    }

    /// Adds an OpenAPI document, whose operations become skills. Agents list them as `openapi:NAME/OPERATION` or
    /// `openapi:NAME/*`.
    ///
    /// A file is read when the server starts; a URL is fetched in the background, until that succeeds.
    #[cfg(feature = "openapi")]
    pub fn openapi(mut self, name: impl Into<String>, document: impl Into<OpenApi>) -> Self {
        self.backends.documents.push((name.into(), document.into()));
        self
    }

    /// The program that supervises the processes of MCP servers and commands: the program `a2ad`, or one whose `main`
    /// calls [`supervise::run`](crate::backend::supervise::run) if its first argument is
    /// [`supervise::COMMAND`](crate::backend::supervise::COMMAND).
    ///
    /// It ends a process with all that it has started, also when this process is killed. Without a supervisor the process
    /// group is ended at a shutdown, and nothing ends it when this process is killed.
    pub fn supervisor(mut self, program: impl Into<PathBuf>) -> Self {
        self.backends.configs.launcher = Launcher { supervisor: Some(program.into()) };
        self
    }

    /// Adds the agent `main` of all skills, if there are skills and no agents.
    pub(super) fn add_main_agent(&mut self) {
        if self.backends.is_empty() || !self.agents.is_empty() {
            return;
        }
        let (card, work) = (Card::new(MAIN_AGENT), Work::Skills(vec!["*".into()]));
        self.agents.push(BuilderAgent { card, work });
        self.default_agent.get_or_insert_with(|| MAIN_AGENT.into());
    }
}

impl BuilderBackends {
    fn is_empty(&self) -> bool {
        let mut count = self.skills.len() + self.functions.len() + self.providers().len();
        #[cfg(feature = "mcp")]
        {
            count += self.servers.len();
        }
        #[cfg(feature = "openapi")]
        {
            count += self.documents.len();
        }
        count == 0
    }

    /// The MCP servers and documents.
    fn providers(&self) -> Vec<Provider> {
        let mut providers = Vec::new();
        #[cfg(feature = "mcp")]
        providers.extend(self.configs.mcp.keys().cloned().map(Provider::Mcp));
        #[cfg(feature = "openapi")]
        providers.extend(self.configs.openapi.keys().cloned().map(Provider::OpenApi));
        providers
    }

    /// Makes everything that needs the dialler.
    pub(super) fn prepare(&mut self, dialer: Dialer) -> Result<(), ServeError> {
        self.configs.dialer = dialer;
        for (id, skill) in std::mem::take(&mut self.functions) {
            check_name("skill", &id, self.skills.iter().map(|known| &known.id))?;
            let config = skill.config(id.clone(), &self.configs).map_err(invalid("skill", &id))?;
            self.skills.push(config);
        }
        #[cfg(feature = "mcp")]
        for server in std::mem::take(&mut self.servers) {
            check_name("mcp", &server.name, self.configs.mcp.keys())?;
            self.configs.mcp.insert(server.name.clone(), server);
        }
        #[cfg(feature = "openapi")]
        for (name, document) in std::mem::take(&mut self.documents) {
            check_name("openapi", &name, self.configs.openapi.keys())?;
            let document = document.load(&name, &self.configs.dialer).map_err(invalid("openapi", &name))?;
            self.configs.openapi.insert(name, document);
        }
        Ok(())
    }

    /// All skills, for the Rust agents of the builder.
    pub(super) fn all(&self) -> Vec<SkillSource> {
        let own = self.skills.iter().cloned().map(SkillSource::Own);
        let all = |by| SkillSource::Provided { by, selection: Selection::All };
        own.chain(self.providers().into_iter().map(all)).collect()
    }

    /// What is started.
    pub(super) fn into_configs(self) -> BackendConfigs {
        self.configs
    }

    /// An agent of these skills.
    pub(super) fn skill_agent(&self, card: Card, selectors: &[String]) -> Result<SkillAgent, ServeError> {
        let error = invalid("agent", &card.info.id);
        if card.has_skills() {
            return Err(error(
                "an agent of skills has their descriptions; remove the skills of its card".into(),
            ));
        }
        let sources: Result<Vec<_>, String> =
            selectors.iter().map(|selector| self.sources(selector)).collect();
        let skills = sources.map_err(error)?.into_iter().flatten().collect();
        let Card { info, settings, dedupe, retention, run_settings, .. } = card;
        Ok(SkillAgent {
            id: info.id,
            name: Some(info.name),
            description: Some(info.description).filter(|text| !text.is_empty()),
            version: Some(info.version),
            skills,
            extended_skills: Vec::new(),
            skills_allow: Vec::new(),
            settings,
            dedupe,
            retention,
            runs: run_settings,
        })
    }

    /// What one entry of a list of skills stands for.
    fn sources(&self, selector: &str) -> Result<Vec<SkillSource>, String> {
        match Selector::parse(selector)? {
            Selector::Everything => Ok(self.all()),
            Selector::Skill(id) => {
                let found = self.skills.iter().find(|skill| skill.id == id).cloned();
                let known = self.skills.iter().map(|skill| skill.id.as_str());
                let found = found.ok_or_else(|| {
                    format!(
                        "there is no skill {id:?}, add it with Builder::skill; {}",
                        protocol::hint(id, known)
                    )
                })?;
                Ok(vec![SkillSource::Own(found)])
            }
            Selector::Provided(by, selection) => {
                let (kind, name) = (by.kind(), by.name());
                if !self.providers().contains(&by) {
                    return Err(format!("{selector:?}: there is no {name:?}, add it with Builder::{kind}"));
                }
                #[cfg(feature = "openapi")]
                if let (Provider::OpenApi(name), Selection::One(id)) = (&by, &selection)
                    && let Some(Document::Read(skills)) = self.configs.openapi.get(name)
                    && !skills.iter().any(|skill| skill.id == *id)
                {
                    let hint = protocol::hint(id, skills.iter().map(|skill| skill.id.as_str()));
                    return Err(format!("{selector:?}: the document has no operation {id:?}; {hint}"));
                }
                Ok(vec![SkillSource::Provided { by, selection }])
            }
        }
    }
}

/// An error about what was given to a method of the builder.
fn invalid(method: &'static str, name: &str) -> impl Fn(String) -> ServeError {
    move |problem| ServeError::Backend { method, name: name.to_owned(), problem }
}

/// Names are parts of selectors.
fn check_name<'a>(
    method: &'static str,
    name: &str,
    mut used: impl Iterator<Item = &'a String>,
) -> Result<(), ServeError> {
    let problem = if used.any(|other| other == name) {
        "is used twice"
    } else if !is_plain_name(name) {
        NOT_A_PLAIN_NAME
    } else {
        return Ok(());
    };
    Err(invalid(method, name)(problem.into()))
}

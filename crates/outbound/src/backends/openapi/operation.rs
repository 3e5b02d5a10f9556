//! Operations of a document as skills.

use std::sync::Arc;

use engine::OnCrash;
use http::Method;
use protocol::Json;
use serde_json::{Map, json};

use super::{
    OpenApiConfig, OpenApiError, Tree,
    body::{Body, BodyFormat, body},
    call::OpenApiBackend,
    document::{Document, shorten},
    parameter::{BODY, Format, Location, Parameter, parameters},
    path::Template,
    responses::{ErrorResponses, output_schema},
    schema::{Direction, Translator},
    security::{Credentials, Security},
    select::{self, Entry},
    server::Server,
};
use crate::{
    backend::Backend,
    backends::http::{Limits, send::RequestSender},
    dial::Dialer,
    schema::{InvalidSchema, Schema},
    skill::{BackendSkill, InputForm, Interface},
};

/// Maximum length of a description on a card, in characters.
const MAX_DESCRIPTION: usize = 1_000;

/// The operations that a configuration selects.
pub struct Operations {
    /// Those that can be skills, ordered by path and method.
    pub offered: Vec<Operation>,
    /// The others.
    pub skipped: Vec<Skipped>,
}

/// An operation that cannot be a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The id that its skill would have; `None` if all operations of a path are skipped.
    pub id: Option<String>,
    /// `METHOD /path`, or the path.
    pub target: String,
    /// For the operator.
    pub reason: String,
}

/// An operation that can be a skill. Cheap to clone.
#[derive(Clone)]
pub struct Operation {
    /// Skill id: the `operationId`, or method and path.
    pub id: String,
    /// Summary and description.
    pub description: String,
    /// As in the document.
    pub tags: Vec<String>,
    /// An object with the parameters by name, and `body`.
    pub input_schema: Schema,
    /// Of the JSON of successful responses.
    pub output_schema: Option<Schema>,
    /// Methods that are safe to repeat are repeated.
    pub on_crash: OnCrash,
    interface: Interface,
    limits: Limits,
    pub(super) plan: Arc<Plan>,
}

/// How the request of an operation is made, and what its errors mean.
pub(super) struct Plan {
    pub(super) server: Server,
    pub(super) method: Method,
    pub(super) path: Template,
    pub(super) parameters: Vec<SentParameter>,
    /// With whether it is required.
    pub(super) body: Option<(BodyFormat, bool)>,
    pub(super) credentials: Credentials,
    pub(super) errors: ErrorResponses,
}

pub(super) struct SentParameter {
    pub(super) name: String,
    pub(super) argument: String,
    pub(super) location: Location,
    pub(super) format: Format,
    pub(super) required: bool,
}

impl Document {
    /// The operations that the configuration selects.
    ///
    /// # Errors
    ///
    /// The configuration does not fit the document: no base URL, an unknown operation or security scheme, a credential
    /// that cannot be sent.
    pub fn operations(&self, config: &OpenApiConfig) -> Result<Operations, OpenApiError> {
        let server = Server::of(self, config)?;
        let security = Security::new(self, config)?;
        let (entries, mut skipped) = select::entries(self)?;
        let entries = select::selected(entries, &config.operations)?;
        let mut offered = Vec::with_capacity(entries.len());
        for entry in entries {
            let credentials = security.of(entry.operation);
            match self.operation(&entry, config, &server, credentials) {
                Ok(operation) => offered.push(operation),
                Err(reason) => {
                    skipped.push(Skipped { target: entry.target(), id: Some(entry.id), reason });
                }
            }
        }
        Ok(Operations { offered, skipped })
    }

    /// Describes one operation. The error is the reason why it is skipped.
    fn operation(
        &self,
        entry: &Entry<'_>,
        config: &OpenApiConfig,
        server: &Server,
        credentials: Credentials,
    ) -> Result<Operation, String> {
        let Entry { item, operation, method, .. } = entry;
        let on_crash = match method.as_str() {
            "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE" => OnCrash::Retry,
            "POST" | "PATCH" => OnCrash::Fail,
            _ => return Err("requests with this method are not sent".into()),
        };
        let own_server =
            operation.get("servers").or_else(|| item.get("servers")).and_then(|list| list.get(0));
        if own_server.is_some_and(|own| !Server::is_first(self, own)) {
            return Err("it has a server of its own, and requests go to one server only".into());
        }
        let path = Template::parse(entry.path)?;
        let mut parameters = parameters(self, item, operation, &path)?;
        // What a credential sets is no argument.
        parameters.retain(|parameter| !credentials.has(&parameter.location, &parameter.name));
        let body = body(self, operation)?;
        let takes_message = config.interface.takes_message()
            && body.as_ref().is_some_and(|body| matches!(body.format, BodyFormat::Json(_)));
        // The message is the body.
        let body = body.filter(|_| !takes_message);
        let input = if takes_message { InputForm::Message } else { InputForm::Arguments };
        let described = self.input_schema(&parameters, body.as_ref())?;
        let input_schema =
            text(&described).and_then(|text| Schema::new(text).map_err(|error| error.to_string()));
        let input_schema =
            input_schema.map_err(|problem| format!("its parameters: {}", shorten(&problem, 300)))?;
        let output_schema = output_schema(self, operation).and_then(|schema| text(&schema).ok());
        let output_schema = match output_schema.map(Schema::compiled_on_use).transpose() {
            // The schema of a result is left out if it is none: the result is what counts.
            Err(InvalidSchema::Invalid(_)) => None,
            Err(error @ InvalidSchema::TooComplex) => return Err(format!("its result: {error}")),
            Ok(schema) => schema,
        };
        Ok(Operation {
            id: entry.id.clone(),
            description: description(operation),
            tags: tags(operation),
            input_schema,
            output_schema,
            on_crash,
            interface: Interface { input: Some(input), ..config.interface.clone() },
            limits: Limits { wait: config.timeout, max_bytes: config.max_response },
            plan: Arc::new(Plan {
                server: server.clone(),
                method: method.clone(),
                path,
                parameters: parameters.into_iter().map(SentParameter::from).collect(),
                body: body.map(|body| (body.format, body.required)),
                credentials,
                errors: ErrorResponses::of(self, operation),
            }),
        })
    }

    /// An object with the parameters and the body.
    fn input_schema(&self, parameters: &[Parameter<'_>], body: Option<&Body<'_>>) -> Result<Tree, String> {
        let mut translator = Translator::new(self, Direction::Request);
        let mut properties = Map::new();
        let mut required = Vec::new();
        let described = parameters.iter().map(|parameter| {
            (parameter.argument.as_str(), parameter.schema, parameter.description, parameter.required)
        });
        let body = body.map(|body| (BODY, body.schema, body.description, body.required));
        for (name, schema, description, is_required) in described.chain(body) {
            let schema = match schema {
                Some(schema) => translator.translate(schema)?,
                None if name == BODY => Tree::Bool(true),
                None => json!({"type": "string"}),
            };
            properties.insert(name.to_owned(), with_description(schema, description));
            if is_required {
                required.push(name);
            }
        }
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        if !required.is_empty() {
            schema.insert("required".into(), json!(required));
        }
        schema.insert("additionalProperties".into(), false.into());
        let definitions = translator.definitions()?;
        if !definitions.is_empty() {
            schema.insert("$defs".into(), definitions.into());
        }
        Ok(schema.into())
    }
}

impl Operation {
    /// The backend that sends this operation's requests.
    pub fn backend(&self, dialer: &Dialer) -> Arc<dyn Backend> {
        let sender = RequestSender { dialer: dialer.clone(), limits: self.limits };
        Arc::new(OpenApiBackend { plan: Arc::clone(&self.plan), sender })
    }

    /// The operation as a skill.
    pub fn skill(&self, dialer: &Dialer) -> BackendSkill {
        BackendSkill {
            tags: self.tags.clone(),
            input_schema: Some(self.input_schema.clone()),
            output_schema: self.output_schema.clone(),
            interface: self.interface.clone(),
            ..BackendSkill::new(&self.id, self.description.clone(), self.on_crash, self.backend(dialer))
        }
    }
}

impl From<Parameter<'_>> for SentParameter {
    fn from(parameter: Parameter<'_>) -> Self {
        let Parameter { name, argument, location, format, required, .. } = parameter;
        Self { name, argument, location, format, required }
    }
}

fn text(schema: &Tree) -> Result<Json, String> {
    Json::parse(&schema.to_string())
}

/// The description of a parameter, unless its schema has one.
fn with_description(schema: Tree, description: Option<&str>) -> Tree {
    let Some(text) = description.filter(|text| !text.trim().is_empty()) else { return schema };
    let mut members = match schema {
        Tree::Object(members) => members,
        Tree::Bool(true) => Map::new(),
        other => return other,
    };
    members.entry("description").or_insert_with(|| shorten(text.trim(), MAX_DESCRIPTION).into());
    members.into()
}

fn description(operation: &Tree) -> String {
    let texts = ["summary", "description"].map(|name| operation[name].as_str().unwrap_or_default().trim());
    let texts: Vec<_> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    shorten(&texts.join("\n\n"), MAX_DESCRIPTION)
}

fn tags(operation: &Tree) -> Vec<String> {
    let tags = operation["tags"].as_array().into_iter().flatten().filter_map(Tree::as_str);
    tags.take(20).map(|tag| shorten(tag, 64)).collect()
}

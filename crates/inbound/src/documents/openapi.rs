//! The OpenAPI 3.1 document of an agent's skills, as `/run/{skill}` serves them.
//!
//! It has the skills that exist for the caller, of which there are two sets: with and without those of the extended card.
//! Each is encoded once and kept with the agent's cards.

mod components;
mod schema;

use std::convert::Infallible;

use axum::response::Response;
use engine::{CardKey, RegisteredAgent, Skill};
use http::{HeaderValue, header};
use protocol::{Error, dialect::v03, json::write::Writer, model::AgentSkill, rest::percent_encode};

use crate::{
    access::auth::schemes,
    bindings::run,
    documents::card::{self, CacheScope},
    request::exchange::Exchange,
    routes,
};
use components::reference;
use schema::ComponentSchema;

/// Numbers of this document among those of an agent, above the forms of its cards.
const PUBLIC_FORM: u8 = 0xf0;
const EXTENDED_FORM: u8 = 0xf1;

/// Handles a request for the document.
pub(crate) fn handle(exchange: &Exchange) -> Response {
    match document(exchange) {
        Ok(response) => response,
        Err(error) => run::error_response(exchange, &error),
    }
}

fn document(exchange: &Exchange) -> Result<Response, Error> {
    // Unknown and disabled agents are the same, as for cards.
    let card = exchange.card()?;
    let registered = exchange.registered()?;
    let scope = exchange.sender.scope(&exchange.endpoint);
    let depends_on_caller = registered.has_protected_skills();
    let form = if depends_on_caller && !scope.is_anonymous() { EXTENDED_FORM } else { PUBLIC_FORM };
    // The paths of skills are relative to it. It names the agent, so that one document serves `/openapi.json` as well.
    let origin = exchange.server.origins.public_url.as_deref().unwrap_or_default();
    let server = origin.to_owned() + &routes::agent_path(exchange.endpoint.agent());
    let key = CardKey { form, url: server.clone() };
    let Ok(document) = registered.cards().get_or_build(key, || {
        let writer = encode(registered, registered.skills_for(&scope), &server);
        Ok::<_, Infallible>(card::document(writer))
    });
    let mut response = card.conditional(&document, &exchange.head.headers, CacheScope::Public)?;
    let headers = response.headers_mut();
    if form == EXTENDED_FORM {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    if depends_on_caller {
        // Where credentials are, and where an application finds them.
        let credentials = "Authorization, X-Api-Key, X-End-User-Token, Cookie";
        headers.insert(header::VARY, HeaderValue::from_static(credentials));
    }
    Ok(response)
}

/// Encodes the document.
fn encode<'a>(registered: &RegisteredAgent, skills: impl Iterator<Item = &'a Skill>, server: &str) -> Writer {
    let info = registered.info();
    let skills: Vec<DescribedSkill<'_>> =
        skills.enumerate().map(|(index, skill)| DescribedSkill::new(index, skill)).collect();
    let mut writer = Writer::new();
    writer.object(|out| {
        out.text("openapi", "3.1.0");
        out.key("info").object(|out| {
            out.text("title", &info.name);
            out.text("description", &info.description);
            out.text("version", &info.version);
        });
        out.key("servers").array([server], |out, url| out.object(|out| out.text("url", url)));
        v03::card::encode_security_requirements(out, &schemes::requirements(registered.settings()));
        out.key("paths").object(|out| {
            for skill in &skills {
                out.key(&skill.path()).object(|out| skill.encode_operation(out.key("post")));
            }
        });
        out.key("components").object(|out| {
            v03::card::encode_security_schemes(out, &schemes::declared(registered.settings()));
            components::encode(out, skills.iter().flat_map(|skill| [&skill.input, &skill.output]).flatten());
        });
    });
    writer
}

/// A skill with its schemas.
struct DescribedSkill<'a> {
    skill: &'a AgentSkill,
    input: Option<ComponentSchema<'a>>,
    output: Option<ComponentSchema<'a>>,
}

impl<'a> DescribedSkill<'a> {
    fn new(index: usize, skill: &'a Skill) -> Self {
        let component = |kind, schema| ComponentSchema::new(skill.id(), index, kind, schema);
        Self {
            skill: &skill.card,
            input: skill.input_schema().map(|schema| component("input", schema)),
            output: skill.output_schema().map(|schema| component("output", schema)),
        }
    }

    fn path(&self) -> String {
        let mut path = routes::RUN.to_owned();
        percent_encode(&mut path, &self.skill.id);
        path
    }

    fn encode_operation(&self, out: &mut Writer) {
        let AgentSkill { id, name, description, tags, .. } = self.skill;
        out.object(|out| {
            out.text("operationId", id);
            out.text("summary", name);
            out.text("description", description);
            out.texts_unless_empty("tags", tags);
            out.key("parameters").array(components::PARAMETERS, |out, (name, _)| {
                reference(out, "parameters", name);
            });
            out.key("requestBody").object(|out| self.encode_request(out));
            out.key("responses").object(|out| self.encode_responses(out));
        });
    }

    fn encode_request(&self, out: &mut Writer) {
        out.key("content").object(|out| {
            out.key("application/json").object(|out| match &self.input {
                Some(schema) => reference(out.key("schema"), "schemas", &schema.name),
                None => out.key("schema").object(|_| ()),
            });
            out.key("text/plain").object(|out| out.key("schema").object(|out| out.text("type", "string")));
        });
    }

    fn encode_responses(&self, out: &mut Writer) {
        out.key("200");
        match &self.output {
            // The result is a JSON value of this schema, unless the skill returns more than that.
            Some(schema) => out.object(|out| {
                out.text("description", components::COMPLETED);
                out.key("headers").object(components::encode_task_headers);
                out.key("content").object(|out| {
                    out.key("application/json").object(|out| {
                        out.key("schema").object(|out| {
                            let any_of = [schema.name.as_str(), components::PARTS];
                            out.key("anyOf").array(any_of, |out, name| reference(out, "schemas", name));
                        });
                    });
                    components::encode_event_stream(out);
                });
            }),
            None => reference(out, "responses", "Completed"),
        }
        for (status, name) in components::RESPONSES {
            reference(out.key(status), "responses", name);
        }
    }
}

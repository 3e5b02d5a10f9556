//! Skills as tools: their names and schemas. Pure.
//!
//! A tool takes an object. A skill without a schema takes `{"message": "…"}`, one whose arguments are not an object
//! takes them as the property `input`.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use engine::{RegisteredAgent, Skill};
use protocol::{
    Json,
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

use crate::{bindings::skill_call::Input, request::exchange::Exchange};

/// Tools on one page of a list.
const PAGE: usize = 1_000;

/// The longest name of a tool, and of an agent in it.
const MAX_NAME: usize = 128;
const MAX_AGENT_NAME: usize = 64;

/// Between the id of an agent and that of its skill.
const SEPARATOR: &str = "__";

/// Which tools a connection offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// The skills of the agent that the request addresses, by their ids.
    Agent,
    /// The skills of all agents, as `agent__skill`.
    AllAgents,
}

/// A tool as a client sees it.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) input_schema: Json,
    pub(super) output_schema: Option<Json>,
}

impl Tool {
    /// The bytes of its texts and schemas.
    pub(super) fn size(&self) -> usize {
        let schemas = [Some(&self.input_schema), self.output_schema.as_ref()].into_iter().flatten();
        let texts = [&self.name, &self.title, &self.description].into_iter().map(String::len);
        schemas.map(|schema| schema.as_str().len()).chain(texts).sum()
    }
}

/// What a tool stands for.
pub(super) struct Target {
    pub(super) agent: String,
    /// `None` for an agent without skills.
    pub(super) skill: Option<String>,
    pub(super) output: Output,
    form: InputForm,
}

/// Whether a tool has an output schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Output {
    Described,
    Any,
}

/// How the arguments of a tool become those of its skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputForm {
    /// The text is the property `message`.
    Message,
    /// They are the same.
    Same,
    /// They are the property `input`.
    Wrapped,
}

/// The page of tools that begins at this index, and the index of the next page.
pub(super) fn page(exchange: &Exchange, offer: Offer, from: usize) -> (Vec<Tool>, Option<usize>) {
    let mut tools = Vec::new();
    let mut index = 0;
    for agent in agents(exchange, offer) {
        for skill in skills(exchange, agent) {
            index += 1;
            if index <= from {
                continue;
            }
            if tools.len() == PAGE {
                return (tools, Some(from + PAGE));
            }
            tools.push(tool(offer, agent, skill));
        }
    }
    (tools, None)
}

/// The tool with this name, if it exists for the caller.
pub(super) fn find(exchange: &Exchange, offer: Offer, name: &str) -> Option<Target> {
    match offer {
        Offer::Agent => {
            let agent = exchange.endpoint.registered()?;
            target(exchange, agent, Some((name, MAX_NAME))).or_else(|| {
                let is_agent = name == agent_name(agent);
                if is_agent { target(exchange, agent, None) } else { None }
            })
        }
        Offer::AllAgents => agents(exchange, offer).find_map(|agent| {
            let own = agent_name(agent);
            let rest = name.strip_prefix(own.as_str())?;
            if rest.is_empty() {
                return target(exchange, agent, None);
            }
            target(exchange, agent, Some((rest.strip_prefix(SEPARATOR)?, left_for_skill(&own))))
        }),
    }
}

impl Target {
    /// The arguments of the skill in those of the tool.
    pub(super) fn input(&self, arguments: Json) -> Input {
        let member = |name: &str| {
            let object = Node::new(arguments.as_raw(), &Path::Root).object().ok()?;
            let is_only = object.entries(|_, _| Ok(())).is_ok_and(|members| members.len() == 1);
            object.present(name).filter(|_| is_only)
        };
        match self.form {
            InputForm::Same => Input::Arguments(arguments),
            InputForm::Message => {
                let text = member("message")
                    .and_then(|value| Some(Node::new(value, &Path::Root).string().ok()?.into_owned()));
                text.map_or_else(|| Input::Arguments(arguments.clone()), Input::Text)
            }
            InputForm::Wrapped => {
                let value = member("input").and_then(|value| Json::from_raw(value).ok());
                Input::Arguments(value.unwrap_or_else(|| arguments.clone()))
            }
        }
    }
}

fn agents(exchange: &Exchange, offer: Offer) -> impl Iterator<Item = &Arc<RegisteredAgent>> {
    let addressed = exchange.endpoint.registered().filter(|_| offer == Offer::Agent);
    let all = (offer == Offer::AllAgents).then(|| exchange.agents());
    addressed.into_iter().chain(all.into_iter().flatten()).filter(|agent| exchange.sender.may_call(agent))
}

/// The skills that exist for the caller; `None` stands for an agent that has no skills at all.
fn skills<'a>(
    exchange: &Exchange,
    agent: &'a RegisteredAgent,
) -> impl Iterator<Item = Option<&'a Skill>> + use<'a> {
    let caller = exchange.sender.scope_with(&exchange.endpoint.tenant, agent);
    let without_skills = agent.skills().is_empty().then_some(None);
    without_skills.into_iter().chain(agent.skills_for(&caller).map(Some))
}

/// What a name within an agent stands for, which was made with this maximum length; `None` is the agent itself.
fn target(exchange: &Exchange, agent: &RegisteredAgent, name: Option<(&str, usize)>) -> Option<Target> {
    let skill = match name {
        Some((name, max)) => {
            let caller = exchange.sender.scope_with(&exchange.endpoint.tenant, agent);
            // By id where that is a valid name, which is nearly always.
            let by_id = agent.skill_for(name, &caller).filter(|skill| plain(skill.id(), max) == name);
            let skill = by_id
                .or_else(|| skills(exchange, agent).flatten().find(|skill| plain(skill.id(), max) == name));
            Some(skill?)
        }
        None => {
            if !agent.skills().is_empty() {
                return None;
            }
            None
        }
    };
    let schema = skill.and_then(Skill::input_schema);
    Some(Target {
        agent: agent.info().id.clone(),
        skill: skill.map(|skill| skill.id().to_owned()),
        output: match skill.and_then(output_schema) {
            Some(_) => Output::Described,
            None => Output::Any,
        },
        form: schema.map_or(InputForm::Message, form),
    })
}

fn tool(offer: Offer, agent: &RegisteredAgent, skill: Option<&Skill>) -> Tool {
    let info = agent.info();
    let name = match (offer, skill) {
        (_, None) => agent_name(agent),
        (Offer::Agent, Some(skill)) => plain(skill.id(), MAX_NAME),
        (Offer::AllAgents, Some(skill)) => {
            let own = agent_name(agent);
            let skill = plain(skill.id(), left_for_skill(&own));
            own + SEPARATOR + &skill
        }
    };
    let (title, description) = match skill {
        Some(skill) => (&skill.card.name, &skill.card.description),
        None => (&info.name, &info.description),
    };
    let input = skill.and_then(Skill::input_schema);
    let output = skill.and_then(output_schema);
    Tool {
        name,
        title: title.clone(),
        description: description.clone(),
        input_schema: input.map_or_else(message_schema, object_schema),
        output_schema: output.cloned(),
    }
}

/// The output schema of a skill, if it is one of objects: others cannot be structured content.
fn output_schema(skill: &Skill) -> Option<&Json> {
    skill.output_schema().filter(|schema| types(schema).is_some_and(|types| types == ["object"]))
}

fn agent_name(agent: &RegisteredAgent) -> String {
    plain(&agent.info().id, MAX_AGENT_NAME)
}

/// How long the name of a skill may be after that of its agent.
fn left_for_skill(agent: &str) -> usize {
    MAX_NAME - agent.len() - SEPARATOR.len()
}

/// A name that every client accepts: an id that is none is changed, and its hash keeps it apart from others.
fn plain(id: &str, max: usize) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    if id.len() <= max && id.chars().all(is_plain) {
        return id.to_owned();
    }
    let hash = digest(&SHA256, id.as_bytes());
    let suffix: String = hash.as_ref()[..4].iter().map(|byte| format!("{byte:02x}")).collect();
    let kept = id.chars().map(|character| if is_plain(character) { character } else { '_' });
    kept.take(max - suffix.len() - 1).chain(['_']).chain(suffix.chars()).collect()
}

fn form(schema: &Json) -> InputForm {
    match types(schema) {
        Some(types) if types.iter().all(|name| name != "object") => InputForm::Wrapped,
        _ => InputForm::Same,
    }
}

/// A schema of an object with the skill's arguments.
fn object_schema(schema: &Json) -> Json {
    match form(schema) {
        InputForm::Wrapped => written(|out| {
            out.text("type", "object");
            out.key("properties").object(|out| {
                out.key("input").raw(schema.as_str());
            });
            out.texts("required", &["input"]);
        }),
        InputForm::Same | InputForm::Message => {
            let object = written(|out| out.text("type", "object"));
            Json::merge_objects(schema, &object).unwrap_or(object)
        }
    }
}

/// The schema of a skill that declares none.
fn message_schema() -> Json {
    written(|out| {
        out.text("type", "object");
        out.key("properties").object(|out| {
            out.key("message").object(|out| {
                out.text("type", "string");
                out.text("description", "What the skill is asked to do");
            });
        });
        out.texts("required", &["message"]);
    })
}

/// The types that a schema names; `None` if it names none.
fn types(schema: &Json) -> Option<Vec<String>> {
    let object = Node::new(schema.as_raw(), &Path::Root).object().ok()?;
    let one = || Some(vec![object.text("type").ok()??]);
    one().or_else(|| object.texts("type").ok().filter(|types| !types.is_empty()))
}

fn written(members: impl FnOnce(&mut Writer)) -> Json {
    let mut writer = Writer::new();
    writer.object(members);
    let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    Json::parse(&text).unwrap_or_else(|_| Json::parse("{\"type\":\"object\"}").expect("this is JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_becomes_that_of_an_object() {
        let shown = |schema: &str| object_schema(&Json::parse(schema).unwrap()).as_str().to_owned();
        let object = r#"{"type":"object","properties":{"a":{"type":"string"}}}"#;
        assert_eq!(shown(object), object);
        assert_eq!(shown(r#"{"properties":{"a":true}}"#), r#"{"properties":{"a":true},"type":"object"}"#);
        assert_eq!(shown(r#"{"type":["object","null"]}"#), r#"{"type":"object"}"#);
        assert_eq!(shown("true"), r#"{"type":"object"}"#);
        assert_eq!(
            shown(r#"{"type":"string"}"#),
            r#"{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}"#
        );
    }

    #[test]
    fn arguments_are_unpacked_as_the_schema_says() {
        let input = |form, arguments: &str| {
            let target = Target { agent: "a".into(), skill: None, output: Output::Any, form };
            match target.input(Json::parse(arguments).unwrap()) {
                Input::Text(text) => format!("text {text}"),
                Input::Arguments(json) => json.as_str().to_owned(),
            }
        };
        assert_eq!(input(InputForm::Message, r#"{"message":"hello"}"#), "text hello");
        assert_eq!(input(InputForm::Message, r#"{"message":"hello","b":1}"#), r#"{"message":"hello","b":1}"#);
        assert_eq!(input(InputForm::Message, r#"{"message":5}"#), r#"{"message":5}"#);
        assert_eq!(input(InputForm::Same, r#"{"message":"hello"}"#), r#"{"message":"hello"}"#);
        assert_eq!(input(InputForm::Wrapped, r#"{"input":[1.0]}"#), "[1.0]");
        assert_eq!(input(InputForm::Wrapped, r#"{"other":1}"#), r#"{"other":1}"#);
    }

    #[test]
    fn names_have_only_characters_that_clients_accept() {
        assert_eq!(plain("convert", MAX_NAME), "convert");
        let names = ["now é", "now!é", "now__"].map(|id| plain(id, MAX_NAME));
        assert!(names[0].starts_with("now___") && names[0] != names[1], "{names:?}");
        assert_eq!(names[2], "now__");
        let [one, other] = ["x", "y"].map(|end| plain(&("x".repeat(200) + end), MAX_NAME));
        assert!(one.len() == MAX_NAME && other.len() == MAX_NAME && one != other, "{one} {other}");
    }
}

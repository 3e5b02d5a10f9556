//! How a skill takes messages, and which media types it names on the card.

use protocol::{
    Json,
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

use super::JSON;

const TEXT: &str = "text/plain";

/// How a skill takes messages and what it answers with. What is not set is that of its server or document, or the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// What its backend gets; default: arguments.
    pub input: Option<InputForm>,
    /// The argument of a tool of an MCP server that gets the message.
    pub message_argument: Option<String>,
    /// The media types of the parts that it accepts; default: what the schema and the form have a place for.
    pub input_modes: Option<Vec<String>>,
    /// The media types of its results; default: JSON, and text if it has no output schema.
    pub output_modes: Option<Vec<String>>,
}

/// What a backend gets of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputForm {
    /// One JSON object, made of all parts of the message.
    #[default]
    Arguments,
    /// The message with the conversation before it, and the data in it as arguments: `message_input.rs`.
    Message,
}

impl Interface {
    /// That of a skill whose backend gets the whole message.
    pub fn message() -> Self {
        Self { input: Some(InputForm::Message), ..Self::default() }
    }

    /// Whether the backend gets the whole message.
    pub fn takes_message(&self) -> bool {
        self.input == Some(InputForm::Message)
    }

    /// This one, and `other` where it sets nothing.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            input: self.input.or(other.input),
            message_argument: self.message_argument.or_else(|| other.message_argument.clone()),
            input_modes: self.input_modes.or_else(|| other.input_modes.clone()),
            output_modes: self.output_modes.or_else(|| other.output_modes.clone()),
        }
    }

    /// The media types of results.
    pub(super) fn output_modes(&self, has_schema: bool) -> Vec<String> {
        let default = || if has_schema { vec![JSON.into()] } else { vec![JSON.into(), TEXT.into()] };
        self.output_modes.clone().unwrap_or_else(default)
    }

    /// The argument of a tool that gets the message, if the tool has it. Tools without it get arguments.
    pub fn message_argument_of(&self, input_schema: &Json) -> Option<&str> {
        let argument = self.message_argument.as_deref().filter(|_| self.takes_message())?;
        has_property(input_schema, argument).then_some(argument)
    }
}

fn has_property(schema: &Json, name: &str) -> bool {
    let names = Node::new(schema.as_raw(), &Path::Root).object().and_then(|schema| {
        schema.maybe("properties", |node| node.object()?.entries(|name, _| Ok(name.to_owned())))
    });
    names.ok().flatten().is_some_and(|names| names.iter().any(|one| one == name))
}

/// A schema of objects without one of their properties: clients do not send it.
pub fn without_property(schema: &Json, name: &str) -> Option<Json> {
    let object = Node::new(schema.as_raw(), &Path::Root).object().ok()?;
    let members = object.entries(|key, node| Ok((key.to_owned(), node.text().to_owned()))).ok()?;
    let mut writer = Writer::new();
    writer.object(|out| {
        for (key, value) in &members {
            out.key(key);
            match key.as_str() {
                "properties" => match Json::parse(value).ok().as_ref().and_then(entries) {
                    Some(properties) => out.object(|out| {
                        for (key, value) in properties.iter().filter(|(key, _)| key != name) {
                            out.key(key).raw(value);
                        }
                    }),
                    None => out.raw(value),
                },
                "required" => match Json::parse(value).ok().and_then(|list| texts(&list)) {
                    Some(names) => {
                        out.array(names.iter().filter(|one| *one != name), |out, one| out.string(one))
                    }
                    None => out.raw(value),
                },
                _ => out.raw(value),
            }
        }
    });
    Json::parse(&String::from_utf8(writer.finish()).ok()?).ok()
}

fn entries(object: &Json) -> Option<Vec<(String, String)>> {
    let object = Node::new(object.as_raw(), &Path::Root).object().ok()?;
    object.entries(|name, node| Ok((name.to_owned(), node.text().to_owned()))).ok()
}

fn texts(list: &Json) -> Option<Vec<String>> {
    Node::new(list.as_raw(), &Path::Root).list(|node| Ok(node.string()?.into_owned())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_of_the_message_is_none_that_clients_send() {
        let json = |text: &str| Json::parse(text).unwrap();
        let schema =
            json(r#"{"type":"object","required":["m","n"],"properties":{"m":{"type":"object"},"n":{}}}"#);
        let expected = json(r#"{"type":"object","required":["n"],"properties":{"n":{}}}"#);
        assert_eq!(without_property(&schema, "m"), Some(expected.clone()));
        let interface = Interface { message_argument: Some("m".into()), ..Interface::message() };
        assert_eq!(interface.message_argument_of(&schema), Some("m"));
        assert_eq!(interface.message_argument_of(&expected), None);
    }
}

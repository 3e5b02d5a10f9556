//! How a message becomes the arguments of a skill.

use protocol::{Content, Json, Message, Part, json::write::Writer};

use super::{LargeCheck, SchemaCheck, SkillSchema};

/// The most steps of a check that decides whether no arguments are allowed.
const MAX_STEPS: u64 = 20_000;

/// The arguments of a call, as far as a message has them.
pub enum Arguments {
    /// The schema allows them.
    Valid(Json),
    /// The check is left.
    Unchecked(Json, LargeCheck),
    /// The schema does not allow them; the text names the field.
    Invalid(String),
    /// The message has none.
    Missing,
}

impl Arguments {
    /// The arguments in a message: its data part, else a text that is a JSON object, else a text for the only required
    /// property if that is a string. Without a schema, the data part as it is, else `{"text": …}`.
    pub fn of(message: &Message, schema: Option<&dyn SkillSchema>) -> Self {
        let value = match Self::find(message, schema) {
            Ok(value) => value,
            Err(decided) => return decided,
        };
        match schema.map(|schema| schema.check("arguments", &value)) {
            None | Some(SchemaCheck::Done(Ok(()))) => Self::Valid(value),
            Some(SchemaCheck::Done(Err(problem))) => Self::Invalid(problem),
            Some(SchemaCheck::Large(check)) => Self::Unchecked(value, check),
        }
    }

    /// The same of a message that has been accepted: its arguments are not checked again.
    pub(super) fn of_accepted(message: &Message, schema: Option<&dyn SkillSchema>) -> Self {
        Self::find(message, schema).map_or_else(|decided| decided, Self::Valid)
    }

    /// What a message has, not checked yet.
    ///
    /// # Errors
    ///
    /// There is nothing to check.
    fn find(message: &Message, schema: Option<&dyn SkillSchema>) -> Result<Json, Self> {
        let data = message.parts.iter().find_map(|part| match &part.content {
            Content::Data(data) => Some(data.clone()),
            _ => None,
        });
        let text = message.text();
        let object = || Json::parse(&text).ok().filter(Json::is_object);
        let Some(schema) = schema else {
            return Ok(data.or_else(object).unwrap_or_else(|| text_argument("text", &text)));
        };
        if let Some(value) = data.or_else(object) {
            return Ok(value);
        }
        if let Some(property) = schema.single_text().filter(|_| !text.trim().is_empty()) {
            return Ok(text_argument(property, &text));
        }
        let empty = Json::parse("{}").expect("an empty object is JSON");
        // Nothing is required, so a text can only be the request itself.
        let is_allowed =
            schema.required().is_empty() && schema.allows(&empty, &mut { MAX_STEPS }) == Some(true);
        Err(if is_allowed { Self::Valid(empty) } else { Self::Missing })
    }
}

fn text_argument(name: &str, text: &str) -> Json {
    let mut writer = Writer::new();
    writer.object(|out| out.text(name, text));
    let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    Json::parse(&text).expect("the writer writes one JSON value")
}

/// Asks for the required properties: their names as text, the schema as data.
pub(super) fn question(skill: &str, schema: &dyn SkillSchema) -> Vec<Part> {
    let names = schema.required().join(", ");
    let text =
        format!("{skill} needs {names}: send them as a data part, or as a text that is one JSON object");
    vec![Part::text(text), Part::data(schema.text().clone())]
}

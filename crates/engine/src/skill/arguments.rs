//! How a message becomes the arguments of a skill: one JSON value, in which all of its parts are.
//!
//! The data parts are the value; several are merged. With a schema, a text is put into the one string property that is free
//! for it, and a file into a property that says how it takes files (`input_property.rs`). Without one, a text is the member
//! `text`. A part that has no place is refused, never dropped.

use std::{borrow::Cow, collections::HashMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use protocol::{
    Content, Error, ErrorKind, Json, Message, Part, Violation,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Path},
        write::Writer,
    },
};

use super::{
    LargeCheck, SchemaCheck, SkillSchema,
    input_property::{InputProperty, Takes, input_properties},
};

/// The most steps of a check that decides whether no arguments are allowed.
const MAX_STEPS: u64 = 20_000;
/// Where several properties could take a text, the first of these names does.
const TEXT_NAMES: [&str; 7] = ["text", "message", "prompt", "query", "question", "input", "instructions"];

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
    /// A part of the message has no place in them.
    Refused(Box<Error>),
}

impl Arguments {
    /// The arguments in a message. Without a schema, its data as it is, else `{"text": …}`.
    pub fn of(message: &Message, schema: Option<&dyn SkillSchema>) -> Self {
        Self::of_call(message, "", schema)
    }

    /// The same for a skill with this id, which a text beside data may be.
    pub(super) fn of_call(message: &Message, skill: &str, schema: Option<&dyn SkillSchema>) -> Self {
        match find(message, skill, schema) {
            Ok(found) => checked(found, schema),
            Err(decided) => decided,
        }
    }

    /// The same of a message that has been accepted: its arguments are not checked again.
    pub(super) fn of_accepted(message: &Message, skill: &str, schema: Option<&dyn SkillSchema>) -> Self {
        find(message, skill, schema).map_or_else(|decided| decided, Self::Valid)
    }

    /// The data of a message, for a skill that gets the rest of it too; `None` if it has none.
    pub(super) fn of_data(
        message: &Message,
        schema: Option<&dyn SkillSchema>,
        is_accepted: bool,
    ) -> Option<Self> {
        match data(message) {
            Ok(None) => None,
            Ok(Some(data)) if is_accepted => Some(Self::Valid(data.into_owned())),
            Ok(Some(data)) => Some(checked(data.into_owned(), schema)),
            Err(refused) => Some(Self::refused(refused)),
        }
    }

    fn refused(error: Error) -> Self {
        Self::Refused(Box::new(error))
    }
}

fn checked(value: Json, schema: Option<&dyn SkillSchema>) -> Arguments {
    match schema.map(|schema| schema.check("arguments", &value)) {
        None | Some(SchemaCheck::Done(Ok(()))) => Arguments::Valid(value),
        Some(SchemaCheck::Done(Err(problem))) => Arguments::Invalid(problem),
        Some(SchemaCheck::Large(check)) => Arguments::Unchecked(value, check),
    }
}

/// What a message has.
///
/// # Errors
///
/// There is nothing to check.
fn find(message: &Message, skill: &str, schema: Option<&dyn SkillSchema>) -> Result<Json, Arguments> {
    // The common case, without anything to look for.
    if let [Part { content: Content::Data(data), .. }] = message.parts.as_slice() {
        return Ok(data.clone());
    }
    let data = data(message).map_err(Arguments::refused)?;
    let text = message.text();
    let has_files = message.parts.iter().any(|part| is_file(&part.content));
    // Beside other parts the id of the skill has selected it.
    let is_alone = data.is_none() && !has_files;
    let says_more = |text: &&str| !text.is_empty() && (is_alone || *text != skill);
    let text = Some(text.as_str()).filter(|text| says_more(&text.trim()));
    let (data, text) = match (data, text) {
        (None, Some(text)) => match Json::parse(text).ok().filter(Json::is_object) {
            Some(object) => (Some(Cow::Owned(object)), None),
            None => (None, Some(text)),
        },
        other => other,
    };
    match schema {
        None => without_schema(message, data, text, has_files).map_err(Arguments::refused),
        Some(schema) => match (data, text) {
            (Some(data), None) if !has_files => Ok(data.into_owned()),
            (None, text) if !has_files => text_only(text, schema),
            (data, text) => filled(message, data.as_deref(), text, schema).map_err(Arguments::refused),
        },
    }
}

/// The data parts as one value; `None` if there are none.
fn data(message: &Message) -> Result<Option<Cow<'_, Json>>, Error> {
    let mut parts = message.parts.iter().enumerate().filter_map(|(at, part)| match &part.content {
        Content::Data(data) => Some((at, data)),
        _ => None,
    });
    let Some((first_at, first)) = parts.next() else { return Ok(None) };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return Ok(Some(Cow::Borrowed(first)));
    }
    let mut merged = Members::default();
    for (at, data) in [(first_at, first)].into_iter().chain(parts) {
        let members = entries(data.as_str());
        let members =
            members.ok_or_else(|| refusal(at, "several data parts are merged, so each must be an object"))?;
        let before = merged.list.len();
        for (name, value) in members {
            if merged.position(&name).is_some_and(|there| there < before) {
                let text = format!("another data part has the member {:?} too; send it once", excerpt(&name));
                return Err(refusal(at, text));
            }
            merged.set(name, value);
        }
    }
    let all =
        merged.json().ok_or_else(|| refusal(first_at, "the data parts together have too many values"))?;
    Ok(Some(Cow::Owned(all)))
}

fn without_schema(
    message: &Message,
    data: Option<Cow<'_, Json>>,
    text: Option<&str>,
    has_files: bool,
) -> Result<Json, Error> {
    if has_files {
        return Err(refused_file(
            message,
            file_at(message),
            "the skill takes one JSON object and has no schema",
            &[],
        ));
    }
    let Some(data) = data else { return Ok(text_argument("text", text.unwrap_or_default())) };
    let Some(text) = text else { return Ok(data.into_owned()) };
    let at = text_at(message);
    let members = entries(data.as_str())
        .ok_or_else(|| refusal(at, "a text beside data that is no object has no place; send one of them"))?;
    if members.iter().any(|(name, _)| name == "text") {
        return Err(refusal(at, "the data has a member text already; send one of them"));
    }
    let joined = Json::merge_objects(&data, &text_argument("text", text));
    let joined = joined.ok_or_else(|| refusal(at, "the data and the text together have too many values"))?;
    Ok(joined)
}

/// A message of text only, or of nothing.
fn text_only(text: Option<&str>, schema: &dyn SkillSchema) -> Result<Json, Arguments> {
    if let Some(text) = text {
        // Known without reading the schema.
        if let Some(property) = schema.single_text() {
            return Ok(text_argument(property, text));
        }
        let properties = input_properties(schema.text());
        let free: Vec<&InputProperty> = properties.iter().collect();
        if let Some(property) = text_property(&free) {
            let is_complete = schema.required().iter().all(|name| *name == property.path[0]);
            // What else is required is asked for.
            return if is_complete {
                Ok(text_argument(&property.path[0], text))
            } else {
                Err(Arguments::Missing)
            };
        }
    }
    let empty = Json::parse("{}").expect("an empty object is JSON");
    // Nothing is required, so a text can only be the request itself.
    let is_allowed = schema.required().is_empty() && schema.allows(&empty, &mut { MAX_STEPS }) == Some(true);
    Err(if is_allowed { Arguments::Valid(empty) } else { Arguments::Missing })
}

/// Data with the texts and files of a message in its free properties.
fn filled(
    message: &Message,
    data: Option<&Json>,
    text: Option<&str>,
    schema: &dyn SkillSchema,
) -> Result<Json, Error> {
    let properties = input_properties(schema.text());
    let mut object = FilledObject::new(data);
    for (at, part) in message.parts.iter().enumerate().filter(|(_, part)| is_file(&part.content)) {
        let free: Vec<&InputProperty> =
            properties.iter().filter(|one| object.is_free_for_file(one)).collect();
        match file_property(&free, part) {
            Some(property) => object.add_file(property, &part.content),
            None => {
                return Err(refused_file(
                    message,
                    at,
                    "no property of the skill's arguments takes it",
                    &free,
                ));
            }
        }
    }
    if let Some(text) = text {
        let free: Vec<&InputProperty> = properties.iter().filter(|one| object.is_free(one)).collect();
        let property = text_property(&free).ok_or_else(|| refused_text(message, &free))?;
        object.add_text(property, text);
    }
    let empty: Vec<&str> =
        schema.required().iter().filter(|name| !object.has(name)).map(String::as_str).collect();
    if data.is_none() && !empty.is_empty() {
        let text =
            format!("the required properties {} are empty: send them as a data part", empty.join(", "));
        return Err(Error::invalid_params(Violation::new("message.parts", text)));
    }
    object.finish().ok_or_else(|| refusal(0, "the arguments have too many values"))
}

/// Data to which members are added.
struct FilledObject<'a> {
    data: Option<&'a Json>,
    /// Of the data; `None` if it is no object.
    members: Option<Members<'a>>,
    added: Vec<Added>,
}

/// The values of one property, as JSON.
struct Added {
    path: Vec<String>,
    is_list: bool,
    values: Vec<Vec<u8>>,
}

impl<'a> FilledObject<'a> {
    fn new(data: Option<&'a Json>) -> Self {
        let members = data.map_or(Some(Members::default()), |data| Members::of(data.as_str()));
        Self { data, members, added: Vec::new() }
    }

    /// Whether nothing fills a property yet.
    fn is_free(&self, property: &InputProperty) -> bool {
        let Some(members) = &self.members else { return false };
        let (first, inner) = (&property.path[0], property.path.get(1));
        let is_free = match (members.get(first), inner) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(object), Some(inner)) => {
                entries(object).is_some_and(|members| members.iter().all(|(name, _)| name != inner))
            }
        };
        is_free && !self.added.iter().any(|one| one.path == property.path)
    }

    fn is_free_for_file(&self, property: &InputProperty) -> bool {
        let is_open = property.is_list() && self.added.iter().any(|one| one.path == property.path);
        property.takes_files() && (is_open || self.is_free(property))
    }

    fn add_text(&mut self, property: &InputProperty, text: &str) {
        let mut writer = Writer::new();
        writer.string(text);
        self.add(property, writer.finish());
    }

    fn add_file(&mut self, property: &InputProperty, content: &Content) {
        let mut writer = Writer::new();
        match content {
            Content::Raw(bytes) => writer.string(&STANDARD.encode(bytes)),
            Content::Url(url) => writer.string(url),
            Content::Text(_) | Content::Data(_) => return,
        }
        self.add(property, writer.finish());
    }

    fn add(&mut self, property: &InputProperty, value: Vec<u8>) {
        match self.added.iter_mut().find(|one| one.path == property.path) {
            Some(there) => there.values.push(value),
            None => {
                let (path, is_list) = (property.path.clone(), property.is_list());
                self.added.push(Added { path, is_list, values: vec![value] });
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        let is_given = self.members.as_ref().is_some_and(|members| members.get(name).is_some());
        is_given || self.added.iter().any(|one| one.path[0] == name)
    }

    /// `None` if it has too many values.
    fn finish(self) -> Option<Json> {
        let Self { data, members, added } = self;
        let own = members.unwrap_or_default().list;
        if added.is_empty() {
            return data.cloned();
        }
        let mut writer = Writer::new();
        writer.object(|out| {
            for (name, value) in &own {
                let mut inner = added.iter().filter(|one| one.path[0] == *name).peekable();
                match Members::of(value).filter(|_| inner.peek().is_some()) {
                    None => out.key(name).raw(value),
                    Some(there) => out.key(name).object(|out| {
                        there.list.iter().for_each(|(name, value)| out.key(name).raw(value));
                        inner.for_each(|one| one.write(1, out));
                    }),
                }
            }
            let new = |one: &&Added| own.iter().all(|(name, _)| *name != one.path[0]);
            let mut written: Vec<&String> = Vec::new();
            for one in added.iter().filter(new) {
                let first = &one.path[0];
                if one.path.len() == 1 {
                    one.write(0, out);
                } else if !written.contains(&first) {
                    written.push(first);
                    let inner = added.iter().filter(|other| other.path[0] == *first);
                    out.key(first).object(|out| inner.for_each(|one| one.write(1, out)));
                }
            }
        });
        Json::parse(&String::from_utf8(writer.finish()).ok()?).ok()
    }
}

impl Added {
    /// Writes the member of the object at this depth.
    fn write(&self, depth: usize, out: &mut Writer) {
        let out = out.key(&self.path[depth]);
        if self.is_list {
            out.array(&self.values, |out, value| out.raw_bytes(value));
        } else if let Some(value) = self.values.first() {
            out.raw_bytes(value);
        }
    }
}

/// Whether one of these properties takes the text of a message.
pub(super) fn takes_text(properties: &[InputProperty]) -> bool {
    text_property(&properties.iter().collect::<Vec<_>>()).is_some()
}

/// The property among the free ones that a text is put into.
fn text_property<'p>(free: &[&'p InputProperty]) -> Option<&'p InputProperty> {
    let required: Vec<_> = free.iter().copied().filter(|one| one.takes_text() && one.is_required).collect();
    let candidates = match required.as_slice() {
        [] => free.iter().copied().filter(|one| one.takes_text() && one.takes == Takes::Text).collect(),
        _ => required,
    };
    match candidates.as_slice() {
        [only] => Some(only),
        several => {
            TEXT_NAMES.iter().find_map(|name| several.iter().copied().find(|one| one.path[0] == *name))
        }
    }
}

/// The property among the free ones that a file is put into: a required one before others.
fn file_property<'p>(free: &[&'p InputProperty], part: &Part) -> Option<&'p InputProperty> {
    let fits = |one: &&&InputProperty| match (&part.content, &one.takes) {
        (Content::Raw(_), Takes::Bytes { media_type, .. }) => is_of_type(part, media_type.as_deref()),
        (Content::Url(_), Takes::Url { .. }) => true,
        _ => false,
    };
    let mut fitting = free.iter().filter(fits).copied();
    let first = fitting.next()?;
    if first.is_required { Some(first) } else { fitting.find(|one| one.is_required).or(Some(first)) }
}

/// Whether a part may be of a media type; one without a type may be anything.
fn is_of_type(part: &Part, expected: Option<&str>) -> bool {
    let (Some(expected), Some(given)) = (expected, part.media_type.as_deref()) else { return true };
    let essence = |name: &str| name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (expected, given) = (essence(expected), essence(given));
    match expected.strip_suffix("/*") {
        Some("*") => true,
        Some(kind) => given.split('/').next() == Some(kind),
        None => expected == given,
    }
}

fn is_file(content: &Content) -> bool {
    matches!(content, Content::Raw(_) | Content::Url(_))
}

fn file_at(message: &Message) -> usize {
    message.parts.iter().position(|part| is_file(&part.content)).unwrap_or_default()
}

/// The position of the first text that says something.
fn text_at(message: &Message) -> usize {
    let says = |part: &Part| matches!(&part.content, Content::Text(text) if !text.trim().is_empty());
    message.parts.iter().position(says).unwrap_or_default()
}

fn refusal(at: usize, problem: impl std::fmt::Display) -> Error {
    Error::invalid_params(Violation::new(format_args!("message.parts[{at}]"), problem))
}

fn refused_text(message: &Message, free: &[&InputProperty]) -> Error {
    let free = names(free.iter().copied().filter(|one| one.takes_text()));
    let text = format!(
        "the text has no place in the arguments: of the properties that the data leaves free, exactly one must take a \
         text; free are: {free}. Send the text as a property of the data, or leave it out"
    );
    refusal(text_at(message), text)
}

fn refused_file(message: &Message, at: usize, why: &str, free: &[&InputProperty]) -> Error {
    let kind = match message.parts.get(at).map(|part| (&part.content, part.media_type.as_deref())) {
        Some((Content::Url(_), None)) => "the URL of a file".to_owned(),
        Some((Content::Url(_), Some(kind))) => format!("the URL of a file of the type {}", excerpt(kind)),
        Some((_, Some(kind))) => format!("a file of the type {}", excerpt(kind)),
        _ => "a file".to_owned(),
    };
    let free = names(free.iter().copied());
    let text = format!(
        "message.parts[{at}]: {kind} has no place in the arguments: {why}; free for files are: {free}"
    );
    Error::new(ErrorKind::ContentTypeNotSupported, text)
}

/// Properties and what they take, for a message.
fn names<'p>(properties: impl Iterator<Item = &'p InputProperty>) -> String {
    let shown = |one: &InputProperty| match &one.takes {
        Takes::Text | Takes::Choice => one.name(),
        Takes::Url { .. } => format!("{} (a URL)", one.name()),
        Takes::Bytes { media_type: Some(media_type), .. } => format!("{} ({media_type})", one.name()),
        Takes::Bytes { media_type: None, .. } => format!("{} (any file)", one.name()),
    };
    let shown: Vec<String> = properties.map(shown).collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// The members of an object; of those with the same name the last.
#[derive(Default)]
struct Members<'a> {
    list: Vec<(String, &'a str)>,
    positions: HashMap<String, usize>,
}

impl<'a> Members<'a> {
    /// `None` for another value.
    fn of(json: &'a str) -> Option<Self> {
        let mut members = Self::default();
        for (name, value) in entries(json)? {
            members.set(name, value);
        }
        Some(members)
    }

    fn set(&mut self, name: String, value: &'a str) {
        match self.position(&name) {
            Some(at) => self.list[at].1 = value,
            None => {
                self.positions.insert(name.clone(), self.list.len());
                self.list.push((name, value));
            }
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.position(name).map(|at| self.list[at].1)
    }

    /// `None` if it has too many values.
    fn json(&self) -> Option<Json> {
        let mut writer = Writer::new();
        writer.object(|out| self.list.iter().for_each(|(name, value)| out.key(name).raw(value)));
        Json::parse(&String::from_utf8(writer.finish()).ok()?).ok()
    }
}

/// The members of an object as they are written; `None` for another value.
fn entries(json: &str) -> Option<Vec<(String, &str)>> {
    let object = Node::new(Raw::parse_text(json).ok()?, &Path::Root).object().ok()?;
    object.entries(|name, node| Ok((name.to_owned(), node.text()))).ok()
}

fn text_argument(name: &str, text: &str) -> Json {
    let mut writer = Writer::new();
    writer.object(|out| out.text(name, text));
    let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    Json::parse(&text).expect("the writer writes one JSON value")
}

/// Asks for the required properties: their names as text, the schema, if there is one, as data. `problem` is what was wrong before.
pub(super) fn question(skill: &str, schema: Option<&dyn SkillSchema>, problem: Option<&str>) -> Vec<Part> {
    let needed = match schema.map(|schema| schema.required()) {
        None | Some([]) => "its arguments".to_owned(),
        Some(names) => names.join(", "),
    };
    let mut text =
        format!("{skill} needs {needed}: send them as a data part, or as a text that is one JSON object");
    if let Some(problem) = problem {
        text = format!("{text}. What was sent is not usable: {problem}");
    }
    let schema = schema.map(|schema| Part::data(schema.text().clone()));
    [Part::text(text)].into_iter().chain(schema).collect()
}

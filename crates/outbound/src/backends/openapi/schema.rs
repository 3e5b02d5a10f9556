//! Schemas of a document as JSON Schemas of version 2020-12, which is what clients and the validator read.
//!
//! A schema that is referenced becomes a definition in `$defs` and stays a reference, so recursive schemas need nothing
//! special and shared ones are not repeated. Only keywords with a known meaning and a valid value are kept. Of schemas
//! in OpenAPI 3.0, `nullable` becomes the type `null`, and boolean `exclusiveMinimum` and `exclusiveMaximum` become
//! numbers.
//!
//! The result is bounded: schemas nested too deeply become `true`, which allows everything, and so do the schema that
//! exceeds the size limit and the definitions after it, in the order in which they are found.

mod keyword;
mod version_30;

use std::collections::{HashMap, HashSet};

use serde_json::Map;

use self::{
    keyword::Kind,
    version_30::{Null, exclusive_bounds},
};
use super::{
    Tree,
    document::{Document, Version},
};

/// Maximum nesting depth in JSON levels of a schema or definition.
const MAX_DEPTH: usize = 32;
/// Maximum number of values of a schema with its definitions.
const MAX_NODES: usize = 2_000;
/// Maximum size of a schema with its definitions, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// Who writes the values that a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The client: `readOnly` properties are not required.
    Request,
    /// The server: `writeOnly` properties are not required.
    Response,
}

/// Translates the schemas of one operation that share definitions.
pub(super) struct Translator<'d> {
    document: &'d Document,
    direction: Direction,
    /// References in the order in which they were found, with the names of their definitions.
    found: Vec<(&'d str, String)>,
    /// Index in `found`.
    known: HashMap<&'d str, usize>,
    names: HashSet<String>,
    nodes_left: usize,
    bytes_left: usize,
    /// Whether everything is translated: nothing became `true` because of a limit.
    pub(super) complete: bool,
}

/// Why a schema was not translated.
enum Stop {
    TooLarge,
    TooDeep,
    /// The reason why the operation is skipped.
    Refused(String),
}

impl<'d> Translator<'d> {
    pub(super) fn new(document: &'d Document, direction: Direction) -> Self {
        Self {
            document,
            direction,
            found: Vec::new(),
            known: HashMap::new(),
            names: HashSet::new(),
            nodes_left: MAX_NODES,
            bytes_left: MAX_BYTES,
            complete: true,
        }
    }

    /// Translates a schema; `true` if it exceeds what is left. References in it are translated by
    /// [`definitions`](Self::definitions).
    pub(super) fn translate(&mut self, schema: &'d Tree) -> Result<Tree, String> {
        let (nodes, bytes, found) = (self.nodes_left, self.bytes_left, self.found.len());
        match self.schema(schema, 0) {
            Ok(translated) => Ok(translated),
            Err(Stop::Refused(reason)) => Err(reason),
            Err(Stop::TooLarge | Stop::TooDeep) => {
                (self.nodes_left, self.bytes_left) = (nodes, bytes);
                for (reference, _) in self.found.drain(found..) {
                    self.known.remove(reference);
                }
                self.complete = false;
                Ok(Tree::Bool(true))
            }
        }
    }

    /// The definitions that the translated schemas refer to.
    pub(super) fn definitions(&mut self) -> Result<Map<String, Tree>, String> {
        let mut definitions = Map::new();
        let mut at = 0;
        let mut fits = true;
        while let Some((reference, name)) = self.found.get(at).cloned() {
            let target = self.document.lookup(reference)?;
            let definition = if fits { self.translate(target)? } else { Tree::Bool(true) };
            // Without this limit, every definition that does not fit would be read again for each operation.
            fits = fits && (definition != true || *target == true);
            definitions.insert(name, definition);
            at += 1;
        }
        self.complete = self.complete && fits;
        Ok(definitions)
    }

    fn schema(&mut self, schema: &'d Tree, depth: usize) -> Result<Tree, Stop> {
        let Tree::Object(members) = schema else {
            return self.literal(if *schema == false { schema } else { &Tree::Bool(true) }, depth);
        };
        if depth >= MAX_DEPTH {
            self.complete = false;
            return self.literal(&Tree::Bool(true), 0);
        }
        let v30 = self.document.version == Version::V30;
        let mut out = Map::new();
        if let Some(reference) = members.get("$ref").and_then(Tree::as_str) {
            let name = self.definition(reference)?;
            self.spend(reference.len())?;
            out.insert("$ref".into(), format!("#/$defs/{name}").into());
            if v30 {
                // The specification ignores what is beside a reference, but documents rely on this.
                let null = members.get("nullable") == Some(&Tree::Bool(true));
                return Ok(if null { Null::Wrap.add(out) } else { out.into() });
            }
        }
        let null = if v30 { Null::of(members) } else { Null::No };
        let inner = if null == Null::Wrap { depth + 2 } else { depth };
        self.spend(2)?;
        for (keyword, value) in members {
            if let Some(value) = self.keyword(keyword, value, inner)? {
                out.insert(keyword.clone(), value);
            }
        }
        if v30 {
            exclusive_bounds(members, &mut out);
        }
        self.require_what_is_sent(members, &mut out);
        Ok(null.add(out))
    }

    /// The value of a keyword; `None` if the keyword has no meaning in the translation.
    fn keyword(&mut self, keyword: &str, value: &'d Tree, depth: usize) -> Result<Option<Tree>, Stop> {
        let value = match (Kind::of(keyword), value) {
            (Kind::Literal(valid), value) if valid(value) => match self.literal(value, depth + 1) {
                Err(Stop::TooDeep) => return Ok(None),
                other => other?,
            },
            (Kind::Schema, value) => self.schema(value, depth + 1)?,
            (Kind::List, Tree::Array(schemas)) if !schemas.is_empty() => {
                self.spend(2)?;
                let list = schemas.iter().map(|schema| self.schema(schema, depth + 2));
                Tree::Array(list.collect::<Result<_, _>>()?)
            }
            (Kind::Map, Tree::Object(schemas)) => {
                self.spend(2)?;
                let mut map = Map::new();
                for (name, schema) in schemas {
                    self.bytes(name.len() + 4)?;
                    map.insert(name.clone(), self.schema(schema, depth + 2)?);
                }
                map.into()
            }
            _ => return Ok(None),
        };
        self.bytes(keyword.len() + 4)?;
        Ok(Some(value))
    }

    fn literal(&mut self, value: &Tree, depth: usize) -> Result<Tree, Stop> {
        self.spend_on(value, depth)?;
        Ok(value.clone())
    }

    fn spend_on(&mut self, value: &Tree, depth: usize) -> Result<(), Stop> {
        if depth > MAX_DEPTH {
            return Err(Stop::TooDeep);
        }
        match value {
            Tree::String(text) => self.spend(text.len() + 3),
            Tree::Number(_) => self.spend(20),
            Tree::Null | Tree::Bool(_) => self.spend(5),
            Tree::Array(list) => {
                self.spend(2)?;
                list.iter().try_for_each(|value| self.spend_on(value, depth + 1))
            }
            Tree::Object(members) => {
                self.spend(2)?;
                members.iter().try_for_each(|(name, value)| {
                    self.bytes(name.len() + 4)?;
                    self.spend_on(value, depth + 1)
                })
            }
        }
    }

    /// The name of the definition for a reference.
    fn definition(&mut self, reference: &'d str) -> Result<String, Stop> {
        if let Some(at) = self.known.get(reference) {
            return Ok(self.found[*at].1.clone());
        }
        self.document.lookup(reference).map_err(Stop::Refused)?;
        let last = reference.rsplit('/').next().unwrap_or_default();
        let clean =
            |sign: char| if sign.is_ascii_alphanumeric() || "._-".contains(sign) { sign } else { '_' };
        let base: String = last.chars().take(100).map(clean).collect();
        let numbered = (2..).map(|number| format!("{base}_{number}"));
        let name = std::iter::once(base.clone())
            .chain(numbered)
            .find(|name| !self.names.contains(name))
            .expect("there are more numbers than names");
        self.names.insert(name.clone());
        self.known.insert(reference, self.found.len());
        self.found.push((reference, name.clone()));
        Ok(name)
    }

    /// Removes from `required` what the other side writes.
    fn require_what_is_sent(&self, members: &Map<String, Tree>, out: &mut Map<String, Tree>) {
        let mark = match self.direction {
            Direction::Request => "readOnly",
            Direction::Response => "writeOnly",
        };
        let Some(Tree::Array(required)) = out.get_mut("required") else { return };
        required.retain(|name| {
            let property = name.as_str().and_then(|name| members.get("properties")?.get(name));
            let marked = |schema: &Tree| schema.get(mark) == Some(&Tree::Bool(true));
            !property
                .is_some_and(|property| marked(property) || self.document.resolve(property).is_ok_and(marked))
        });
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or(Stop::TooLarge)?;
        self.bytes(bytes)
    }

    fn bytes(&mut self, bytes: usize) -> Result<(), Stop> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(Stop::TooLarge)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;

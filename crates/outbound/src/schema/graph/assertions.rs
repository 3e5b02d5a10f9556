//! Keywords that the library checks on one value, compiled when they are first used.

use std::sync::{Arc, OnceLock};

use jsonschema::{ValidationError, Validator};
use referencing::Draft;
use serde_json::{Map, json};

use super::super::Tree;

/// A schema without subschemas that matter: only the value itself is checked.
pub(in super::super) struct Assertions {
    schema: Tree,
    draft: Draft,
    validator: OnceLock<Option<Validator>>,
}

/// The regular expression of a property's name.
#[derive(Clone)]
pub(in super::super) struct Pattern(Arc<Assertions>);

impl Assertions {
    pub(super) fn new(schema: Tree, draft: Draft) -> Self {
        Self { schema, draft, validator: OnceLock::new() }
    }

    /// `None` if there is no keyword.
    pub(super) fn of(keywords: Map<String, Tree>, draft: Draft) -> Option<Self> {
        (!keywords.is_empty()).then(|| Self::new(keywords.into(), draft))
    }

    pub(in super::super) fn allow(&self, value: &Tree) -> bool {
        self.validator().is_none_or(|validator| validator.is_valid(value))
    }

    /// The first error.
    pub(in super::super) fn error<'a>(&self, value: &'a Tree) -> Option<ValidationError<'a>> {
        self.validator()?.validate(value).err()
    }

    /// Keywords that the library does not take are no assertions: it has taken the whole schema.
    fn validator(&self) -> Option<&Validator> {
        let compile = || jsonschema::options().with_draft(self.draft).build(&self.schema).ok();
        self.validator.get_or_init(compile).as_ref()
    }

    /// Whether they choose between alternatives, so that a failure says more about the choice than about the value.
    pub(in super::super) fn are_a_choice(&self) -> bool {
        ["const", "enum"].iter().any(|keyword| self.schema.get(keyword).is_some())
    }

    pub(super) fn is_false(&self) -> bool {
        self.schema == Tree::Bool(false)
    }

    /// What they cost, in steps. Lists are searched.
    pub(super) fn steps(&self) -> u64 {
        let listed = ["enum", "required"].iter().filter_map(|keyword| self.schema.get(keyword)?.as_array());
        1 + listed.map(|list| list.len() as u64 / 16).sum::<u64>()
    }
}

impl Pattern {
    pub(super) fn new(pattern: &str, draft: Draft) -> Self {
        Self(Arc::new(Assertions::new(json!({"pattern": pattern}), draft)))
    }

    pub(in super::super) fn matches(&self, name: &str) -> bool {
        self.0.allow(&Tree::String(name.to_owned()))
    }
}

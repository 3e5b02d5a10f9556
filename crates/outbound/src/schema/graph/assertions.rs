//! Keywords that the library checks on one value, compiled when they are first used.

use std::sync::{Arc, OnceLock};

use jsonschema::{PatternOptions, ValidationError, ValidationOptions, Validator};
use referencing::Draft;
use serde_json::{Map, json};

use super::super::Tree;

/// What a regular expression that can backtrack costs on one text, in steps: the library gives up after some hundred
/// microseconds.
const BACKTRACKING_STEPS: u64 = 2_000;
/// How often a regular expression may backtrack on one text.
const MAX_BACKTRACKS: usize = 10_000;
/// The largest compiled regular expression.
const MAX_PATTERN_BYTES: usize = 4 << 20;
/// What it may remember of texts, for each thread that uses it.
const MAX_PATTERN_CACHE_BYTES: usize = 1 << 20;
/// What only regular expressions have that can backtrack; others take time in proportion to the text.
const BACKTRACKING: [&str; 11] = ["(?=", "(?!", "(?<", "(?>", "(?(", "\\k", "\\G", "++", "*+", "?+", "}+"];

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

    pub(super) fn compile(&self) {
        self.validator();
    }

    /// Keywords that the library does not take are no assertions: it has taken the whole schema.
    fn validator(&self) -> Option<&Validator> {
        let compile = || options().with_draft(self.draft).build(&self.schema).ok();
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
    pub(in super::super) fn steps(&self) -> u64 {
        let listed = ["enum", "required"].iter().filter_map(|keyword| self.schema.get(keyword)?.as_array());
        let patterns =
            self.patterns().map(|pattern| if can_backtrack(pattern) { BACKTRACKING_STEPS } else { 1 });
        1 + patterns.sum::<u64>() + listed.map(|list| list.len() as u64 / 16).sum::<u64>()
    }

    /// Whether a regular expression in them can backtrack.
    pub(super) fn can_backtrack(&self) -> bool {
        self.patterns().any(can_backtrack)
    }

    fn patterns(&self) -> impl Iterator<Item = &str> {
        let own = self.schema.get("pattern").and_then(Tree::as_str);
        let of_names = self.schema.get("patternProperties").and_then(Tree::as_object);
        own.into_iter().chain(of_names.into_iter().flat_map(|patterns| patterns.keys().map(String::as_str)))
    }
}

/// Whether a regular expression can backtrack; `true` for some that cannot.
fn can_backtrack(pattern: &str) -> bool {
    let is_reference = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'1'..=b'9');
    let has_reference = pattern.as_bytes().windows(2).any(is_reference);
    has_reference || BACKTRACKING.iter().any(|part| pattern.contains(part))
}

/// How the library checks: a regular expression gives up instead of running for long, and one that needs much memory is
/// an error of its schema.
pub(in super::super) fn options<'a>() -> ValidationOptions<'a> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKS)
        .size_limit(MAX_PATTERN_BYTES)
        .dfa_size_limit(MAX_PATTERN_CACHE_BYTES);
    jsonschema::options().with_pattern_options(patterns)
}

impl Pattern {
    pub(super) fn new(pattern: &str, draft: Draft) -> Self {
        Self(Arc::new(Assertions::new(json!({"pattern": pattern}), draft)))
    }

    /// What one name costs, in steps.
    pub(in super::super) fn steps(&self) -> u64 {
        self.0.steps()
    }

    pub(super) fn can_backtrack(&self) -> bool {
        self.0.can_backtrack()
    }

    pub(super) fn compile(&self) {
        self.0.compile();
    }

    pub(in super::super) fn matches(&self, name: &str) -> bool {
        self.0.allow(&Tree::String(name.to_owned()))
    }
}

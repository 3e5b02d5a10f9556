//! JSON Schemas of arguments and results, compiled once.
//!
//! The only module that uses the validator. A reference to another document is not followed: such a schema is rejected.
//!
//! Schemas and values come from others, so what a check may cost is bounded. The library's check is the fastest, but it
//! repeats work where subschemas refer to each other, and its errors contain those of all alternatives. It checks what
//! is not recursive and small by its size: subschemas times values in it. Everything else, and the text of every error,
//! is a walk of our own (`walk.rs`), which repeats nothing and can be interrupted. A check of more than 20,000 steps runs
//! on a thread of its own with a deadline (`large.rs`).

mod budget;
mod graph;
mod large;
mod short_text;
#[cfg(test)]
mod tests;
mod walk;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use engine::{SchemaCheck, SkillSchema};
use jsonschema::Validator;
use protocol::Json;

use self::{
    budget::{Budget, TooComplex},
    graph::{Graph, NoGraph, options},
    large::Places,
    walk::{Walk, text_steps},
};

/// The most subschemas that may apply to one value when references are replaced by what they refer to.
pub const MAX_EXPANSION: u64 = 20_000;
/// The longest chain of subschemas that apply to one value, because each needs some stack.
const MAX_IN_PLACE_DEPTH: u64 = 200;
/// The largest check on the thread of its caller. A step is one subschema on one value, and takes some nanoseconds.
const INLINE_STEPS: u64 = 20_000;
/// The largest check that is left to the library, which cannot be interrupted: some tens of milliseconds.
const LIBRARY_STEPS: u64 = 2_000_000;
/// The longest chain of subschemas that is left to the library, because each needs some stack.
const LIBRARY_DEPTH: u64 = 200;

/// The tree that the validator reads. Arguments are passed on as the client sent them, never from this tree.
#[expect(clippy::disallowed_types, reason = "the validator reads this type")]
type Tree = serde_json::Value;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    text: Json,
    size: Size,
    validator: OnceLock<Validator>,
    graph: OnceLock<Graph>,
    required: Vec<String>,
    /// The only required property, if there is exactly one and it is a string.
    single_text: Option<String>,
    has_properties: bool,
}

/// What one value costs, in steps.
#[derive(Clone, Copy)]
enum Size {
    /// The library checks it.
    Expanded(u64),
    /// It is recursive, too large for the library, or has a regular expression that can backtrack.
    Walked(u64),
}

/// Why a document is not used as a schema.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSchema {
    /// It is none.
    #[error("not a valid JSON Schema: {0}")]
    Invalid(String),
    /// A check of one value could take for ever.
    #[error(
        "a JSON Schema that is too complex: with its references replaced, more than {MAX_EXPANSION} subschemas apply to \
         one value, or a chain of more than {MAX_IN_PLACE_DEPTH}; refer to fewer schemas from allOf, anyOf, oneOf, not \
         and if"
    )]
    TooComplex,
}

impl Schema {
    /// Compiles a schema.
    pub fn new(text: Json) -> Result<Self, InvalidSchema> {
        let (tree, size) = measured(&text)?;
        let validator = compile(&tree)?;
        Ok(Self::with(text, &tree, size, validator.into()))
    }

    /// Like [`new`](Self::new), but keeps only the text until the first check: the compiled form of a large schema has
    /// a hundred times its size.
    pub fn compiled_on_use(text: Json) -> Result<Self, InvalidSchema> {
        let (tree, size) = measured(&text)?;
        compile(&tree)?;
        Ok(Self::with(text, &tree, size, OnceLock::new()))
    }

    fn with(text: Json, tree: &Tree, size: Size, validator: OnceLock<Validator>) -> Self {
        let required: Vec<String> = tree["required"]
            .as_array()
            .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        let single_text = match required.as_slice() {
            [only] if tree["properties"][only]["type"] == "string" => Some(only.clone()),
            _ => None,
        };
        let has_properties = has_properties(tree);
        let graph = OnceLock::new();
        Self(Arc::new(Compiled { text, size, validator, graph, required, single_text, has_properties }))
    }

    fn validator(&self) -> &Validator {
        let again = || parse(&self.0.text).ok().and_then(|tree| compile(&tree).ok());
        self.0.validator.get_or_init(|| again().expect("it was parsed and compiled before"))
    }

    fn graph(&self) -> &Graph {
        let again = || parse(&self.0.text).ok().and_then(|tree| Graph::new(&tree).ok());
        self.0.graph.get_or_init(|| again().expect("it was parsed and read before"))
    }

    fn check_tree(&self, root: &'static str, tree: Tree) -> SchemaCheck {
        let steps = self.steps(&tree);
        if steps <= INLINE_STEPS {
            // It cannot need more by much; that it ends does not depend on the estimate.
            SchemaCheck::Done(self.result(root, &tree, steps, &mut Budget::steps(10 * INLINE_STEPS)))
        } else {
            Places::of(root).check(self.clone(), root, tree, steps)
        }
    }

    /// The result of a check of so many steps within a budget.
    fn result(&self, root: &str, tree: &Tree, steps: u64, budget: &mut Budget) -> Result<(), String> {
        let by_library = self.is_left_to_library(steps);
        if by_library && self.validator().is_valid(tree) {
            return Ok(());
        }
        match Walk::new(self.graph(), budget).error(root, tree) {
            Ok(Some(error)) => Err(error),
            _ if by_library => Err(format!("{root}: the value does not match the schema")),
            Ok(None) => Ok(()),
            Err(TooComplex) => Err(format!(
                "{root}: too complex to check against the schema; send a smaller or less nested value"
            )),
        }
    }

    /// Compiles what a check of so many steps needs. How long that takes depends on the schema alone, and it is done once.
    fn prepare(&self, steps: u64) {
        if self.is_left_to_library(steps) {
            self.validator();
            self.graph();
        } else {
            self.graph().compile();
        }
    }

    fn is_left_to_library(&self, steps: u64) -> bool {
        matches!(self.0.size, Size::Expanded(_)) && steps <= LIBRARY_STEPS
    }

    /// What a check costs at most.
    fn steps(&self, tree: &Tree) -> u64 {
        let (Size::Expanded(size) | Size::Walked(size)) = self.0.size;
        size.saturating_mul(values(tree))
    }
}

impl SkillSchema for Schema {
    fn text(&self) -> &Json {
        &self.0.text
    }

    fn required(&self) -> &[String] {
        &self.0.required
    }

    fn single_text(&self) -> Option<&str> {
        self.0.single_text.as_deref()
    }

    fn has_properties(&self) -> bool {
        self.0.has_properties
    }

    fn allows(&self, value: &Json, steps: &mut u64) -> Option<bool> {
        let Ok(tree) = parse(value) else { return Some(false) };
        let needed = self.steps(&tree);
        if self.is_left_to_library(needed)
            && let Some(rest) = steps.checked_sub(needed)
        {
            *steps = rest;
            return Some(self.validator().is_valid(&tree));
        }
        let mut budget = Budget::steps(*steps);
        let allowed = Walk::new(self.graph(), &mut budget).allows(&tree);
        *steps = budget.left();
        allowed.ok()
    }

    /// The error is such as `arguments.amount: "ten" is not of type "number"`.
    fn check(&self, root: &'static str, value: &Json) -> SchemaCheck {
        match parse(value) {
            Ok(tree) => self.check_tree(root, tree),
            Err(problem) => SchemaCheck::Done(Err(format!("{root}: {problem}"))),
        }
    }

    fn check_text(&self, root: &'static str, text: &str) -> SchemaCheck {
        match serde_json::from_str(text) {
            Ok(tree) => self.check_tree(root, tree),
            Err(error) => SchemaCheck::Done(Err(format!("{root}: {error}"))),
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(out)
    }
}

/// The tree of a schema and its size. Before the library sees it, which could take long too.
fn measured(text: &Json) -> Result<(Tree, Size), InvalidSchema> {
    let tree = parse(text).map_err(InvalidSchema::Invalid)?;
    let graph = match Graph::new(&tree) {
        Ok(graph) => graph,
        Err(NoGraph::TooLarge) => return Err(InvalidSchema::TooComplex),
        Err(NoGraph::Unresolved(problem)) => return Err(InvalidSchema::Invalid(problem)),
    };
    let in_place = graph.largest_in_place();
    if in_place.size > MAX_EXPANSION || in_place.depth > MAX_IN_PLACE_DEPTH {
        return Err(InvalidSchema::TooComplex);
    }
    let whole = graph.expansion();
    let is_left_to_library = !whole.is_recursive
        && !graph.can_backtrack()
        && whole.size <= LIBRARY_STEPS
        && whole.depth <= LIBRARY_DEPTH;
    let size = if is_left_to_library { Size::Expanded(whole.size) } else { Size::Walked(graph.steps()) };
    Ok((tree, size))
}

/// Whether a schema says what members an object has, itself or by other schemas.
fn has_properties(tree: &Tree) -> bool {
    const KEYWORDS: [&str; 11] = [
        "properties",
        "patternProperties",
        "required",
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
        "$dynamicRef",
        "if",
        "enum",
        "const",
    ];
    let is_empty = |value: &Tree| {
        value.as_object().is_some_and(|members| members.is_empty())
            || value.as_array().is_some_and(Vec::is_empty)
    };
    let Some(members) = tree.as_object() else { return false };
    KEYWORDS.iter().any(|keyword| members.get(*keyword).is_some_and(|value| !is_empty(value)))
        || members.get("type").is_some_and(|kind| kind != "object")
}

fn compile(tree: &Tree) -> Result<Validator, InvalidSchema> {
    options().build(tree).map_err(|error| InvalidSchema::Invalid(error.to_string()))
}

/// The error is a number or text that JSON has and the validator cannot represent, such as `1e400` or `"\ud800"`.
fn parse(json: &Json) -> Result<Tree, String> {
    serde_json::from_str(json.as_str()).map_err(|error| format!("it cannot be checked: {error}"))
}

/// A value and the values in it. A long text counts as several.
fn values(tree: &Tree) -> u64 {
    match tree {
        Tree::Array(items) => 1 + items.iter().map(values).sum::<u64>(),
        Tree::Object(members) => 1 + members.values().map(values).sum::<u64>(),
        other => 1 + text_steps(other),
    }
}

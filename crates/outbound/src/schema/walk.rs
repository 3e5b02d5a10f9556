//! Checks a value without repeating work: each pair of a subschema and a value is judged once, so that the time is at most
//! their product, however the subschemas refer to each other.
//!
//! An invalid value has one error: the first one, and of alternatives the first error of the best one, which is the one
//! that fits furthest into the value. A reference that leads back to itself on the same value is satisfied, as in the
//! library.

mod evaluated;
mod failure;

use std::{collections::HashMap, rc::Rc};

use self::failure::{Failure, Fit, Kind, Problem};
use super::{
    Tree,
    budget::{Budget, TooComplex},
    graph::{Graph, NodeId, ROOT, Rule},
    short_text::short_text,
};

/// How many judgements are remembered. Beyond that, they are repeated.
const MAX_REMEMBERED: usize = 100_000;
/// How deep subschemas may apply within each other, because each needs some stack.
const MAX_DEPTH: u32 = 600;

/// One check.
pub(super) struct Walk<'g, 'b> {
    graph: &'g Graph,
    budget: &'b mut Budget,
    /// How well each value fits each subschema; `None` if it is valid. By address: the value outlives the check.
    judged: HashMap<(NodeId, usize), Option<Fit>>,
    /// The names of properties that were judged as values, by their addresses.
    names: HashMap<usize, Rc<Tree>>,
    depth: u32,
}

type Judged<T> = Result<T, TooComplex>;

impl<'g, 'b> Walk<'g, 'b> {
    pub(super) fn new(graph: &'g Graph, budget: &'b mut Budget) -> Self {
        Self { graph, budget, judged: HashMap::new(), names: HashMap::new(), depth: 0 }
    }

    /// Whether the value is valid.
    pub(super) fn allows(&mut self, value: &Tree) -> Judged<bool> {
        self.is_valid(ROOT, value)
    }

    /// The error of a value that is not valid, with the path to its place.
    pub(super) fn error(&mut self, root: &str, value: &Tree) -> Judged<Option<String>> {
        self.describe(ROOT, value, root.to_owned())
    }

    fn describe<'v>(
        &mut self,
        mut node: NodeId,
        mut value: &'v Tree,
        mut path: String,
    ) -> Judged<Option<String>>
    where
        'g: 'v,
    {
        loop {
            self.budget.step()?;
            let Some(failure) = self.failure(node, value)? else { return Ok(None) };
            match failure.kind {
                Kind::Here(problem) => {
                    let text = problem.text(value);
                    return Ok(Some(short_text(format_args!("{path}: {text}"))));
                }
                Kind::Name { node, name } => return self.describe(node, &name, path),
                Kind::InPlace { node: next } => node = next,
                Kind::Below { segment, node: next, value: part } => {
                    path.push('.');
                    path.push_str(&segment);
                    (node, value) = (next, part);
                }
            }
        }
    }

    fn is_valid(&mut self, node: NodeId, value: &Tree) -> Judged<bool> {
        Ok(self.fit(node, value)?.is_none())
    }

    /// How well a value fits that is not valid.
    fn fit(&mut self, node: NodeId, value: &Tree) -> Judged<Option<Fit>> {
        self.budget.step()?;
        if self.graph.node(node).rules.is_empty() {
            return Ok(self.failure(node, value)?.map(|failure| failure.fit));
        }
        let key = (node, std::ptr::from_ref(value).addr());
        if let Some(fit) = self.judged.get(&key) {
            return Ok(*fit);
        }
        let has_room = self.judged.len() < MAX_REMEMBERED;
        if has_room {
            // What leads back here is satisfied.
            self.judged.insert(key, None);
        }
        let fit = self.deeper(|walk| Ok(walk.failure(node, value)?.map(|failure| failure.fit)))?;
        if has_room {
            self.judged.insert(key, fit);
        }
        Ok(fit)
    }

    /// One level deeper on the stack.
    fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Judged<T>) -> Judged<T> {
        if self.depth == MAX_DEPTH {
            return Err(TooComplex);
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    /// The first failure of a value, not looked into.
    fn failure<'v>(&mut self, node: NodeId, value: &'v Tree) -> Judged<Option<Failure<'v>>>
    where
        'g: 'v,
    {
        let node = self.graph.node(node);
        if let Some(assertions) = &node.assertions {
            self.budget.spend(assertions.steps() - 1 + text_steps(value))?;
            if !assertions.allow(value) {
                return Ok(Some(Failure::here(Problem::Assertions(assertions))));
            }
        }
        for rule in &node.rules {
            let names = value.as_object().map_or(0, |object| object.len() as u64);
            self.budget.spend(rule.steps().saturating_mul(names))?;
            let failure = match rule {
                Rule::UnevaluatedProperties(unevaluated) => {
                    self.unevaluated_properties(&node.rules, *unevaluated, value)?
                }
                Rule::UnevaluatedItems(unevaluated) => {
                    self.unevaluated_items(&node.rules, *unevaluated, value)?
                }
                rule => self.rule(rule, value)?,
            };
            if failure.is_some() {
                return Ok(failure);
            }
        }
        Ok(None)
    }

    fn rule<'v>(&mut self, rule: &'g Rule, value: &'v Tree) -> Judged<Option<Failure<'v>>>
    where
        'g: 'v,
    {
        match rule {
            Rule::Closed(assertions) => {
                let fails = !assertions.allow(value);
                Ok(fails.then(|| Failure::here(Problem::Assertions(assertions))))
            }
            Rule::Properties(_)
            | Rule::PatternProperties(_)
            | Rule::AdditionalProperties { .. }
            | Rule::PropertyNames(_) => self.property_rule(rule, value),
            Rule::Prefix(_) | Rule::Items { .. } | Rule::Contains { .. } => self.item_rule(rule, value),
            Rule::Dependent(schemas) => {
                let has = |name: &str| value.get(name).is_some();
                let applies = schemas.iter().filter(|(name, _)| has(name)).map(|(_, node)| *node);
                self.all_of(applies, value)
            }
            Rule::AllOf(nodes) => self.all_of(nodes.iter().copied(), value),
            Rule::AnyOf(nodes) => self.any_of(nodes, value),
            Rule::OneOf(nodes) => self.one_of(nodes, value),
            Rule::Not { node, text } => {
                let fails = self.is_valid(*node, value)?;
                Ok(fails.then(|| Failure::here(Problem::Not(text))))
            }
            Rule::If { condition, then, otherwise } => {
                let applies = if self.is_valid(*condition, value)? { then } else { otherwise };
                self.all_of(applies.iter().copied(), value)
            }
            Rule::Reference(node) => self.all_of([*node], value),
            Rule::UnevaluatedProperties(_) | Rule::UnevaluatedItems(_) => {
                unreachable!("they need the other rules")
            }
        }
    }

    fn property_rule<'v>(&mut self, rule: &'g Rule, value: &'v Tree) -> Judged<Option<Failure<'v>>>
    where
        'g: 'v,
    {
        let Some(object) = value.as_object() else { return Ok(None) };
        match rule {
            Rule::Properties(properties) => {
                let present =
                    properties.iter().filter_map(|(name, node)| Some((object.get_key_value(name)?, *node)));
                self.first_below(present.map(|((name, part), node)| (name, part, node)))
            }
            Rule::PatternProperties(patterns) => {
                let matching = object.iter().flat_map(|(name, part)| {
                    let matching = patterns.iter().filter(|(pattern, _)| pattern.matches(name));
                    matching.map(move |(_, node)| (name, part, *node))
                });
                self.first_below(matching)
            }
            Rule::AdditionalProperties { names, patterns, node } => {
                let rest = object.iter().filter(|(name, _)| {
                    !names.contains(*name) && !patterns.iter().any(|pattern| pattern.matches(name))
                });
                self.first_below(rest.map(|(name, part)| (name, part, *node)))
            }
            Rule::PropertyNames(node) => self.property_names(*node, object.keys()),
            _ => Ok(None),
        }
    }

    fn property_names<'v>(
        &mut self,
        node: NodeId,
        names: impl Iterator<Item = &'v String>,
    ) -> Judged<Option<Failure<'v>>> {
        for name in names {
            let name = self.as_value(name)?;
            if let Some(fit) = self.fit(node, &name)? {
                return Ok(Some(Failure { kind: Kind::Name { node, name }, fit }));
            }
        }
        Ok(None)
    }

    /// A name as a value. It is kept, so that it is copied once, and no other name gets its address.
    fn as_value(&mut self, name: &String) -> Judged<Rc<Tree>> {
        let address = std::ptr::from_ref(name).addr();
        if let Some(value) = self.names.get(&address) {
            return Ok(Rc::clone(value));
        }
        let value = Rc::new(Tree::String(name.clone()));
        self.budget.spend(text_steps(&value))?;
        self.names.insert(address, Rc::clone(&value));
        Ok(value)
    }

    fn item_rule<'v>(&mut self, rule: &'g Rule, value: &'v Tree) -> Judged<Option<Failure<'v>>>
    where
        'g: 'v,
    {
        let Some(items) = value.as_array() else { return Ok(None) };
        let numbered = items.iter().enumerate();
        match rule {
            Rule::Prefix(nodes) => {
                let pairs = numbered.zip(nodes);
                self.first_below(pairs.map(|((index, part), node)| (index, part, *node)))
            }
            Rule::Items { from, node } => {
                self.first_below(numbered.skip(*from).map(|(index, part)| (index, part, *node)))
            }
            Rule::Contains { node, min, max } => {
                let mut matching = 0;
                for item in items {
                    matching += u64::from(self.is_valid(*node, item)?);
                }
                let fails = matching < *min || matching > *max;
                Ok(fails.then(|| Failure::here(Problem::Contains)))
            }
            _ => Ok(None),
        }
    }

    fn first_below<'v>(
        &mut self,
        parts: impl Iterator<Item = (impl ToString, &'v Tree, NodeId)>,
    ) -> Judged<Option<Failure<'v>>> {
        for (segment, part, node) in parts {
            if let Some(fit) = self.fit(node, part)? {
                return Ok(Some(Failure::below(&segment.to_string(), node, part, fit)));
            }
        }
        Ok(None)
    }

    fn all_of<'v>(
        &mut self,
        nodes: impl IntoIterator<Item = NodeId>,
        value: &Tree,
    ) -> Judged<Option<Failure<'v>>> {
        for node in nodes {
            if let Some(fit) = self.fit(node, value)? {
                return Ok(Some(Failure::in_place(node, fit)));
            }
        }
        Ok(None)
    }

    fn any_of<'v>(&mut self, nodes: &[NodeId], value: &Tree) -> Judged<Option<Failure<'v>>> {
        let mut best = None;
        for node in nodes {
            let Some(fit) = self.fit(*node, value)? else { return Ok(None) };
            best = better(best, Failure::in_place(*node, fit));
        }
        Ok(Some(best.filter(Failure::is_below).unwrap_or_else(|| Failure::here(Problem::NoneOf("anyOf")))))
    }

    fn one_of<'v>(&mut self, nodes: &[NodeId], value: &Tree) -> Judged<Option<Failure<'v>>> {
        let (mut best, mut valid) = (None, 0);
        for node in nodes {
            match self.fit(*node, value)? {
                None => valid += 1,
                Some(fit) => best = better(best, Failure::in_place(*node, fit)),
            }
            if valid > 1 {
                return Ok(Some(Failure::here(Problem::Ambiguous)));
            }
        }
        if valid == 1 {
            return Ok(None);
        }
        Ok(Some(best.filter(Failure::is_below).unwrap_or_else(|| Failure::here(Problem::NoneOf("oneOf")))))
    }
}

/// What the length of a text adds to the cost of a check, in steps.
pub(super) fn text_steps(value: &Tree) -> u64 {
    value.as_str().map_or(0, |text| text.len() as u64 / 64)
}

/// The first of those that fit best.
fn better<'v>(best: Option<Failure<'v>>, other: Failure<'v>) -> Option<Failure<'v>> {
    match best {
        Some(best) if best.fit >= other.fit => Some(best),
        _ => Some(other),
    }
}

//! Which properties and items other keywords have looked at, for `unevaluatedProperties` and `unevaluatedItems`.

use std::collections::HashSet;

use super::{Failure, Judged, Walk, failure::Problem};
use crate::schema::{
    Tree,
    graph::{NodeId, Rule},
};

const MAX_LISTED: usize = 200;

/// What has been looked at.
#[derive(Default)]
struct Evaluated<'v> {
    names: HashSet<&'v str>,
    items: HashSet<usize>,
    /// The nodes that are counted already.
    seen: HashSet<NodeId>,
}

impl<'g> Walk<'g, '_> {
    pub(super) fn unevaluated_properties<'v>(
        &mut self,
        rules: &[Rule],
        unevaluated: NodeId,
        value: &'v Tree,
    ) -> Judged<Option<Failure<'v>>>
    where
        'g: 'v,
    {
        let Some(object) = value.as_object() else { return Ok(None) };
        let evaluated = self.evaluated_beside(rules, value)?;
        let rest = || object.iter().filter(|(name, _)| !evaluated.names.contains(name.as_str()));
        if self.graph.is_false(unevaluated) {
            return Ok(not_allowed("properties", rest().map(|(name, _)| name.clone())));
        }
        self.first_below(rest().map(|(name, part)| (name, part, unevaluated)))
    }

    pub(super) fn unevaluated_items<'v>(
        &mut self,
        rules: &[Rule],
        unevaluated: NodeId,
        value: &'v Tree,
    ) -> Judged<Option<Failure<'v>>>
    where
        'g: 'v,
    {
        let Some(items) = value.as_array() else { return Ok(None) };
        let evaluated = self.evaluated_beside(rules, value)?;
        let rest = || items.iter().enumerate().filter(|(index, _)| !evaluated.items.contains(index));
        if self.graph.is_false(unevaluated) {
            return Ok(not_allowed("items", rest().map(|(_, part)| part.to_string())));
        }
        self.first_below(rest().map(|(index, part)| (index, part, unevaluated)))
    }

    fn evaluated_beside<'v>(&mut self, rules: &[Rule], value: &'v Tree) -> Judged<Evaluated<'v>> {
        let mut evaluated = Evaluated::default();
        let others = rules
            .iter()
            .filter(|rule| !matches!(rule, Rule::UnevaluatedProperties(_) | Rule::UnevaluatedItems(_)));
        for rule in others {
            self.add_rule(rule, value, &mut evaluated)?;
        }
        Ok(evaluated)
    }

    /// A subschema that does not allow the value has looked at nothing.
    fn add_valid<'v>(&mut self, node: NodeId, value: &'v Tree, evaluated: &mut Evaluated<'v>) -> Judged<()> {
        if evaluated.seen.insert(node) && self.is_valid(node, value)? {
            let graph = self.graph;
            self.deeper(|walk| {
                let rules = &graph.node(node).rules;
                rules.iter().try_for_each(|rule| walk.add_rule(rule, value, evaluated))
            })?;
        }
        Ok(())
    }

    fn add_rule<'v>(&mut self, rule: &Rule, value: &'v Tree, evaluated: &mut Evaluated<'v>) -> Judged<()> {
        match rule {
            Rule::If { condition, then, otherwise } => {
                let applies = if self.is_valid(*condition, value)? { then } else { otherwise };
                for node in applies.iter().chain([condition]) {
                    self.add_valid(*node, value, evaluated)?;
                }
            }
            Rule::Dependent(schemas) => {
                for (_, node) in schemas.iter().filter(|(name, _)| value.get(name).is_some()) {
                    self.add_valid(*node, value, evaluated)?;
                }
            }
            Rule::AllOf(nodes) | Rule::AnyOf(nodes) | Rule::OneOf(nodes) => {
                for node in nodes {
                    self.add_valid(*node, value, evaluated)?;
                }
            }
            Rule::Reference(node) => self.add_valid(*node, value, evaluated)?,
            // In all drafts, as in the library.
            Rule::Contains { node, .. } => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    if self.is_valid(*node, item)? {
                        evaluated.items.insert(index);
                    }
                }
            }
            Rule::Prefix(nodes) => evaluated.items.extend(0..nodes.len()),
            Rule::Items { from, .. } => {
                evaluated.items.extend(*from..value.as_array().map_or(0, Vec::len));
            }
            Rule::UnevaluatedItems(_) => evaluated.items.extend(0..value.as_array().map_or(0, Vec::len)),
            _ => add_names(rule, value, evaluated),
        }
        Ok(())
    }
}

fn add_names<'v>(rule: &Rule, value: &'v Tree, evaluated: &mut Evaluated<'v>) {
    let names = value.as_object().into_iter().flat_map(|object| object.keys().map(String::as_str));
    match rule {
        Rule::Properties(properties) => {
            let present = properties.iter().filter_map(|(name, _)| value.as_object()?.get_key_value(name));
            evaluated.names.extend(present.map(|(name, _)| name.as_str()));
        }
        Rule::PatternProperties(patterns) => {
            let matching = |name: &&str| patterns.iter().any(|(pattern, _)| pattern.matches(name));
            evaluated.names.extend(names.filter(matching));
        }
        // Each property is one that `properties` and `patternProperties` name, or it is looked at here.
        Rule::AdditionalProperties { .. } | Rule::UnevaluatedProperties(_) => evaluated.names.extend(names),
        _ => {}
    }
}

/// The first of them: a text has no place for more.
fn not_allowed<'a>(what: &'static str, unexpected: impl Iterator<Item = String>) -> Option<Failure<'a>> {
    let unexpected: Vec<_> = unexpected.take(MAX_LISTED).map(|name| format!("'{name}'")).collect();
    (!unexpected.is_empty()).then(|| Failure::here(Problem::Unevaluated { what, unexpected }))
}

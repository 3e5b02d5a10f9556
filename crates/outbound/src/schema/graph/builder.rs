//! Reads a schema into nodes. Subschemas wait in a list instead of on the stack: a chain of references may be long.

use std::collections::{HashMap, HashSet};

use jsonschema::{Registry, uri};
use referencing::{Draft, Resolver};
use serde_json::{Map, json};

use super::{
    super::{Tree, short_text::short_text},
    Assertions, NoGraph, Node, NodeId, Pattern, Rule, has_siblings_of_ref,
};

/// The most subschemas, each counted with what leads to it.
const MAX_NODES: usize = 50_000;
/// How much of the address of a resource counts like a subschema, in bytes.
const ADDRESS_BYTES: usize = 64;
/// The base of references in a schema that does not name its own.
const BASE: &str = "json-schema:///";
/// Keywords that look at the value alone.
const ASSERTIONS: [&str; 21] = [
    "type",
    "const",
    "enum",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "dependentRequired",
    "pattern",
    "format",
    "contentEncoding",
    "contentMediaType",
    "uniqueItems",
];

pub(super) fn nodes(schema: &Tree) -> Result<Vec<Node>, NoGraph> {
    let draft = Draft::default().detect(schema);
    let resource = draft.create_resource_ref(schema);
    let base = resource.id().unwrap_or(BASE).trim_end_matches('#').to_owned();
    let registry = Registry::new().draft(draft).add(&base, resource).and_then(|added| added.prepare());
    let registry = registry.map_err(|error| unresolved(&error))?;
    let base = uri::from_str(&base).map_err(|error| unresolved(&error))?;
    let root = registry.resolver(base).lookup("#").map_err(|error| unresolved(&error))?;
    let mut builder =
        Builder { ids: HashMap::new(), waiting: Vec::new(), size: 0, is_dynamic: is_dynamic(schema) };
    builder.id(root.contents(), root.resolver(), draft)?;
    let mut nodes = Vec::new();
    while let Some(subschema) = builder.waiting.get(nodes.len()).cloned() {
        nodes.push(builder.node(&subschema)?);
    }
    Ok(nodes)
}

fn unresolved(error: &impl ToString) -> NoGraph {
    NoGraph::Unresolved(error.to_string())
}

/// Whether what a reference means may depend on how it is reached.
fn is_dynamic(schema: &Tree) -> bool {
    match schema {
        Tree::Object(map) => {
            ["$dynamicRef", "$recursiveRef"].iter().any(|keyword| map.contains_key(*keyword))
                || map.values().any(is_dynamic)
        }
        Tree::Array(items) => items.iter().any(is_dynamic),
        _ => false,
    }
}

struct Builder<'a> {
    /// By address, and by the resources that lead there if that matters.
    ids: HashMap<(usize, Vec<String>), NodeId>,
    /// All subschemas that were found; their position is their id.
    waiting: Vec<Subschema<'a>>,
    /// How large they are, in subschemas.
    size: usize,
    is_dynamic: bool,
}

#[derive(Clone)]
struct Subschema<'a> {
    contents: &'a Tree,
    resolver: Resolver<'a>,
    draft: Draft,
}

impl<'a> Builder<'a> {
    fn id(&mut self, contents: &'a Tree, resolver: &Resolver<'a>, draft: Draft) -> Result<NodeId, NoGraph> {
        let draft = draft.detect(contents);
        let resource = draft.create_resource_ref(contents);
        let resolver = resolver.in_subresource(resource).map_err(|error| unresolved(&error))?;
        let key = (std::ptr::from_ref(contents).addr(), self.scope(&resolver));
        if let Some(id) = self.ids.get(&key) {
            return Ok(*id);
        }
        let addresses = key.1.iter().map(|address| 1 + address.len() / ADDRESS_BYTES);
        self.size += 1 + addresses.sum::<usize>();
        if self.size > MAX_NODES {
            return Err(NoGraph::TooLarge);
        }
        let id = NodeId::try_from(self.waiting.len()).expect("the number of nodes is limited");
        self.ids.insert(key, id);
        self.waiting.push(Subschema { contents, resolver, draft });
        Ok(id)
    }

    /// The resources on the way, the outermost first and each once: only the first with an anchor counts.
    fn scope(&self, resolver: &Resolver<'_>) -> Vec<String> {
        if !self.is_dynamic {
            return Vec::new();
        }
        let inner_first = resolver.dynamic_scope();
        let inner_first: Vec<_> = inner_first.iter().map(|uri| uri.as_str().to_owned()).collect();
        let mut seen = HashSet::new();
        inner_first.into_iter().rev().filter(|uri| seen.insert(uri.clone())).collect()
    }

    fn node(&mut self, at: &Subschema<'a>) -> Result<Node, NoGraph> {
        let Some(keywords) = at.contents.as_object() else {
            let never = *at.contents == Tree::Bool(false);
            let assertions = never.then(|| Assertions::new(Tree::Bool(false), at.draft));
            return Ok(Node { assertions, rules: Vec::new() });
        };
        let mut rules = Rules { builder: self, at, keywords, found: Vec::new() };
        if keywords.contains_key("$ref") && !has_siblings_of_ref(at.draft) {
            rules.add_references()?;
            return Ok(Node { assertions: None, rules: rules.found });
        }
        rules.add_all()?;
        let rules = rules.found;
        Ok(Node { assertions: Assertions::of(assertions(keywords), at.draft), rules })
    }
}

/// The keywords that look at the value alone.
fn assertions(keywords: &Map<String, Tree>) -> Map<String, Tree> {
    let listed = ASSERTIONS.iter().filter_map(|name| keywords.get_key_value(*name));
    let mut found: Map<_, _> = listed.map(|(name, value)| (name.clone(), value.clone())).collect();
    let required: Map<_, _> = dependencies(keywords, "dependencies")
        .filter(|(_, value)| value.is_array())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !required.is_empty() {
        found.insert("dependencies".into(), required.into());
    }
    found
}

fn dependencies<'a>(
    keywords: &'a Map<String, Tree>,
    keyword: &str,
) -> impl Iterator<Item = (&'a String, &'a Tree)> + use<'a> {
    keywords.get(keyword).and_then(Tree::as_object).into_iter().flatten()
}

/// The rules of one node.
struct Rules<'b, 'a> {
    builder: &'b mut Builder<'a>,
    at: &'b Subschema<'a>,
    keywords: &'a Map<String, Tree>,
    found: Vec<Rule>,
}

impl<'a> Rules<'_, 'a> {
    /// In the order in which the library checks them.
    fn add_all(&mut self) -> Result<(), NoGraph> {
        self.add_properties()?;
        self.add_items()?;
        self.add_dependencies()?;
        self.add_combinations()?;
        self.add_unevaluated()?;
        self.add_references()
    }

    fn since(&self, draft: Draft) -> bool {
        self.at.draft >= draft
    }

    fn id(&mut self, schema: &'a Tree) -> Result<NodeId, NoGraph> {
        self.builder.id(schema, &self.at.resolver, self.at.draft)
    }

    /// The subschema of a keyword.
    fn subschema(&mut self, keyword: &str) -> Result<Option<NodeId>, NoGraph> {
        self.keywords.get(keyword).map(|schema| self.id(schema)).transpose()
    }

    fn list(&mut self, keyword: &str) -> Result<Option<Vec<NodeId>>, NoGraph> {
        let Some(schemas) = self.keywords.get(keyword).and_then(Tree::as_array) else { return Ok(None) };
        schemas.iter().map(|schema| self.id(schema)).collect::<Result<_, _>>().map(Some)
    }

    fn named(&mut self, keyword: &str) -> Result<Vec<(String, NodeId)>, NoGraph> {
        let schemas = dependencies(self.keywords, keyword).filter(|(_, schema)| !schema.is_array());
        schemas.map(|(name, schema)| Ok((name.clone(), self.id(schema)?))).collect()
    }

    fn add_properties(&mut self) -> Result<(), NoGraph> {
        let properties = self.named("properties")?;
        let patterns = self.named("patternProperties")?;
        let names = properties.iter().map(|(name, _)| name.clone()).collect();
        let compiled = |(pattern, node): (String, _)| (Pattern::new(&pattern, self.at.draft), node);
        let patterns: Vec<_> = patterns.into_iter().map(compiled).collect();
        let expressions = patterns.iter().map(|(pattern, _)| pattern.clone()).collect();
        if !properties.is_empty() {
            self.found.push(Rule::Properties(properties));
        }
        if !patterns.is_empty() {
            self.found.push(Rule::PatternProperties(patterns));
        }
        match self.keywords.get("additionalProperties") {
            Some(Tree::Bool(false)) => {
                let any = |keyword| -> Map<String, Tree> {
                    dependencies(self.keywords, keyword)
                        .map(|(name, _)| (name.clone(), true.into()))
                        .collect()
                };
                let closed = json!({
                    "properties": any("properties"),
                    "patternProperties": any("patternProperties"),
                    "additionalProperties": false,
                });
                self.found.push(Rule::Closed(Assertions::new(closed, self.at.draft)));
            }
            Some(schema) => {
                let node = self.id(schema)?;
                self.found.push(Rule::AdditionalProperties { names, patterns: expressions, node });
            }
            None => {}
        }
        if self.since(Draft::Draft6) {
            let names = self.subschema("propertyNames")?;
            self.found.extend(names.map(Rule::PropertyNames));
        }
        Ok(())
    }

    fn add_items(&mut self) -> Result<(), NoGraph> {
        let has_prefix = self.since(Draft::Draft202012);
        let prefix = self.list(if has_prefix { "prefixItems" } else { "items" })?;
        let from = prefix.as_ref().map_or(0, Vec::len);
        let is_list = prefix.is_some();
        let prefix = prefix.map(Rule::Prefix);
        if has_prefix || !is_list {
            let items = self.subschema("items")?;
            self.found.extend(items.map(|node| Rule::Items { from, node }));
            self.found.extend(prefix);
        } else {
            self.found.extend(prefix);
            if self.keywords.get("additionalItems") == Some(&Tree::Bool(false)) {
                let closed = json!({"items": vec![json!({}); from], "additionalItems": false});
                self.found.push(Rule::Closed(Assertions::new(closed, self.at.draft)));
            } else {
                let items = self.subschema("additionalItems")?;
                self.found.extend(items.map(|node| Rule::Items { from, node }));
            }
        }
        if self.since(Draft::Draft6)
            && let Some(node) = self.subschema("contains")?
        {
            let bounded = self.since(Draft::Draft201909);
            let bound = |keyword| self.keywords.get(keyword).filter(|_| bounded).and_then(whole_number);
            let (min, max) = (bound("minContains").unwrap_or(1), bound("maxContains").unwrap_or(u64::MAX));
            self.found.push(Rule::Contains { node, min, max });
        }
        Ok(())
    }

    fn add_dependencies(&mut self) -> Result<(), NoGraph> {
        let dependencies = self.named("dependencies")?;
        let schemas =
            if self.since(Draft::Draft201909) { self.named("dependentSchemas")? } else { Vec::new() };
        let lists = [dependencies, schemas].into_iter().filter(|list| !list.is_empty());
        self.found.extend(lists.map(Rule::Dependent));
        Ok(())
    }

    fn add_combinations(&mut self) -> Result<(), NoGraph> {
        let all = self.list("allOf")?.map(Rule::AllOf);
        let any = self.list("anyOf")?.map(Rule::AnyOf);
        let one = self.list("oneOf")?.map(Rule::OneOf);
        self.found.extend([all, any, one].into_iter().flatten());
        if let Some(schema) = self.keywords.get("not") {
            let node = self.id(schema)?;
            self.found.push(Rule::Not { node, text: short_text(schema) });
        }
        if self.since(Draft::Draft7)
            && let Some(condition) = self.subschema("if")?
        {
            let (then, otherwise) = (self.subschema("then")?, self.subschema("else")?);
            self.found.push(Rule::If { condition, then, otherwise });
        }
        Ok(())
    }

    fn add_unevaluated(&mut self) -> Result<(), NoGraph> {
        if self.since(Draft::Draft201909) {
            let properties = self.subschema("unevaluatedProperties")?.map(Rule::UnevaluatedProperties);
            let items = self.subschema("unevaluatedItems")?.map(Rule::UnevaluatedItems);
            self.found.extend([properties, items].into_iter().flatten());
        }
        Ok(())
    }

    fn add_references(&mut self) -> Result<(), NoGraph> {
        self.add_reference("$ref")?;
        match self.at.draft {
            Draft::Draft201909 if self.keywords.contains_key("$recursiveRef") => {
                let target = self.at.resolver.lookup_recursive_ref().map_err(|error| unresolved(&error))?;
                let node = self.builder.id(target.contents(), target.resolver(), self.at.draft)?;
                self.found.push(Rule::Reference(node));
                Ok(())
            }
            Draft::Draft4 | Draft::Draft6 | Draft::Draft7 | Draft::Draft201909 => Ok(()),
            _ => self.add_reference("$dynamicRef"),
        }
    }

    /// A reference that is empty or leads to itself means nothing, as in the library.
    fn add_reference(&mut self, keyword: &str) -> Result<(), NoGraph> {
        let reference = self.keywords.get(keyword).and_then(Tree::as_str).filter(|text| !text.is_empty());
        let Some(reference) = reference else { return Ok(()) };
        let target = self.at.resolver.lookup(reference).map_err(|error| unresolved(&error))?;
        if !std::ptr::eq(target.contents(), self.at.contents) {
            let (contents, resolver, draft) = target.into_inner();
            let node = self.builder.id(contents, &resolver, draft)?;
            self.found.push(Rule::Reference(node));
        }
        Ok(())
    }
}

/// `1.0` is one too.
fn whole_number(value: &Tree) -> Option<u64> {
    let float = || value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is whole and not negative"
    )]
    value.as_u64().or_else(|| float().map(|number| number as u64))
}

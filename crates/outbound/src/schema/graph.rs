//! A schema as a graph: one node per subschema, with references resolved.
//!
//! Keywords that look at the value alone (`type`, `required`, `pattern`, …) stay JSON, which the library checks. Keywords
//! that apply subschemas are [`Rule`]s, in the order in which the library checks them, so that the first error is the
//! same. What a keyword means depends on the draft; a keyword that a draft does not have is ignored.

mod assertions;
mod builder;
mod expansion;

use std::collections::HashSet;

use referencing::Draft;

pub(super) use assertions::{Assertions, Pattern, options};

use super::Tree;

/// The position of a node in its graph. The first one is the schema itself.
pub(super) type NodeId = u32;

/// The schema itself.
pub(super) const ROOT: NodeId = 0;

pub(super) struct Graph {
    nodes: Vec<Node>,
}

#[derive(Default)]
pub(super) struct Node {
    pub(super) assertions: Option<Assertions>,
    pub(super) rules: Vec<Rule>,
}

/// A keyword that applies subschemas.
pub(super) enum Rule {
    /// A `false` for what the keywords in it do not name, such as `additionalProperties: false`.
    Closed(Assertions),
    Properties(Vec<(String, NodeId)>),
    PatternProperties(Vec<(Pattern, NodeId)>),
    AdditionalProperties {
        names: HashSet<String>,
        patterns: Vec<Pattern>,
        node: NodeId,
    },
    PropertyNames(NodeId),
    Prefix(Vec<NodeId>),
    /// All items from this position on.
    Items {
        from: usize,
        node: NodeId,
    },
    Contains {
        node: NodeId,
        min: u64,
        max: u64,
    },
    /// Applies to the value if it has the property.
    Dependent(Vec<(String, NodeId)>),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not {
        node: NodeId,
        /// The schema, for the error.
        text: String,
    },
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
    Reference(NodeId),
}

/// Why a schema has no graph.
#[derive(Debug)]
pub(super) enum NoGraph {
    /// A reference leads nowhere, or the dialect is unknown.
    Unresolved(String),
    /// It has too many subschemas.
    TooLarge,
}

impl Graph {
    pub(super) fn new(schema: &Tree) -> Result<Self, NoGraph> {
        Ok(Self { nodes: builder::nodes(schema)? })
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no value is allowed.
    pub(super) fn is_false(&self, id: NodeId) -> bool {
        self.node(id).assertions.as_ref().is_some_and(Assertions::is_false)
    }

    /// What all subschemas cost on one value, in steps.
    pub(super) fn steps(&self) -> u64 {
        let own = |node: &Node| node.assertions.as_ref().map_or(1, Assertions::steps);
        let rules = |node: &Node| node.rules.iter().map(Rule::steps).sum::<u64>();
        self.nodes.iter().map(|node| own(node) + rules(node)).sum()
    }

    /// Compiles everything, which is done at the first use otherwise.
    pub(super) fn compile(&self) {
        for node in &self.nodes {
            node.assertions.iter().for_each(Assertions::compile);
            node.rules.iter().for_each(Rule::compile);
        }
    }

    /// Whether a regular expression in it can backtrack.
    pub(super) fn can_backtrack(&self) -> bool {
        let in_rules = |node: &Node| node.rules.iter().any(Rule::can_backtrack);
        let own = |node: &Node| node.assertions.as_ref().is_some_and(Assertions::can_backtrack);
        self.nodes.iter().any(|node| own(node) || in_rules(node))
    }

    fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        0..NodeId::try_from(self.nodes.len()).expect("the number of nodes is limited")
    }
}

impl Rule {
    /// What its regular expressions cost on one name, in steps.
    pub(super) fn steps(&self) -> u64 {
        match self {
            Self::Closed(assertions) => assertions.steps(),
            Self::PatternProperties(patterns) => patterns.iter().map(|(pattern, _)| pattern.steps()).sum(),
            Self::AdditionalProperties { patterns, .. } => patterns.iter().map(Pattern::steps).sum(),
            _ => 0,
        }
    }

    fn compile(&self) {
        match self {
            Self::Closed(assertions) => assertions.compile(),
            Self::PatternProperties(patterns) => patterns.iter().for_each(|(pattern, _)| pattern.compile()),
            Self::AdditionalProperties { patterns, .. } => patterns.iter().for_each(Pattern::compile),
            _ => {}
        }
    }

    fn can_backtrack(&self) -> bool {
        match self {
            Self::Closed(assertions) => assertions.can_backtrack(),
            Self::PatternProperties(patterns) => patterns.iter().any(|(pattern, _)| pattern.can_backtrack()),
            Self::AdditionalProperties { patterns, .. } => patterns.iter().any(Pattern::can_backtrack),
            _ => false,
        }
    }

    /// The subschemas that apply to the value itself.
    fn in_place(&self) -> Vec<NodeId> {
        match self {
            Self::AllOf(nodes) | Self::AnyOf(nodes) | Self::OneOf(nodes) => nodes.clone(),
            Self::Dependent(nodes) => nodes.iter().map(|(_, node)| *node).collect(),
            Self::Not { node, .. } | Self::Reference(node) => vec![*node],
            Self::If { condition, then, otherwise } => {
                [Some(*condition), *then, *otherwise].into_iter().flatten().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The subschemas that apply to its parts.
    fn below(&self) -> Vec<NodeId> {
        match self {
            Self::Properties(nodes) => nodes.iter().map(|(_, node)| *node).collect(),
            Self::PatternProperties(nodes) => nodes.iter().map(|(_, node)| *node).collect(),
            Self::Prefix(nodes) => nodes.clone(),
            Self::AdditionalProperties { node, .. }
            | Self::Items { node, .. }
            | Self::Contains { node, .. }
            | Self::PropertyNames(node)
            | Self::UnevaluatedProperties(node)
            | Self::UnevaluatedItems(node) => vec![*node],
            _ => Vec::new(),
        }
    }
}

/// Whether keywords beside `$ref` count.
fn has_siblings_of_ref(draft: Draft) -> bool {
    draft >= Draft::Draft201909
}

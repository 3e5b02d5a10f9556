//! How large a schema is when each reference is replaced by its target. A schema of some kilobytes whose references
//! double can have more subschemas than there are atoms.

use super::{Graph, NodeId, ROOT, Rule};

/// The size of an expanded schema. A reference to a schema that is being expanded counts as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Expansion {
    /// Subschemas; keywords that apply their neighbours again count those twice.
    pub(in super::super) size: u64,
    /// The longest chain of subschemas.
    pub(in super::super) depth: u64,
    pub(in super::super) is_recursive: bool,
}

impl Graph {
    /// The whole schema.
    pub(in super::super) fn expansion(&self) -> Expansion {
        let mut walk = Walk::new(self, true);
        walk.expand(ROOT);
        let (size, depth) = walk.expanded[ROOT as usize];
        Expansion { size, depth, is_recursive: walk.is_recursive[ROOT as usize] }
    }

    /// The largest number of subschemas that apply to one value, and the longest chain of them.
    pub(in super::super) fn largest_in_place(&self) -> Expansion {
        let mut walk = Walk::new(self, false);
        self.ids().for_each(|id| walk.expand(id));
        let size = walk.expanded.iter().map(|(size, _)| *size).max().unwrap_or_default();
        let depth = walk.expanded.iter().map(|(_, depth)| *depth).max().unwrap_or_default();
        // A chain may pass through all that is recursive, in an order which was not followed here.
        let recursive = walk.is_recursive.iter().filter(|is_recursive| **is_recursive).count() as u64;
        Expansion { size, depth: depth.saturating_add(recursive), is_recursive: recursive > 0 }
    }
}

struct Walk<'a> {
    graph: &'a Graph,
    includes_parts: bool,
    states: Vec<State>,
    /// Size and depth of the nodes that are done.
    expanded: Vec<(u64, u64)>,
    /// Whether a node leads to itself, or to one that does.
    is_recursive: Vec<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

impl<'a> Walk<'a> {
    fn new(graph: &'a Graph, includes_parts: bool) -> Self {
        let (states, expanded) = (vec![State::New; graph.len()], vec![(1, 1); graph.len()]);
        Self { graph, includes_parts, states, expanded, is_recursive: vec![false; graph.len()] }
    }

    /// Depth first, with a stack of its own: a chain of references may be long.
    fn expand(&mut self, start: NodeId) {
        let mut stack = vec![(start, false)];
        while let Some((id, is_last)) = stack.pop() {
            let index = id as usize;
            if is_last {
                self.expanded[index] = self.sum(id);
                self.is_recursive[index] = self.leads_back(id);
                self.states[index] = State::Done;
            } else if self.states[index] == State::New {
                self.states[index] = State::Open;
                stack.push((id, true));
                let children = self.children(id).into_iter().map(|(child, _)| child);
                let new = children.filter(|child| self.states[*child as usize] == State::New);
                stack.extend(new.map(|child| (child, false)));
            }
        }
    }

    fn leads_back(&self, id: NodeId) -> bool {
        let mut children = self.children(id).into_iter().map(|(child, _)| child as usize);
        children.any(|child| self.states[child] == State::Open || self.is_recursive[child])
    }

    /// Saturating: what counts is whether it is too large.
    fn sum(&self, id: NodeId) -> (u64, u64) {
        let own = self.graph.node(id).assertions.as_ref().map_or(1, super::Assertions::steps);
        let mut total = (own, 0);
        for (child, times) in self.children(id) {
            let is_done = self.states[child as usize] == State::Done;
            let (size, depth) = if is_done { self.expanded[child as usize] } else { (1, 1) };
            total.0 = total.0.saturating_add(size.saturating_mul(times));
            total.1 = total.1.max(depth);
        }
        (total.0, total.1.saturating_add(1))
    }

    /// The subschemas of a node, and how often each is applied: what is unevaluated is found by applying the others again.
    fn children(&self, id: NodeId) -> Vec<(NodeId, u64)> {
        let rules = &self.graph.node(id).rules;
        let repeats =
            |rule: &&Rule| matches!(rule, Rule::UnevaluatedProperties(_) | Rule::UnevaluatedItems(_));
        let times = 1 << rules.iter().filter(repeats).count();
        let in_place = rules.iter().flat_map(Rule::in_place).map(|node| (node, times));
        let below = rules.iter().flat_map(Rule::below).map(|node| (node, 1));
        in_place.chain(below.filter(|_| self.includes_parts)).collect()
    }
}

//! Why a value is not valid, one level at a time.

use std::rc::Rc;

use super::super::{
    Tree,
    graph::{Assertions, NodeId},
    short_text::short_text,
};

/// How far a value fits: larger is further. An error at a depth counts more than one above it. A wrong `const` or
/// `enum` counts like an error one level above: it usually says that another alternative was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fit(u32);

/// `'a` is the value and the schema.
pub(super) struct Failure<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) fit: Fit,
}

pub(super) enum Kind<'a> {
    /// The value itself is wrong.
    Here(Problem<'a>),
    /// A subschema does not allow the value.
    InPlace { node: NodeId },
    /// A subschema does not allow a part of it.
    Below { segment: String, node: NodeId, value: &'a Tree },
    /// A subschema does not allow the name of a property.
    Name { node: NodeId, name: Rc<Tree> },
}

pub(super) enum Problem<'a> {
    Assertions(&'a Assertions),
    /// No alternative of this keyword allows it.
    NoneOf(&'static str),
    /// More than one alternative of `oneOf` allows it.
    Ambiguous,
    /// This schema allows it.
    Not(&'a str),
    Contains,
    /// What `unevaluatedProperties` or `unevaluatedItems` does not allow.
    Unevaluated {
        what: &'static str,
        unexpected: Vec<String>,
    },
}

impl<'a> Failure<'a> {
    pub(super) fn here(problem: Problem<'a>) -> Self {
        let is_choice = matches!(problem, Problem::Assertions(assertions) if assertions.are_a_choice());
        Self { kind: Kind::Here(problem), fit: Fit(u32::from(!is_choice)) }
    }

    pub(super) fn in_place(node: NodeId, fit: Fit) -> Self {
        Self { kind: Kind::InPlace { node }, fit }
    }

    pub(super) fn below(segment: &str, node: NodeId, value: &'a Tree, Fit(fit): Fit) -> Self {
        let segment = segment.replace('~', "~0").replace('/', "~1");
        Self { kind: Kind::Below { segment, node, value }, fit: Fit(if fit == 0 { 1 } else { fit + 2 }) }
    }

    /// Whether it is about a part of the value.
    pub(super) fn is_below(&self) -> bool {
        self.fit > Fit(1)
    }
}

impl Problem<'_> {
    /// In the words of the library.
    pub(super) fn text(&self, value: &Tree) -> String {
        match self {
            Self::Assertions(assertions) => assertions.error(value).map(short_text).unwrap_or_default(),
            Self::NoneOf(keyword) => short_text(format_args!(
                "{value} is not valid under any of the schemas listed in the '{keyword}' keyword"
            )),
            Self::Ambiguous => short_text(format_args!(
                "{value} is valid under more than one of the schemas listed in the 'oneOf' keyword"
            )),
            Self::Not(schema) => short_text(format_args!("{schema} is not allowed for {value}")),
            Self::Contains => short_text(format_args!("None of {value} are valid under the given schema")),
            Self::Unevaluated { what, unexpected } => {
                let verb = if unexpected.len() == 1 { "was" } else { "were" };
                let list = unexpected.join(", ");
                short_text(format_args!("Unevaluated {what} are not allowed ({list} {verb} unexpected)"))
            }
        }
    }
}

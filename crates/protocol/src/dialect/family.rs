//! Which generation a JSON-RPC method belongs to, and which was meant by one that is unknown.

use crate::{Dialect, Error, ErrorKind, OperationKind, Violation, error::in_short, nearest};

use super::{draft, v1, v03};

/// The generation a method name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodFamily {
    /// 1.0.
    V1,
    /// 0.2 and 0.3.
    V03,
    /// The first public draft.
    Draft,
    /// The first public draft and 0.2 and 0.3 alike: the name does not decide.
    Shared,
    /// Nobody's.
    Unknown,
}

/// The generation of a method, by the tables of methods.
pub fn of_method(method: &str) -> MethodFamily {
    // Only names of 1.0 have no slash, so that most calls look into one table.
    if !method.contains('/') {
        return v1::operation::kind(method).map_or(MethodFamily::Unknown, |_| MethodFamily::V1);
    }
    match (draft::operation::has(method), v03::operation::has(method)) {
        (true, true) => MethodFamily::Shared,
        (true, false) => MethodFamily::Draft,
        (false, true) => MethodFamily::V03,
        (false, false) => MethodFamily::Unknown,
    }
}

/// The method that was probably meant by one that no generation has, and the generation of it.
pub fn nearest_method(method: &str) -> Option<(&'static str, MethodFamily)> {
    let tables = [&v1::operation::METHODS[..], &v03::operation::METHODS, &draft::operation::METHODS];
    let near = nearest(method, tables.into_iter().flatten().map(|row| row.0))?;
    Some((near, of_method(near)))
}

/// The refusal of a method; the hint helps to find one that there is. Long names are cut. Before 1.0 the message is a fixed
/// text, so the details name both.
pub fn not_found(dialect: Dialect, method: &str, hint: &str) -> Error {
    let asked = in_short(method);
    let mut error = Error::new(ErrorKind::MethodNotFound, format!("method not found: {asked:?}; {hint}"));
    if dialect != Dialect::V1 {
        error.violations.push(Violation::new("method", format_args!("{asked:?} is not a method; {hint}")));
    }
    error
}

/// The refusal of a method that a generation does not have.
pub(crate) fn unknown(dialect: Dialect, method: &str, methods: &[(&str, OperationKind)]) -> Error {
    let names = methods.iter().map(|row| row.0);
    let hint = match nearest(method, names.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("A2A {} has {}", dialect.version(), names.collect::<Vec<_>>().join(", ")),
    };
    not_found(dialect, method, &hint)
}

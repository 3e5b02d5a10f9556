//! Maps JSON-RPC methods to versions, with suggestions for unknown methods.

use crate::{Dialect, Error, ErrorKind, OperationKind, Violation, error::excerpt, nearest};

use super::{draft, v1, v03};

/// The version a method name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodFamily {
    /// 1.0.
    V1,
    /// 0.2 and 0.3.
    V03,
    /// The first public draft.
    Draft,
    /// Both the draft and 0.2/0.3: the name alone does not decide.
    Shared,
    /// No version.
    Unknown,
}

/// The version of a method, from the method tables.
pub fn of_method(method: &str) -> MethodFamily {
    // Only 1.0 names have no slash, so most calls search one table.
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

/// The most similar known method and its version, if one is similar enough.
pub fn nearest_method(method: &str) -> Option<(&'static str, MethodFamily)> {
    let tables = [&v1::operation::METHODS[..], &v03::operation::METHODS, &draft::operation::METHODS];
    let near = nearest(method, tables.into_iter().flatten().map(|row| row.0))?;
    Some((near, of_method(near)))
}

/// The error for an unknown method, with a hint at existing ones. Long names are truncated. Before 1.0 the
/// error message is a fixed text, so the details name the method and the hint.
pub fn not_found(dialect: Dialect, method: &str, hint: &str) -> Error {
    let quoted = excerpt(method);
    let mut error = Error::new(ErrorKind::MethodNotFound, format!("method not found: {quoted:?}; {hint}"));
    match dialect {
        Dialect::V1 => {}
        Dialect::Draft | Dialect::V03 | Dialect::V03Proto => error
            .violations
            .push(Violation::new("method", format_args!("{quoted:?} is not a method; {hint}"))),
    }
    error
}

/// The error for a method that a version does not have.
pub(crate) fn unknown(dialect: Dialect, method: &str, methods: &[(&str, OperationKind)]) -> Error {
    let names = methods.iter().map(|row| row.0);
    let hint = match nearest(method, names.clone()) {
        Some(near) => format!("did you mean {near}?"),
        None => format!("A2A {} has {}", dialect.version(), names.collect::<Vec<_>>().join(", ")),
    };
    not_found(dialect, method, &hint)
}

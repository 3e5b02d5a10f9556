//! What reading and writing requests has in common.

use crate::{Error, ErrorKind, OperationKind, error::in_short, json::write::Writer};

/// The rows of a table of methods.
pub(crate) type Methods = [(&'static str, OperationKind)];

/// Which operation a method is.
pub(crate) fn kind(methods: &Methods, method: &str) -> Option<OperationKind> {
    methods.iter().find(|row| row.0 == method).map(|row| row.1)
}

/// The method of an operation.
pub(crate) fn method(methods: &Methods, kind: OperationKind) -> Option<&'static str> {
    methods.iter().find(|row| row.1 == kind).map(|row| row.0)
}

/// The refusal of a method nobody knows.
pub(crate) fn unknown(method: &str, generation: &str, methods: &Methods) -> Error {
    let method = in_short(method);
    let known: Vec<&str> = methods.iter().map(|row| row.0).collect();
    let text = format!("method not found: {method:?}; A2A {generation} has {}", known.join(", "));
    Error::new(ErrorKind::MethodNotFound, text)
}

/// A number, left out when absent.
pub(crate) fn maybe_count(writer: &mut Writer, name: &str, count: Option<u32>) {
    if let Some(count) = count {
        writer.key(name).int(i64::from(count));
    }
}

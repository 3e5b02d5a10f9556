//! Helpers for reading and writing requests.

use crate::{OperationKind, json::write::Writer};

/// A method table.
pub(crate) type Methods = [(&'static str, OperationKind)];

/// The operation of a method.
pub(crate) fn kind(methods: &Methods, method: &str) -> Option<OperationKind> {
    methods.iter().find(|row| row.0 == method).map(|row| row.1)
}

/// The method of an operation.
pub(crate) fn method(methods: &Methods, kind: OperationKind) -> Option<&'static str> {
    methods.iter().find(|row| row.1 == kind).map(|row| row.0)
}

/// Writes a number unless it is absent.
pub(crate) fn maybe_count(writer: &mut Writer, name: &str, count: Option<u32>) {
    if let Some(count) = count {
        writer.key(name).int(i64::from(count));
    }
}

//! Which generation a JSON-RPC method belongs to.

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

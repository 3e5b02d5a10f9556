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
    match (draft::operation::has(method), v03::operation::has(method)) {
        (true, true) => MethodFamily::Shared,
        (true, false) => MethodFamily::Draft,
        (false, true) => MethodFamily::V03,
        (false, false) if v1::operation::METHODS.iter().any(|row| row.0 == method) => MethodFamily::V1,
        (false, false) => MethodFamily::Unknown,
    }
}

//! The wire forms of the protocol's generations. Each is a set of pure functions around the one model.

pub mod v1;

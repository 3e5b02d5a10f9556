//! gRPC: every method of both services.
//!
//! The requests are generated from tables: `methods.rs` lists the methods, `schema.rs` encodes their messages,
//! `values.rs` and `any.rs` have invalid values for each kind of field, `messages.rs` combines them, `around.rs` adds
//! what is invalid outside a message and `metadata.rs` what is invalid in the metadata. Everything is encoded by hand (`wire.rs`), so that requests no library would produce
//! can be sent too.

mod any;
mod around;
pub(super) mod channel;
pub(super) mod checker;
mod messages;
mod metadata;
mod methods;
mod schema;
mod values;
mod wire;

use self::methods::METHODS;
pub(super) use self::schema::NEW;
use super::Suite;

/// The requests for every method of both services.
pub(super) fn suites(task: &str) -> impl Iterator<Item = Suite> {
    METHODS.iter().map(move |method| {
        let good = methods::good(method, task);
        let cases = [messages::cases(method, &good, task), around::cases(method, &good)].concat();
        Suite { label: format!("grpc {} {}", method.dialect.version(), method.name), good, cases }
    })
}

//! The measuring side of `cargo xtask bench`: servers to compare `a2ad` with, and the load generator for all of them.
//!
//! The servers (`bare`, `sync_log`, and the official SDK in its own binary) do not depend on the load generator; the
//! load generator (`client`, `request`, `call`, `connection`, `load`, `report`, for gRPC `http2`, `hpack`, `grpc`,
//! and for streams `events`, `idle`, `fanout`) uses only the wire protocol. `keys` needs no server: it compares index
//! designs for idempotency keys. `receiver` receives push notifications. `tools` and `exchange` measure what a2ad adds
//! to calls of tools. Rounds, ratios and the tables are not here but in `xtask`.

pub mod args;
pub mod bare;
pub mod call;
pub mod client;
pub mod connection;
pub mod echo;
pub mod events;
pub mod exchange;
pub mod fanout;
pub mod grpc;
pub mod hpack;
pub mod http2;
pub mod idle;
pub mod keys;
pub mod load;
pub mod receiver;
pub mod report;
pub mod request;
pub mod sync_log;
pub mod tools;

//! What `cargo xtask bench` measures `a2ad` with: servers to stand beside it and the load for all of them.
//!
//! The servers (`bare`, `sync_log`, and the official SDK in its own binary) know nothing of the load;
//! the load (`client`, `request`, `call`, `line`, `load`, `report`, for gRPC `http2`, `hpack`, `grpc`, and for streams
//! `events`, `idle`, `fanout`) knows of them only what is on the wire. `keys` asks no server at all: it compares ways
//! to keep idempotency keys.
//! Rounds, ratios and the tables are not here but in `xtask`.

pub mod args;
pub mod bare;
pub mod call;
pub mod client;
pub mod echo;
pub mod events;
pub mod fanout;
pub mod grpc;
pub mod hpack;
pub mod http2;
pub mod idle;
pub mod keys;
pub mod line;
pub mod load;
pub mod report;
pub mod request;
pub mod sync_log;

//! What `cargo xtask bench` measures `a2ad` with: servers to stand beside it and the load for all of them.
//!
//! The servers (`bare`, `sync_log`, and the official SDK in its own binary) know nothing of the load;
//! the load (`client`, `call`, `load`, `report`) knows of them only what is on the wire. Rounds, ratios and
//! the table are not here but in `xtask`.

pub mod args;
pub mod bare;
pub mod call;
pub mod client;
pub mod echo;
pub mod load;
pub mod report;
pub mod sync_log;

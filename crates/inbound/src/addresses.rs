//! Hosts, origins and networks: what a request may name, where it comes from, and under which address clients see the server.

pub(crate) mod authority;
pub(crate) mod cross_origin;
pub(crate) mod forwarded;
pub(crate) mod host;
pub(crate) mod host_and_origin;
pub(crate) mod network;
pub(crate) mod origin;

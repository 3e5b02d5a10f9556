//! Tests of the server over a real socket: bytes in, bytes out.
//!
//! The client is a few lines of our own that add nothing to what is sent and hide nothing of what is received. Each
//! test has its own server and store with a fixed clock, so that whole responses can be compared.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]
#![allow(clippy::disallowed_methods, reason = "the test opens connections of its own")]

mod common;

mod access;
mod agent_list;
mod api_keys;
mod audit;
mod capabilities;
mod card_shapes;
mod cards;
mod catalog;
mod connections;
mod credential_requests;
mod cross_origin;
mod declared_credentials;
mod dialects;
mod drain;
mod endpoints;
mod errors;
mod grpc;
mod http2;
mod legacy_methods;
mod legacy_streams;
mod limits;
mod matrix;
#[cfg(feature = "mcp")]
mod mcp;
mod methods;
mod metrics;
mod openapi;
mod operators;
mod operators_agents;
mod operators_tasks;
mod paths;
mod principal_caps;
mod process_task;
mod profiles;
mod published_keys;
mod queue;
mod rate_limits;
mod rest;
mod revocation;
mod run;
mod streams;
mod text;
mod tls;
mod tokens;
mod traces;

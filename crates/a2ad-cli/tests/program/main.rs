//! The program as its users run it: commands, servers that are started, called, reloaded, stopped and killed, and what
//! is left of them.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]
#![allow(clippy::disallowed_types, reason = "documents are compared as trees")]
#![allow(clippy::disallowed_methods, reason = "tests open connections of their own")]

mod api_keys;
mod backup;
mod canary_secrets;
mod cards_from_tools;
mod check;
mod client;
mod command_line;
#[cfg(target_os = "linux")]
mod command_processes;
mod common;
mod complex_schemas;
mod credentials;
mod endpoints;
mod first_minutes;
mod inbox;
mod key_files;
mod mcp_questions;
mod mcp_stdio;
mod operators;
mod reload;
mod run_settings;
mod server_process;
mod store_files;
mod tls;
mod upgrade;
mod webhooks;

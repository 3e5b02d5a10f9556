//! The a2ad command.

use std::process::ExitCode;

use outbound::process::supervise;
use selftest::tool_server;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    // Commands that the help does not show. The first runs beside every command of a backend, so nothing else is set up
    // before.
    match first.as_ref().and_then(|first| first.to_str()) {
        Some(supervise::COMMAND) => supervise::run(arguments),
        Some(tool_server::COMMAND) => tool_server::run(arguments),
        _ => a2ad_cli::run(),
    }
}

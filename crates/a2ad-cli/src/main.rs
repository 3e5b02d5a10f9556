//! The a2ad command.

use std::process::ExitCode;

use outbound::process::supervise;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // Hidden from the help. It runs beside every command of a backend, so nothing else is set up before.
    if arguments.next().is_some_and(|first| first == supervise::COMMAND) {
        return supervise::run(arguments);
    }
    a2ad_cli::run()
}

//! What the program does first: it runs a hidden command, or sets up the process and runs the command line.

use std::process::ExitCode;

use engine::RegisteredAgent;
use outbound::process::supervise;

use crate::{builtins, cli};

/// Runs the command that the arguments of the process name, and returns its exit code. `agents` are added to the
/// built-in agents that come with a2ad; a program calls this once.
pub fn run(agents: impl IntoIterator<Item = RegisteredAgent>) -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    // A command that the help does not show. It runs beside every command of a backend, so little is set up before.
    match first.as_ref().and_then(|first| first.to_str()) {
        Some(supervise::COMMAND) => {
            // The command of a backend inherits the setting of this process.
            set_huge_pages(HugePages::AsTheSystemHasThem);
            supervise::run(arguments)
        }
        _ => {
            set_huge_pages(HugePages::Off);
            builtins::add(agents);
            cli::run()
        }
    }
}

/// Whether the kernel may use transparent huge pages for the memory of this process.
#[derive(Clone, Copy)]
enum HugePages {
    /// Buffers of connections are larger than what idle or stuck peers use of them. In pages of 4 KiB the unused part needs
    /// no memory; in pages of 2 MiB it does, which is 16 of 34 KiB for each connection of HTTP/2.
    Off,
    AsTheSystemHasThem,
}

#[cfg(target_os = "linux")]
fn set_huge_pages(huge_pages: HugePages) {
    // If this fails, the process only uses more memory.
    let _ = rustix::thread::disable_transparent_huge_pages(matches!(huge_pages, HugePages::Off));
}

#[cfg(not(target_os = "linux"))]
fn set_huge_pages(_: HugePages) {}

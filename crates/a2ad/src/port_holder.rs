//! Finds the process that holds a port: its name, PID, state and age, as far as they can be determined.
//!
//! The process is looked up in `/proc` where that exists and is readable. Whether it is an a2ad server, and its
//! readiness, are determined over HTTP. Both are bounded in time.

use std::{fs, net::SocketAddr, path::PathBuf};

use store::Process;

use crate::probe::{self, ProbeResult};

/// The state code of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// A description such as `a2ad (PID 12, serving, up 5 min)`; `None` if nothing is known.
pub(crate) async fn describe(address: SocketAddr) -> Option<String> {
    let search = tokio::task::spawn_blocking(move || find(address.port()));
    let (process, state) = tokio::join!(search, state(address));
    let process = process.ok().flatten();
    let name = match (&state, &process) {
        (Some(_), _) => "a2ad",
        (None, Some(process)) => process.name.as_str(),
        (None, None) => return None,
    };
    let pid = process.as_ref().map(|process| format!("PID {}", process.pid));
    let age = process.as_ref().and_then(|process| process.up).map(|up| format!("up {}", store::up(up)));
    let facts: Vec<String> = [pid, state.map(str::to_owned), age].into_iter().flatten().collect();
    Some(format!("{name} ({})", facts.join(", ")))
}

/// The state of an a2ad server at this address; `None` if none answers.
async fn state(address: SocketAddr) -> Option<&'static str> {
    let authority = address.to_string();
    match probe::get(&authority, "/").await {
        ProbeResult::Http { body, .. } if body.contains(r#""name":"a2ad""#) => {}
        _ => return None,
    }
    match probe::get(&authority, "/readyz").await {
        ProbeResult::Http { status: 200, .. } => Some("serving"),
        ProbeResult::Http { status: 503, .. } => Some("draining"),
        _ => Some("not answering"),
    }
}

/// The process that listens on a port.
fn find(port: u16) -> Option<Process> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].into_iter().filter_map(|table| fs::read_to_string(table).ok());
    let sockets: Vec<PathBuf> = tables
        .flat_map(|table| inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]").into())
        .collect();
    if sockets.is_empty() { None } else { Process::with_open_file(&sockets) }
}

/// The inodes of the sockets in a `/proc/net/tcp` table that listen on a port.
fn inodes(table: &str, port: u16) -> Vec<String> {
    let listens = |line: &'_ str| -> bool {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().and_then(|local| local.rsplit_once(':'));
        let state = fields.nth(1);
        local.is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port)) && state == Some(LISTEN)
    };
    table
        .lines()
        .skip(1)
        .filter(|line| listens(line))
        .filter_map(|line| line.split_whitespace().nth(9))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_found_in_the_kernel_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1092 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77 1 0 10 0\n   \
                     1: 0100007F:1092 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 78 1 0 10 0\n   \
                     2: 0100007F:1093 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 79 1 0 10 0\n";
        assert_eq!(inodes(table, 4242), ["77"]);
    }
}

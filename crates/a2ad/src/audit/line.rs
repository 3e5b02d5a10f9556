//! One line of the audit log.

use std::net::IpAddr;

use inbound::AuditEntry;
use protocol::{Timestamp, json::write::Writer};

use super::refusals::DroppedRefusals;

/// What every line begins with; the number follows.
const BEGIN: &str = "{\"seq\":";

/// An entry as one line with its end.
pub(super) fn encode(number: u64, entry: &AuditEntry, count: u64) -> Vec<u8> {
    encode_with(number, entry, |out| {
        if count > 1 {
            out.key("count").int(int(count));
            // The line is for all addresses of the network; an address of IPv4 is its own.
            let network = entry.network().filter(IpAddr::is_ipv6);
            out.maybe_text("network", network.map(show_network).as_deref());
        }
    })
}

/// The refusals of a second that have no line of their own.
pub(super) fn encode_dropped(number: u64, time: Timestamp, dropped: &DroppedRefusals) -> Vec<u8> {
    let entry = AuditEntry::done(time, "server", "refusals.dropped");
    encode_with(number, &entry, |out| {
        out.key("count").int(int(dropped.count));
        out.key("networks").array(&dropped.networks, |writer, (network, count)| {
            writer.object(|out| {
                out.text("network", &show_network(*network));
                out.key("count").int(int(*count));
            });
        });
    })
}

/// `192.0.2.1` or `2001:db8::/64`
fn show_network(network: IpAddr) -> String {
    match network {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("{address}/64"),
    }
}

fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn encode_with(number: u64, entry: &AuditEntry, more: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("seq").int(int(number));
        out.text("time", &entry.time.to_string());
        out.text("who", &entry.who);
        out.text("action", entry.action);
        out.maybe_text("route", entry.route.as_deref());
        out.maybe_text("agent", entry.agent.as_deref());
        out.maybe_text("task", entry.task.as_deref());
        out.maybe_text("key", entry.key.as_deref());
        out.maybe_text("delivery", entry.delivery.as_deref());
        out.maybe_text("peer", entry.peer.map(|peer| peer.to_string()).as_deref());
        out.maybe_text("requestId", entry.request_id.map(|id| format!("{id:016x}")).as_deref());
        out.text("outcome", if entry.refused.is_some() { "refused" } else { "done" });
        out.maybe_text("reason", entry.refused.as_deref());
        more(out);
    });
    let mut line = writer.finish();
    line.push(b'\n');
    line
}

/// The number of a line; `None` for a line that was cut off.
pub(super) fn number(line: &str) -> Option<u64> {
    let rest = line.strip_prefix(BEGIN).filter(|rest| rest.ends_with('}'))?;
    rest.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use protocol::Timestamp;

    use super::*;

    #[test]
    fn a_line_has_its_number_and_what_is_known() {
        let entry = AuditEntry {
            agent: Some("echo".into()),
            peer: Some(std::net::Ipv4Addr::LOCALHOST.into()),
            request_id: Some(255),
            refused: Some("UNAUTHENTICATED".into()),
            ..AuditEntry::done(Timestamp::from_millis(0), "a\nb", "refused.credential")
        };
        let line = String::from_utf8(encode(7, &entry, 3)).unwrap();
        let expected = concat!(
            r#"{"seq":7,"time":"1970-01-01T00:00:00.000Z","who":"a\nb","action":"refused.credential","agent":"echo","#,
            r#""peer":"127.0.0.1","requestId":"00000000000000ff","outcome":"refused","reason":"UNAUTHENTICATED","count":3}"#,
            "\n"
        );
        assert_eq!(line, expected);
        assert_eq!(number(line.trim_end()), Some(7));
        assert_eq!(number(&line[..40]), None);
        assert_eq!(number(""), None);
    }
}

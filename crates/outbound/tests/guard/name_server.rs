//! A server for names with the answers that the tests need, at the address of the namespace's `/etc/resolv.conf`.

use std::{
    collections::HashMap,
    net::{Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex},
};

use tokio::{net::UdpSocket, task::JoinSet};

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

/// A record of a name.
#[derive(Clone, Copy)]
enum Record {
    A(&'static str),
    Aaaa(&'static str),
    Cname(&'static str),
    /// One of these for each query in turn.
    Alternating([&'static str; 2]),
    /// So many public addresses.
    Many(u8),
    /// No response at all.
    Silent,
}

use Record::{A as V4, Aaaa as V6, Alternating, Cname, Many, Silent};

/// Names with their records; others do not exist.
const ZONE: &[(&str, &[Record])] = &[
    ("public.example", &[V4("93.184.215.14")]),
    ("both.example", &[V4("93.184.215.14"), V6("2606:2800:21f::1")]),
    ("other.example", &[V4("93.184.215.15")]),
    ("private.example", &[V4("10.0.0.1")]),
    ("metadata.example", &[V4("169.254.169.254")]),
    ("zero.example", &[V4("0.0.0.0")]),
    ("127.0.0.1.nip.example", &[V4("127.0.0.1")]),
    ("mixed.example", &[V4("93.184.215.14"), V4("10.0.0.1")]),
    ("mixed6.example", &[V4("93.184.215.14"), V6("::1")]),
    ("loopback6.example", &[V6("::1")]),
    ("mapped.example", &[V6("::ffff:127.0.0.1")]),
    ("compatible.example", &[V6("::127.0.0.1")]),
    ("nat64.example", &[V6("64:ff9b::a9fe:a9fe")]),
    ("public-nat64.example", &[V6("64:ff9b::5db8:d70e")]),
    ("6to4.example", &[V6("2002:7f00:1::")]),
    ("teredo.example", &[V6("2001::80ff:fffe")]),
    ("sixteen.example", &[Many(16)]),
    ("seventeen.example", &[Many(17)]),
    ("hidden.example", &[Many(15), V4("192.168.0.1")]),
    ("chain.example", &[Cname("chain2.example")]),
    ("chain2.example", &[Cname("chain3.example")]),
    ("chain3.example", &[Cname("chain4.example")]),
    ("chain4.example", &[Cname("metadata.example")]),
    ("public-chain.example", &[Cname("public-chain2.example")]),
    ("public-chain2.example", &[Cname("public.example")]),
    ("loop.example", &[Cname("loop2.example")]),
    ("loop2.example", &[Cname("loop.example")]),
    ("local-chain.example", &[Cname("printer.local")]),
    ("printer.local", &[V4("192.168.0.9")]),
    ("metadata.google.internal", &[V4("169.254.169.254")]),
    ("a.localhost", &[V4("127.0.0.1")]),
    ("flip.example", &[Alternating(["93.184.215.14", "169.254.169.254"])]),
    ("rebinding.example", &[Alternating(["93.184.215.14", "169.254.169.254"])]),
    ("moving.example", &[Alternating(["93.184.215.14", "93.184.215.15"])]),
    ("allowed.example", &[V4("10.1.2.3")]),
    ("half-allowed.example", &[V4("10.1.2.3"), V4("10.2.0.1")]),
    ("silent.example", &[Silent]),
];

/// Names with an answer that is not public, or with too many.
pub(crate) const FORBIDDEN_NAMES: &[&str] = &[
    "private.example",
    "metadata.example",
    "zero.example",
    "127.0.0.1.nip.example",
    "mixed.example",
    "mixed6.example",
    "loopback6.example",
    "mapped.example",
    "compatible.example",
    "nat64.example",
    "6to4.example",
    "teredo.example",
    "seventeen.example",
    "hidden.example",
    "chain.example",
    "local-chain.example",
];

/// Names with public addresses only.
pub(crate) const ALLOWED_NAMES: &[&str] =
    &["both.example", "public-nat64.example", "sixteen.example", "public-chain.example", "other.example"];

/// Answers until it is dropped.
pub(crate) struct NameServer {
    /// The number of queries for IPv4 addresses of each name.
    queries: Arc<Mutex<HashMap<String, usize>>>,
    _task: JoinSet<()>,
}

impl NameServer {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 53)).await.unwrap();
        let queries = Arc::<Mutex<HashMap<String, usize>>>::default();
        let mut task = JoinSet::new();
        task.spawn(serve(socket, Arc::clone(&queries)));
        Self { queries, _task: task }
    }

    /// How often the IPv4 addresses of a name were asked for.
    pub(crate) fn queries(&self, name: &str) -> usize {
        self.queries.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

async fn serve(socket: UdpSocket, queries: Arc<Mutex<HashMap<String, usize>>>) {
    let mut packet = [0; 512];
    loop {
        let (length, client) = socket.recv_from(&mut packet).await.unwrap();
        let question = Question::read(&packet[..length]);
        let number = {
            let mut queries = queries.lock().unwrap();
            let count = queries.entry(question.name.clone()).or_default();
            *count += usize::from(question.kind == A);
            *count
        };
        if let Some(response) = question.respond(number) {
            socket.send_to(&response, client).await.unwrap();
        }
    }
}

/// A query for one kind of record of one name.
struct Question {
    id: [u8; 2],
    /// The question as it was sent.
    bytes: Vec<u8>,
    name: String,
    kind: u16,
}

impl Question {
    fn read(packet: &[u8]) -> Self {
        let mut name = Vec::new();
        let mut at = 12;
        while packet[at] > 0 {
            let end = at + 1 + usize::from(packet[at]);
            name.push(String::from_utf8_lossy(&packet[at + 1..end]).to_lowercase());
            at = end;
        }
        Self {
            id: [packet[0], packet[1]],
            bytes: packet[12..at + 5].to_vec(),
            name: name.join("."),
            kind: u16::from_be_bytes([packet[at + 1], packet[at + 2]]),
        }
    }

    /// The response to the query with this number; `None` for a name that is never answered.
    fn respond(&self, number: usize) -> Option<Vec<u8>> {
        let mut answers = Vec::new();
        let found = self.collect(&self.name, number, &mut answers)?;
        let code = if found { 0x80 } else { 0x83 };
        let count = u16::try_from(answers.len()).unwrap().to_be_bytes();
        let header = [self.id[0], self.id[1], 0x81, code, 0, 1, count[0], count[1], 0, 0, 0, 0];
        Some([&header[..], &self.bytes, &answers.concat()].concat())
    }

    /// Adds the records of a name and of those that it is an alias of.
    fn collect(&self, name: &str, number: usize, answers: &mut Vec<Vec<u8>>) -> Option<bool> {
        let Some((_, records)) = ZONE.iter().find(|entry| entry.0 == name) else { return Some(false) };
        for record in *records {
            match *record {
                V4(address) => self.add_v4(name, address.parse().unwrap(), answers),
                Alternating(both) => {
                    self.add_v4(name, both[(number + 1) % 2].parse().unwrap(), answers);
                }
                Many(count) => {
                    (1..=count)
                        .for_each(|last| self.add_v4(name, Ipv4Addr::new(93, 184, 216, last), answers));
                }
                V6(address) if self.kind == AAAA => {
                    answers.push(answer(name, AAAA, &address.parse::<Ipv6Addr>().unwrap().octets()));
                }
                V6(_) => {}
                Cname(alias) => {
                    answers.push(answer(name, CNAME, &encoded(alias)));
                    // A loop ends after a few rounds.
                    if answers.len() < 8 {
                        self.collect(alias, number, answers)?;
                    }
                }
                Silent => return None,
            }
        }
        Some(true)
    }

    fn add_v4(&self, name: &str, address: Ipv4Addr, answers: &mut Vec<Vec<u8>>) {
        if self.kind == A {
            answers.push(answer(name, A, &address.octets()));
        }
    }
}

/// A record that may not be cached.
fn answer(name: &str, kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    let class_and_ttl = [0, 1, 0, 0, 0, 0];
    [&encoded(name)[..], &kind.to_be_bytes(), &class_and_ttl, &length.to_be_bytes(), data].concat()
}

fn encoded(name: &str) -> Vec<u8> {
    let label = |label: &str| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat();
    name.split('.').flat_map(label).chain([0]).collect()
}

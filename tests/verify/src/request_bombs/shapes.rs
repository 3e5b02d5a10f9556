//! The bombs: bodies and heads that cost their sender little. All of them are invalid and must be refused.

use super::compressed;
use super::raw::Body;

pub(crate) struct Bomb {
    pub(crate) family: &'static str,
    pub(crate) name: String,
    pub(crate) path: String,
    /// Header lines, each with its line end.
    pub(crate) headers: Vec<u8>,
    pub(crate) framing: Framing,
    pub(crate) body: Body,
    pub(crate) expected: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    Chunked,
    /// A Content-Length whose body is never sent.
    Declared(u64),
    /// The bomb contains its own framing headers.
    Own,
}

/// How the bomb must be refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    /// With a JSON-RPC error for a request that was parsed.
    Call,
    /// With this HTTP status and a JSON-RPC body.
    Status(u16),
    /// By HTTP itself, or with a JSON-RPC error.
    Head,
}

const LARGEST: usize = 16 << 20;
/// A request of almost the maximum size.
const FULL: usize = LARGEST - 4096;
const MILLION: usize = 1_000_000;
const PATH: &str = "/a2a/echo";

/// The send request of one protocol generation, as fragments around an inserted value.
struct Send {
    version: &'static str,
    method: &'static str,
    role: &'static str,
    /// Text before the message.
    lead: &'static str,
    /// The members of a part with data, up to its value.
    data: &'static str,
    /// The member of a part with bytes, up to its text, and the text after it.
    bytes: (&'static str, &'static str),
    /// The member of a part with a file name, up to its value, and the text after it.
    filename: (&'static str, &'static str),
    /// The webhook configuration next to the message, up to its value, and the text after it.
    webhook: (&'static str, &'static str),
    /// The method that reads one task.
    get: &'static str,
}

const SENDS: [Send; 3] = [
    Send {
        version: "1.0",
        method: "SendMessage",
        role: "ROLE_USER",
        lead: "",
        data: r#""data":"#,
        bytes: (r#""raw":""#, r#"""#),
        filename: (r#""raw":"AA==","filename":"#, ""),
        webhook: (r#""configuration":{"taskPushNotificationConfig":"#, "}"),
        get: "GetTask",
    },
    Send {
        version: "0.3",
        method: "message/send",
        role: "user",
        lead: "",
        data: r#""kind":"data","data":"#,
        bytes: (r#""kind":"file","file":{"bytes":""#, r#""}"#),
        filename: (r#""kind":"file","file":{"bytes":"AA==","name":"#, "}"),
        webhook: (r#""configuration":{"pushNotificationConfig":"#, "}"),
        get: "tasks/get",
    },
    Send {
        version: "0.1",
        method: "tasks/send",
        role: "user",
        lead: r#""id":"t-1","#,
        data: r#""type":"data","data":"#,
        bytes: (r#""type":"file","file":{"bytes":""#, r#""}"#),
        filename: (r#""type":"file","file":{"bytes":"AA==","name":"#, "}"),
        webhook: (r#""pushNotification":"#, ""),
        get: "tasks/get",
    },
];

pub(crate) fn bombs() -> Vec<Bomb> {
    let mut bombs = Vec::new();
    compressed_bodies(&mut bombs);
    heads(&mut bombs);
    framings(&mut bombs);
    for send in &SENDS {
        deep(&mut bombs, send);
        wide(&mut bombs, send);
        long_lists(&mut bombs, send);
        long_texts(&mut bombs, send);
        long_numbers(&mut bombs, send);
        too_large(&mut bombs, send);
    }
    bombs
}

/// A position in a request: its name, and the text before and after it.
type InsertionPoint = (&'static str, String, String);

impl Send {
    /// A value of the member `name` next to the message.
    fn next_to_message(&self, name: &str) -> (String, String) {
        let head = format!(r#"{}"{name}":"#, self.open());
        around(self.method, &head, "}")
    }

    /// The value of the webhook configuration.
    fn webhook(&self) -> (String, String) {
        let head = format!("{}{}", self.open(), self.webhook.0);
        let (head, tail) = around(self.method, &head, "}");
        (head, format!("{}{tail}", self.webhook.1))
    }

    /// A value of a member of the message.
    fn in_message(&self, name: &str) -> (String, String) {
        let parts = r#""parts":[{"text":"x"}]"#;
        let head =
            format!(r#"{{{}"message":{{"messageId":"m","role":"{}",{parts},"{name}":"#, self.lead, self.role);
        around(self.method, &head, "}}")
    }

    /// The list of parts.
    fn parts(&self) -> (String, String) {
        let head = format!(r#"{{{}"message":{{"messageId":"m","role":"{}","parts":"#, self.lead, self.role);
        around(self.method, &head, "}}")
    }

    /// A member of the only part.
    fn part(&self, start: &str, end: &str) -> (String, String) {
        let (head, tail) = self.parts();
        (format!("{head}[{{{start}"), format!("{end}}}]{tail}"))
    }

    /// The parameters up to the end of the message.
    fn open(&self) -> String {
        format!(r#"{{{}"message":{},"#, self.lead, self.message())
    }

    fn message(&self) -> String {
        format!(r#"{{"messageId":"m","role":"{}","parts":[{{"text":"x"}}]}}"#, self.role)
    }

    /// A member of a request for one task.
    fn get(&self, name: &str, rest: &str) -> (String, String) {
        around(self.get, &format!(r#"{{{rest}"{name}":"#), "}")
    }

    fn bomb(&self, family: &'static str, name: &str, body: Body) -> Bomb {
        let headers = format!("A2A-Version: {}\r\nContent-Type: application/json\r\n", self.version);
        Bomb {
            family,
            name: format!("{} {name}", self.method),
            path: PATH.to_owned(),
            headers: headers.into(),
            framing: Framing::Length,
            body,
            expected: Expected::Call,
        }
    }
}

/// A request with the text that opens and closes its parameters.
fn around(method: &str, open: &str, close: &str) -> (String, String) {
    (format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{open}"#), format!("{close}}}"))
}

fn at(name: &'static str, (head, tail): (String, String)) -> InsertionPoint {
    (name, head, tail)
}

/// Positions at which a value of any shape can stand.
fn value_positions(send: &Send) -> Vec<InsertionPoint> {
    let open = r#"{"jsonrpc":"2.0","#;
    vec![
        ("the request", String::new(), String::new()),
        ("id", format!(r#"{open}"method":"{}","id":"#, send.get), "}".to_owned()),
        ("method", format!(r#"{open}"id":1,"method":"#), "}".to_owned()),
        at("params", around(send.method, "", "")),
        at("metadata", send.next_to_message("metadata")),
        at("message.metadata", send.in_message("metadata")),
        at("message.parts", send.parts()),
        at("data", send.part(send.data, "")),
    ]
}

/// Deeply nested values, closed and unclosed.
fn deep(bombs: &mut Vec<Bomb>, send: &Send) {
    let brackets = [("arrays", "[", "]"), ("objects", r#"{"a":"#, "}"), ("both", r#"[{"a":"#, "}]")];
    for (position, head, tail) in value_positions(send) {
        for (what, open, close) in brackets {
            for depth in [10_000, MILLION] {
                let closed: String = ["1", &close.repeat(depth), &tail].concat();
                let body = Body::repeated(head.as_str(), open, depth, closed);
                bombs.push(send.bomb("depth", &format!("{position}: {what} {depth} deep"), body));
            }
            let body = Body::repeated(head.as_str(), open, MILLION, "");
            bombs.push(send.bomb("depth", &format!("{position}: {what} never closed"), body));
        }
        let body = Body::repeated(head.as_str(), "[", FULL, "");
        bombs.push(send.bomb("depth", &format!("{position}: {FULL} arrays never closed"), body));
        let closed = format!("{}{tail}", "]".repeat(FULL / 2));
        let body = Body::repeated(head.as_str(), "[", FULL / 2, closed);
        bombs.push(send.bomb("depth", &format!("{position}: {} arrays deep", FULL / 2), body));
    }
}

/// Objects with very many members.
fn wide(bombs: &mut Vec<Bomb>, send: &Send) {
    let config = r#"{"url":"https://a.example","#;
    let (part_head, part_tail) = send.part(r#""text":"x","#, "");
    let positions = [
        ("the request", r#"{"jsonrpc":"2.0","id":1,"#.to_owned(), "}".to_owned()),
        at("params", around(send.method, &send.open(), "}")),
        at("metadata", pair(send.next_to_message("metadata"), "{", "}")),
        at("a webhook", pair(send.webhook(), config, "}")),
        ("a part", part_head, part_tail),
        at("message.metadata", pair(send.in_message("metadata"), "{", "}")),
        at("a data part", pair(send.part(send.data, ""), "{", "}")),
        at("task id", around(send.get, r#"{"id":"x","#, "}")),
    ];
    // The last member has a distinct name, so that it can follow a comma.
    for (position, head, tail) in positions {
        for (what, unit, times) in [
            ("short members", r#""":0,"#, FULL / 5),
            ("members", r#""k":{},"#, MILLION),
            ("nested members", r#""k":{"k":[{}]},"#, MILLION),
        ] {
            let times = times.min(FULL / unit.len());
            let body = Body::repeated(head.as_str(), unit, times, format!(r#""z":0{tail}"#));
            bombs.push(send.bomb("width", &format!("{position}: {times} {what}"), body));
        }
    }
    let names: Vec<String> = (0..MILLION).map(|at| format!(r#""k{at}":0"#)).collect();
    let (head, tail) = around(send.method, &send.open(), "}");
    let body = Body::of([head, names.join(","), tail].concat());
    bombs.push(send.bomb("width", &format!("params: {MILLION} different members"), body));
}

fn pair((head, tail): (String, String), open: &str, close: &str) -> (String, String) {
    (format!("{head}{open}"), format!("{close}{tail}"))
}

fn long_lists(bombs: &mut Vec<Bomb>, send: &Send) {
    let mut push = |position: &str, (head, tail): (String, String), unit: &str, times: usize| {
        let times = times.min(FULL / (unit.len() + 1));
        let body = Body::repeated(format!("{head}["), format!("{unit},"), times, format!("{unit}]{tail}"));
        bombs.push(send.bomb("lists", &format!("{position}: {times} of {unit:.30}"), body));
    };
    for (unit, times) in [
        (r#"{"text":"x"}"#, 100_000),
        (r#"{"text":""}"#, FULL),
        (r#"{"kind":"text","text":"x"}"#, 500_000),
        (r#"{"data":{}}"#, FULL),
        ("0", FULL),
        ("null", FULL),
        ("{}", FULL),
        ("[]", FULL),
    ] {
        push("message.parts", send.parts(), unit, times);
    }
    for unit in [r#""""#, r#""x""#] {
        if send.version != "0.1" {
            push("message.extensions", send.in_message("extensions"), unit, FULL);
            push("message.referenceTaskIds", send.in_message("referenceTaskIds"), unit, FULL);
            let modes = pair(send.next_to_message("configuration"), r#"{"acceptedOutputModes":"#, "}");
            push("configuration.acceptedOutputModes", modes, unit, FULL);
        } else {
            push("acceptedOutputModes", send.next_to_message("acceptedOutputModes"), unit, FULL);
        }
        if send.version != "1.0" {
            let config = r#"{"url":"https://a.example","authentication":{"schemes":"#;
            push("a webhook's schemes", pair(send.webhook(), config, "}}"), unit, FULL);
        }
    }
    let batch = around(send.get, r#"{"id":"x"}"#, "");
    let batch = [batch.0, batch.1].concat();
    for unit in ["0", "{}", batch.as_str()] {
        push("a batch", (String::new(), String::new()), unit, FULL);
    }
}

fn long_texts(bombs: &mut Vec<Bomb>, send: &Send) {
    let open = r#"{"jsonrpc":"2.0","#;
    let request = |rest: String| (format!("{open}{rest}"), "}".to_owned());
    let positions = [
        at("id", request(format!(r#""method":"{}","params":{{"id":"x"}},"id":"#, send.get))),
        at("method", request(r#""id":1,"method":"#.to_owned())),
        ("jsonrpc", r#"{"id":1,"method":"x","jsonrpc":"#.to_owned(), "}".to_owned()),
        at("a task id", send.get("id", "")),
        at("historyLength", send.get("historyLength", r#""id":"x","#)),
        at("message.role", send.in_message("role")),
        at("message.messageId", send.in_message("messageId")),
        at("metadata", send.next_to_message("metadata")),
        at("message.parts", send.parts()),
        at("a skill", send.next_to_message("skill")),
        at("metadata.skillId", pair(send.next_to_message("metadata"), r#"{"skillId":"#, "}")),
        at("a webhook", pair(send.webhook(), r#"{"url":"#, "}")),
        at("a webhook's token", pair(send.webhook(), r#"{"url":"https://a.example","token":"#, "}")),
        at("a file's name", send.part(send.filename.0, send.filename.1)),
    ];
    for (position, head, tail) in positions {
        for (what, unit, end) in [
            ("letters", "a", "\""),
            ("escapes", r"\u0000", "\""),
            ("quotes", r#"\""#, "\""),
            ("no end", "a", ""),
        ] {
            let tail = if end.is_empty() { "" } else { tail.as_str() };
            let times = FULL / unit.len();
            let body = Body::repeated(format!("{head}\""), unit, times, format!("{end}{tail}"));
            bombs.push(send.bomb("texts", &format!("{position}: {times} {what}"), body));
        }
    }
    let (start, end) = send.bytes;
    for (what, unit, last) in [("has an invalid end", "AAAA", "!"), ("is invalid", "%41%", "")] {
        let (head, tail) = send.part(start, end);
        let body = Body::repeated(head, unit, FULL / unit.len(), format!("{last}{tail}"));
        bombs.push(send.bomb("texts", &format!("base64 that {what}"), body));
    }
    let (head, tail) = around(send.method, &send.open(), "}");
    for (what, unit) in [("letters", "k"), ("escapes", r"\u0000"), ("quotes", r#"\""#)] {
        let times = FULL / unit.len();
        let body = Body::repeated("{\"", unit, times, "\":1}");
        bombs.push(send.bomb("texts", &format!("a name: {times} {what}"), body));
        let body = Body::repeated(format!("{head}\""), unit, times, format!("\":1{tail}"));
        bombs.push(send.bomb("texts", &format!("a parameter's name: {times} {what}"), body));
    }
}

fn long_numbers(bombs: &mut Vec<Bomb>, send: &Send) {
    let id = format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{{"id":"x"}},"id":"#, send.get);
    let positions = [
        ("id", id, "}".to_owned()),
        at("historyLength", send.get("historyLength", r#""id":"x","#)),
        at("message.role", send.in_message("role")),
        at("metadata", send.next_to_message("metadata")),
    ];
    for (position, head, tail) in positions {
        for (what, start, unit) in [
            ("digits", "1", "0"),
            ("a fraction", "0.", "0"),
            ("an exponent", "1e", "9"),
            ("below zero", "-1", "0"),
        ] {
            let body = Body::repeated(format!("{head}{start}"), unit, FULL, format!("1{tail}"));
            bombs.push(send.bomb("numbers", &format!("{position}: {what}"), body));
        }
    }
}

fn too_large(bombs: &mut Vec<Bomb>, send: &Send) {
    let (start, end) = send.bytes;
    let part = send.part(start, end);
    let forms: [(&str, (String, String), &str); 4] = [
        ("base64", part, "AAAA"),
        ("white space", (String::new(), "{}".to_owned()), " "),
        ("open arrays", (String::new(), String::new()), "["),
        ("members", ("{".to_owned(), r#""z":0}"#.to_owned()), r#""k":0,"#),
    ];
    for (what, (head, tail), unit) in forms {
        for bytes in [LARGEST + 1, 32 << 20, 100 * MILLION] {
            for framing in [Framing::Length, Framing::Chunked] {
                let body = Body::repeated(head.as_str(), unit, bytes / unit.len() + 1, tail.as_str());
                let framed = if framing == Framing::Length { "" } else { " in chunks" };
                let name = format!("{} bytes of {what}{framed}", body.len());
                let bomb = send.bomb("too large", &name, body);
                bombs.push(Bomb { framing, expected: Expected::Status(413), ..bomb });
            }
        }
    }
}

/// Every content encoding is refused with its name, whatever the body contains.
fn compressed_bodies(bombs: &mut Vec<Bomb>) {
    let send = &SENDS[0];
    let good = around(send.method, &format!(r#"{{"message":{}"#, send.message()), "}");
    let bodies = [
        ("a gzip bomb", compressed::gzip()),
        ("a zstd bomb", compressed::zstd()),
        ("a brotli bomb", compressed::brotli()),
        ("a valid request", [good.0, good.1].concat().into_bytes()),
    ];
    #[rustfmt::skip]
    let codings = [
        "gzip", "x-gzip", "deflate", "br", "zstd", "compress", "dcb", "aes128gcm", "GZIP", "gzip, gzip",
        "gzip,br,zstd", "identity, gzip", "unknown", "*",
    ];
    for (what, bytes) in bodies {
        for coding in codings {
            let mut bomb =
                send.bomb("packed", &format!("Content-Encoding: {coding}, {what}"), Body::of(bytes.clone()));
            bomb.headers.extend(format!("Content-Encoding: {coding}\r\n").bytes());
            bombs.push(Bomb { expected: Expected::Status(415), ..bomb });
        }
    }
}

fn heads(bombs: &mut Vec<Bomb>) {
    let body = || Body::of("{}");
    let mut push = |name: String, path: String, headers: Vec<u8>| {
        let bomb = SENDS[0].bomb("heads", &name, body());
        let headers = [bomb.headers, headers].concat();
        bombs.push(Bomb { path, headers, expected: Expected::Head, ..bomb });
    };
    for bytes in [100_000, MILLION, 10 * MILLION] {
        let long = "x".repeat(bytes);
        push(format!("a header of {bytes} bytes"), PATH.to_owned(), format!("X-A: {long}\r\n").into());
        push(format!("a header name of {bytes} bytes"), PATH.to_owned(), format!("{long}: 1\r\n").into());
        push(format!("a cookie of {bytes} bytes"), PATH.to_owned(), format!("Cookie: a={long}\r\n").into());
        push(format!("a path of {bytes} bytes"), format!("/a2a/{long}"), Vec::new());
        push(format!("a query of {bytes} bytes"), format!("{PATH}?A2A-Version={long}"), Vec::new());
    }
    for count in [101, 1_000, 10_000, 100_000] {
        let lines: String = (0..count).map(|at| format!("X-{at}: 1\r\n")).collect();
        push(format!("{count} headers"), PATH.to_owned(), lines.into());
        push(format!("one header {count} times"), PATH.to_owned(), "X-A: 1\r\n".repeat(count).into());
    }
    for name in
        ["Idempotency-Key", "Last-Event-ID", "A2A-Extensions", "X-A2A-Extensions", "Accept", "Authorization"]
    {
        push(
            format!("{name} of 50,000 bytes"),
            PATH.to_owned(),
            format!("{name}: {}\r\n", "9".repeat(50_000)).into(),
        );
    }
}

/// Bodies with unusual framing.
fn framings(bombs: &mut Vec<Bomb>) {
    let send = &SENDS[0];
    for length in [1_u64 << 30, 1 << 40, 1 << 53, u64::MAX / 2] {
        let bomb =
            send.bomb("framing", &format!("a Content-Length of {length} without the body"), Body::of(""));
        bombs.push(Bomb { framing: Framing::Declared(length), expected: Expected::Status(413), ..bomb });
    }
    let chunked = |name: &str, body: Body, expected: Expected| {
        let mut bomb = send.bomb("framing", name, body);
        bomb.headers.extend(b"Transfer-Encoding: chunked\r\n");
        Bomb { framing: Framing::Own, expected, ..bomb }
    };
    bombs.push(chunked(
        "chunks of one byte",
        Body::repeated("", "1\r\n \r\n", 100_000, "0\r\n\r\n"),
        Expected::Call,
    ));
    bombs.push(chunked(
        "chunks with long extensions",
        Body::repeated("", format!("1;{}\r\n \r\n", "x".repeat(1_000)), 1_000, "0\r\n\r\n"),
        Expected::Head,
    ));
    bombs.push(chunked(
        "an endless chunk size",
        Body::repeated("", "0", 100_000, "1\r\n \r\n0\r\n\r\n"),
        Expected::Head,
    ));
    bombs.push(chunked(
        "a chunk size that is not a number",
        Body::of("zz\r\n \r\n0\r\n\r\n"),
        Expected::Head,
    ));
    bombs.push(chunked(
        "endless trailers",
        Body::repeated("1\r\n{\r\n0\r\n", "X-A: 1\r\n", 100_000, "\r\n"),
        Expected::Head,
    ));
}

//! Messages as the official Python SDK of each generation encodes them, with the equivalent JSON.
//!
//! A line has a kind, a method, the bytes in hexadecimal, and the JSON. Both forms must decode to the same
//! value, and encoding must reproduce the bytes. Path and query of 0.3 have no JSON form, so the 1.0 form is
//! used.

use a2ad_protocol::{
    Dialect, Event, Operation, Reply,
    dialect::{v1, v03_proto, v03_proto::operation::Address},
    grpc::Service,
    json::{
        Raw,
        read::{Node, Path},
    },
};

use crate::doubles;

#[test]
fn samples_of_the_python_sdk_round_trip() {
    for (service, lines) in
        [(Service::V1, include_str!("samples/v1.txt")), (Service::V03, include_str!("samples/v03.txt"))]
    {
        for line in lines.lines() {
            let columns: Vec<&str> = line.splitn(4, ' ').collect();
            let [kind, method, digits, json] = columns[..] else { panic!("{line}") };
            check(service, kind, method, &unhex(digits), json);
        }
    }
}

fn check(service: Service, what: &str, method: &str, bytes: &[u8], json: &str) {
    let kind = || service.operation(method).unwrap_or_else(|| panic!("no method {method}"));
    let again = match what {
        "operation" | "address" => {
            let operation = service.decode_operation(kind(), bytes).unwrap_or_else(|e| panic!("{e}: {json}"));
            let expected = if what == "address" {
                let method = v1::operation::method(kind());
                v1::operation::decode(method, Some(Raw::parse_text(json).unwrap())).unwrap()
            } else {
                read_operation(service, method, json)
            };
            assert_eq!(doubles::operation(&operation), doubles::operation(&expected), "{json}");
            service.encode_operation(&operation)
        }
        "reply" => {
            let reply = service.decode_reply(kind(), bytes).unwrap_or_else(|e| panic!("{e}: {json}"));
            let expected: Reply = service.dialect().decode_reply(kind(), node(json)).unwrap();
            assert_eq!(doubles::reply(&reply), doubles::reply(&expected), "{json}");
            if matches!(reply, Reply::Card(_)) {
                // An empty map value may be omitted, and signatures are not written in 0.3.
                let again = service.decode_reply(kind(), &service.encode_reply(&reply));
                assert!(service == Service::V03 || again == Ok(reply), "{json}");
                return;
            }
            service.encode_reply(&reply)
        }
        "event" => {
            let event = service.decode_event(bytes).unwrap_or_else(|e| panic!("{e}: {json}"));
            let expected: Event = service.dialect().decode_event(node(json)).unwrap();
            assert_eq!(doubles::event(&event), doubles::event(&expected), "{json}");
            service.encode_event(&event)
        }
        other => panic!("no kind {other}"),
    };
    assert_eq!(hex(&again), hex(bytes), "{what} {method} {json}");
}

fn read_operation(service: Service, method: &str, json: &str) -> Operation {
    let body = Raw::parse_text(json).unwrap();
    match service.dialect() {
        Dialect::V1 => v1::operation::decode(method, Some(body)).unwrap(),
        _ => {
            let kind = service.operation(method).unwrap();
            v03_proto::operation::decode(kind, &Address::default(), Some(body)).unwrap()
        }
    }
}

fn node(json: &str) -> Node<'_, 'static> {
    Node::new(Raw::parse_text(json).unwrap(), &Path::Root)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

//! JSON through `google.protobuf.Value`: numbers, text and duplicates.

use a2ad_protocol::{Content, Event, Json, Message, Part, Role, grpc::Service};
use proptest::{prop_assert_eq, proptest};

use crate::{
    doubles::through_doubles,
    values,
    wire::{bytes, double, int},
};

/// The value after encoding and decoding.
fn round_trip(service: Service, json: &str) -> String {
    let data = Part::data(Json::parse(json).unwrap());
    let event = Event::Message(Message::new("m", Role::Agent, vec![data]));
    let Ok(Event::Message(message)) = service.decode_event(&service.encode_event(&event)) else {
        panic!("{json}")
    };
    let [Part { content: Content::Data(json), metadata: None, .. }] = &message.parts[..] else {
        panic!("{message:?}")
    };
    json.as_str().to_owned()
}

/// A hand-encoded value, decoded to JSON text.
fn read(value: &[u8]) -> String {
    let message = [bytes(1, "m"), int(4, 2), bytes(5, bytes(4, value))].concat();
    let Ok(Event::Message(message)) = Service::V1.decode_event(&bytes(2, message)) else { panic!() };
    let Content::Data(json) = &message.parts[0].content else { panic!() };
    json.as_str().to_owned()
}

proptest! {
    #[test]
    fn every_value_round_trips_with_numbers_as_doubles(json in values::json_text()) {
        for service in Service::ALL {
            prop_assert_eq!(round_trip(service, &json), through_doubles(&json));
        }
    }
}

#[test]
fn integers_stay_integers_and_others_are_the_nearest_double() {
    let cases = [
        ("1", "1"),
        ("1.0", "1"),
        ("-0", "-0"),
        ("0.1", "0.1"),
        ("2147483648", "2147483648"),
        ("9007199254740992", "9007199254740992"),
        ("9007199254740993", "9007199254740992"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1e21", "1e+21"),
        ("1e400", "1.7976931348623157e+308"),
        ("-1e400", "-1.7976931348623157e+308"),
        ("1e-400", "0"),
    ];
    for service in Service::ALL {
        for (json, expected) in cases {
            assert_eq!(round_trip(service, json), expected, "{json}");
        }
    }
}

#[test]
fn text_round_trips_in_every_escape_form() {
    let cases = [
        (r#""\u0041\n\t\r\b\f\/\\\"""#, r#""A\n\t\r\b\f/\\\"""#),
        (r#""\ud83d\ude00 \u00e9""#, "\"😀 é\""),
        // A lone surrogate is not text.
        (r#""\ud83d!""#, "\"\u{fffd}!\""),
        (r#""\ude00\ud83d""#, "\"\u{fffd}\u{fffd}\""),
        (r#"{"\ud800":1,"\u006b":"\\u0041"}"#, "{\"\u{fffd}\":1,\"k\":\"\\\\u0041\"}"),
    ];
    for service in Service::ALL {
        for (json, expected) in cases {
            assert_eq!(round_trip(service, json), expected, "{json}");
        }
    }
}

#[test]
fn nested_length_prefixes_are_correct() {
    // Nested length prefixes of one, two, three and four bytes.
    for size in [1, 120, 128, 16_383, 16_384, 2_100_000] {
        let json = format!(r#"[{{"k":["{}",{{"l":[]}}]}},{{}}]"#, "x".repeat(size));
        for service in Service::ALL {
            assert!(round_trip(service, &json) == json, "{size}");
        }
    }
}

#[test]
fn empty_value_is_null() {
    assert_eq!(read(&[]), "null");
    assert_eq!(read(&int(1, 0)), "null");
    assert_eq!(read(&bytes(6, bytes(1, []))), "[null]");
    // An entry without name and value.
    assert_eq!(read(&bytes(5, bytes(1, []))), r#"{"":null}"#);
}

#[test]
fn last_oneof_field_wins_and_split_messages_are_merged() {
    assert_eq!(read(&[double(2, 5.0), bytes(3, "x"), int(4, 1)].concat()), "true");
    let entry = |name: &str, value: &[u8]| bytes(1, [bytes(1, name), bytes(2, value)].concat());
    let piece = |name, value: f64| bytes(6, entry(name, &double(2, value)));
    let head = [bytes(1, "m"), int(4, 2), bytes(5, bytes(1, "x"))].concat();
    let message = [head, piece("a", 1.0), piece("b", 2.0), piece("a", 3.0)].concat();
    let Ok(Event::Message(message)) = Service::V1.decode_event(&bytes(2, message)) else { panic!() };
    // The last duplicate name wins.
    assert_eq!(message.metadata, Some(Json::parse(r#"{"b":2,"a":3}"#).unwrap()));
    let many: Vec<u8> =
        (0..2_000).flat_map(|at| entry(&format!("k{}", at % 20), &double(2, at.into()))).collect();
    let last: Vec<String> = (1_980..2_000).map(|at| format!(r#""k{}":{at}"#, at % 20)).collect();
    assert_eq!(read(&bytes(5, many)), format!("{{{}}}", last.join(",")));
}

#[test]
fn empty_metadata_is_not_absent() {
    let mut message = Message::new("m", Role::User, vec![Part::text("")]);
    message.metadata = Some(Json::parse("{}").unwrap());
    for service in Service::ALL {
        let event = Event::Message(message.clone());
        assert_eq!(service.decode_event(&service.encode_event(&event)), Ok(event));
    }
}

//! Sizes: what is large and still read, and what is too much and refused before it is kept.

use a2ad_protocol::{
    Content, Error, Event, Json, Message, Operation, OperationKind, Part, Role,
    dialect::v1::message::MAX_PARTS,
    grpc::Service,
    json::{MAX_DEPTH, MAX_NODES, read::MAX_TEXT_BYTES},
};

use crate::{
    bad::refused,
    wire::{bytes, int},
};

/// A send whose message has these fields too, and another field of the request.
fn send(service: Service, message: &[u8], more: &[u8]) -> Result<Operation, Error> {
    let number = if service == Service::V1 { 2 } else { 1 };
    let head = [bytes(1, "m"), int(4, 1)].concat();
    let body = [bytes(number, [&head, message].concat()), more.to_vec()].concat();
    service.decode_operation(OperationKind::SendMessage, &body)
}

fn parts(service: Service) -> &'static str {
    if service == Service::V1 { "message.parts" } else { "message.content" }
}

#[test]
fn a_message_holds_a_thousand_parts_and_not_one_more() {
    for service in Service::ALL {
        let part = bytes(5, bytes(1, "x"));
        let Ok(Operation::SendMessage(req)) = send(service, &part.repeat(MAX_PARTS), &[]) else {
            panic!("a thousand parts are fine")
        };
        assert_eq!(req.message.parts.len(), MAX_PARTS);
        let problem = "expected at most 1000 parts";
        refused(send(service, &part.repeat(MAX_PARTS + 1), &[]), parts(service), problem);
        // The message in two pieces, each within bounds.
        let number = if service == Service::V1 { 2 } else { 1 };
        let piece = bytes(number, part.repeat(600));
        refused(send(service, &part.repeat(600), &piece), parts(service), problem);
    }
}

#[test]
fn two_bytes_for_an_element_do_not_become_hundreds() {
    // Five million elements: kept first and counted then, they would take a gigabyte.
    let many = [0x2a, 0x00].repeat(5_000_000);
    for service in Service::ALL {
        refused(send(service, &many, &[]), parts(service), "expected at most 1000 parts");
        let many = [0x3a, 0x00].repeat(10_001);
        refused(send(service, &many, &[]), "message.extensions", "expected at most 10000 strings");
        let modes = bytes(if service == Service::V1 { 3 } else { 2 }, [0x0a, 0x00].repeat(10_001));
        refused(
            send(service, &bytes(5, bytes(1, "x")), &modes),
            "configuration.acceptedOutputModes",
            "expected at most 10000 strings",
        );
    }
    let many = [0x42, 0x00].repeat(10_001);
    refused(send(Service::V1, &many, &[]), "message.referenceTaskIds", "expected at most 10000 ids");
    let schemes = bytes(4, [0x0a, 0x00].repeat(10_001));
    let field = "authentication.schemes";
    refused(
        send(Service::V03, &bytes(5, bytes(1, "x")), &bytes(2, bytes(2, &schemes))),
        &format!("configuration.pushNotification.{field}"),
        "expected at most 10000 strings",
    );
    let body = [bytes(1, "tasks/t"), bytes(3, bytes(2, &schemes))].concat();
    refused(
        Service::V03.decode_operation(OperationKind::CreatePushConfig, &body),
        &format!("config.pushNotificationConfig.{field}"),
        "expected at most 10000 strings",
    );
}

#[test]
fn strings_that_are_no_content_are_as_short_as_in_json() {
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    let text = bytes(5, bytes(1, &long));
    let with = |message: Vec<u8>| [text.clone(), message].concat();
    let problem = "expected at most 65536 bytes";
    for service in Service::ALL {
        assert!(send(service, &text, &[]).is_ok(), "content is as long as it likes");
        let two = with([bytes(7, "x"), bytes(7, &long)].concat());
        refused(send(service, &two, &[]), "message.extensions[1]", problem);
        let many = with(bytes(7, &long[1..]).repeat(17));
        let in_all = "expected strings of at most 1048576 bytes in all";
        refused(send(service, &many, &[]), "message.extensions", in_all);
        let list = if service == Service::V1 { bytes(1, "t") } else { bytes(1, "tasks/t") };
        let list = [list, bytes(3, &long)].concat();
        refused(service.decode_operation(OperationKind::ListPushConfigs, &list), "pageToken", problem);
    }
    let named = with(bytes(5, [bytes(1, "x"), bytes(6, &long)].concat()));
    refused(send(Service::V1, &named, &[]), "message.parts[1].filename", problem);
    let file = with(bytes(5, bytes(2, [bytes(1, "x"), bytes(4, &long)].concat())));
    refused(send(Service::V03, &file, &[]), "message.content[1].file.name", problem);
    let config = [bytes(3, "t"), bytes(4, "https://h.example"), bytes(6, bytes(2, &long))].concat();
    let created = Service::V1.decode_operation(OperationKind::CreatePushConfig, &config);
    refused(created, "authentication.credentials", problem);
    let config = bytes(2, [bytes(2, "https://h.example"), bytes(3, &long)].concat());
    let config = [bytes(1, "tasks/t"), bytes(3, config)].concat();
    let created = Service::V03.decode_operation(OperationKind::CreatePushConfig, &config);
    refused(created, "config.pushNotificationConfig.token", problem);
}

#[test]
fn a_value_too_deep_or_too_wide_names_its_field() {
    // A list in a list, so and so often.
    let deep = |depth: usize| (1..depth).fold(bytes(6, []), |inside, _| bytes(6, bytes(1, inside)));
    let wide = |width: usize| bytes(6, bytes(1, int(4, 0)).repeat(width));
    let data = |value: Vec<u8>| bytes(5, bytes(4, value));
    let entry = |value: Vec<u8>| bytes(1, [bytes(1, "k"), bytes(2, value)].concat());
    let (too_deep, too_wide) =
        ("expected a value nested at most 30 deep", "expected a value of at most 10000 nodes");
    let v1 = Service::V1;
    assert!(send(v1, &data(deep(MAX_DEPTH)), &[]).is_ok());
    assert!(send(v1, &data(wide(MAX_NODES - 1)), &[]).is_ok());
    refused(send(v1, &data(deep(MAX_DEPTH + 1)), &[]), "message.parts[0].data", too_deep);
    refused(send(v1, &data(wide(MAX_NODES)), &[]), "message.parts[0].data", too_wide);
    let text = bytes(5, bytes(1, "x"));
    let metadata = |value: Vec<u8>| [text.clone(), bytes(6, entry(value))].concat();
    for service in Service::ALL {
        assert!(send(service, &metadata(deep(MAX_DEPTH - 1)), &[]).is_ok());
        refused(send(service, &metadata(deep(MAX_DEPTH)), &[]), "message.metadata", too_deep);
        refused(send(service, &metadata(wide(MAX_NODES - 1)), &[]), "message.metadata", too_wide);
    }
    // Deeper than any stack.
    let mut bottomless = Vec::new();
    for _ in 0..12 {
        bottomless = bytes(6, bytes(1, &bottomless)).repeat(2);
    }
    let mut bottomless = bytes(6, bottomless);
    for _ in 0..20_000 {
        bottomless = bytes(6, bytes(1, bottomless));
    }
    refused(send(v1, &data(bottomless), &[]), "message.parts[0].data", too_deep);
}

#[test]
fn ten_megabytes_are_read_and_written_exactly() {
    const SIZE: usize = 10 * 1024 * 1024;
    let contents = [
        Content::Text("é\n".repeat(SIZE / 3)),
        Content::Raw(vec![0xfe; SIZE]),
        Content::Data(Json::parse(&format!(r#"{{"k":"{}"}}"#, "x".repeat(SIZE))).unwrap()),
    ];
    for content in contents {
        for service in Service::ALL {
            let event = Event::Message(Message::new("m", Role::User, vec![Part::new(content.clone())]));
            // Not `assert_eq`: a failure would print the whole of it.
            assert!(service.decode_event(&service.encode_event(&event)) == Ok(event));
        }
    }
}

/// Objects inside each other, around this text.
fn nested(depth: usize, inside: &str) -> Json {
    Json::parse(&format!("{}{inside}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))).unwrap()
}

#[test]
fn what_is_nested_too_deep_for_protobuf_is_written_as_its_json_text() {
    let event = |data: Json, metadata: Json| {
        let part = Part { metadata: Some(metadata), ..Part::data(data) };
        Event::Message(Message::new("m", Role::User, vec![part]))
    };
    let (rest, quoted) = (r#"{"a":[1,"é\n]"]}"#, r#""{\"a\":[1,\"é\\n]\"]}""#);
    for service in Service::ALL {
        let round = |event: &Event| service.decode_event(&service.encode_event(event)).unwrap();
        let fits = event(nested(MAX_DEPTH, "1"), nested(MAX_DEPTH - 1, "1"));
        assert_eq!(round(&fits), fits);
        let deeper = event(nested(MAX_DEPTH, rest), nested(MAX_DEPTH, rest));
        assert_eq!(round(&deeper), event(nested(MAX_DEPTH, quoted), nested(MAX_DEPTH, quoted)));
        // A list takes fewer levels than an object, so more of them fit, also where 0.3 wraps them into an object.
        let lists = Json::parse(&format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH))).unwrap();
        let lists = event(lists, nested(1, "1"));
        assert_eq!(round(&lists), lists);
    }
}

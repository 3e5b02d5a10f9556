//! Size limits: large input that is accepted, and oversized input that is rejected before it is stored.

use a2ad_protocol::{
    Content, Error, Event, Json, Message, Operation, OperationKind, Part, Role,
    dialect::v1::message::MAX_PARTS,
    grpc::Service,
    json::{MAX_DEPTH, MAX_NODES, read::MAX_TEXT_BYTES},
};

use crate::{
    bad::assert_rejected,
    wire::{bytes, int},
};

/// A send whose message has these additional fields, and another field of the request.
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
fn message_has_at_most_a_thousand_parts() {
    for service in Service::ALL {
        let part = bytes(5, bytes(1, "x"));
        let Ok(Operation::SendMessage(req)) = send(service, &part.repeat(MAX_PARTS), &[]) else {
            panic!("a thousand parts must be accepted")
        };
        assert_eq!(req.message.parts.len(), MAX_PARTS);
        let problem = "expected at most 1000 parts";
        assert_rejected(send(service, &part.repeat(MAX_PARTS + 1), &[]), parts(service), problem);
        // The message in two occurrences, each within the limit.
        let number = if service == Service::V1 { 2 } else { 1 };
        let piece = bytes(number, part.repeat(600));
        assert_rejected(send(service, &part.repeat(600), &piece), parts(service), problem);
    }
}

#[test]
fn elements_are_counted_before_decoding() {
    // Five million elements: decoding them before counting would take a gigabyte.
    let many = [0x2a, 0x00].repeat(5_000_000);
    for service in Service::ALL {
        assert_rejected(send(service, &many, &[]), parts(service), "expected at most 1000 parts");
        let many = [0x3a, 0x00].repeat(10_001);
        assert_rejected(send(service, &many, &[]), "message.extensions", "expected at most 10000 strings");
        let modes = bytes(if service == Service::V1 { 3 } else { 2 }, [0x0a, 0x00].repeat(10_001));
        assert_rejected(
            send(service, &bytes(5, bytes(1, "x")), &modes),
            "configuration.acceptedOutputModes",
            "expected at most 10000 strings",
        );
    }
    let many = [0x42, 0x00].repeat(10_001);
    assert_rejected(send(Service::V1, &many, &[]), "message.referenceTaskIds", "expected at most 10000 ids");
    let schemes = bytes(4, [0x0a, 0x00].repeat(10_001));
    let field = "authentication.schemes";
    assert_rejected(
        send(Service::V03, &bytes(5, bytes(1, "x")), &bytes(2, bytes(2, &schemes))),
        &format!("configuration.pushNotification.{field}"),
        "expected at most 10000 strings",
    );
    let body = [bytes(1, "tasks/t"), bytes(3, bytes(2, &schemes))].concat();
    assert_rejected(
        Service::V03.decode_operation(OperationKind::CreatePushConfig, &body),
        &format!("config.pushNotificationConfig.{field}"),
        "expected at most 10000 strings",
    );
}

#[test]
fn non_content_strings_have_the_limits_of_json() {
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    let text = bytes(5, bytes(1, &long));
    let with = |message: Vec<u8>| [text.clone(), message].concat();
    let problem = "expected at most 65536 bytes";
    for service in Service::ALL {
        assert!(send(service, &text, &[]).is_ok(), "content is not limited");
        let two = with([bytes(7, "x"), bytes(7, &long)].concat());
        assert_rejected(send(service, &two, &[]), "message.extensions[1]", problem);
        let many = with(bytes(7, &long[1..]).repeat(17));
        let in_all = "expected strings of at most 1048576 bytes in all";
        assert_rejected(send(service, &many, &[]), "message.extensions", in_all);
        let list = if service == Service::V1 { bytes(1, "t") } else { bytes(1, "tasks/t") };
        let list = [list, bytes(3, &long)].concat();
        assert_rejected(
            service.decode_operation(OperationKind::ListPushConfigs, &list),
            "pageToken",
            problem,
        );
    }
    let named = with(bytes(5, [bytes(1, "x"), bytes(6, &long)].concat()));
    assert_rejected(send(Service::V1, &named, &[]), "message.parts[1].filename", problem);
    let file = with(bytes(5, bytes(2, [bytes(1, "x"), bytes(4, &long)].concat())));
    assert_rejected(send(Service::V03, &file, &[]), "message.content[1].file.name", problem);
    let config = [bytes(3, "t"), bytes(4, "https://h.example"), bytes(6, bytes(2, &long))].concat();
    let created = Service::V1.decode_operation(OperationKind::CreatePushConfig, &config);
    assert_rejected(created, "authentication.credentials", problem);
    let config = bytes(2, [bytes(2, "https://h.example"), bytes(3, &long)].concat());
    let config = [bytes(1, "tasks/t"), bytes(3, config)].concat();
    let created = Service::V03.decode_operation(OperationKind::CreatePushConfig, &config);
    assert_rejected(created, "config.pushNotificationConfig.token", problem);
}

#[test]
fn value_too_deep_or_too_large_names_its_field() {
    // Nested lists.
    let deep = |depth: usize| (1..depth).fold(bytes(6, []), |inside, _| bytes(6, bytes(1, inside)));
    let wide = |width: usize| bytes(6, bytes(1, int(4, 0)).repeat(width));
    let data = |value: Vec<u8>| bytes(5, bytes(4, value));
    let entry = |value: Vec<u8>| bytes(1, [bytes(1, "k"), bytes(2, value)].concat());
    let (too_deep, too_wide) =
        ("expected a value nested at most 30 deep", "expected a value of at most 10000 nodes");
    let v1 = Service::V1;
    assert!(send(v1, &data(deep(MAX_DEPTH)), &[]).is_ok());
    assert!(send(v1, &data(wide(MAX_NODES - 1)), &[]).is_ok());
    assert_rejected(send(v1, &data(deep(MAX_DEPTH + 1)), &[]), "message.parts[0].data", too_deep);
    assert_rejected(send(v1, &data(wide(MAX_NODES)), &[]), "message.parts[0].data", too_wide);
    let text = bytes(5, bytes(1, "x"));
    let metadata = |value: Vec<u8>| [text.clone(), bytes(6, entry(value))].concat();
    for service in Service::ALL {
        assert!(send(service, &metadata(deep(MAX_DEPTH - 1)), &[]).is_ok());
        assert_rejected(send(service, &metadata(deep(MAX_DEPTH)), &[]), "message.metadata", too_deep);
        assert_rejected(send(service, &metadata(wide(MAX_NODES - 1)), &[]), "message.metadata", too_wide);
    }
    // Nesting that would overflow a recursive decoder's stack.
    let mut bottomless = Vec::new();
    for _ in 0..12 {
        bottomless = bytes(6, bytes(1, &bottomless)).repeat(2);
    }
    let mut bottomless = bytes(6, bottomless);
    for _ in 0..20_000 {
        bottomless = bytes(6, bytes(1, bottomless));
    }
    assert_rejected(send(v1, &data(bottomless), &[]), "message.parts[0].data", too_deep);
}

#[test]
fn ten_megabytes_round_trip() {
    const SIZE: usize = 10 * 1024 * 1024;
    let contents = [
        Content::Text("é\n".repeat(SIZE / 3)),
        Content::Raw(vec![0xfe; SIZE]),
        Content::Data(Json::parse(&format!(r#"{{"k":"{}"}}"#, "x".repeat(SIZE))).unwrap()),
    ];
    for content in contents {
        for service in Service::ALL {
            let event = Event::Message(Message::new("m", Role::User, vec![Part::new(content.clone())]));
            // Not `assert_eq`: a failure would print all of it.
            assert!(service.decode_event(&service.encode_event(&event)) == Ok(event));
        }
    }
}

/// Nested objects around this text.
fn nested(depth: usize, inside: &str) -> Json {
    Json::parse(&format!("{}{inside}{}", r#"{"a":"#.repeat(depth), "}".repeat(depth))).unwrap()
}

#[test]
fn value_too_deep_for_protobuf_is_written_as_json_text() {
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
        // A list takes fewer levels than an object, so more of them fit, even where 0.3 wraps them in an
        // object.
        let lists = Json::parse(&format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH))).unwrap();
        let lists = event(lists, nested(1, "1"));
        assert_eq!(round(&lists), lists);
    }
}

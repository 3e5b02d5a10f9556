//! Files, data and fields carried in metadata.

use a2ad_protocol::{Content, Event, Json, Message, Part, Role, TaskId};

use crate::codec::{read_event, write_event};

#[test]
fn bytes_are_base64_of_base64() {
    assert_eq!(
        write_part(Part::new(Content::Raw(b"\x89PN".to_vec()))),
        r#"{"file":{"fileWithBytes":"aVZCTw=="}}"#
    );
    let cases: [(&str, &[u8]); 9] = [
        (r#""aVZCTw==""#, b"\x89PN"),
        (r#""""#, b""),
        // The content is not base64: it is the bytes themselves.
        (r#""iVBO""#, b"\x89PN"),
        (r#""YSBi""#, b"a b"),
        // Base64 characters, but not a whole number of groups.
        (r#""YWJj""#, b"abc"),
        (r#""YWJjZGU=""#, b"abcde"),
        // Four base64 characters are decoded: other implementations put base64 text there.
        (r#""YWJjZA==""#, b"i\xb7\x1d"),
        // Padding in the middle is not base64.
        (r#""YT09PT09PT0=""#, b"a======="),
        // The outer base64 in both alphabets, padded or not.
        (r#""_w""#, b"\xff"),
    ];
    for (text, bytes) in cases {
        let part = read_part(&format!(r#"{{"file":{{"fileWithBytes":{text}}}}}"#));
        assert_eq!(part.content, Content::Raw(bytes.to_vec()), "{text}");
    }
}

#[test]
fn media_type_and_name_of_a_file_are_beside_it() {
    let part = Part {
        media_type: Some("image/png".into()),
        filename: Some("a.png".into()),
        ..Part::new(Content::Url("u".into()))
    };
    let text = r#"{"file":{"name":"a.png","mimeType":"image/png","fileWithUri":"u"}}"#;
    assert_eq!(write_part(part.clone()), text);
    assert_eq!(read_part(text), part);
}

#[test]
fn data_that_is_not_an_object_is_wrapped() {
    for value in ["null", "5", "[1,2.0]", r#""x""#, "true", "9007199254740993"] {
        let part = Part::data(Json::parse(value).unwrap());
        let text =
            format!(r#"{{"data":{{"data":{{"value":{value}}}}},"metadata":{{"data_part_compat":true}}}}"#);
        assert_eq!(write_part(part.clone()), text);
        assert_eq!(read_part(&text), part);
    }
    // Without the marker, or with more members, it is an ordinary object.
    for text in [
        r#"{"data":{"data":{"value":5}}}"#,
        r#"{"data":{"data":{"value":5,"k":1}},"metadata":{"data_part_compat":true}}"#,
    ] {
        assert_eq!(write_part(read_part(text)), text);
    }
}

#[test]
fn media_types_of_text_and_data_are_carried_in_metadata() {
    let markdown =
        Part { media_type: Some("text/markdown".into()), filename: Some("a.md".into()), ..Part::text("x") };
    let text = r#"{"text":"x","metadata":{"a2ad":{"mediaType":"text/markdown","filename":"a.md"}}}"#;
    assert_eq!(write_part(markdown.clone()), text);
    assert_eq!(read_part(text), markdown);
    let plain = Part { media_type: Some("text/plain".into()), ..Part::text("x") };
    assert_eq!(write_part(plain), r#"{"text":"x"}"#);
    // A key of the caller is never changed.
    let own = Json::parse(r#"{"a2ad":1}"#).unwrap();
    let noted = Part { metadata: Some(own), ..markdown };
    assert_eq!(write_part(noted), r#"{"text":"x","metadata":{"a2ad":1}}"#);
}

#[test]
fn referenced_tasks_are_carried_in_metadata() {
    let metadata = Json::parse(r#"{"k":1}"#).unwrap();
    let message = Message {
        reference_task_ids: vec![TaskId::from("t-0")],
        metadata: Some(metadata),
        ..Message::new("m", Role::User, vec![Part::text("x")])
    };
    let text = write_event(&Event::Message(message.clone()));
    assert!(text.contains(r#""metadata":{"k":1,"a2ad":{"referenceTaskIds":["t-0"]}}"#), "{text}");
    assert_eq!(read_event(&text), Ok(Event::Message(message)));
}

fn write_part(part: Part) -> String {
    let text = write_event(&Event::Message(Message::new("m", Role::User, vec![part])));
    let inside = text.strip_prefix(r#"{"message":{"messageId":"m","role":"ROLE_USER","content":["#).unwrap();
    inside.strip_suffix("]}}").unwrap().to_owned()
}

fn read_part(text: &str) -> Part {
    let text = format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","content":[{text}]}}}}"#);
    let Ok(Event::Message(mut message)) = read_event(&text) else { panic!("refused: {text}") };
    message.parts.remove(0)
}

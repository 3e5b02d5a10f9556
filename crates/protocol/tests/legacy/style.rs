//! Encoding and decoding options of compatibility profiles.

use a2ad_protocol::{
    Content, Dialect, ErrorKind, Json, Operation, Part, Reply, Task, TaskState, TaskStatus,
    dialect::{Frames, Leniency, Style},
};

use crate::codec::{DIALECTS, next_frames, raw, written};

const FOLD: Style = Style { both_tags: false, cancelled: false, data_as_text: true, ..Style::OWN };
const AGENT_NATIVE: Style = Style { both_tags: true, cancelled: false, data_as_text: false, ..Style::OWN };
const AGENT_OS: Style = Style { both_tags: false, cancelled: true, data_as_text: false, ..Style::OWN };

#[test]
fn parts_have_both_tags_if_the_profile_selects_it() {
    let text = Part::text("x");
    assert_eq!(part(Dialect::Draft, AGENT_NATIVE, &text), r#"{"type":"text","kind":"text","text":"x"}"#);
    assert_eq!(part(Dialect::V03, AGENT_NATIVE, &text), r#"{"kind":"text","type":"text","text":"x"}"#);
    let file = Part::new(Content::Raw(vec![0xff]));
    assert_eq!(
        part(Dialect::V03, AGENT_NATIVE, &file),
        r#"{"kind":"file","type":"file","file":{"bytes":"/w=="}}"#
    );
}

#[test]
fn data_is_written_as_text_if_the_profile_selects_it() {
    let rows = [
        (r#"{"temp":62,"condition":"foggy"}"#, r#"{\"temp\":62,\"condition\":\"foggy\"}"#),
        ("9007199254740993", "9007199254740993"),
        ("null", "null"),
    ];
    for (data, text) in rows {
        let data = Part {
            media_type: Some("application/geo+json".to_owned()),
            ..Part::data(Json::parse(data).unwrap())
        };
        assert_eq!(part(Dialect::Draft, FOLD, &data), format!(r#"{{"type":"text","text":"{text}"}}"#));
        assert_eq!(part(Dialect::V03, FOLD, &data), format!(r#"{{"kind":"text","text":"{text}"}}"#));
    }
}

#[test]
fn canceled_is_spelled_cancelled_if_the_profile_selects_it() {
    for dialect in DIALECTS {
        let canceled = task(TaskState::Canceled, Vec::new());
        let reply = written(|writer| dialect.encode_reply(writer, &Reply::Task(canceled.clone()), AGENT_OS));
        assert!(reply.contains(r#""state":"cancelled""#), "{reply}");
        let mut stream = Frames::new(dialect, AGENT_OS);
        let frames = next_frames(&mut stream, &a2ad_protocol::Event::Task(canceled));
        assert!(frames[0].contains(r#""state":"cancelled""#), "{}", frames[0]);
    }
}

#[test]
fn send_without_task_id_is_accepted_only_if_the_profile_allows_it() {
    let params = raw(r#"{"skill":"weather","message":{"city":"San Francisco"}}"#);
    let read = |leniency| Dialect::Draft.decode_operation_with("tasks/send", Some(params), leniency);
    let error = read(Leniency::default()).unwrap_err();
    assert_eq!((error.kind, &error.violations[0].field[..]), (ErrorKind::InvalidParams, "id"));
    let Ok(Operation::SendMessage(req)) = read(Leniency { task_id_optional: true, ..Leniency::default() })
    else {
        panic!("it must be accepted")
    };
    assert_eq!((req.message.task_id, req.skill.as_deref()), (None, Some("weather")));
    assert_eq!(req.message.parts, [Part::data(Json::parse(r#"{"city":"San Francisco"}"#).unwrap())]);
    assert_eq!(req.message.id.as_str(), "");
    for method in ["tasks/get", "tasks/cancel"] {
        let read = Dialect::Draft.decode_operation_with(
            method,
            None,
            Leniency { task_id_optional: true, ..Leniency::default() },
        );
        assert!(read.is_err(), "{method}");
    }
}

/// The part as written in a task's artifact.
fn part(dialect: Dialect, style: Style, part: &Part) -> String {
    let artifact = a2ad_protocol::Artifact::new("a", vec![part.clone()]);
    let reply = Reply::Task(task(TaskState::Completed, vec![artifact]));
    let text = written(|writer| dialect.encode_reply(writer, &reply, style));
    let (_, rest) = text.split_once(r#""parts":["#).unwrap();
    rest[..rest.find(']').unwrap()].to_owned()
}

fn task(state: TaskState, artifacts: Vec<a2ad_protocol::Artifact>) -> Task {
    Task {
        id: "t-1".into(),
        context_id: "c-1".into(),
        status: TaskStatus { state, message: None, timestamp: None },
        artifacts,
        history: Vec::new(),
        metadata: None,
        created_at: None,
    }
}

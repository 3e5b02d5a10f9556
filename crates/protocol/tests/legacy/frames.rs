//! The frames of a stream, event by event.

use a2ad_protocol::{
    Artifact, ArtifactId, Dialect, Event, Message, Part, Role, Task, TaskState, TaskStatus,
    dialect::{Frames, Style, v1},
    model::{ArtifactUpdate, StatusUpdate},
};

use crate::codec::{next_frames, write_event};

#[test]
fn draft_stream_starts_with_the_status_and_numbers_its_artifacts() {
    let mut stream = Frames::new(Dialect::Draft, Style::default());
    let snapshot =
        Task { artifacts: vec![artifact("a", "1"), artifact("b", "2")], ..task(TaskState::Working) };
    let expected = [
        r#"{"id":"t-1","status":{"state":"working"},"final":false}"#,
        r#"{"id":"t-1","artifact":{"parts":[{"type":"text","text":"1"}],"index":0,"append":false,"lastChunk":false}}"#,
        r#"{"id":"t-1","artifact":{"parts":[{"type":"text","text":"2"}],"index":1,"append":false,"lastChunk":false}}"#,
    ];
    assert_eq!(next_frames(&mut stream, &Event::Task(snapshot)), expected);
    let rows = [("c", 2), ("a", 0), ("c", 2), ("b", 1), ("d", 3)];
    for (id, index) in rows {
        let expected = format!(
            r#"{{"id":"t-1","artifact":{{"parts":[{{"type":"text","text":"x"}}],"index":{index},"append":true,"lastChunk":true}}}}"#
        );
        assert_eq!(next_frames(&mut stream, &chunk(id)), [expected]);
    }
}

#[test]
fn artifacts_missing_from_the_snapshot_keep_their_index() {
    let mut stream = Frames::new(Dialect::Draft, Style::default());
    stream.know(["a", "b", "a"].map(ArtifactId::from));
    assert_eq!(next_frames(&mut stream, &Event::Task(task(TaskState::Working))).len(), 1);
    assert!(next_frames(&mut stream, &chunk("c"))[0].contains(r#""index":2"#));
    assert!(next_frames(&mut stream, &chunk("b"))[0].contains(r#""index":1"#));
}

#[test]
fn final_flag_depends_on_the_state_only() {
    for state in TaskState::ALL {
        let ends = format!(r#""final":{}"#, state.is_settled());
        for dialect in [Dialect::Draft, Dialect::V03] {
            let [frame] = &write_event(dialect, &status(state))[..] else { panic!("expected one frame") };
            assert!(frame.contains(&ends), "{frame}");
        }
        let snapshot = &write_event(Dialect::Draft, &Event::Task(task(state)))[0];
        assert!(snapshot.contains(r#""final":false"#), "{snapshot}");
        let snapshot = &write_event(Dialect::V03, &Event::Task(task(state)))[0];
        assert!(!snapshot.contains("final"), "{snapshot}");
    }
}

#[test]
fn message_is_the_final_frame_of_a_draft_stream() {
    let message = Message {
        task_id: Some("t-1".into()),
        context_id: Some("c-1".into()),
        ..Message::new("m-1", Role::Agent, vec![Part::text("hi")])
    };
    let expected = r#"{"id":"t-1","status":{"state":"completed","message":{"role":"agent","parts":[{"type":"text","text":"hi"}],"metadata":{"a2ad":{"messageId":"m-1"}}}},"final":true}"#;
    assert_eq!(write_event(Dialect::Draft, &Event::Message(message)), [expected]);
}

#[test]
fn states_missing_in_the_draft_are_carried_in_metadata() {
    let frame = |state| write_event(Dialect::Draft, &status(state)).remove(0);
    let rejected =
        r#"{"id":"t-1","status":{"state":"failed"},"final":true,"metadata":{"a2ad":{"state":"rejected"}}}"#;
    assert_eq!(frame(TaskState::Rejected), rejected);
    let unauthenticated = r#"{"id":"t-1","status":{"state":"input-required"},"final":true,"metadata":{"a2ad":{"state":"auth-required"}}}"#;
    assert_eq!(frame(TaskState::AuthRequired), unauthenticated);
}

#[test]
fn each_event_of_1_0_is_one_frame() {
    for event in [Event::Task(task(TaskState::Working)), status(TaskState::Completed), chunk("a")] {
        let mut stream = Frames::new(
            Dialect::V1,
            Style { cancelled: true, both_tags: true, data_as_text: true, ..Style::OWN },
        );
        let expected = String::from_utf8(v1::event::encode_bytes(&event)).unwrap();
        assert_eq!(next_frames(&mut stream, &event), [expected]);
    }
}

fn task(state: TaskState) -> Task {
    Task {
        id: "t-1".into(),
        context_id: "c-1".into(),
        status: TaskStatus { state, message: None, timestamp: None },
        artifacts: Vec::new(),
        history: Vec::new(),
        metadata: None,
        created_at: None,
    }
}

fn status(state: TaskState) -> Event {
    let Task { id, context_id, status, .. } = task(state);
    Event::Status(StatusUpdate { task_id: id, context_id, status, metadata: None })
}

fn artifact(id: &str, text: &str) -> Artifact {
    Artifact { name: None, ..Artifact::new(id, vec![Part::text(text)]) }
}

fn chunk(id: &str) -> Event {
    Event::Artifact(ArtifactUpdate {
        task_id: "t-1".into(),
        context_id: "c-1".into(),
        artifact: artifact(id, "x"),
        append: true,
        last_chunk: true,
        metadata: None,
    })
}

//! Server-sent events of the draft and of 0.3, byte for byte.

use crate::common::{
    NOW, Server, Setup, Wire,
    agents::{chats, paced},
    generation::{Client, Generation, UserMessage},
    mask, member, request,
};

/// Event ids and results of a stream, with random values masked.
async fn results(wire: &mut Wire) -> Vec<(u64, String)> {
    let mut results = Vec::new();
    for event in wire.events().await {
        let (number, data) = event.strip_prefix("id: ").unwrap().split_once("\ndata: ").unwrap();
        let data =
            data.strip_prefix(r#"{"jsonrpc":"2.0","id":1,"result":"#).unwrap_or_else(|| panic!("{data}"));
        results.push((number.parse().unwrap(), mask(data.strip_suffix("}\n\n").unwrap())));
    }
    results
}

fn status(state: &str, message: &str) -> String {
    format!(r#""status":{{"state":"{state}",{message}"timestamp":"{NOW}"}}"#)
}

mod draft {
    use super::*;

    /// A status event of the task `mine`.
    fn status_event(state: &str, last: bool) -> String {
        format!(r#"{{"id":"mine",{},"final":{last}}}"#, status(state, ""))
    }

    fn chunk_event(name: &str, text: &str, append: bool, last: bool) -> String {
        format!(
            r#"{{"id":"mine","artifact":{{"name":"{name}","parts":[{{"type":"text","text":"{text}"}}],"index":0,"append":{append},"lastChunk":{last}}}}}"#
        )
    }

    async fn ask(server: &Server, path: &str, method: &str, params: &str, more: &str) -> Wire {
        let head = format!("POST {path} HTTP/1.1{more}");
        let (wire, head) = server.open_stream(&head, &request(method, params)).await;
        assert_eq!(head.header("a2ad-dialect"), Some("draft;profile=neutral"));
        wire
    }

    const TASK_PARAMS: &str = r#"{"id":"mine"}"#;
    const SEND_PARAMS: &str =
        r#"{"id":"mine","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}"#;

    #[tokio::test]
    async fn stream_has_statuses_and_artifacts() {
        let server = Server::open().await;
        let mut wire = ask(&server, "/", "tasks/sendSubscribe", SEND_PARAMS, "").await;
        let whole = [
            (1, status_event("submitted", false)),
            (2, status_event("working", false)),
            (3, chunk_event("echo-result", "hi", false, true)),
            (4, status_event("completed", true)),
        ];
        assert_eq!(results(&mut wire).await, whole);

        // A resumed stream gets the status as of the last event seen and then the missed events; after the final event
        // it gets that again.
        for (seen, behind) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
            let more = format!("\r\nlast-event-id: {seen}");
            let mut wire = ask(&server, "/", "tasks/resubscribe", TASK_PARAMS, &more).await;
            let state = if seen < 2 { "submitted" } else { "working" };
            let first = [(seen, status_event(state, false))];
            assert_eq!(results(&mut wire).await, [&first[..], &whole[behind..]].concat(), "{seen}");
        }
        for more in ["", "\r\nlast-event-id: 4", "\r\nlast-event-id: 99", "\r\nlast-event-id: what"] {
            let mut wire = ask(&server, "/", "tasks/resubscribe", TASK_PARAMS, more).await;
            assert_eq!(results(&mut wire).await, whole[3..], "{more:?}");
        }
    }

    #[tokio::test]
    async fn chunks_of_an_artifact_have_one_index() {
        let (agent, pace) = paced();
        let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
        let path = "/a2a/paced";
        let mut first = ask(&server, path, "tasks/sendSubscribe", SEND_PARAMS, "").await;
        for _ in 0..2 {
            first.event().await.unwrap();
        }
        pace.add_permits(1);
        first.event().await.unwrap();
        // A new subscriber gets the current content as one chunk that is not the last.
        let mut second = ask(&server, path, "tasks/resubscribe", TASK_PARAMS, "").await;
        let opening = [status_event("working", false), chunk_event("words", "one", false, false)];
        for expected in opening {
            let event = second.event().await.unwrap();
            assert_eq!(
                event,
                format!("id: 3\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{expected}}}\n\n")
            );
        }
        // A subscriber that has the first chunk does not get it again, and the next chunk keeps its own index.
        let mut third = ask(&server, path, "tasks/resubscribe", TASK_PARAMS, "\r\nlast-event-id: 3").await;
        third.event().await.unwrap();
        pace.add_permits(2);
        let rest = [
            (4, chunk_event("words", "two", true, false)),
            (5, chunk_event("words", "three", true, true)),
            (6, status_event("completed", true)),
        ];
        for wire in [&mut first, &mut second, &mut third] {
            assert_eq!(results(wire).await, rest);
        }
    }

    #[tokio::test]
    async fn input_required_ends_the_stream_and_the_reply_opens_another() {
        let server = Server::open().await;
        let path = "/a2a/approver";
        let mut wire =
            ask(&server, path, "tasks/sendSubscribe", &SEND_PARAMS.replace("hi", "jump"), "").await;
        let asked = results(&mut wire).await;
        let last = &asked.last().unwrap().1;
        assert!(
            last.starts_with(r#"{"id":"mine","status":{"state":"input-required","message":{"role":"agent""#),
            "{last}"
        );
        assert!(last.ends_with(r#""final":true}"#), "{last}");
        assert!(asked[..asked.len() - 1].iter().all(|(_, event)| event.ends_with(r#""final":false}"#)));
        let mut wire =
            ask(&server, path, "tasks/sendSubscribe", &SEND_PARAMS.replace("hi", "approve"), "").await;
        let done = results(&mut wire).await;
        assert_eq!(done[0], (4, status_event("working", false)));
        assert_eq!(done[1], (5, chunk_event("approval", "Approved: jump", false, true)));
        assert!(done[2].1.contains(r#""state":"completed""#) && done[2].1.ends_with(r#""final":true}"#));
        assert_eq!(done.len(), 3);
    }

    #[tokio::test]
    async fn bare_message_is_the_final_status_of_a_completed_task() {
        let server = Setup { agents: vec![chats()], ..Setup::default() }.open().await;
        let path = "/a2a/chats";
        let mut wire = ask(&server, path, "tasks/sendSubscribe", SEND_PARAMS, "").await;
        let events = results(&mut wire).await;
        let last = &events.last().unwrap().1;
        assert!(last.contains(r#""state":"completed""#) && last.contains("reply to hi"), "{last}");
        assert!(last.contains(r#""final":true"#), "{last}");
        // The task can be read, with the message as its result.
        let got = server.post(path, &request("tasks/get", TASK_PARAMS)).await.body;
        let result = r#""artifacts":[{"#;
        assert!(got.contains(result) && got.contains(r#"{"type":"text","text":"reply to hi"}"#), "{got}");
    }

    #[tokio::test]
    async fn client_chosen_ids_may_be_any_text() {
        let server = Server::open().await;
        for id in ["a:b", "a/b", "%2F", "ü ☃", "task_", "129", r#"\"quoted\""#] {
            let params = SEND_PARAMS.replace("mine", id);
            let mut wire = ask(&server, "/", "tasks/sendSubscribe", &params, "").await;
            let events = results(&mut wire).await;
            assert!(
                events.iter().all(|(_, event)| event.starts_with(&format!(r#"{{"id":"{id}","#))),
                "{events:?}"
            );
            let got = server.post("/", &request("tasks/get", &format!(r#"{{"id":"{id}"}}"#))).await.body;
            assert!(got.contains(&format!(r#""result":{{"id":"{id}","#)), "{got}");
        }
    }
}

mod v03 {
    use super::*;

    fn status_event(state: &str, last: bool) -> String {
        let status = status(state, "");
        format!(r#"{{"kind":"status-update","taskId":"TASK","contextId":"CTX",{status},"final":{last}}}"#)
    }

    fn chunk_event(name: &str, text: &str, append: bool, last: bool) -> String {
        format!(
            r#"{{"kind":"artifact-update","taskId":"TASK","contextId":"CTX","append":{append},"lastChunk":{last},"artifact":{{"artifactId":"{name}","name":"{name}","parts":[{{"kind":"text","text":"{text}"}}]}}}}"#
        )
    }

    fn task(state: &str, more: &str) -> String {
        format!(r#"{{"kind":"task","id":"TASK","contextId":"CTX",{}{more}}}"#, status(state, ""))
    }

    const HISTORY: &str = r#","history":[{"kind":"message","messageId":"m","contextId":"CTX","taskId":"TASK","role":"user","parts":[{"kind":"text","text":"hi"}]}]"#;

    async fn follow(server: &Server, path: &str, id: &str, more: &str) -> Wire {
        let body = request("tasks/resubscribe", &format!(r#"{{"id":"{id}"}}"#));
        let (wire, head) = server.open_stream(&format!("POST {path} HTTP/1.1{more}"), &body).await;
        assert_eq!(head.header("a2ad-dialect"), Some("0.3;profile=neutral"));
        wire
    }

    #[tokio::test]
    async fn stream_begins_with_the_task_and_marks_the_final_event() {
        let server = Server::open().await;
        let client = Client { server: &server, path: "/", generation: Generation::V03 };
        let mut wire = client.stream(UserMessage::new("hi")).await;
        let first = wire.event().await.unwrap();
        let id = member(&first[first.find("\"kind\"").unwrap()..], "id");
        let rest = [
            (2, status_event("working", false)),
            (3, chunk_event("echo-result", "hi", false, true)),
            (4, status_event("completed", true)),
        ];
        let opening = task("submitted", HISTORY);
        assert_eq!(
            mask(&first),
            format!("id: 1\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{opening}}}\n\n")
        );
        assert_eq!(results(&mut wire).await, rest);

        for (seen, behind) in [(1, 0), (2, 1), (3, 2)] {
            let mut wire = follow(&server, "/", &id, &format!("\r\nlast-event-id: {seen}")).await;
            let state = if seen < 2 { "submitted" } else { "working" };
            let first = [(seen, task(state, ""))];
            assert_eq!(results(&mut wire).await, [&first[..], &rest[behind..]].concat(), "{seen}");
        }
        for more in ["", "\r\nlast-event-id: 4"] {
            let mut wire = follow(&server, "/", &id, more).await;
            assert_eq!(results(&mut wire).await, rest[2..], "{more:?}");
        }
    }

    #[tokio::test]
    async fn artifact_chunks_are_marked_append_and_last() {
        let (agent, pace) = paced();
        let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
        let client = Client { server: &server, path: "/a2a/paced", generation: Generation::V03 };
        let mut wire = client.stream(UserMessage::new("hi")).await;
        pace.add_permits(3);
        let all = results(&mut wire).await;
        let expected = [
            (3, chunk_event("words", "one", false, false)),
            (4, chunk_event("words", "two", true, false)),
            (5, chunk_event("words", "three", true, true)),
            (6, status_event("completed", true)),
        ];
        assert_eq!(all[2..], expected);
        assert_eq!(all[0], (1, task("submitted", HISTORY)));
    }

    #[tokio::test]
    async fn stream_ends_with_input_required() {
        let server = Server::open().await;
        let client = Client { server: &server, path: "/a2a/approver", generation: Generation::V03 };
        let mut wire = client.stream(UserMessage::new("jump")).await;
        let asked = results(&mut wire).await;
        let last = &asked.last().unwrap().1;
        assert!(last.contains(r#""state":"input-required""#) && last.ends_with(r#""final":true}"#), "{last}");
    }

    #[tokio::test]
    async fn bare_message_is_the_whole_stream() {
        let server = Setup { agents: vec![chats()], ..Setup::default() }.open().await;
        let client = Client { server: &server, path: "/a2a/chats", generation: Generation::V03 };
        let mut wire = client.stream(UserMessage::new("hi")).await;
        let events = results(&mut wire).await;
        assert_eq!(events.len(), 1);
        assert!(events[0].1.starts_with(r#"{"kind":"message","messageId":"UUID","#), "{events:?}");
        assert!(events[0].1.contains(r#""parts":[{"kind":"text","text":"reply to hi"}]"#), "{events:?}");
    }
}

/// Clients before 1.0 that request a stream can read an error only as an event.
#[tokio::test]
async fn error_is_an_event_for_legacy_streaming_clients() {
    let server = Server::open().await;
    let missing = request("tasks/resubscribe", r#"{"id":"x"}"#);
    let error = r#"{"code":-32001,"message":"Task not found","data":null}"#;
    let expected = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
    let ask = async |more: &str, body: &str| {
        let answer = server.exchange(&format!("POST / HTTP/1.1{more}"), body).await;
        (answer.header("content-type").unwrap().to_owned(), answer.body)
    };
    let (event, json) = ("text/event-stream".to_owned(), "application/json".to_owned());
    assert_eq!(
        ask("\r\naccept: text/event-stream", &missing).await,
        (event.clone(), format!("data: {expected}\n\n"))
    );
    assert_eq!(ask("", &missing).await, (json.clone(), expected.clone()));
    assert_eq!(ask("\r\naccept: */*", &missing).await, (json.clone(), expected.clone()));
    let both = "\r\naccept: application/json, text/event-stream";
    assert_eq!(ask(both, &missing).await, (json.clone(), expected));
    // Clients that name a version, and those of 1.0, read plain errors.
    let named = "\r\naccept: text/event-stream\r\na2a-version: 0.3";
    assert_eq!(ask(named, &missing).await.0, json);
    let v1 = request("SubscribeToTask", r#"{"id":"x"}"#);
    assert_eq!(ask("\r\naccept: text/event-stream", &v1).await.0, json);
    // Errors with an HTTP status keep it.
    let head = "POST /a2a/nobody HTTP/1.1\r\naccept: text/event-stream";
    let nobody = server.exchange(head, &missing).await;
    assert_eq!((nobody.status, nobody.header("content-type")), (404, Some("application/json")));
}

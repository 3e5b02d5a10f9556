//! Server-sent events of the draft and of 0.3, byte for byte.

use crate::common::{
    NOW, Server, Setup, Wire,
    agents::{chats, paced},
    mask, member, request,
    tongue::{Client, Tongue, Words},
};

/// The results of numbered events, in which what differs from run to run is named.
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

    /// A status of the task `mine`.
    fn told(state: &str, last: bool) -> String {
        format!(r#"{{"id":"mine",{},"final":{last}}}"#, status(state, ""))
    }

    fn piece(name: &str, text: &str, append: bool, last: bool) -> String {
        format!(
            r#"{{"id":"mine","artifact":{{"name":"{name}","parts":[{{"type":"text","text":"{text}"}}],"index":0,"append":{append},"lastChunk":{last}}}}}"#
        )
    }

    async fn ask(server: &Server, path: &str, method: &str, params: &str, more: &str) -> Wire {
        let mut wire = server.connect().await;
        wire.send(&format!("POST {path} HTTP/1.1{more}"), &request(method, params)).await;
        let head = wire.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(head.header("a2ad-dialect"), Some("draft;profile=neutral"));
        wire
    }

    const MINE: &str = r#"{"id":"mine"}"#;
    const SAID: &str = r#"{"id":"mine","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}"#;

    #[tokio::test]
    async fn a_stream_is_statuses_and_artifacts() {
        let server = Server::open().await;
        let mut wire = ask(&server, "/", "tasks/sendSubscribe", SAID, "").await;
        let whole = [
            (1, told("submitted", false)),
            (2, told("working", false)),
            (3, piece("echo-result", "hi", false, true)),
            (4, told("completed", true)),
        ];
        assert_eq!(results(&mut wire).await, whole);

        // Who was cut off gets what it missed behind the status as it was then; one who saw everything gets the end again.
        for (seen, behind) in [(0, 0), (1, 1), (2, 2), (3, 3)] {
            let more = format!("\r\nlast-event-id: {seen}");
            let mut wire = ask(&server, "/", "tasks/resubscribe", MINE, &more).await;
            let state = if seen < 2 { "submitted" } else { "working" };
            let first = [(seen, told(state, false))];
            assert_eq!(results(&mut wire).await, [&first[..], &whole[behind..]].concat(), "{seen}");
        }
        for more in ["", "\r\nlast-event-id: 4", "\r\nlast-event-id: 99", "\r\nlast-event-id: what"] {
            let mut wire = ask(&server, "/", "tasks/resubscribe", MINE, more).await;
            assert_eq!(results(&mut wire).await, whole[3..], "{more:?}");
        }
    }

    #[tokio::test]
    async fn pieces_of_an_artifact_have_one_index() {
        let (agent, pace) = paced();
        let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
        let path = "/a2a/paced";
        let mut first = ask(&server, path, "tasks/sendSubscribe", SAID, "").await;
        for _ in 0..2 {
            first.event().await.unwrap();
        }
        pace.add_permits(1);
        first.event().await.unwrap();
        // One who comes now is shown what there is as a piece that more may follow.
        let mut second = ask(&server, path, "tasks/resubscribe", MINE, "").await;
        let opening = [told("working", false), piece("words", "one", false, false)];
        for expected in opening {
            let event = second.event().await.unwrap();
            assert_eq!(
                event,
                format!("id: 3\ndata: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{expected}}}\n\n")
            );
        }
        // One who knows the first piece is not shown it again, and the index of the next is still its own.
        let mut third = ask(&server, path, "tasks/resubscribe", MINE, "\r\nlast-event-id: 3").await;
        third.event().await.unwrap();
        pace.add_permits(2);
        let rest = [
            (4, piece("words", "two", true, false)),
            (5, piece("words", "three", true, true)),
            (6, told("completed", true)),
        ];
        for wire in [&mut first, &mut second, &mut third] {
            assert_eq!(results(wire).await, rest);
        }
    }

    #[tokio::test]
    async fn a_question_ends_the_stream_and_the_answer_begins_another() {
        let server = Server::open().await;
        let path = "/a2a/approver";
        let mut wire = ask(&server, path, "tasks/sendSubscribe", &SAID.replace("hi", "jump"), "").await;
        let asked = results(&mut wire).await;
        let last = &asked.last().unwrap().1;
        assert!(
            last.starts_with(r#"{"id":"mine","status":{"state":"input-required","message":{"role":"agent""#),
            "{last}"
        );
        assert!(last.ends_with(r#""final":true}"#), "{last}");
        assert!(asked[..asked.len() - 1].iter().all(|(_, told)| told.ends_with(r#""final":false}"#)));
        let mut wire = ask(&server, path, "tasks/sendSubscribe", &SAID.replace("hi", "approve"), "").await;
        let done = results(&mut wire).await;
        assert_eq!(done[0], (4, told("working", false)));
        assert_eq!(done[1], (5, piece("approval", "Approved: jump", false, true)));
        assert!(done[2].1.contains(r#""state":"completed""#) && done[2].1.ends_with(r#""final":true}"#));
        assert_eq!(done.len(), 3);
    }

    #[tokio::test]
    async fn a_bare_message_is_the_last_word_of_a_completed_task() {
        let server = Setup { agents: vec![chats()], ..Setup::default() }.open().await;
        let path = "/a2a/chats";
        let mut wire = ask(&server, path, "tasks/sendSubscribe", SAID, "").await;
        let told = results(&mut wire).await;
        let last = &told.last().unwrap().1;
        assert!(last.contains(r#""state":"completed""#) && last.contains("you said hi"), "{last}");
        assert!(last.contains(r#""final":true"#), "{last}");
        // The task is there to be read, with the message as its result.
        let got = server.post(path, &request("tasks/get", MINE)).await.body;
        let result = r#""artifacts":[{"#;
        assert!(got.contains(result) && got.contains(r#"{"type":"text","text":"you said hi"}"#), "{got}");
    }

    #[tokio::test]
    async fn ids_that_clients_choose_may_be_anything() {
        let server = Server::open().await;
        for id in ["a:b", "a/b", "%2F", "ü ☃", "task_", "129", r#"\"quoted\""#] {
            let params = SAID.replace("mine", id);
            let mut wire = ask(&server, "/", "tasks/sendSubscribe", &params, "").await;
            let told = results(&mut wire).await;
            assert!(told.iter().all(|(_, told)| told.starts_with(&format!(r#"{{"id":"{id}","#))), "{told:?}");
            let got = server.post("/", &request("tasks/get", &format!(r#"{{"id":"{id}"}}"#))).await.body;
            assert!(got.contains(&format!(r#""result":{{"id":"{id}","#)), "{got}");
        }
    }
}

mod v03 {
    use super::*;

    fn told(state: &str, last: bool) -> String {
        let status = status(state, "");
        format!(r#"{{"kind":"status-update","taskId":"TASK","contextId":"CTX",{status},"final":{last}}}"#)
    }

    fn piece(name: &str, text: &str, append: bool, last: bool) -> String {
        format!(
            r#"{{"kind":"artifact-update","taskId":"TASK","contextId":"CTX","append":{append},"lastChunk":{last},"artifact":{{"artifactId":"{name}","name":"{name}","parts":[{{"kind":"text","text":"{text}"}}]}}}}"#
        )
    }

    fn task(state: &str, more: &str) -> String {
        format!(r#"{{"kind":"task","id":"TASK","contextId":"CTX",{}{more}}}"#, status(state, ""))
    }

    const HISTORY: &str = r#","history":[{"kind":"message","messageId":"m","contextId":"CTX","taskId":"TASK","role":"user","parts":[{"kind":"text","text":"hi"}]}]"#;

    async fn follow(server: &Server, path: &str, id: &str, more: &str) -> Wire {
        let mut wire = server.connect().await;
        let body = request("tasks/resubscribe", &format!(r#"{{"id":"{id}"}}"#));
        wire.send(&format!("POST {path} HTTP/1.1{more}"), &body).await;
        let head = wire.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(head.header("a2ad-dialect"), Some("v03;profile=neutral"));
        wire
    }

    #[tokio::test]
    async fn a_stream_begins_with_the_task_and_says_when_it_ends() {
        let server = Server::open().await;
        let client = Client { server: &server, path: "/", tongue: Tongue::V03 };
        let mut wire = client.stream(Words::new("hi")).await;
        let first = wire.event().await.unwrap();
        let id = member(&first[first.find("\"kind\"").unwrap()..], "id");
        let rest = [
            (2, told("working", false)),
            (3, piece("echo-result", "hi", false, true)),
            (4, told("completed", true)),
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
    async fn pieces_of_an_artifact_say_whether_they_are_added_and_the_last() {
        let (agent, pace) = paced();
        let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
        let client = Client { server: &server, path: "/a2a/paced", tongue: Tongue::V03 };
        let mut wire = client.stream(Words::new("hi")).await;
        pace.add_permits(3);
        let all = results(&mut wire).await;
        let expected = [
            (3, piece("words", "one", false, false)),
            (4, piece("words", "two", true, false)),
            (5, piece("words", "three", true, true)),
            (6, told("completed", true)),
        ];
        assert_eq!(all[2..], expected);
        assert_eq!(all[0], (1, task("submitted", HISTORY)));
    }

    #[tokio::test]
    async fn one_who_waits_for_a_question_sees_the_stream_end_with_it() {
        let server = Server::open().await;
        let client = Client { server: &server, path: "/a2a/approver", tongue: Tongue::V03 };
        let mut wire = client.stream(Words::new("jump")).await;
        let asked = results(&mut wire).await;
        let last = &asked.last().unwrap().1;
        assert!(last.contains(r#""state":"input-required""#) && last.ends_with(r#""final":true}"#), "{last}");
    }

    #[tokio::test]
    async fn a_bare_message_is_the_whole_stream() {
        let server = Setup { agents: vec![chats()], ..Setup::default() }.open().await;
        let client = Client { server: &server, path: "/a2a/chats", tongue: Tongue::V03 };
        let mut wire = client.stream(Words::new("hi")).await;
        let told = results(&mut wire).await;
        assert_eq!(told.len(), 1);
        assert!(told[0].1.starts_with(r#"{"kind":"message","messageId":"UUID","#), "{told:?}");
        assert!(told[0].1.contains(r#""parts":[{"kind":"text","text":"you said hi"}]"#), "{told:?}");
    }
}

/// Clients before 1.0 that ask for events read a refusal only as one.
#[tokio::test]
async fn a_refusal_is_an_event_where_its_reader_asked_for_nothing_else() {
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
    // Whoever names a version, or speaks 1.0, reads every answer.
    let named = "\r\naccept: text/event-stream\r\na2a-version: 0.3";
    assert_eq!(ask(named, &missing).await.0, json);
    let v1 = request("SubscribeToTask", r#"{"id":"x"}"#);
    assert_eq!(ask("\r\naccept: text/event-stream", &v1).await.0, json);
    // What HTTP has a status for keeps it.
    let head = "POST /a2a/nobody HTTP/1.1\r\naccept: text/event-stream";
    let nobody = server.exchange(head, &missing).await;
    assert_eq!((nobody.status, nobody.header("content-type")), (404, Some("application/json")));
}

/// Where nobody says which version is meant, a stream is in the generation its task was made in.
#[tokio::test]
async fn a_stream_that_is_taken_up_without_a_version_is_in_the_generation_of_its_task() {
    let server = Server::open().await;
    for (tongue, label) in [(Tongue::Draft, "draft"), (Tongue::V03, "v03"), (Tongue::V1, "v03")] {
        let client = Client { server: &server, path: "/", tongue };
        let id = client.send(Words::new("hi")).await.id;
        let mut wire = server.connect().await;
        let body = request("tasks/resubscribe", &format!(r#"{{"id":"{id}"}}"#));
        wire.send("POST / HTTP/1.1\r\nlast-event-id: 2", &body).await;
        let head = wire.head().await;
        assert_eq!(
            head.header("a2ad-dialect"),
            Some(format!("{label};profile=neutral").as_str()),
            "{tongue:?}"
        );
        let numbers: Vec<u64> = results(&mut wire).await.into_iter().map(|(number, _)| number).collect();
        assert_eq!(numbers, [2, 3, 4], "{tongue:?}");
    }
}

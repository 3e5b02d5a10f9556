//! The methods of the draft and of 0.3, with their complete responses.

use crate::common::{Answer, NOW, Server, Setup, agents::chats, mask, member, request};

async fn call(server: &Server, path: &str, method: &str, params: &str) -> Answer {
    server.post(path, &request(method, params)).await
}

fn result(answer: &Answer) -> String {
    let (_, rest) = answer.body.split_once(r#""result":"#).unwrap_or_else(|| panic!("{}", answer.body));
    mask(rest.strip_suffix('}').unwrap())
}

/// Number of messages in a response.
fn shown(answer: &Answer) -> usize {
    assert!(answer.body.contains("\"result\""), "{}", answer.body);
    answer.body.split_once(r#""history":"#).map_or(0, |(_, history)| history.matches(r#""role""#).count())
}

#[tokio::test]
async fn draft_task_lifecycle() {
    let server = Server::open().await;
    let params = r#"{"id":"mine","sessionId":"talk","message":{"role":"user","parts":[{"type":"text","text":"hi"}]},"acceptedOutputModes":["text"]}"#;
    let sent = call(&server, "/", "tasks/send", params).await;
    let artifact = r#"{"name":"echo-result","parts":[{"type":"text","text":"hi"}],"index":0}"#;
    let status = format!(r#"{{"state":"completed","timestamp":"{NOW}"}}"#);
    let task = format!(
        r#"{{"id":"mine","sessionId":"talk","status":{status},"artifacts":[{artifact}],"history":[]}}"#
    );
    assert_eq!((sent.status, result(&sent)), (200, task.clone()));
    let got = call(&server, "/", "tasks/get", r#"{"id":"mine"}"#).await;
    assert_eq!(result(&got), task);

    // The same text again is the same message; another text reopens the task.
    let again = call(&server, "/", "tasks/send", params).await;
    assert_eq!((again.header("a2ad-replayed"), result(&again)), (Some("true"), task));
    let more = params.replace("hi", "ho").replace(r#""acceptedOutputModes""#, r#""historyLength":9,"x""#);
    let more = call(&server, "/", "tasks/send", &more).await;
    assert_eq!((more.header("a2ad-replayed"), shown(&more)), (None, 2));
    // Earlier artifacts stay, and the new turn adds its own.
    let second = artifact.replace("hi", "ho").replace(r#""index":0"#, r#""index":1"#);
    assert!(more.body.contains(&format!(r#""artifacts":[{artifact},{second}]"#)), "{}", more.body);
    // Its session id is its own.
    let elsewhere = params.replace("talk", "walk").replace("hi", "he");
    let refused = call(&server, "/", "tasks/send", &elsewhere).await;
    assert!(refused.body.contains(r#""code":-32602"#), "{}", refused.body);
    let nameless = r#"{"id":"other","message":{"parts":[{"text":"hi"}]}}"#;
    let begun = call(&server, "/", "tasks/send", nameless).await;
    assert_eq!(mask(&member(&begun.body, "sessionId")), "CTX");
}

#[tokio::test]
async fn v03_task_lifecycle() {
    let server = Server::open().await;
    let message =
        r#"{"kind":"message","messageId":"m-1","role":"user","parts":[{"kind":"text","text":"hi"}]"#;
    let sent = call(&server, "/", "message/send", &format!(r#"{{"message":{message}}}}}"#)).await;
    let stamped = message.replace(r#""role""#, r#""contextId":"CTX","taskId":"TASK","role""#);
    let artifact =
        r#"{"artifactId":"echo-result","name":"echo-result","parts":[{"kind":"text","text":"hi"}]}"#;
    let status = format!(r#"{{"state":"completed","timestamp":"{NOW}"}}"#);
    let task = |artifacts: &str| {
        format!(
            r#"{{"kind":"task","id":"TASK","contextId":"CTX","status":{status}{artifacts},"history":[{stamped}}}]}}"#
        )
    };
    let whole = task(&format!(r#","artifacts":[{artifact}]"#));
    assert_eq!((sent.status, result(&sent)), (200, whole.clone()));
    let about = format!(r#"{{"id":"{}"}}"#, member(&sent.body[30..], "id"));
    assert_eq!(result(&call(&server, "/", "tasks/get", &about).await), whole);
    let listed = call(&server, "/", "tasks/list", "{}").await;
    let page = |task: &str| format!(r#"{{"tasks":[{task}],"nextPageToken":"","pageSize":50,"totalSize":1}}"#);
    assert_eq!(result(&listed), page(&task("")));
    let listed = call(&server, "/", "tasks/list", r#"{"includeArtifacts":true,"status":"completed"}"#).await;
    assert_eq!(result(&listed), page(&whole));
}

#[tokio::test]
async fn history_length_limits_the_history() {
    let server = Server::open().await;
    let (draft, v03) = ("tasks/send", "message/send");
    // The requested length, and how many of two messages it returns in the draft and in 0.3.
    let cases = [(None, 0, 2), (Some("null"), 0, 2), (Some("0"), 0, 2), (Some("1"), 1, 1), (Some("9"), 2, 2)];
    for (at, (length, in_draft, in_v03)) in cases.into_iter().enumerate() {
        let length = length.map_or(String::new(), |length| format!(r#","historyLength":{length}"#));
        let params =
            format!(r#"{{"id":"{at}","message":{{"role":"user","parts":[{{"text":"jump"}}]}}{length}}}"#);
        let sent = call(&server, "/a2a/approver", draft, &params).await;
        assert_eq!(shown(&sent), in_draft, "{length}: {}", sent.body);
        let got = call(&server, "/a2a/approver", "tasks/get", &format!(r#"{{"id":"{at}"{length}}}"#)).await;
        assert_eq!(shown(&got), in_draft, "{length}: {}", got.body);

        let message = r#"{"messageId":"m","role":"user","parts":[{"text":"jump"}]}"#;
        let configuration = format!(r#"{{{}}}"#, length.trim_start_matches(','));
        let params = format!(r#"{{"message":{message},"configuration":{configuration}}}"#);
        let sent = call(&server, "/a2a/approver", v03, &params).await;
        assert_eq!(shown(&sent), in_v03, "{length}: {}", sent.body);
        let id = member(&sent.body[30..], "id");
        let got = call(&server, "/a2a/approver", "tasks/get", &format!(r#"{{"id":"{id}"{length}}}"#)).await;
        assert_eq!(shown(&got), in_v03, "{length}: {}", got.body);
    }
    for (method, params) in [
        (draft, r#"{"id":"x","message":{"parts":[{"text":"a"}]},"historyLength":-1}"#),
        ("tasks/get", r#"{"id":"x","historyLength":-1}"#),
        (
            v03,
            r#"{"message":{"messageId":"m","role":"user","parts":[{"text":"a"}]},"configuration":{"historyLength":-1}}"#,
        ),
    ] {
        let refused = call(&server, "/", method, params).await;
        assert!(
            refused.body.contains(r#""code":-32602"#) && refused.body.contains("historyLength"),
            "{}",
            refused.body
        );
    }
}

#[tokio::test]
async fn parts_are_returned_in_the_generation_of_the_request() {
    let server = Server::open().await;
    let tagged = |tag: &str| {
        format!(
            r#"[{{"{tag}":"text","text":"tab\t\u0001 \"ü\""}},{{"{tag}":"file","file":{{"name":"a.bin","mimeType":"application/x","bytes":"AAEC"}}}},{{"{tag}":"file","file":{{"uri":"https://example.test/x"}}}},{{"{tag}":"data","data":{{"n":9007199254740993,"x":1.0}}}}]"#
        )
    };
    let v1 = r#"[{"text":"tab\t\u0001 \"ü\""},{"raw":"AAEC","filename":"a.bin","mediaType":"application/x"},{"url":"https://example.test/x"},{"data":{"n":9007199254740993,"x":1.0}}]"#;
    let sends = [
        ("tasks/send", format!(r#"{{"id":"a","message":{{"role":"user","parts":{}}}}}"#, tagged("type"))),
        ("tasks/send", format!(r#"{{"id":"b","message":{{"role":"user","parts":{}}}}}"#, tagged("kind"))),
        (
            "message/send",
            format!(r#"{{"message":{{"messageId":"m","role":"user","parts":{}}}}}"#, tagged("kind")),
        ),
        (
            "message/send",
            format!(r#"{{"message":{{"messageId":"m","role":"user","parts":{}}}}}"#, tagged("type")),
        ),
        ("SendMessage", format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":{v1}}}}}"#)),
    ];
    for (method, params) in sends {
        let sent = call(&server, "/", method, &params).await;
        let id = member(
            &sent.body[sent.body.find("\"result\"").unwrap_or_else(|| panic!("{}", sent.body))..],
            "id",
        );
        let about = format!(r#"{{"id":"{id}"}}"#);
        for (version, ask, parts) in [
            ("0.1", "tasks/get", tagged("type")),
            ("0.3", "tasks/get", tagged("kind")),
            ("1.0", "GetTask", v1.to_owned()),
        ] {
            let head = format!("POST / HTTP/1.1\r\na2a-version: {version}");
            let got = server.exchange(&head, &request(ask, &about)).await.body;
            assert!(got.contains(&format!(r#""parts":{parts}"#)), "{method}, then {version}: {got}");
        }
    }
}

#[tokio::test]
async fn unknown_skill_is_an_invalid_parameter() {
    let server = Server::open().await;
    let draft = r#"{"id":"x","message":{"parts":[{"text":"a"}]},"#;
    let v03 = r#"{"message":{"messageId":"m","role":"user","parts":[{"text":"a"}]},"#;
    for (method, params, place, field) in [
        ("tasks/send", draft, r#""skill":"fly"}"#, "skill"),
        ("tasks/send", draft, r#""metadata":{"skillId":"fly"}}"#, "metadata.skillId"),
        ("message/send", v03, r#""skill":"fly"}"#, "configuration.skillId"),
        ("message/send", v03, r#""configuration":{"skillId":"fly"}}"#, "configuration.skillId"),
        ("message/send", v03, r#""metadata":{"skillId":"fly"}}"#, "metadata.skillId"),
    ] {
        let refused = call(&server, "/", method, &format!("{params}{place}")).await.body;
        assert!(
            refused.contains(r#""code":-32602,"message":"Invalid parameters""#),
            "{method} {place}: {refused}"
        );
        assert!(refused.contains(&format!(r#""field":"{field}""#)), "{method} {place}: {refused}");
        let known = call(&server, "/", method, &format!("{params}{}", place.replace("fly", "echo"))).await;
        assert!(known.body.contains("\"result\""), "{method} {place}: {}", known.body);
    }
}

#[tokio::test]
async fn push_config_in_a_send_is_rejected() {
    let server = Server::open().await;
    let draft = r#"{"id":"x","message":{"parts":[{"text":"a"}]},"pushNotification":{"url":"http://x/"}}"#;
    let refused = call(&server, "/", "tasks/send", draft).await.body;
    let error = r#"{"code":-32003,"message":"Push Notification is not supported","data":null}"#;
    assert!(refused.contains(error), "{refused}");
    let v03 = r#"{"message":{"messageId":"m","role":"user","parts":[{"text":"a"}]},"configuration":{"pushNotificationConfig":{"url":"http://x/"}}}"#;
    let refused = call(&server, "/", "message/send", v03).await.body;
    assert!(
        refused.contains(r#"{"code":-32003,"message":"Push Notification is not supported"}"#),
        "{refused}"
    );
}

#[tokio::test]
async fn bare_message_is_a_task_in_the_draft() {
    let server = Setup { agents: vec![chats()], ..Setup::default() }.open().await;
    let path = "/a2a/chats";
    let v03 = r#"{"message":{"messageId":"m","role":"user","parts":[{"text":"hi"}]}}"#;
    let answer = call(&server, path, "message/send", v03).await;
    assert!(
        result(&answer).starts_with(r#"{"kind":"message","messageId":"UUID","contextId":"CTX","#),
        "{}",
        answer.body
    );
    let draft = r#"{"id":"mine","message":{"parts":[{"text":"hi"}]}}"#;
    let answer = call(&server, path, "tasks/send", draft).await;
    assert_eq!(
        (member(&answer.body, "id"), member(&answer.body, "state")),
        ("mine".into(), "completed".into())
    );
    assert!(answer.body.contains(r#""artifacts":[{"#), "{}", answer.body);
    // The task is stored.
    let got = call(&server, path, "tasks/get", r#"{"id":"mine"}"#).await;
    assert_eq!(result(&got), result(&answer));
}

/// Each "maybe" answers another question of the agent, so none is taken for a retry.
#[tokio::test]
async fn same_answer_to_another_question_is_a_new_message_in_the_draft() {
    let server = Server::open().await;
    let send = async |text: &str| {
        let message = format!(r#"{{"role":"user","parts":[{{"type":"text","text":"{text}"}}]}}"#);
        let params = format!(r#"{{"id":"t-1","message":{message}}}"#);
        server.post("/a2a/approver", &request("tasks/send", &params)).await
    };
    for text in ["pay 5 EUR", "maybe", "maybe", "maybe"] {
        let answer = send(text).await;
        assert!(answer.body.contains(r#""state":"input-required""#), "{text}: {}", answer.body);
        assert_eq!(answer.header("a2ad-replayed"), None, "{text}");
    }
    let answer = send("yes").await;
    assert!(answer.body.contains(r#""state":"completed""#), "{}", answer.body);
    assert_eq!(send("yes").await.header("a2ad-replayed"), Some("true"));
}

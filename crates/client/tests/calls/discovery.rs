//! Discovery: from a URL to the selected endpoint.

use a2ad_client::{Client, ClientOptions, Error, call_agent, find_card};
use http::HeaderValue;
use protocol::{CancelTask, Dialect};

use crate::{
    error_of, result,
    scripted_agent::{Response, ScriptedAgent, json, response},
    send,
};

const TASK: &str = r#"{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"}}"#;
const OLD_TASK: &str = r#"{"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"completed"}}"#;
const UNKNOWN_METHOD: &str =
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}"#;

fn missing() -> Response {
    response("404 Not Found", "text/plain", "nothing here")
}

fn card(interfaces: &str) -> Response {
    json(&format!(r#"{{"name":"a","supportedInterfaces":[{interfaces}]}}"#))
}

fn interface(url: &str, version: &str) -> String {
    format!(r#"{{"url":"{url}","protocolBinding":"JSONRPC","protocolVersion":"{version}"}}"#)
}

#[tokio::test]
async fn newest_interface_of_the_card_is_called() {
    let agent = ScriptedAgent::start(|url| {
        let interfaces = format!(
            r#"{{"url":"{url}/rest","protocolBinding":"HTTP+JSON","protocolVersion":"1.0"}},
                {{"url":"{url}/v03","protocolBinding":"JSONRPC","protocolVersion":"0.3"}},
                {{"url":"{url}/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":"acme"}}"#
        );
        vec![card(&interfaces), json(&result(TASK)), json(&result(TASK))]
    });
    let client = Client::discover(&agent.url("/agents/a/")).await.unwrap();
    client.get_task("t-1").await.unwrap();
    let named = CancelTask { id: "t-1".into(), metadata: None, tenant: Some("other".to_owned()) };
    client.cancel(named).await.unwrap();

    let requests = agent.requests();
    assert_eq!(requests[0].line, "GET /agents/a/.well-known/agent-card.json HTTP/1.1");
    assert_eq!(requests[0].header("a2a-version"), Some("1.0"));
    assert_eq!(requests[1].line, "POST /rpc HTTP/1.1");
    assert!(requests[1].body.ends_with(r#""params":{"tenant":"acme","id":"t-1"}}"#), "{}", requests[1].body);
    assert!(requests[2].body.ends_with(r#""params":{"tenant":"other","id":"t-1"}}"#), "{}", requests[2].body);
}

#[tokio::test]
async fn older_card_is_found_at_its_older_path() {
    let agent = ScriptedAgent::start(|url| {
        let old = format!(
            r#"{{"name":"a","url":"{url}/old","protocolVersion":"0.2.9","skills":null,"capabilities":{{}},
                "defaultInputModes":null,"additionalInterfaces":null}}"#
        );
        vec![missing(), json(&old), json(&result(OLD_TASK))]
    });
    let client = Client::discover(&agent.url("")).await.unwrap();
    assert_eq!(client.dialect(), Dialect::V03);
    client.get_task("t-1").await.unwrap();
    let requests = agent.requests();
    assert_eq!(requests[1].line, "GET /.well-known/agent.json HTTP/1.1");
    assert_eq!(requests[2].line, "POST /old HTTP/1.1");
    assert_eq!(requests[2].header("a2a-version"), Some("0.3"));
    assert!(requests[2].body.contains(r#""method":"tasks/get""#));
}

#[tokio::test]
async fn card_url_is_accepted_and_endpoint_may_be_relative() {
    let agent = ScriptedAgent::start(|_| {
        let relative = || card(&interface("/rpc", "1.0"));
        vec![relative(), json(&result(TASK)), missing(), missing(), relative(), json(&result(TASK))]
    });
    let client = Client::discover(&agent.url("/cards/a.json")).await.unwrap();
    client.get_task("t-1").await.unwrap();
    let client = Client::discover(&agent.url("/cards/a")).await.unwrap();
    client.get_task("t-1").await.unwrap();
    let lines: Vec<String> = agent.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(lines[0], "GET /cards/a.json HTTP/1.1");
    assert_eq!(lines[4], "GET /cards/a HTTP/1.1");
    assert_eq!((&lines[1], &lines[5]), (&lines[1], &lines[1]));
    assert_eq!(lines[1], "POST /rpc HTTP/1.1");
}

#[tokio::test]
async fn ambiguous_card_is_tried_in_both_old_generations() {
    for (locations, first, second) in [(1, "message/send", "tasks/send"), (2, "tasks/send", "message/send")] {
        let agent = ScriptedAgent::start(|url| {
            let ambiguous = json(&format!(r#"{{"name":"a","url":"{url}/"}}"#));
            let mut responses = vec![missing(), ambiguous];
            let sent = json(&result(OLD_TASK));
            responses.extend([json(UNKNOWN_METHOD), sent, json(&result(OLD_TASK))]);
            responses.split_off(2 - locations)
        });
        let client = Client::discover(&agent.url("")).await.unwrap();
        client.send(send()).await.unwrap();
        client.get_task("t-1").await.unwrap();
        let requests = agent.requests();
        for (request, method) in requests[locations..].iter().zip([first, second, "tasks/get"]) {
            assert!(request.body.contains(&format!(r#""method":"{method}""#)), "{}", request.body);
        }
        assert_eq!(
            requests[locations + 1].header("a2a-version"),
            requests[locations + 2].header("a2a-version")
        );
    }
}

#[tokio::test]
async fn method_unknown_in_both_dialects_does_not_confirm_one() {
    let agent = ScriptedAgent::start(|url| {
        let ambiguous = json(&format!(r#"{{"name":"a","url":"{url}/"}}"#));
        let unknown = || json(UNKNOWN_METHOD);
        vec![ambiguous, unknown(), unknown(), json(&result(OLD_TASK)), unknown()]
    });
    let client = Client::discover(&agent.url("")).await.unwrap();
    // The agent supports streaming in neither generation.
    error_of(client.stream(send()).await);
    client.send(send()).await.unwrap();
    // The send has confirmed the dialect.
    error_of(client.stream(send()).await);
    let methods = ["message/stream", "tasks/sendSubscribe", "message/send", "message/stream"];
    let requests = agent.requests();
    assert_eq!(requests.len(), 1 + methods.len());
    for (request, method) in requests[1..].iter().zip(methods) {
        assert!(request.body.contains(&format!(r#""method":"{method}""#)), "{}", request.body);
    }
}

#[tokio::test]
async fn method_shared_by_both_dialects_does_not_confirm_one() {
    let agent = ScriptedAgent::start(|url| {
        let ambiguous = json(&format!(r#"{{"name":"a","url":"{url}/"}}"#));
        let task = || json(&result(OLD_TASK));
        vec![missing(), ambiguous, task(), json(UNKNOWN_METHOD), task()]
    });
    let client = Client::discover(&agent.url("")).await.unwrap();
    client.get_task("t-1").await.unwrap();
    client.send(send()).await.unwrap();
    let requests = agent.requests();
    for (request, method) in requests[2..].iter().zip(["tasks/get", "tasks/send", "message/send"]) {
        assert!(request.body.contains(&format!(r#""method":"{method}""#)), "{}", request.body);
    }
}

#[tokio::test]
async fn endpoint_without_a_card_uses_the_given_dialect() {
    for (dialect, method) in [(Dialect::V1, "GetTask"), (Dialect::V03, "tasks/get")] {
        let body = if dialect == Dialect::V1 { TASK } else { OLD_TASK };
        let agent = ScriptedAgent::start(|_| vec![missing(), missing(), missing(), json(&result(body))]);
        let options = ClientOptions::default().with_dialect(dialect);
        let (client, found) = Client::discover_or_connect(&agent.url("/rpc"), options).await.unwrap();
        assert!(found.is_none());
        client.get_task("t-1").await.unwrap();
        let last = agent.requests().pop().unwrap();
        assert_eq!(last.line, "POST /rpc HTTP/1.1");
        assert!(last.body.contains(&format!(r#""method":"{method}""#)), "{}", last.body);
    }
}

#[tokio::test]
async fn credentials_are_not_sent_to_another_origin() {
    let agent = ScriptedAgent::start(|_| vec![card(&interface("http://127.0.0.1:1/rpc", "1.0"))]);
    let mut options = ClientOptions::default();
    let plain = options.clone();
    options.headers.insert("authorization", HeaderValue::from_static("Bearer s3cret"));
    let found = find_card(&agent.url(""), &options).await.unwrap();
    assert_eq!(found.endpoint_on_other_origin(&options).unwrap().as_deref(), Some("http://127.0.0.1:1/rpc"));
    assert!(matches!(error_of(found.client(options)), Error::OtherOrigin { .. }));
    assert_eq!(found.client(plain).unwrap().endpoint(), "http://127.0.0.1:1/rpc");
    assert_eq!(agent.requests()[0].header("authorization"), Some("Bearer s3cret"));
}

#[tokio::test]
async fn discovery_errors_name_the_reason() {
    let cases: [(Vec<Response>, &str); 7] = [
        (vec![missing(), missing(), missing()], "there is no agent card at http://127.0.0.1"),
        (vec![response("401 Unauthorized", "text/plain", "who?")], "HTTP status 401"),
        (vec![response("500 Oops", "text/plain", "")], "HTTP status 500"),
        (vec![json("<html>")], "expected a card in JSON"),
        (vec![json("[]")], "expected an object"),
        (vec![json(r#"{"name":"a","supportedInterfaces":[]}"#)], "at least one interface"),
        (vec![card(&interface("http://new.example", "2.0"))], "only JSONRPC 2.0"),
    ];
    for (responses, expected) in cases {
        let agent = ScriptedAgent::start(|_| responses);
        let error = error_of(Client::discover(&agent.url("")).await).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn call_agent_returns_the_text_of_the_result() {
    let working = TASK.replace("COMPLETED", "WORKING");
    let done = r#"{"id":"t-1","status":{"state":"TASK_STATE_COMPLETED"},"artifacts":[
        {"artifactId":"a","parts":[{"text":"forty"},{"text":"-two"}]},{"artifactId":"b","parts":[{"data":[1]}]}]}"#;
    let agent = ScriptedAgent::start(|url| {
        vec![
            card(&interface(url, "1.0")),
            json(&result(&format!(r#"{{"task":{working}}}"#))),
            response("503 Service Unavailable", "text/plain", ""),
            json(&result(&working)),
            json(&result(done)),
        ]
    });
    assert_eq!(call_agent(&agent.url(""), "what is it?").await.unwrap(), "forty-two\n[1]\n");

    let failed = r#"{"task":{"id":"t","status":{"state":"TASK_STATE_FAILED",
        "message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"no luck"}]}}}}"#;
    let agent = ScriptedAgent::start(|url| vec![card(&interface(url, "1.0")), json(&result(failed))]);
    let error = call_agent(&agent.url(""), "what is it?").await.unwrap_err();
    assert!(error.to_string().contains("no luck"), "{error}");
}

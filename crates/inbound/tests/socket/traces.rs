//! W3C Trace Context: a run belongs to the trace of its call, in every binding.

use engine::{Limits, Outcome, RegisteredAgent};
use protocol::{Operation, grpc::Service};

use crate::common::{Server, Setup, agents, channel::Channel, member, request, send_params, with_timeout};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Replies with the trace context of its run.
fn traced() -> RegisteredAgent {
    agents::of_turn("traced", async |turn| {
        let trace = turn.trace_context();
        Outcome::message(format!("{trace} {}", trace.state().unwrap_or("none")))
    })
}

async fn open() -> Server {
    Setup { agents: vec![traced()], ..Setup::default() }.open().await
}

/// The trace context of the run that a call with these headers causes.
async fn run_with(server: &Server, headers: &str) -> (String, String) {
    let head = format!("POST /a2a/traced HTTP/1.1\r\na2a-version: 1.0{headers}");
    let answer = server.exchange(&head, &request("SendMessage", &send_params("hello", ""))).await;
    let text = member(&answer.body, "text");
    let (context, state) = text.split_once(' ').unwrap();
    (context.to_owned(), state.to_owned())
}

#[tokio::test]
async fn a_run_continues_the_trace_of_its_call() {
    let server = open().await;
    let (context, state) =
        run_with(&server, &format!("\r\ntraceparent: {PARENT}\r\ntracestate: a=1\r\ntracestate: b=2")).await;
    assert_eq!((context.len(), &context[..36]), (55, format!("00-{TRACE}-").as_str()));
    assert_ne!(&context[36..52], "00f067aa0ba902b7", "the run is a span of its own");
    assert_eq!((&context[52..], state.as_str()), ("-01", "a=1,b=2"));
    let (context, _) = run_with(&server, &format!("\r\ntraceparent: {}", PARENT.replace("-01", "-00"))).await;
    assert_eq!(&context[52..], "-00", "whether a trace is recorded is the caller's decision");
}

#[tokio::test]
async fn a_call_without_a_valid_trace_begins_one() {
    let server = open().await;
    let twice = format!("\r\ntraceparent: {PARENT}\r\ntraceparent: {PARENT}");
    let upper = format!("\r\ntraceparent: {}", PARENT.to_uppercase());
    for headers in ["", "\r\ntraceparent: x", &upper, &twice, "\r\ntracestate: a=1"] {
        let (context, state) = run_with(&server, headers).await;
        assert_ne!(&context[3..35], TRACE, "{headers}");
        assert_eq!((context.len(), &context[52..], state.as_str()), (55, "-01", "none"), "{headers}");
    }
}

#[tokio::test]
async fn other_bindings_continue_traces_too() {
    let server = open().await;
    let headers = format!("traceparent: {PARENT}\r\ncontent-type");
    for (path, kind, body) in [
        ("/a2a/traced", "text/plain", "hello".to_owned()),
        ("/a2a/traced/message:send", "application/json", send_params("hello", "")),
        ("/a2a/traced/run/traced", "application/json", r#"{"message":"hello"}"#.to_owned()),
    ] {
        let head = format!("POST {path} HTTP/1.1\r\na2a-version: 1.0\r\n{headers}: {kind}");
        let answer = server.exchange(&head, &body).await;
        assert!(answer.body.contains(&format!("00-{TRACE}-")), "{path}: {answer:?}");
    }
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn the_trace_in_meta_of_mcp_takes_precedence_over_the_header() {
    let server = open().await;
    let other = PARENT.replace("4bf9", "5bf9");
    let meta = format!(
        r#"{{"traceparent":"{PARENT}","tracestate":"a=1","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"t","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#
    );
    let params = format!(r#"{{"name":"traced","arguments":{{"message":"x"}},"_meta":{meta}}}"#);
    let head = format!(
        "POST /a2a/traced/mcp HTTP/1.1\r\ntraceparent: {other}\r\ncontent-type: application/json\r\naccept: \
         application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: traced"
    );
    let answer = server.exchange(&head, &request("tools/call", &params)).await;
    assert!(answer.body.contains(&format!("00-{TRACE}-")), "{answer:?}");
    assert!(answer.body.contains(" a=1"), "{answer:?}");
}

#[tokio::test]
async fn grpc_continues_the_trace_in_its_metadata() {
    let server = open().await;
    let channel = Channel::open(&server).await;
    let metadata = [("traceparent", PARENT), ("tracestate", "a=1"), ("a2a-agent", "traced")];
    for service in Service::ALL {
        let message = protocol::Message::new("m", protocol::Role::User, vec![protocol::Part::text("hello")]);
        let send = Operation::SendMessage(protocol::SendMessage::new(message));
        let answer = channel.call(service, &send, &metadata).await;
        assert_eq!(answer.status.code, 0, "{answer:?}");
        let reply = String::from_utf8_lossy(&answer.messages.concat()).into_owned();
        assert!(reply.contains(&format!("00-{TRACE}-")) && reply.contains(" a=1"), "{service:?}: {reply}");
        assert!(!reply.contains("00f067aa0ba902b7"), "the run is a span of its own: {reply}");
    }
}

#[tokio::test]
async fn a_run_that_waited_for_a_slot_belongs_to_the_trace_of_its_call() {
    let limits = Limits { concurrent: 1, ..Limits::default() };
    let server = Setup { limits, agents: vec![traced()], ..Setup::default() }.open().await;
    let running = server.hold().await;
    let head = format!("POST /a2a/traced HTTP/1.1\r\na2a-version: 1.0\r\ntraceparent: {PARENT}");
    let params = send_params("hello", "").replace("]}}", r#"]},"configuration":{"returnImmediately":true}}"#);
    let queued = server.exchange(&head, &request("SendMessage", &params)).await;
    assert!(queued.body.contains("TASK_STATE_SUBMITTED"), "{queued:?}");
    let by_id = |task: &str| format!(r#"{{"id":"{task}"}}"#);
    let echo = "POST /a2a/echo HTTP/1.1\r\na2a-version: 1.0";
    server.exchange(echo, &request("CancelTask", &by_id(&running))).await;
    let get = request("GetTask", &by_id(&member(&queued.body, "id")));
    // Reading belongs to another trace.
    let head = "POST /a2a/traced HTTP/1.1\r\na2a-version: 1.0";
    let ended = with_timeout(async {
        loop {
            let read = server.exchange(head, &get).await;
            if read.body.contains("TASK_STATE_COMPLETED") {
                return read.body;
            }
        }
    });
    let ended = ended.await;
    assert!(ended.contains(&format!("00-{TRACE}-")), "{ended}");
}

//! Whom a call is for: by the tenant in the request, or by metadata.

use a2ad_inbound::{AgentSettings, ExtendedCard};
use protocol::{ErrorKind, Operation, Part, SendMessage, grpc::Service};

use super::{BOTH, said, send, task};
use crate::common::{
    Server, Setup,
    agents::{chats, fails},
    channel::Channel,
};

fn to(tenant: &str, text: &str) -> Operation {
    Operation::SendMessage(SendMessage { tenant: Some(tenant.into()), ..said(text) })
}

async fn kind(channel: &Channel, operation: &Operation, metadata: &[(&str, &str)]) -> (i32, ErrorKind) {
    let status = channel.call(Service::V1, operation, metadata).await.status;
    (status.code, status.error.unwrap().kind)
}

#[tokio::test]
async fn a_tenant_names_an_agent_of_it_too() {
    let server = Setup { agents: vec![chats(), fails()], ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    for tenant in ["", "default", "default/echo", "/echo"] {
        let made = task(channel.ask(Service::V1, &to(tenant, "hi")).await);
        assert_eq!(made.artifacts[0].parts, [Part::text("hi")], "{tenant}");
    }
    let failed = task(channel.ask(Service::V1, &to("default/fails", "hi")).await);
    assert_eq!(failed.status.state, protocol::TaskState::Failed);
    // What another agent made is not there for this one.
    let get = |tenant: &str| {
        Operation::GetTask(protocol::GetTask {
            id: failed.id.clone(),
            history_length: None,
            tenant: Some(tenant.into()),
        })
    };
    assert_eq!(task(channel.ask(Service::V1, &get("default/fails")).await), failed);
    assert_eq!(kind(&channel, &get("default/echo"), &[]).await, (5, ErrorKind::TaskNotFound));
    for tenant in ["acme", "acme/echo", "default/nobody", "echo"] {
        assert_eq!(kind(&channel, &to(tenant, "hi"), &[]).await, (5, ErrorKind::AgentDisabled), "{tenant}");
    }
}

/// As over the other bindings: who may not ask is not told what is wrong with the question.
#[tokio::test]
async fn who_is_let_in_comes_before_what_is_asked() {
    let mut setup = Setup::default();
    setup
        .doors
        .agents
        .insert("approver".into(), AgentSettings { anonymous: false, ..AgentSettings::default() });
    setup.doors.agents.insert("echo".into(), AgentSettings { streaming: false, ..AgentSettings::default() });
    let server = setup.open().await;
    let channel = Channel::open(&server).await;
    let nothing = |tenant: &str| SendMessage {
        tenant: Some(tenant.into()),
        message: protocol::Message { parts: Vec::new(), ..said("").message },
        ..said("")
    };
    let closed = Operation::SendMessage(nothing("default/approver"));
    assert_eq!(kind(&channel, &closed, &[]).await, (16, ErrorKind::Unauthenticated));
    let streamed = Operation::SendStreamingMessage(nothing("default/echo"));
    assert_eq!(kind(&channel, &streamed, &[]).await, (9, ErrorKind::UnsupportedOperation));
    let open = Operation::SendMessage(nothing("default/echo"));
    assert_eq!(kind(&channel, &open, &[]).await, (3, ErrorKind::InvalidParams));
}

#[tokio::test]
async fn older_clients_are_given_a_url_where_that_is_wanted() {
    let settings = AgentSettings { extended_card: ExtendedCard::Open, ..AgentSettings::default() };
    let server = Setup::with(|doors| {
        doors.card.grpc_scheme = true;
        doors.agents.insert("echo".into(), settings);
    });
    let server = server.open().await;
    for path in ["/.well-known/agent-card.json", "/v1/card"] {
        let card = server.get(path).await.body;
        assert!(card.contains(r#"{"url":"http://example.test:80","transport":"GRPC"}"#), "{path}: {card}");
    }
    let card = server.get("/.well-known/agent-card.json").await.body;
    assert!(
        card.contains(r#"{"url":"example.test:80","protocolBinding":"GRPC","protocolVersion":"1.0"}"#),
        "{card}"
    );
}

#[tokio::test]
async fn a_card_says_how_an_agent_is_named() {
    let server = Setup { agents: vec![fails()], ..Setup::default() }.open().await;
    let plain = r#"{"url":"example.test:80","protocolBinding":"GRPC","protocolVersion":"1.0"}"#;
    let named = r#"{"url":"example.test:80","protocolBinding":"GRPC","tenant":"default/fails","protocolVersion":"1.0"}"#;
    let older = r#"{"url":"example.test:80","transport":"GRPC"}"#;
    for (path, newer, names_older) in [
        ("/.well-known/agent-card.json", plain, true),
        ("/a2a/echo/.well-known/agent-card.json", plain, true),
        // In 0.3 nothing on a card could tell it from the default agent.
        ("/a2a/fails/.well-known/agent-card.json", named, false),
    ] {
        let card = server.get(path).await.body;
        assert!(card.contains(newer), "{path}: {card}");
        assert_eq!(card.contains(older), names_older, "{path}: {card}");
    }
}

#[tokio::test]
async fn metadata_names_an_agent_in_both_services() {
    let server = Setup { agents: vec![fails()], ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        for agent in ["fails", "default/fails"] {
            let operation = send("hi");
            let outcome = channel.call(service, &operation, &[("a2a-agent", agent)]).await;
            let failed = task(outcome.reply(service, &operation));
            assert_eq!(failed.status.state, protocol::TaskState::Failed, "{agent}");
        }
    }
    let agent = [("a2a-agent", "fails")];
    assert_eq!(kind(&channel, &to("default/echo", "hi"), &agent).await, (3, ErrorKind::InvalidParams));
    assert_eq!(channel.call(Service::V1, &to("default/fails", "hi"), &agent).await.status.code, 0);
}

#[tokio::test]
async fn a_bare_answer_is_a_message() {
    let server = Setup { agents: vec![chats()], ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let operation = send("hi");
        let outcome = channel.call(service, &operation, &[("a2a-agent", "chats")]).await;
        let protocol::Reply::SentMessage(message) = outcome.reply(service, &operation) else { panic!() };
        assert_eq!(message.text(), "you said hi");
        let streamed = channel.call(service, &super::send_streaming("ho"), &[("a2a-agent", "chats")]).await;
        let events = streamed.events(service);
        assert!(
            matches!(&events[..], [protocol::Event::Message(said)] if said.text() == "you said ho"),
            "{events:?}"
        );
    }
}

#[tokio::test]
async fn grpc_and_json_share_the_tasks_and_the_port() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let made = task(channel.ask(service, &send("hi")).await);
        let read = server.call("echo", "GetTask", &format!(r#"{{"id":"{}"}}"#, made.id)).await;
        assert!(read.body.contains("TASK_STATE_COMPLETED"), "{}", read.body);
    }
}

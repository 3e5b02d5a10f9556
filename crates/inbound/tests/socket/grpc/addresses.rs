//! Addressing an agent: by the tenant in the request, or by metadata.

use a2ad_inbound::{AgentSettings, AuthMethods, ExtendedCard};
use protocol::{ErrorKind, Operation, Part, SendMessage, grpc::Service};

use super::{BOTH, send, task, user_message};
use crate::common::{
    Setup,
    agents::{chats, fails},
    channel::Channel,
};

fn to(tenant: &str, text: &str) -> Operation {
    Operation::SendMessage(SendMessage { tenant: Some(tenant.into()), ..user_message(text) })
}

async fn kind(channel: &Channel, operation: &Operation, metadata: &[(&str, &str)]) -> (i32, ErrorKind) {
    let status = channel.call(Service::V1, operation, metadata).await.status;
    (status.code, status.error.unwrap().kind)
}

#[tokio::test]
async fn tenant_may_name_an_agent() {
    let server = Setup { agents: vec![chats(), fails()], ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    for tenant in ["", "default", "default/", "default/echo", "/echo"] {
        let made = task(channel.ask(Service::V1, &to(tenant, "hi")).await);
        assert_eq!(made.artifacts[0].parts, [Part::text("hi")], "{tenant}");
    }
    let failed = task(channel.ask(Service::V1, &to("default/fails", "hi")).await);
    assert_eq!(failed.status.state, protocol::TaskState::Failed);
    // A task of another agent is not found.
    let get = |tenant: &str| {
        Operation::GetTask(protocol::GetTask {
            id: failed.id.clone(),
            history_length: None,
            tenant: Some(tenant.into()),
        })
    };
    assert_eq!(task(channel.ask(Service::V1, &get("default/fails")).await), failed);
    assert_eq!(kind(&channel, &get("default/echo"), &[]).await, (5, ErrorKind::TaskNotFound));
    for tenant in ["acme", "acme/echo", "default/nobody", "default/a/b", "echo"] {
        assert_eq!(kind(&channel, &to(tenant, "hi"), &[]).await, (5, ErrorKind::AgentDisabled), "{tenant}");
    }
}

/// As in the other bindings: access is checked before the request is decoded.
#[tokio::test]
async fn access_is_checked_before_the_request_is_decoded() {
    let mut setup = Setup::default();
    setup
        .options
        .agents
        .insert("approver".into(), AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() });
    setup
        .options
        .agents
        .insert("echo".into(), AgentSettings { streaming: false, ..AgentSettings::default() });
    let server = setup.open().await;
    let channel = Channel::open(&server).await;
    let nothing = |tenant: &str| SendMessage {
        tenant: Some(tenant.into()),
        message: protocol::Message { parts: Vec::new(), ..user_message("").message },
        ..user_message("")
    };
    let closed = Operation::SendMessage(nothing("default/approver"));
    assert_eq!(kind(&channel, &closed, &[]).await, (16, ErrorKind::Unauthenticated));
    let streamed = Operation::SendStreamingMessage(nothing("default/echo"));
    assert_eq!(kind(&channel, &streamed, &[]).await, (9, ErrorKind::UnsupportedOperation));
    let open = Operation::SendMessage(nothing("default/echo"));
    assert_eq!(kind(&channel, &open, &[]).await, (3, ErrorKind::InvalidParams));
}

#[tokio::test]
async fn card_of_0_3_has_a_grpc_url_if_configured() {
    let settings = AgentSettings { extended_card: ExtendedCard::Open, ..AgentSettings::default() };
    let server = Setup::with(|options| {
        options.card.grpc_scheme = true;
        options.agents.insert("echo".into(), settings);
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
async fn card_lists_the_tenant_of_an_agent() {
    let server = Setup { agents: vec![fails()], ..Setup::default() }.open().await;
    let plain = r#"{"url":"example.test:80","protocolBinding":"GRPC","protocolVersion":"1.0"}"#;
    let named = r#"{"url":"example.test:80","protocolBinding":"GRPC","tenant":"default/fails","protocolVersion":"1.0"}"#;
    let older = r#"{"url":"example.test:80","transport":"GRPC"}"#;
    for (path, newer, names_older) in [
        ("/.well-known/agent-card.json", plain, true),
        ("/a2a/echo/.well-known/agent-card.json", plain, true),
        // A card of 0.3 cannot distinguish it from the default agent.
        ("/a2a/fails/.well-known/agent-card.json", named, false),
    ] {
        let card = server.get(path).await.body;
        assert!(card.contains(newer), "{path}: {card}");
        assert_eq!(card.contains(older), names_older, "{path}: {card}");
    }
}

#[tokio::test]
async fn metadata_may_name_an_agent_in_both_services() {
    let server = Setup { agents: vec![fails()], ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        for agent in ["fails", " fails ", "default/fails"] {
            let operation = send("hi");
            let outcome = channel.call(service, &operation, &[("a2a-agent", agent)]).await;
            let failed = task(outcome.reply(service, &operation));
            assert_eq!(failed.status.state, protocol::TaskState::Failed, "{agent}");
        }
    }
    let agent = [("a2a-agent", "fails")];
    assert_eq!(kind(&channel, &to("default/echo", "hi"), &agent).await, (3, ErrorKind::InvalidParams));
    assert_eq!(channel.call(Service::V1, &to("default/fails", "hi"), &agent).await.status.code, 0);
    assert_eq!(channel.call(Service::V1, &send("hi"), &[("a2a-agent", "")]).await.status.code, 0);
    let elsewhere = [("a2a-agent", "acme/echo")];
    assert_eq!(kind(&channel, &send("hi"), &elsewhere).await, (5, ErrorKind::AgentDisabled));
}

#[tokio::test]
async fn bare_message_is_a_message_reply() {
    let server = Setup { agents: vec![chats()], ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let operation = send("hi");
        let outcome = channel.call(service, &operation, &[("a2a-agent", "chats")]).await;
        let protocol::Reply::SentMessage(message) = outcome.reply(service, &operation) else { panic!() };
        assert_eq!(message.text(), "reply to hi");
        let streamed = channel.call(service, &super::send_streaming("ho"), &[("a2a-agent", "chats")]).await;
        let events = streamed.events(service);
        assert!(
            matches!(&events[..], [protocol::Event::Message(user_message)] if user_message.text() == "reply to ho"),
            "{events:?}"
        );
    }
}

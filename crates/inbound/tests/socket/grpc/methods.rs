//! Every method of both services.

use a2ad_inbound::{AgentSettings, ExtendedCard};
use protocol::{
    ErrorKind, Event, GetExtendedCard, ListTasks, Operation, Part, PushConfig, PushConfigQuery,
    PushConfigRef, Reply, TaskState, grpc::Service,
};

use super::{BOTH, send, send_streaming, subscribe, task, user_message};
use crate::common::{Server, Setup, channel::Channel};

#[tokio::test]
async fn repeated_message_is_replayed_and_marked() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let operation = Operation::SendMessage(user_message("once"));
        let first = task(channel.ask(service, &operation).await);
        let again = channel.call(service, &operation, &[]).await;
        assert_eq!(again.head["a2ad-replayed"], "true");
        assert_eq!(task(again.reply(service, &operation)), first);

        let key = [("idempotency-key", service.name())];
        let (one, other) = (send("a"), send("b"));
        channel.call(service, &one, &key).await.reply(service, &one);
        let refused = channel.call(service, &other, &key).await.status;
        // ALREADY_EXISTS
        assert_eq!((refused.code, refused.error.unwrap().kind), (6, ErrorKind::MessageIdReused));
    }
}

#[tokio::test]
async fn tasks_are_listed_in_pages() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for text in ["one", "two", "three"] {
        channel.ask(Service::V1, &send(text)).await;
    }
    let page = async |token: Option<String>| {
        let list =
            Operation::ListTasks(ListTasks { page_size: Some(2), page_token: token, ..ListTasks::default() });
        match channel.ask(Service::V1, &list).await {
            Reply::Tasks(page) => page,
            other => panic!("{other:?}"),
        }
    };
    let first = page(None).await;
    assert_eq!((first.tasks.len(), first.total_size, first.page_size), (2, 3, 2));
    let rest = page(first.next_page_token).await;
    assert_eq!((rest.tasks.len(), rest.next_page_token), (1, None));
}

#[tokio::test]
async fn stream_sends_the_task_and_its_events() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let streamed = channel.call(service, &send_streaming("hi"), &[]).await;
        assert_eq!(streamed.head["a2ad-first-event-id"], "1");
        assert_eq!(streamed.status.trailers["a2ad-last-event-id"], "4");
        let events = streamed.events(service);
        let [Event::Task(task), Event::Status(working), Event::Artifact(artifact), Event::Status(completed)] =
            events.as_slice()
        else {
            panic!("{events:?}")
        };
        assert_eq!(task.status.state, TaskState::Submitted);
        assert_eq!(working.status.state, TaskState::Working);
        assert_eq!(artifact.artifact.parts, [Part::text("hi")]);
        assert_eq!(completed.status.state, TaskState::Completed);

        let over = channel.call(service, &subscribe(task), &[]).await;
        if service == Service::V1 {
            // FAILED_PRECONDITION
            assert_eq!((over.status.code, over.messages.len()), (9, 0));
            assert_eq!(over.status.error.unwrap().kind, ErrorKind::UnsupportedOperation);
        } else {
            assert_eq!(over.events(service), events[3..]);
        }
    }
}

#[tokio::test]
async fn push_operations_are_rejected_if_unsupported() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let id = task(channel.ask(service, &send("hi")).await).id;
        let named = || PushConfigRef { task_id: id.clone(), id: Some("c".into()), tenant: None };
        let url = "https://example.com/hook".into();
        let config = PushConfig {
            id: Some("c".into()),
            task_id: Some(id.clone()),
            url,
            token: None,
            authentication: None,
            tenant: None,
        };
        let query = PushConfigQuery { task_id: id.clone(), page_size: None, page_token: None, tenant: None };
        for operation in [
            Operation::CreatePushConfig(config),
            Operation::GetPushConfig(named()),
            Operation::ListPushConfigs(query),
            Operation::DeletePushConfig(named()),
        ] {
            let status = channel.call(service, &operation, &[]).await.status;
            // FAILED_PRECONDITION; clients of 0.3 know it as UNIMPLEMENTED.
            assert_eq!(status.code, if service == Service::V1 { 9 } else { 12 }, "{operation:?}");
            assert_eq!(status.error.unwrap().kind, ErrorKind::PushNotificationNotSupported);
        }
    }
}

#[tokio::test]
async fn extended_card_is_returned_if_open() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let ask = Operation::GetExtendedCard(GetExtendedCard::default());
    for service in BOTH {
        let status = channel.call(service, &ask, &[]).await.status;
        assert_eq!(status.error.unwrap().kind, ErrorKind::UnsupportedOperation);
    }
    let open = AgentSettings { extended_card: ExtendedCard::Open, ..AgentSettings::default() };
    let server = Setup::with(|options| options.agents = [("echo".into(), open)].into()).open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let Reply::Card(card) = channel.ask(service, &ask).await else { panic!("no card") };
        assert_eq!(card.name, "Echo");
        assert_eq!(card.capabilities.extended_card, Some(true));
    }
}

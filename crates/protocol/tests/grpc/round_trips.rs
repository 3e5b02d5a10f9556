//! Encoding and decoding yields the same value, as far as the generation can express it.

use a2ad_protocol::{
    Artifact, ConfigId, Dialect, Operation, OperationKind, Part, PushConfig, Reply, Task, TaskId, TaskPage,
    TaskState, TaskStatus, grpc::Service,
};
use proptest::{prop_assert_eq, proptest};

use crate::{doubles, limits, values};

proptest! {
    #[test]
    fn every_operation_round_trips(operation in values::operation()) {
        for service in Service::ALL {
            if service.method(operation.kind()).is_none() || !nameable(&operation) {
                continue;
            }
            let bytes = service.encode_operation(&operation);
            let read = service.decode_operation(operation.kind(), &bytes);
            let read = read.map(|read| doubles::operation(&limited(service, read)));
            prop_assert_eq!(read, Ok(doubles::operation(&limited(service, operation.clone()))));
        }
    }

    #[test]
    fn every_reply_round_trips(reply in values::reply()) {
        // Cards have separate tests.
        let Some(kind) = operation_of(&reply) else { return Ok(()) };
        for service in Service::ALL {
            if service.method(kind).is_none() {
                continue;
            }
            let bytes = service.encode_reply(&reply);
            let read = service.decode_reply(kind, &bytes);
            let read = read.map(|read| doubles::reply(&limited_reply(service, read)));
            prop_assert_eq!(read, Ok(doubles::reply(&limited_reply(service, reply.clone()))));
        }
    }

    #[test]
    fn every_event_round_trips(event in values::event()) {
        for service in Service::ALL {
            let bytes = service.encode_event(&event);
            let limited = |event| match service {
                Service::V1 => event,
                Service::V03 => limits::event(Dialect::V03, event),
            };
            let read = service.decode_event(&bytes).map(|read| doubles::event(&limited(read)));
            prop_assert_eq!(read, Ok(doubles::event(&limited(event.clone()))));
        }
    }

    #[test]
    fn second_round_trip_changes_nothing(operation in values::operation()) {
        // The first round trip rounds numbers to doubles; later ones change nothing.
        for service in Service::ALL {
            let Some(first) = round_trip(service, &operation) else { continue };
            prop_assert_eq!(round_trip(service, &first), Some(first));
        }
    }
}

#[test]
fn list_has_artifacts_only_if_requested() {
    let status = TaskStatus { state: TaskState::Completed, message: None, timestamp: None };
    let artifacts = vec![Artifact::new("a", vec![Part::text("made")])];
    let (history, metadata) = (Vec::new(), None);
    let task = Task {
        id: "t".into(),
        context_id: "c".into(),
        status,
        artifacts,
        history,
        metadata,
        created_at: None,
    };
    for (with_artifacts, shown) in [(false, 0), (true, 1)] {
        let tasks = vec![task.clone()];
        let page = TaskPage { tasks, next_page_token: None, page_size: 50, total_size: 1, with_artifacts };
        let bytes = Service::V1.encode_reply(&Reply::Tasks(page));
        let read = Service::V1.decode_reply(OperationKind::ListTasks, &bytes);
        let Ok(Reply::Tasks(page)) = read else { panic!("{read:?}") };
        assert_eq!(page.tasks[0].artifacts.len(), shown);
    }
}

fn round_trip(service: Service, operation: &Operation) -> Option<Operation> {
    service.decode_operation(operation.kind(), &service.encode_operation(operation)).ok()
}

/// Whether the ids can be separated within a resource name.
fn nameable(operation: &Operation) -> bool {
    let plain = |task: Option<&TaskId>, config: Option<&ConfigId>| {
        let slash = |id: &str| id.contains('/');
        !task.is_some_and(|id| slash(id.as_str())) && !config.is_some_and(|id| slash(id.as_str()))
    };
    match operation {
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => {
            plain(Some(&req.task_id), req.id.as_ref())
        }
        Operation::CreatePushConfig(config) => plain(config.task_id.as_ref(), config.id.as_ref()),
        _ => true,
    }
}

/// The skill has no field and is carried in the metadata. The rest are the limits of 0.3, where a cancel
/// carries only its task.
fn limited(service: Service, operation: Operation) -> Operation {
    let old = service == Service::V03;
    let operation = match operation {
        Operation::ListPushConfigs(mut req) => {
            // Zero means unspecified.
            req.page_size = req.page_size.filter(|size| *size > 0);
            req.tenant = req.tenant.filter(|_| !old);
            return Operation::ListPushConfigs(req);
        }
        other if old => limits::operation(Dialect::V03, other),
        other => other,
    };
    match operation {
        Operation::CancelTask(mut req) if old => {
            req.metadata = None;
            Operation::CancelTask(req)
        }
        other => values::with_skill(other),
    }
}

fn limited_reply(service: Service, reply: Reply) -> Reply {
    match (service, reply) {
        (Service::V1, reply) => reply,
        (Service::V03, Reply::PushConfigs(mut page)) => {
            page.configs = page.configs.into_iter().map(limited_config).collect();
            Reply::PushConfigs(page)
        }
        (Service::V03, Reply::PushConfig(config)) => Reply::PushConfig(limited_config(config)),
        (Service::V03, reply) => limits::reply(Dialect::V03, reply),
    }
}

fn limited_config(config: PushConfig) -> PushConfig {
    PushConfig { tenant: None, ..config }
}

fn operation_of(reply: &Reply) -> Option<OperationKind> {
    Some(match reply {
        Reply::SentTask(_) | Reply::SentMessage(_) => OperationKind::SendMessage,
        Reply::Task(_) => OperationKind::CancelTask,
        Reply::Tasks(_) => OperationKind::ListTasks,
        Reply::PushConfig(_) => OperationKind::GetPushConfig,
        Reply::PushConfigs(_) => OperationKind::ListPushConfigs,
        Reply::Deleted => OperationKind::DeletePushConfig,
        Reply::Card(_) => return None,
    })
}

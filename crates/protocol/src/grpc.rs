//! The protobuf wire forms of both versions that define a gRPC service.
//!
//! [`Service`] selects the codec, as [`Dialect`] does for JSON. Everything here converts bytes to values and
//! back; routing and message framing belong to the binding.

mod card;
mod fault;
mod packed;
mod read;
mod security;
mod status;
mod v03;
mod v1;
mod values;
mod wire;

#[rustfmt::skip]
#[allow(
    clippy::all,
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "made by `cargo xtask gen`; only part of it is used"
)]
mod generated {
    pub(super) mod v03;
    pub(super) mod v1;
}

pub use status::{decode_status, encode_status, kind_of_code};

use crate::{Dialect, Error, ErrorKind, ErrorTable, Event, Operation, OperationKind, Reply, Violation};

/// The descriptors of both services and their imports, for reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!("grpc/generated/descriptors.bin");

/// A service of the protocol's protobuf files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// `lf.a2a.v1`: A2A 1.0.
    V1,
    /// `a2a.v1`: A2A 0.2.5 to 0.3.
    V03,
}

/// The methods of 1.0 have the names of its JSON-RPC binding.
const V1_METHODS: &[(&str, OperationKind)] = &crate::dialect::v1::operation::METHODS;

/// The methods of 0.3.
const V03_METHODS: &[(&str, OperationKind)] = &[
    ("SendMessage", OperationKind::SendMessage),
    ("SendStreamingMessage", OperationKind::SendStreamingMessage),
    ("GetTask", OperationKind::GetTask),
    ("CancelTask", OperationKind::CancelTask),
    ("TaskSubscription", OperationKind::SubscribeToTask),
    ("CreateTaskPushNotificationConfig", OperationKind::CreatePushConfig),
    ("GetTaskPushNotificationConfig", OperationKind::GetPushConfig),
    ("ListTaskPushNotificationConfig", OperationKind::ListPushConfigs),
    ("DeleteTaskPushNotificationConfig", OperationKind::DeletePushConfig),
    ("GetAgentCard", OperationKind::GetExtendedCard),
];

impl Service {
    /// Both services, the newer one first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V03];

    /// The full name, the first segment of each path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "lf.a2a.v1.A2AService",
            Self::V03 => "a2a.v1.A2AService",
        }
    }

    /// The service of a dialect, if it has one.
    pub fn of(dialect: Dialect) -> Option<Self> {
        match dialect {
            Dialect::V1 => Some(Self::V1),
            Dialect::V03Proto => Some(Self::V03),
            Dialect::Draft | Dialect::V03 => None,
        }
    }

    /// The error table for its clients: 0.3 clients always get the statuses of their time, which are those of
    /// 1.0.0.
    pub fn errors(self, asked: ErrorTable) -> ErrorTable {
        match self {
            Self::V1 => asked,
            Self::V03 => ErrorTable::V1_0_0,
        }
    }

    /// The version the service implements.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::V1 => Dialect::V1,
            Self::V03 => Dialect::V03Proto,
        }
    }

    /// The operation of a method.
    pub fn operation(self, method: &str) -> Option<OperationKind> {
        self.methods().iter().find(|row| row.0 == method).map(|row| row.1)
    }

    /// The method of an operation, if the service has one.
    pub fn method(self, kind: OperationKind) -> Option<&'static str> {
        self.methods().iter().find(|row| row.1 == kind).map(|row| row.0)
    }

    /// Every method and its operation.
    pub const fn methods(self) -> &'static [(&'static str, OperationKind)] {
        match self {
            Self::V1 => V1_METHODS,
            Self::V03 => V03_METHODS,
        }
    }

    /// Reads the request of an operation. Violations name fields as in JSON.
    pub fn decode_operation(self, kind: OperationKind, body: &[u8]) -> Result<Operation, Error> {
        match self {
            Self::V1 => {
                let operation = v1::operation::decode(kind, body)?;
                operation.check_names(|field| field)?;
                Ok(operation)
            }
            Self::V03 => {
                let operation = v03::operation::decode(kind, body)?;
                operation.check_names(|field| v03::operation::field(kind, field))?;
                Ok(operation)
            }
        }
    }

    /// The tenant named in a request, even if the rest of the request is invalid.
    pub fn tenant(self, kind: OperationKind, body: &[u8]) -> Option<&str> {
        match self {
            Self::V1 => v1::operation::tenant(kind, body),
            Self::V03 => None,
        }
    }

    /// Writes the request of an operation; empty if the service has no such method.
    pub fn encode_operation(self, operation: &Operation) -> Vec<u8> {
        match self {
            Self::V1 => v1::operation::encode(operation),
            Self::V03 => v03::operation::encode(operation),
        }
    }

    /// Writes a reply.
    pub fn encode_reply(self, reply: &Reply) -> Vec<u8> {
        match self {
            Self::V1 => v1::reply::encode(reply),
            Self::V03 => v03::reply::encode(reply),
        }
    }

    /// Reads the reply to an operation of this kind.
    pub fn decode_reply(self, kind: OperationKind, body: &[u8]) -> Result<Reply, Error> {
        match self {
            Self::V1 => v1::reply::decode(kind, body),
            Self::V03 => v03::reply::decode(kind, body),
        }
    }

    /// Writes one message of a stream.
    pub fn encode_event(self, event: &Event) -> Vec<u8> {
        match self {
            Self::V1 => v1::encode_event(event),
            Self::V03 => v03::encode_event(event),
        }
    }

    /// Reads one message of a stream.
    pub fn decode_event(self, body: &[u8]) -> Result<Event, Error> {
        match self {
            Self::V1 => v1::decode_event(body),
            Self::V03 => v03::decode_event(body),
        }
    }

    /// The error for an operation the service has no method for.
    fn unsupported(self, kind: OperationKind) -> Error {
        let known: Vec<&str> = self.methods().iter().map(|row| row.0).collect();
        let text = format!("no method for {kind:?}; {} has {}", self.name(), known.join(", "));
        Error::new(ErrorKind::MethodNotFound, text)
    }
}

/// Decodes one message; a failure becomes a violation at the invalid field.
fn message<M: prost::Message + prost::Name + Default>(body: &[u8]) -> Result<M, Error> {
    M::decode(body).map_err(|_| fault::of(&M::full_name(), body).into())
}

/// The error for reading the reply of a streaming operation.
fn streaming_only() -> Error {
    Violation::new("", "expected a stream, not a single response").into()
}

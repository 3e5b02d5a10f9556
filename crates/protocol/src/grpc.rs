//! The protobuf forms: what gRPC carries, for both generations that have a service.
//!
//! [`Service`] chooses, as [`Dialect`] does for JSON. Everything here is bytes to values and back; who calls which
//! path, and how a stream is framed, is the binding's business.

use crate::{Dialect, Error, ErrorKind, Event, Operation, OperationKind, Reply, Timestamp};

/// A service of the protocol's protobuf files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Service {
    /// `lf.a2a.v1`: A2A 1.0.
    V1,
    /// `a2a.v1`: A2A 0.2.5 to 0.3.
    V03,
}

/// The methods of 1.0 are those of its JSON-RPC binding.
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
    /// Both, the newer one first.
    pub const ALL: [Self; 2] = [Self::V1, Self::V03];

    /// Its full name, the first half of each path.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "lf.a2a.v1.A2AService",
            Self::V03 => "a2a.v1.A2AService",
        }
    }

    /// The generation it speaks.
    pub const fn dialect(self) -> Dialect {
        match self {
            Self::V1 => Dialect::V1,
            Self::V03 => Dialect::V03Proto,
        }
    }

    /// Which operation a method is.
    pub fn operation(self, method: &str) -> Option<OperationKind> {
        self.methods().iter().find(|row| row.0 == method).map(|row| row.1)
    }

    /// The method of an operation, where the service has one.
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

    /// Reads the request of an operation. What is wrong with it is named by the field, as in JSON.
    pub fn decode_operation(self, kind: OperationKind, body: &[u8]) -> Result<Operation, Error> {
        let _ = (kind, body);
        Err(missing())
    }

    /// Writes the request of an operation; nothing where the service has no such method.
    pub fn encode_operation(self, operation: &Operation) -> Vec<u8> {
        let _ = operation;
        Vec::new()
    }

    /// Writes an answer.
    pub fn encode_reply(self, reply: &Reply) -> Vec<u8> {
        let _ = reply;
        Vec::new()
    }

    /// Reads the answer to an operation of this kind.
    pub fn decode_reply(self, kind: OperationKind, body: &[u8]) -> Result<Reply, Error> {
        let _ = (kind, body);
        Err(missing())
    }

    /// Writes one message of a stream.
    pub fn encode_event(self, event: &Event) -> Vec<u8> {
        let _ = event;
        Vec::new()
    }

    /// Reads one message of a stream.
    pub fn decode_event(self, body: &[u8]) -> Result<Event, Error> {
        let _ = body;
        Err(missing())
    }
}

/// Writes `google.rpc.Status`, what `grpc-status-details-bin` carries: the code, the message, ErrorInfo, and the
/// fields at fault.
pub fn encode_status(error: &Error, code: i32, now: Timestamp) -> Vec<u8> {
    let _ = (error, code, now);
    Vec::new()
}

/// Reads `google.rpc.Status`: the reason decides, the code where there is none.
pub fn decode_status(bytes: &[u8]) -> Option<Error> {
    let _ = bytes;
    None
}

fn missing() -> Error {
    Error::new(ErrorKind::UnsupportedOperation, "this service is not there yet")
}

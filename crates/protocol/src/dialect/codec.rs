//! Dispatch from a [`Dialect`] to its codec. No other code selects a codec by dialect.

use crate::{
    Error, Event, Operation, OperationKind, Reply, Timestamp, Violation,
    json::{
        Raw,
        read::{Node, Read},
        write::Writer,
    },
};

use super::{Dialect, Leniency, Style, draft, family, v1, v03, v03_proto};

impl Dialect {
    /// Decodes the parameters of a JSON-RPC request. A dialect without a JSON-RPC binding has no methods.
    pub fn decode_operation(self, method: &str, params: Option<Raw<'_>>) -> Result<Operation, Error> {
        self.decode_operation_with(method, params, Leniency::default())
    }

    /// Decodes the parameters of a JSON-RPC request with a profile's relaxed rules.
    pub fn decode_operation_with(
        self,
        method: &str,
        params: Option<Raw<'_>>,
        leniency: Leniency,
    ) -> Result<Operation, Error> {
        if self.operation(method).is_some() && params.is_some_and(|params| !params.get().starts_with('{')) {
            return Err(Violation::new("params", "expected an object").into());
        }
        let operation = match self {
            Self::Draft => draft::operation::decode_with(method, params, leniency),
            Self::V03 => v03::operation::decode_with(method, params, leniency),
            Self::V03Proto => Err(family::unknown(self, method, &[])),
            Self::V1 => v1::operation::decode(method, params),
        }?;
        operation.check_names(|field| self.field(field))?;
        Ok(operation)
    }

    /// The dialect's name of a request field, given its 1.0 name.
    fn field(self, field: &'static str) -> &'static str {
        match (self, field) {
            (Self::Draft, "message.taskId") => "id",
            (Self::Draft, "message.contextId") => "sessionId",
            (Self::Draft | Self::V03, "taskId") => "id",
            (Self::Draft | Self::V03 | Self::V03Proto | Self::V1, field) => field,
        }
    }

    /// The operation of a JSON-RPC method.
    pub fn operation(self, method: &str) -> Option<OperationKind> {
        match self {
            Self::Draft => draft::operation::kind(method),
            Self::V03 => v03::operation::kind(method),
            Self::V03Proto => None,
            Self::V1 => v1::operation::kind(method),
        }
    }

    /// Encodes the parameters of a request. The older protobuf file has some of them in path and query
    /// instead.
    pub fn encode_operation(self, writer: &mut Writer, operation: &Operation) {
        match self {
            Self::Draft => draft::operation::encode(writer, operation),
            Self::V03 => v03::operation::encode(writer, operation),
            Self::V03Proto => v03_proto::operation::encode(writer, operation),
            Self::V1 => v1::operation::encode(writer, operation),
        }
    }

    /// The JSON-RPC method of an operation, if the dialect has one.
    pub fn method(self, kind: OperationKind) -> Option<&'static str> {
        match self {
            Self::Draft => draft::operation::method(kind),
            Self::V03 => v03::operation::method(kind),
            Self::V03Proto => None,
            Self::V1 => Some(v1::operation::method(kind)),
        }
    }

    /// Encodes a reply.
    pub fn encode_reply(self, writer: &mut Writer, reply: &Reply, style: Style) {
        match self {
            Self::Draft => draft::reply::encode(writer, reply, style),
            Self::V03 => v03::reply::encode(writer, reply, style),
            Self::V03Proto => v03_proto::reply::encode(writer, reply),
            Self::V1 => v1::reply::encode(writer, reply),
        }
    }

    /// Decodes the reply to an operation of this kind.
    pub fn decode_reply(self, kind: OperationKind, node: Node<'_, '_>) -> Read<Reply> {
        match self {
            Self::Draft => draft::reply::decode(kind, node),
            Self::V03 => v03::reply::decode(kind, node),
            Self::V03Proto => v03_proto::reply::decode(kind, node),
            Self::V1 => v1::reply::decode(kind, node),
        }
    }

    /// Decodes a stream frame. [`Frames`](super::Frames) encodes them.
    pub fn decode_event(self, node: Node<'_, '_>) -> Read<Event> {
        match self {
            Self::Draft => draft::event::decode(node),
            Self::V03 => v03::event::decode(node),
            Self::V03Proto => v03_proto::event::decode(node),
            Self::V1 => v1::event::decode(node),
        }
    }

    /// Encodes the error object of a response.
    pub fn encode_error(self, writer: &mut Writer, error: &Error, now: Timestamp) {
        match self {
            Self::Draft => draft::error::encode(writer, error),
            Self::V03 => v03::error::encode(writer, error),
            Self::V03Proto => v03_proto::error::encode(writer, error),
            Self::V1 => v1::error::encode(writer, error, now),
        }
    }

    /// Decodes the error object of a response.
    pub fn decode_error(self, node: Node<'_, '_>) -> Read<Error> {
        match self {
            Self::Draft => draft::error::decode(node),
            Self::V03 => v03::error::decode(node),
            Self::V03Proto => v03_proto::error::decode(node),
            Self::V1 => v1::error::decode(node),
        }
    }
}

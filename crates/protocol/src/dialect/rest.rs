//! Dispatch from a [`Dialect`] to its HTTP+JSON codec.

use crate::{
    Error, ErrorKind, ErrorTable, Operation, OperationKind, Reply, Timestamp,
    json::{
        Raw,
        read::{Node, Read},
        write::Writer,
    },
    rest::Address,
};

use super::{Dialect, Style, v1, v03_proto};

impl Dialect {
    /// Decodes an HTTP+JSON request. An absent body means an empty object.
    pub fn decode_request(
        self,
        kind: OperationKind,
        address: &Address,
        body: Option<Raw<'_>>,
    ) -> Result<Operation, Error> {
        let operation = match self {
            Self::V03Proto => v03_proto::operation::decode(kind, address, body),
            Self::V1 => v1::address::decode(kind, address, body),
            Self::Draft | Self::V03 => {
                let text = format!("{} has no HTTP+JSON binding; use JSON-RPC", self.label());
                Err(Error::new(ErrorKind::MethodNotFound, text))
            }
        }?;
        let of_config = matches!(kind, OperationKind::GetPushConfig | OperationKind::DeletePushConfig);
        operation.check_names(|field| match (self, field) {
            (Self::V03Proto, "taskId") => v03_proto::operation::TASK,
            (Self::V03Proto, "id") if of_config => v03_proto::operation::CONFIG,
            (Self::Draft | Self::V03 | Self::V03Proto | Self::V1, field) => field,
        })?;
        Ok(operation)
    }

    /// Encodes the body of an HTTP+JSON request.
    pub fn encode_request(self, writer: &mut Writer, operation: &Operation) {
        match self {
            Self::V1 => v1::address::encode(writer, operation),
            Self::Draft | Self::V03 | Self::V03Proto => self.encode_operation(writer, operation),
        }
    }

    /// Encodes the body of an HTTP+JSON response.
    pub fn encode_response(self, writer: &mut Writer, reply: &Reply, style: Style) {
        match reply {
            Reply::Deleted => writer.object(|_| {}),
            reply => self.encode_reply(writer, reply, style),
        }
    }

    /// Encodes the body of an HTTP+JSON error response with this status.
    pub fn encode_error_body(
        self,
        writer: &mut Writer,
        error: &Error,
        http: u16,
        table: ErrorTable,
        now: Timestamp,
    ) {
        match self {
            Self::V1 => v1::error::encode_status(writer, error, http, table, now),
            Self::Draft | Self::V03 | Self::V03Proto => self.encode_error(writer, error, now),
        }
    }

    /// Decodes the body of an HTTP+JSON error response.
    pub fn decode_error_body(self, node: Node<'_, '_>) -> Read<Error> {
        match self {
            Self::V1 => v1::error::decode_status(node),
            Self::Draft | Self::V03 | Self::V03Proto => self.decode_error(node),
        }
    }
}

//! `grpc.reflection`: lists the services and their message types, for tools without the proto files.

use axum::extract::Request;
use futures_util::StreamExt as _;
use protocol::grpc::DESCRIPTORS;
use tonic_reflection::{
    pb,
    server::{Builder, Error, v1, v1alpha},
};

use crate::{documents::ready::Ready, routes::MAX_NAME_REQUEST};

pub(super) const V1: &str = pb::v1::server_reflection_server::SERVICE_NAME;
/// The older version of the service, which many tools still use.
pub(super) const V1_ALPHA: &str = pb::v1alpha::server_reflection_server::SERVICE_NAME;

/// Bytes of a response, which holds a file descriptor.
const MAX_ANSWER: usize = 4 << 20;

pub(super) fn server() -> Result<v1::ServerReflectionServer<impl v1::ServerReflection>, Error> {
    let server = builder().build_v1()?;
    Ok(server.max_decoding_message_size(MAX_NAME_REQUEST).max_encoding_message_size(MAX_ANSWER))
}

pub(super) fn alpha_server() -> Result<v1alpha::ServerReflectionServer<impl v1alpha::ServerReflection>, Error>
{
    let server = builder().build_v1alpha()?;
    Ok(server.max_decoding_message_size(MAX_NAME_REQUEST).max_encoding_message_size(MAX_ANSWER))
}

/// A builder with the descriptors of every service of this server.
fn builder() -> Builder<'static> {
    let files = [
        DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        pb::v1::FILE_DESCRIPTOR_SET,
        pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let empty = Builder::configure().include_reflection_service(false);
    files.into_iter().fold(empty, Builder::register_encoded_file_descriptor_set)
}

/// Ends the request stream when the process shuts down, so that a client that keeps asking does not delay the shutdown.
pub(super) fn until_closing(req: Request, ready: Ready) -> Request {
    req.map(|body| {
        let closing = async move { ready.closing().await };
        axum::body::Body::from_stream(body.into_data_stream().take_until(Box::pin(closing)))
    })
}

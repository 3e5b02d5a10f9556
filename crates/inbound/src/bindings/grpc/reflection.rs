//! `grpc.reflection`: what services there are and what their messages look like, for tools that were not told.

use axum::extract::Request;
use futures_util::StreamExt as _;
use protocol::grpc::DESCRIPTORS;
use tonic_reflection::{
    pb,
    server::{Builder, Error, v1, v1alpha},
};

use crate::ready::Ready;

/// The service's name.
pub(super) const V1: &str = pb::v1::server_reflection_server::SERVICE_NAME;
/// Its name before that, which many tools still ask by.
pub(super) const V1_ALPHA: &str = pb::v1alpha::server_reflection_server::SERVICE_NAME;

/// Requests hold a name, answers a file.
const MAX_REQUEST: usize = 4 << 10;
const MAX_ANSWER: usize = 4 << 20;

/// The service.
pub(super) fn server() -> Result<v1::ServerReflectionServer<impl v1::ServerReflection>, Error> {
    let server = described().build_v1()?;
    Ok(server.max_decoding_message_size(MAX_REQUEST).max_encoding_message_size(MAX_ANSWER))
}

/// The same under its name before.
pub(super) fn alpha_server() -> Result<v1alpha::ServerReflectionServer<impl v1alpha::ServerReflection>, Error>
{
    let server = described().build_v1alpha()?;
    Ok(server.max_decoding_message_size(MAX_REQUEST).max_encoding_message_size(MAX_ANSWER))
}

/// Every service there is here.
fn described() -> Builder<'static> {
    let files = [
        DESCRIPTORS,
        tonic_health::pb::FILE_DESCRIPTOR_SET,
        pb::v1::FILE_DESCRIPTOR_SET,
        pb::v1alpha::FILE_DESCRIPTOR_SET,
    ];
    let builder = Builder::configure().include_reflection_service(false);
    files.into_iter().fold(builder, Builder::register_encoded_file_descriptor_set)
}

/// A request that ends when the process leaves: a tool that goes on asking does not hold it up.
pub(super) fn until_left(req: Request, ready: Ready) -> Request {
    req.map(|body| {
        let left = async move { ready.left().await };
        axum::body::Body::from_stream(body.into_data_stream().take_until(Box::pin(left)))
    })
}

//! `grpc.reflection`, in versions v1 and v1alpha.

use prost::Message as _;
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, ServerReflectionResponse, server_reflection_request::MessageRequest,
    server_reflection_response::MessageResponse,
};

use crate::common::{
    Server,
    channel::{Channel, framed},
    with_timeout,
};

const PATHS: [&str; 2] = [
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// Sends one request. Both versions have the same messages.
async fn ask(channel: &Channel, path: &str, asked: MessageRequest) -> MessageResponse {
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(asked) };
    let response = channel.raw(path, &[], framed(&request.encode_to_vec())).await;
    assert_eq!(response.status.code, 0, "{:?}", response.status);
    ServerReflectionResponse::decode(&response.messages[0][..]).unwrap().message_response.unwrap()
}

#[tokio::test]
async fn every_service_is_listed_with_its_descriptors() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for path in PATHS {
        let listed = ask(&channel, path, MessageRequest::ListServices(String::new())).await;
        let MessageResponse::ListServicesResponse(listed) = listed else { panic!("{listed:?}") };
        let mut names: Vec<String> = listed.service.into_iter().map(|service| service.name).collect();
        names.sort();
        assert_eq!(
            names,
            [
                "a2a.v1.A2AService",
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
                "lf.a2a.v1.A2AService",
            ]
        );
        for name in names {
            let asked = MessageRequest::FileContainingSymbol(name.clone());
            let MessageResponse::FileDescriptorResponse(files) = ask(&channel, path, asked).await else {
                panic!("no file for {name}")
            };
            describes(&channel, path, &files.file_descriptor_proto[0]).await;
        }
    }
}

/// Checks that the dependencies of a file can be fetched by name, recursively.
async fn describes(channel: &Channel, path: &str, file: &[u8]) {
    let file = prost_types::FileDescriptorProto::decode(file).unwrap();
    for needed in file.dependency {
        let asked = MessageRequest::FileByFilename(needed.clone());
        let MessageResponse::FileDescriptorResponse(files) = ask(channel, path, asked).await else {
            panic!("no file {needed}")
        };
        Box::pin(describes(channel, path, &files.file_descriptor_proto[0])).await;
    }
}

#[tokio::test]
async fn open_reflection_stream_does_not_delay_shutdown() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let (asking, answer) = channel.begin_open(PATHS[0]);
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    asking.send(framed(&request.encode_to_vec())).unwrap();
    let mut answer = answer.await;
    assert!(answer.message().await.is_some());
    server.ready.close();
    server.drain.cancel();
    assert_eq!(answer.whole().await.status.code, 0);
    channel.closed().await;
    with_timeout(server.serving).await.unwrap();
    drop(asking);
}

//! Tools as HTTP functions of this process: each at the path of its id. They cannot ask.

use std::{io, time::Duration};

use tokio::{io::AsyncWriteExt as _, time::sleep};

use super::{Step, steps};
use crate::{
    CheckError,
    loopback::{LoopbackServer, Request},
};

/// Serves until the returned value is dropped.
pub(crate) async fn serve() -> Result<LoopbackServer, CheckError> {
    LoopbackServer::start(respond).await
}

async fn respond(request: Request) -> io::Result<()> {
    let tool = request.line.rsplit('/').next().unwrap_or_default();
    let mut all = steps(tool, &String::from_utf8_lossy(&request.body), None);
    if all.len() > 1 {
        return stream(request, all).await;
    }
    match all.pop().unwrap_or(Step::Crash) {
        Step::Data(data) => request.respond(&data).await,
        Step::Text(text) => request.respond_with(200, "content-type: text/plain\r\n", &text).await,
        Step::Ask(text) | Step::Fail(text) => {
            request.respond_with(500, "content-type: text/plain\r\n", &text).await
        }
        Step::Crash | Step::Wait(_) => Ok(()),
        // The connection is closed with the call.
        Step::Hold => loop {
            sleep(Duration::from_secs(60)).await;
        },
    }
}

/// Sends each piece as an event when it is there.
async fn stream(request: Request, steps: Vec<Step>) -> io::Result<()> {
    let mut stream = request.stream;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await?;
    for step in steps {
        match step {
            Step::Wait(time) => sleep(time).await,
            Step::Text(text) => {
                let event = format!("data: {}\n\n", text.replace('\n', "\ndata: "));
                stream.write_all(event.as_bytes()).await?;
                stream.flush().await?;
            }
            _ => return Ok(()),
        }
    }
    stream.shutdown().await
}

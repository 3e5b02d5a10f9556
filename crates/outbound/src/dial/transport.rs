//! The dialler as the transport of a client, so that remote agents are called like every other server.

use std::sync::Arc;

use client::{
    Transport, TransportError,
    transport::{Request, Response, ResponseFuture, origin},
};
use http_body_util::BodyExt as _;

use super::{DialError, Dialer, UrlSource};

#[derive(Debug)]
struct DialerTransport {
    dialer: Dialer,
    source: UrlSource,
}

impl Dialer {
    /// The transport of a [`client::Client`] whose URLs come from this source, also those in an agent's card.
    pub fn transport(&self, source: UrlSource) -> Arc<dyn Transport> {
        Arc::new(DialerTransport { dialer: self.clone(), source })
    }
}

impl DialerTransport {
    async fn exchange(&self, request: Request) -> Result<Response, TransportError> {
        let origin = origin(request.uri());
        match self.dialer.send(request, self.source).await {
            Ok(response) => Ok(response.map(|body| {
                body.map_err(move |error| TransportError::Lost {
                    origin: origin.clone(),
                    source: error.into(),
                })
                .boxed()
            })),
            Err(error) => Err(error.into_transport(origin)),
        }
    }
}

impl Transport for DialerTransport {
    fn send(&self, request: Request) -> ResponseFuture<'_> {
        Box::pin(self.exchange(request))
    }
}

impl DialError {
    fn into_transport(self, origin: String) -> TransportError {
        match self {
            Self::Forbidden(problem) => TransportError::Forbidden { origin, source: problem.into() },
            Self::NotAdmitted => TransportError::Forbidden { origin, source: self.into() },
            Self::Unreachable(source) => TransportError::Unreachable { origin, source },
            Self::Lost(source) => TransportError::Lost { origin, source },
            Self::TimedOut | Self::TooLarge => TransportError::Lost { origin, source: self.into() },
        }
    }
}

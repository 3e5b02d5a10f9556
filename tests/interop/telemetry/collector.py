"""An OTLP collector over gRPC that keeps all spans in memory, on the official messages of OpenTelemetry."""

import threading

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc

from helpers import eventually
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


@dataclass(frozen=True)
class Span:
    name: str
    trace: str
    id: str
    parent: str
    kind: int
    start: int
    end: int
    service: str


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """A collector on a free port."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._lock = threading.Lock()
        self.server = grpc.server(ThreadPoolExecutor(2))
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self.server)
        self.url = f'http://127.0.0.1:{self.server.add_insecure_port("127.0.0.1:0")}'
        self.server.start()

    def Export(
        self, request: trace_service_pb2.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> trace_service_pb2.ExportTraceServiceResponse:
        with self._lock:
            for resource in request.resource_spans:
                names = [one.value.string_value for one in resource.resource.attributes if one.key == 'service.name']
                for scope in resource.scope_spans:
                    for span in scope.spans:
                        self.spans.append(
                            Span(
                                span.name,
                                span.trace_id.hex(),
                                span.span_id.hex(),
                                span.parent_span_id.hex(),
                                span.kind,
                                span.start_time_unix_nano,
                                span.end_time_unix_nano,
                                names[0] if names else '',
                            )
                        )
        return trace_service_pb2.ExportTraceServiceResponse()

    def trace(self, trace: str, *names: str) -> list[Span]:
        """The spans of a trace, once it has spans with all these names."""

        def found() -> list[Span] | None:
            with self._lock:
                spans = [span for span in self.spans if span.trace == trace]
            return spans if set(names) <= {span.name for span in spans} else None

        return eventually(found)

    def stop(self) -> None:
        self.server.stop(None)

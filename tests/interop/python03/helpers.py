"""Helpers of the tests: messages to an agent and accessors for its responses, in the SDK's own types."""

from collections.abc import AsyncIterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, NamedTuple
from uuid import uuid4

import grpc
import pytest

from a2a.client import Client, ClientEvent
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.client.middleware import ClientCallContext
from a2a.types import (
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
    TextPart,
)


TERMINAL = {TaskState.completed, TaskState.failed, TaskState.canceled, TaskState.rejected}

Update = TaskStatusUpdateEvent | TaskArtifactUpdateEvent


class StreamResult(NamedTuple):
    """What a stream delivered: its first event, the updates after it, and the task the SDK merged from all of them."""

    first: Task
    updates: list[Update]
    task: Task


def message(parts: list[Part], task: Task | None = None) -> Message:
    """A message of the user: the first one of a new task, or the next one of `task`."""
    return Message(
        message_id=str(uuid4()),
        role=Role.user,
        parts=parts,
        task_id=task.id if task else None,
        context_id=task.context_id if task else None,
    )


def user_message(text: str, task: Task | None = None) -> Message:
    return message([Part(TextPart(text=text))], task)


async def send(client: Client, request: Message) -> Task:
    """Sends without streaming; the response must be one task. `client` has to be connected with `streaming=False`."""
    responses = [response async for response in client.send_message(request)]
    ((task, update),) = responses
    assert update is None
    return task


async def collect(events: AsyncIterator[ClientEvent]) -> StreamResult:
    """Reads a stream to its end; it must start with a task."""
    first: Task | None = None
    updates: list[Update] = []
    async for event in events:
        merged, update = event
        if first is None:
            assert update is None
            # The SDK merges later events into the same object that it has returned here.
            first = merged.model_copy(deep=True)
        else:
            assert update is not None
            assert (update.task_id, update.context_id) == (first.id, first.context_id)
            updates.append(update)
    assert first is not None
    return StreamResult(first, updates, merged)


def chunks(result: StreamResult) -> list[TaskArtifactUpdateEvent]:
    return [update for update in result.updates if isinstance(update, TaskArtifactUpdateEvent)]


def states(result: StreamResult) -> list[TaskState]:
    """The states of a stream's status updates, in order."""
    return [update.status.state for update in result.updates if isinstance(update, TaskStatusUpdateEvent)]


def assert_ends_once(result: StreamResult, state: TaskState) -> None:
    """Asserts that the last event, and no other, ends the stream."""
    assert isinstance(result.updates[-1], TaskStatusUpdateEvent)
    assert result.updates[-1].status.state == state
    finals = [u.final for u in result.updates if isinstance(u, TaskStatusUpdateEvent)]
    assert finals == [False] * (len(finals) - 1) + [True]


def texts(task: Task) -> dict[str, str]:
    """The text of each artifact, its parts joined."""
    return {a.artifact_id: ''.join(part.root.text for part in a.parts) for a in task.artifacts or []}


async def get(client: Client, task: Task) -> Task:
    return await client.get_task(TaskQueryParams(id=task.id))


async def cancel(client: Client, task: Task) -> Task:
    return await client.cancel_task(TaskIdParams(id=task.id))


def subscribe(client: Client, task: Task) -> AsyncIterator[ClientEvent]:
    # Unlike the other calls of the SDK, this one has no timeout by default.
    with_timeout = ClientCallContext(state={'http_kwargs': {'timeout': 10}})
    return client.resubscribe(TaskIdParams(id=task.id), context=with_timeout)


def comparable(parts: list[Part]) -> list[dict[str, Any]]:
    """Parts in a form that can be compared: some transports of the SDK read absent metadata as empty."""
    dumped = [part.model_dump() for part in parts]
    return [{**part, 'metadata': part['metadata'] or None} for part in dumped]


class ProtocolError(Enum):
    """The errors of the protocol in each binding: JSON-RPC code and message, HTTP status, gRPC status code."""

    NOT_FOUND = (-32001, 'Task not found', 404, grpc.StatusCode.NOT_FOUND)
    NOT_CANCELABLE = (-32002, 'Task cannot be canceled', 400, grpc.StatusCode.FAILED_PRECONDITION)
    NO_PUSH = (-32003, 'Push Notification is not supported', 400, grpc.StatusCode.UNIMPLEMENTED)
    UNSUPPORTED = (-32004, 'This operation is not supported', 400, grpc.StatusCode.UNIMPLEMENTED)
    NO_EXTENDED_CARD = (
        -32007,
        'Authenticated Extended Card is not configured',
        400,
        grpc.StatusCode.FAILED_PRECONDITION,
    )
    INVALID = (-32602, 'Invalid parameters', 400, grpc.StatusCode.INVALID_ARGUMENT)


@contextmanager
def expect_error(expected: ProtocolError):
    """Asserts that the server responds with this error; its message is compared only where the SDK has it."""
    code, message, status, grpc_code = expected.value
    with pytest.raises((A2AClientJSONRPCError, A2AClientHTTPError, grpc.aio.AioRpcError)) as caught:
        yield
    match caught.value:
        case A2AClientJSONRPCError(error=error):
            assert (error.code, error.message) == (code, message)
        case A2AClientHTTPError(status_code=actual):
            assert actual == status
        case error:
            assert error.code() == grpc_code, error

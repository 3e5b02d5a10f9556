"""What the tests say to an agent and how they read its answers, in the SDK's own types."""

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


class Told(NamedTuple):
    """What a stream told: its first frame, the updates after it, and the task the SDK merged from them all."""

    first: Task
    updates: list[Update]
    task: Task


def message(parts: list[Part], task: Task | None = None) -> Message:
    """A user's message, as a first one or as the next one of a task."""
    return Message(
        message_id=str(uuid4()),
        role=Role.user,
        parts=parts,
        task_id=task.id if task else None,
        context_id=task.context_id if task else None,
    )


def say(text: str, task: Task | None = None) -> Message:
    return message([Part(TextPart(text=text))], task)


async def ask(client: Client, request: Message) -> Task:
    """Sends without streaming; the answer must be one task."""
    answers = [answer async for answer in client.send_message(request)]
    ((task, update),) = answers
    assert update is None
    return task


async def listen(events: AsyncIterator[ClientEvent]) -> Told:
    """Follows a stream to its end; it must start with a task."""
    first: Task | None = None
    updates: list[Update] = []
    async for event in events:
        merged, update = event
        if first is None:
            assert update is None
            # The SDK merges later events into the object it has just handed out.
            first = merged.model_copy(deep=True)
        else:
            assert update is not None
            assert (update.task_id, update.context_id) == (first.id, first.context_id)
            updates.append(update)
    assert first is not None
    return Told(first, updates, merged)


def chunks(told: Told) -> list[TaskArtifactUpdateEvent]:
    return [update for update in told.updates if isinstance(update, TaskArtifactUpdateEvent)]


def states(told: Told) -> list[TaskState]:
    """The states of a stream's status updates, in order."""
    return [update.status.state for update in told.updates if isinstance(update, TaskStatusUpdateEvent)]


def assert_ends_once(told: Told, state: TaskState) -> None:
    """The last event, and no other, ends the stream."""
    assert isinstance(told.updates[-1], TaskStatusUpdateEvent)
    assert told.updates[-1].status.state == state
    finals = [u.final for u in told.updates if isinstance(u, TaskStatusUpdateEvent)]
    assert finals == [False] * (len(finals) - 1) + [True]


def texts(task: Task) -> dict[str, str]:
    """The text of each artifact, however it was cut into parts."""
    return {a.artifact_id: ''.join(part.root.text for part in a.parts) for a in task.artifacts or []}


async def get(client: Client, task: Task) -> Task:
    return await client.get_task(TaskQueryParams(id=task.id))


async def cancel(client: Client, task: Task) -> Task:
    return await client.cancel_task(TaskIdParams(id=task.id))


def watch(client: Client, task: Task) -> AsyncIterator[ClientEvent]:
    # Here, unlike elsewhere, the SDK waits for ever unless it is told otherwise.
    bounded = ClientCallContext(state={'http_kwargs': {'timeout': 10}})
    return client.resubscribe(TaskIdParams(id=task.id), context=bounded)


def plain(parts: list[Part]) -> list[dict[str, Any]]:
    """Parts as they compare: some transports of the SDK do not tell empty metadata from none."""
    dumped = [part.model_dump() for part in parts]
    return [{**part, 'metadata': part['metadata'] or None} for part in dumped]


class Refusal(Enum):
    """The kinds of error, as each binding tells them: code and words of JSON-RPC, status of HTTP, code of gRPC."""

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
def refused(refusal: Refusal):
    """The server answers with this error of the protocol, in the words of its schema where the SDK shows them."""
    code, words, status, grpc_code = refusal.value
    with pytest.raises((A2AClientJSONRPCError, A2AClientHTTPError, grpc.aio.AioRpcError)) as caught:
        yield
    match caught.value:
        case A2AClientJSONRPCError(error=error):
            assert (error.code, error.message) == (code, words)
        case A2AClientHTTPError(status_code=told):
            assert told == status
        case error:
            assert error.code() == grpc_code, error

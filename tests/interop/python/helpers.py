"""Helpers of the tests: messages to an agent and accessors for its responses, in the SDK's own types."""

from collections.abc import AsyncIterator

from a2a.client import Client
from a2a.helpers import get_artifact_text, new_text_message
from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types import (
    Message,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)


TERMINAL = {
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
}


def user_message(text: str, task: Task | None = None, context_id: str | None = None) -> Message:
    """A text message of the user: the first one of a new task, or the next one of `task`."""
    return new_text_message(
        text,
        role=Role.ROLE_USER,
        task_id=task.id if task else None,
        context_id=task.context_id if task else context_id,
    )


def send_streaming(client: Client, message: Message) -> AsyncIterator[StreamResponse]:
    return client.send_message(SendMessageRequest(message=message))


async def send(client: Client, message: Message) -> Task:
    """Sends without streaming; the response must be one task. `client` has to be connected with `streaming=False`."""
    responses = [response async for response in send_streaming(client, message)]
    assert [response.WhichOneof('payload') for response in responses] == ['task']
    return responses[0].task


def fold(events: list[StreamResponse]) -> Task:
    """The task that a stream describes: the first event, with every later one merged by the SDK's own rules."""
    assert events[0].WhichOneof('payload') == 'task'
    task = Task()
    task.CopyFrom(events[0].task)
    for event in events[1:]:
        if event.HasField('status_update'):
            assert event.status_update.task_id == task.id
            assert event.status_update.context_id == task.context_id
            task.status.CopyFrom(event.status_update.status)
        else:
            assert event.WhichOneof('payload') == 'artifact_update'
            assert event.artifact_update.task_id == task.id
            assert event.artifact_update.context_id == task.context_id
            append_artifact_to_task(task, event.artifact_update)
    return task


def states(events: list[StreamResponse]) -> list[TaskState]:
    """The states of a stream's status updates, in order."""
    return [e.status_update.status.state for e in events if e.HasField('status_update')]


def assert_ends_once(events: list[StreamResponse], state: TaskState) -> None:
    """Asserts that the last event, and no other, ends the task."""
    assert events[-1].status_update.status.state == state
    assert [s for s in states(events) if s in TERMINAL] == [state]


def texts(task: Task) -> dict[str, str]:
    """The text of each artifact, its parts joined."""
    return {a.artifact_id: get_artifact_text(a, delimiter='') for a in task.artifacts}

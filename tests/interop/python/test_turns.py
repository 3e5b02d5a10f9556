"""A task that requests input, receives it in a second message, and continues with the same id."""

import pytest

from a2a.types import GetTaskRequest, Role, TaskState

from conftest import BINDINGS, Connect
from helpers import assert_ends_once, send, send_streaming, user_message


ANSWERS = [
    ('approve', TaskState.TASK_STATE_COMPLETED),
    ('deny', TaskState.TASK_STATE_REJECTED),
]


@pytest.mark.parametrize(('answer', 'outcome'), ANSWERS)
async def test_answer_decides_the_final_state(
    connect: Connect, answer: str, outcome: TaskState
) -> None:
    client = await connect('approver', streaming=False)
    question = user_message('please do it')
    waiting = await send(client, question)
    assert waiting.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert waiting.status.message.role == Role.ROLE_AGENT
    assert waiting.status.message.parts

    reply = user_message(answer, waiting)
    finished = await send(client, reply)
    assert (finished.id, finished.context_id) == (waiting.id, waiting.context_id)
    assert finished.status.state == outcome
    stored = await client.get_task(GetTaskRequest(id=waiting.id))
    assert stored.status == finished.status
    user_message_ids = [m.message_id for m in stored.history if m.role == Role.ROLE_USER]
    assert user_message_ids == [question.message_id, reply.message_id]


async def test_second_turn_can_be_streamed(connect: Connect) -> None:
    client = await connect('approver')
    first = [event async for event in send_streaming(client, user_message('please do it'))]
    task = first[0].task
    reply = user_message('approve', task)
    second = [event async for event in send_streaming(client, reply)]
    assert second[0].task.id == task.id
    assert second[0].task.status.state not in (
        TaskState.TASK_STATE_INPUT_REQUIRED,
        TaskState.TASK_STATE_COMPLETED,
    )
    assert second[0].task.history[-1].message_id == reply.message_id
    assert_ends_once(second, TaskState.TASK_STATE_COMPLETED)


@pytest.mark.parametrize('other', BINDINGS)
async def test_task_can_change_bindings_between_turns(connect: Connect, other: str) -> None:
    waiting = await send(await connect('approver', streaming=False), user_message('please do it'))
    other_client = await connect('approver', streaming=False, binding=other)
    finished = await send(other_client, user_message('approve', waiting))
    assert (finished.id, finished.status.state) == (waiting.id, TaskState.TASK_STATE_COMPLETED)

"""A task that requests input, receives it in a second message, and continues with the same id."""

import pytest

from a2a.types import Role, TaskState

from conftest import Connect
from helpers import assert_ends_once, collect, get, send, user_message


ANSWERS = [('approve', TaskState.completed), ('deny', TaskState.rejected)]


@pytest.mark.parametrize(('answer', 'outcome'), ANSWERS)
async def test_answer_decides_the_final_state(
    connect: Connect, answer: str, outcome: TaskState
) -> None:
    client = await connect('approver', streaming=False)
    question = user_message('please do it')
    waiting = await send(client, question)
    assert waiting.status.state == TaskState.input_required
    assert waiting.status.message.role == Role.agent
    assert waiting.status.message.parts

    reply = user_message(answer, waiting)
    finished = await send(client, reply)
    assert (finished.id, finished.context_id) == (waiting.id, waiting.context_id)
    assert finished.status.state == outcome
    stored = await get(client, waiting)
    assert stored.status == finished.status
    user_message_ids = [m.message_id for m in stored.history if m.role == Role.user]
    assert user_message_ids == [question.message_id, reply.message_id]


async def test_omitted_context_id_is_taken_from_the_task(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    waiting = await send(client, user_message('please do it'))
    reply = user_message('approve', waiting)
    reply.context_id = None
    finished = await send(client, reply)
    assert (finished.id, finished.context_id) == (waiting.id, waiting.context_id)
    assert finished.status.state == TaskState.completed


async def test_second_turn_can_be_streamed(connect: Connect) -> None:
    client = await connect('approver')
    first = await collect(client.send_message(user_message('please do it')))
    reply = user_message('approve', first.task)
    second = await collect(client.send_message(reply))
    assert second.first.id == first.task.id
    assert second.first.status.state not in (TaskState.input_required, TaskState.completed)
    assert second.first.history[-1].message_id == reply.message_id
    assert_ends_once(second, TaskState.completed)

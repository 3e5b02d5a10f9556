"""A task that asks, is answered in a second message, and goes on under the same id."""

import pytest

from a2a.types import Role, TaskState

from conftest import Connect
from talk import ask, assert_ends_once, get, listen, say


ANSWERS = [('approve', TaskState.completed), ('deny', TaskState.rejected)]


@pytest.mark.parametrize(('answer', 'outcome'), ANSWERS)
async def test_the_answer_decides_what_becomes_of_the_task(
    connect: Connect, answer: str, outcome: TaskState
) -> None:
    client = await connect('approver', streaming=False)
    question = say('please do it')
    asked = await ask(client, question)
    assert asked.status.state == TaskState.input_required
    assert asked.status.message.role == Role.agent
    assert asked.status.message.parts

    reply = say(answer, asked)
    decided = await ask(client, reply)
    assert (decided.id, decided.context_id) == (asked.id, asked.context_id)
    assert decided.status.state == outcome
    stored = await get(client, asked)
    assert stored.status == decided.status
    said_by_user = [m.message_id for m in stored.history if m.role == Role.user]
    assert said_by_user == [question.message_id, reply.message_id]


async def test_the_task_alone_says_in_which_context_it_goes_on(connect: Connect) -> None:
    client = await connect('approver', streaming=False)
    asked = await ask(client, say('please do it'))
    reply = say('approve', asked)
    reply.context_id = None
    decided = await ask(client, reply)
    assert (decided.id, decided.context_id) == (asked.id, asked.context_id)
    assert decided.status.state == TaskState.completed


async def test_the_second_turn_can_be_streamed(connect: Connect) -> None:
    client = await connect('approver')
    first = await listen(client.send_message(say('please do it')))
    reply = say('approve', first.task)
    second = await listen(client.send_message(reply))
    assert second.first.id == first.task.id
    assert second.first.status.state not in (TaskState.input_required, TaskState.completed)
    assert second.first.history[-1].message_id == reply.message_id
    assert_ends_once(second, TaskState.completed)

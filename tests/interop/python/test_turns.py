"""A task that asks, is answered in a second message, and goes on under the same id."""

import pytest

from a2a.types import GetTaskRequest, Role, TaskState

from conftest import BINDINGS, Connect
from talk import ask, assert_ends_once, say, send


ANSWERS = [
    ('approve', TaskState.TASK_STATE_COMPLETED),
    ('deny', TaskState.TASK_STATE_REJECTED),
]


@pytest.mark.parametrize(('answer', 'outcome'), ANSWERS)
async def test_the_answer_decides_what_becomes_of_the_task(
    connect: Connect, answer: str, outcome: TaskState
) -> None:
    client = await connect('approver', streaming=False)
    question = say('please do it')
    asked = await ask(client, question)
    assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert asked.status.message.role == Role.ROLE_AGENT
    assert asked.status.message.parts

    reply = say(answer, asked)
    decided = await ask(client, reply)
    assert (decided.id, decided.context_id) == (asked.id, asked.context_id)
    assert decided.status.state == outcome
    stored = await client.get_task(GetTaskRequest(id=asked.id))
    assert stored.status == decided.status
    said_by_user = [m.message_id for m in stored.history if m.role == Role.ROLE_USER]
    assert said_by_user == [question.message_id, reply.message_id]


async def test_the_second_turn_can_be_streamed(connect: Connect) -> None:
    client = await connect('approver')
    first = [event async for event in send(client, say('please do it'))]
    task = first[0].task
    reply = say('approve', task)
    second = [event async for event in send(client, reply)]
    assert second[0].task.id == task.id
    assert second[0].task.status.state not in (
        TaskState.TASK_STATE_INPUT_REQUIRED,
        TaskState.TASK_STATE_COMPLETED,
    )
    assert second[0].task.history[-1].message_id == reply.message_id
    assert_ends_once(second, TaskState.TASK_STATE_COMPLETED)


@pytest.mark.parametrize('other', BINDINGS)
async def test_a_task_can_change_bindings_between_its_turns(connect: Connect, other: str) -> None:
    asked = await ask(await connect('approver', streaming=False), say('please do it'))
    answerer = await connect('approver', streaming=False, binding=other)
    decided = await ask(answerer, say('approve', asked))
    assert (decided.id, decided.status.state) == (asked.id, TaskState.TASK_STATE_COMPLETED)

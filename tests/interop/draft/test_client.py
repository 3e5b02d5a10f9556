"""The client of `python-a2a`, which posts each method of the draft to its own path and has its own message format."""

import pytest

from python_a2a import A2AClient, Message, MessageRole, TextContent
from python_a2a.models.task import Task, TaskState


@pytest.fixture(params=[False, True], ids=['own format', 'draft format'])
def client(url: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> A2AClient:
    monkeypatch.setenv('NO_PROXY', '*')
    monkeypatch.setattr(Task, '_GOOGLE_A2A_COMPATIBILITY', request.param)
    return A2AClient(url, timeout=10, google_a2a_compatible=request.param)


def new_task(client: A2AClient, text: str) -> Task:
    return client._create_task(Message(content=TextContent(text=text), role=MessageRole.USER))


def test_client_reads_the_card(client: A2AClient) -> None:
    card = client.get_agent_card()
    assert card.version != 'unknown'
    assert card.skills


def test_client_sends_a_task_and_reads_it_back(client: A2AClient) -> None:
    sent = new_task(client, '10 USD in INR')
    task = client._send_task(sent)
    assert (task.id, task.status.state) == (sent.id, TaskState.COMPLETED)
    (part,) = task.artifacts[0]['parts']
    assert part['type'] == 'text'
    stored = client.get_task(sent.id)
    assert (stored.id, stored.status.state) == (task.id, task.status.state)
    assert stored.artifacts == task.artifacts


def test_client_receives_a_text_response(client: A2AClient) -> None:
    text = client.ask('10 USD in INR')
    assert text and not text.startswith(('Error', 'Failed', '{', 'No text'))


def test_unknown_task_is_returned_as_an_empty_task(client: A2AClient) -> None:
    # This client does not represent errors: it returns an empty task instead.
    assert not client.get_task('nobody-made-this').artifacts
    assert not client.cancel_task('nobody-made-this').artifacts

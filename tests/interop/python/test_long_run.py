"""A blocking send to an agent that takes longer than the SDK's HTTP client waits for a byte by default (5 s)."""

import httpx
import pytest

from a2a.client import ClientConfig, create_client
from a2a.types import TaskState
from a2a.utils.constants import TransportProtocol

from helpers import send, texts, user_message


@pytest.mark.parametrize('binding', [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON])
async def test_blocking_send_survives_the_default_read_timeout(url: str, binding: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        assert http.timeout.read == 5
        config = ClientConfig(streaming=False, httpx_client=http, supported_protocol_bindings=[binding])
        client = await create_client(f'{url}/a2a/slow-writer', config)
        task = await send(client, user_message('sections=7 delay=1000ms'))
        assert task.status.state == TaskState.TASK_STATE_COMPLETED
        assert texts(task)

"""Sessions of the official Python SDK 1.x with its own authentication; prints what they saw as JSON.

The first argument is JSON: `url` of an agent, `kind` of the security scheme on its card that the SDK uses, and the
credentials of two `callers`. The SDK finds out from the card how the credential is sent.
"""

import asyncio
import json
import sys

from collections.abc import Awaitable

import grpc
import httpx

from a2a.client import A2ACardResolver, Client, ClientCallContext, ClientConfig, create_client
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.helpers import get_artifact_text, new_text_message
from a2a.types import AgentCard, GetTaskRequest, ListTasksRequest, Role, SendMessageRequest, Task
from a2a.utils.constants import TransportProtocol


BINDINGS = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON, TransportProtocol.GRPC]

KINDS = {
    'apiKey': 'api_key_security_scheme',
    'bearer': 'http_auth_security_scheme',
    'openId': 'open_id_connect_security_scheme',
}


def scheme_name(card: AgentCard, kind: str) -> str:
    """The name of the card's first scheme of this kind."""
    found = (name for name, scheme in card.security_schemes.items() if scheme.WhichOneof('scheme') == KINDS[kind])
    return next(found)


def session(name: str) -> ClientCallContext:
    return ClientCallContext(state={'sessionId': name})


async def send(client: Client, context: ClientCallContext) -> Task:
    request = SendMessageRequest(message=new_text_message('hello', role=Role.ROLE_USER))
    (response,) = [response async for response in client.send_message(request, context=context)]
    return response.task


async def stream(client: Client, context: ClientCallContext) -> list[str]:
    request = SendMessageRequest(message=new_text_message('hello', role=Role.ROLE_USER))
    return [event.WhichOneof('payload') async for event in client.send_message(request, context=context)]


async def listed(client: Client, context: ClientCallContext) -> list[str]:
    return [task.id for task in (await client.list_tasks(ListTasksRequest(), context=context)).tasks]


async def error(call: Awaitable[object]) -> str:
    try:
        return f'no error: {await call}'
    except Exception as caught:  # noqa: BLE001
        return f'{type(caught).__name__}: {caught}'


async def run(url: str, kind: str, callers: dict[str, str], binding: str) -> dict[str, object]:
    async with httpx.AsyncClient(timeout=10, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        store = InMemoryContextCredentialStore()
        for caller, credential in callers.items():
            await store.set_credentials(caller, scheme_name(card, kind), credential)

        async def connect(streaming: bool) -> Client:
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                grpc_channel_factory=grpc.aio.insecure_channel,
                supported_protocol_bindings=[binding],
            )
            return await create_client(card, config, interceptors=[AuthInterceptor(store)])

        async with await connect(False) as client, await connect(True) as streaming:
            one, two = callers
            task = await send(client, session(one))
            return {
                'schemes': {name: scheme.WhichOneof('scheme') for name, scheme in card.security_schemes.items()},
                'without': await error(send(client, session('nobody'))),
                'text': get_artifact_text(task.artifacts[0]),
                'task': task.id,
                'own': (await client.get_task(GetTaskRequest(id=task.id), context=session(one))).id,
                'foreign': await error(client.get_task(GetTaskRequest(id=task.id), context=session(two))),
                'listed': await listed(client, session(one)),
                'listed_by_other': await listed(client, session(two)),
                'streamed': await stream(streaming, session(two)),
            }


async def main() -> None:
    request = json.loads(sys.argv[1])
    print(json.dumps({binding: await run(**request, binding=binding) for binding in BINDINGS}))


asyncio.run(main())

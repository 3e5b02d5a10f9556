"""Sessions of the official Python SDK 0.3 with its own authentication; prints what they saw as JSON.

The first argument is that of `sdk_client.py`. This SDK calls its interceptors over JSON-RPC only; for HTTP+JSON the headers
of its interceptor are passed with each call.
"""

import asyncio
import json
import sys

from collections.abc import Awaitable
from uuid import uuid4

import httpx

from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.client.middleware import ClientCallContext
from a2a.types import AgentCard, Message, Part, Role, Task, TaskQueryParams, TextPart, TransportProtocol


BINDINGS = [TransportProtocol.jsonrpc, TransportProtocol.http_json]

KINDS = {'apiKey': 'apiKey', 'bearer': 'http', 'openId': 'openIdConnect'}


def scheme_name(card: AgentCard, kind: str) -> str:
    """The name of the card's first scheme of this kind."""
    return next(name for name, scheme in card.security_schemes.items() if scheme.root.type == KINDS[kind])


def hello() -> Message:
    return Message(message_id=str(uuid4()), role=Role.user, parts=[Part(TextPart(text='hello'))])


async def send(client: Client, context: ClientCallContext) -> Task:
    ((task, _),) = [event async for event in client.send_message(hello(), context=context)]
    return task


async def stream(client: Client, context: ClientCallContext) -> list[str]:
    return [type(update or task).__name__ async for task, update in client.send_message(hello(), context=context)]


async def error(call: Awaitable[object]) -> str:
    try:
        return f'no error: {await call}'
    except Exception as caught:  # noqa: BLE001
        return f'{type(caught).__name__}: {caught}'


async def run(url: str, kind: str, callers: dict[str, str], binding: TransportProtocol) -> dict[str, object]:
    async with httpx.AsyncClient(timeout=10, trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        store = InMemoryContextCredentialStore()
        for caller, credential in callers.items():
            await store.set_credentials(caller, scheme_name(card, kind), credential)
        interceptor = AuthInterceptor(store)

        async def session(name: str) -> ClientCallContext:
            context = ClientCallContext(state={'sessionId': name})
            if binding == TransportProtocol.http_json:
                _, context.state['http_kwargs'] = await interceptor.intercept('', {}, {}, card, context)
            return context

        async def connect(streaming: bool) -> Client:
            config = ClientConfig(streaming=streaming, httpx_client=http, supported_transports=[binding])
            return await ClientFactory.connect(card, config, interceptors=[interceptor])

        client, streaming = await connect(False), await connect(True)
        one, two = callers
        task = await send(client, await session(one))
        query = TaskQueryParams(id=task.id)
        return {
            'schemes': {name: scheme.root.type for name, scheme in card.security_schemes.items()},
            'without': await error(send(client, await session('nobody'))),
            'text': task.artifacts[0].parts[0].root.text,
            'task': task.id,
            'own': (await client.get_task(query, context=await session(one))).id,
            'foreign': await error(client.get_task(query, context=await session(two))),
            'streamed': await stream(streaming, await session(two)),
        }


async def main() -> None:
    request = json.loads(sys.argv[1])
    print(json.dumps({binding.value: await run(**request, binding=binding) for binding in BINDINGS}))


asyncio.run(main())

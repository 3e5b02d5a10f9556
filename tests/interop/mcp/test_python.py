"""The Python SDK of MCP, in both life cycles, over HTTP and over standard input and output."""

import json

from typing import Any

import anyio
import pytest

from conftest import URL, Endpoint, a2a, working
from mcp import Client, MCPError, types


pytestmark = pytest.mark.anyio


def text(result: types.CallToolResult) -> str:
    return '\n'.join(block.text for block in result.content if isinstance(block, types.TextContent))


async def test_skills_are_tools(endpoint: Endpoint, mode: str) -> None:
    async with endpoint.connect(mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        expected = {endpoint.tool(skill) for skill in ('echo', 'approver', 'slow-writer', 'add')}
        if endpoint.prefix:
            expected.add('other__echo')
        assert set(tools) == expected
        add = tools[endpoint.tool('add')]
        assert add.input_schema['required'] == ['a', 'b']
        assert add.output_schema is not None and add.output_schema['required'] == ['sum']


async def test_results_are_content_and_structured_content(endpoint: Endpoint, mode: str) -> None:
    async with endpoint.connect(mode) as client:
        # The client itself checks the result against the output schema.
        await client.list_tools()
        result = await client.call_tool(endpoint.tool('add'), {'a': 2, 'b': 40.5})
        assert not result.is_error and result.structured_content == {'sum': 42.5}
        result = await client.call_tool(endpoint.tool('echo'), {'message': 'one\ntwo ü'})
        assert not result.is_error and text(result) == 'one\ntwo ü'
        result = await client.call_tool(endpoint.tool('add'), {'a': 'x', 'b': 1})
        assert result.is_error and 'a' in text(result)
        with pytest.raises(MCPError, match='unknown tool'):
            await client.call_tool('no-such-tool', {})


async def test_progress_is_reported(endpoint: Endpoint, mode: str) -> None:
    notices: list[tuple[float, str | None]] = []

    async def progress(done: float, _total: float | None, message: str | None) -> None:
        notices.append((done, message))

    async with endpoint.connect(mode) as client:
        message = {'message': 'the sea sections=3 delay=20ms'}
        result = await client.call_tool(endpoint.tool('slow-writer'), message, progress_callback=progress)
        assert 'Section 3 of 3' in text(result)
    assert [done for done, _ in notices] == sorted({done for done, _ in notices})
    assert any(message and 'section 3 of 3' in message for _, message in notices), notices


@pytest.mark.parametrize(
    ('result', 'expected'),
    [
        (types.ElicitResult(action='accept', content={'answer': 'approve'}), 'Approved: jump'),
        (types.ElicitResult(action='accept', content={'answer': 'deny'}), 'Denied: jump'),
        (types.ElicitResult(action='decline'), 'canceled'),
    ],
    ids=['approve', 'deny', 'decline'],
)
async def test_questions_are_asked(
    endpoint: Endpoint, mode: str, result: types.ElicitResult, expected: str
) -> None:
    asked: list[str] = []

    async def answer(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return result

    async with endpoint.connect(mode, elicitation_callback=answer) as client:
        called = await client.call_tool(endpoint.tool('approver'), {'message': 'jump'})
        assert expected in text(called)
        assert called.is_error == (expected != 'Approved: jump')
    assert len(asked) == 1 and 'May I proceed with: jump' in asked[0]


async def test_client_without_forms_reads_the_question(endpoint: Endpoint, mode: str) -> None:
    async with endpoint.connect(mode) as client:
        called = await client.call_tool(endpoint.tool('approver'), {'message': 'jump'})
        assert called.is_error and 'May I proceed with: jump' in text(called)
        assert called.meta is not None and called.meta['a2ad/taskId'] in text(called)


async def test_cards_are_resources(endpoint: Endpoint, mode: str) -> None:
    async with endpoint.connect(mode) as client:
        resources = (await client.list_resources()).resources
        assert [str(resource.uri) for resource in resources] == [
            'a2a://agents/demo/card',
            'a2a://agents/other/card',
        ]
        read = await client.read_resource('a2a://agents/demo/card')
        card = json.loads(read.contents[0].text)
        assert {skill['id'] for skill in card['skills']} == {'echo', 'approver', 'slow-writer', 'add'}
        if endpoint.name != 'stdio-of-file':
            assert card['supportedInterfaces'][0]['url'].startswith(URL)
        with pytest.raises(MCPError):
            await client.read_resource('a2a://agents/off/card')


async def test_cancelled_call_cancels_its_task(mode: str) -> None:
    async with Client(f'{URL}/mcp', mode=mode) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, 'echo', {'message': 'hold'})
            with anyio.fail_after(20):
                while not working():
                    await anyio.sleep(0.02)
            [task] = working()
            group.cancel_scope.cancel()
        with anyio.fail_after(20):
            while a2a('GetTask', {'id': task})['status']['state'] != 'TASK_STATE_CANCELED':
                await anyio.sleep(0.02)


async def test_task_is_one_trail(mode: str) -> None:
    """The call is a task that A2A clients see, with where it came from."""
    async with Client(f'{URL}/mcp', mode=mode) as client:
        result = await client.call_tool('echo', {'message': 'hi'})
        assert result.meta is not None
        task = a2a('GetTask', {'id': result.meta['a2ad/taskId']})
        assert task['artifacts'][0]['parts'][0]['text'] == text(result) == 'hi'
        assert task['metadata']['a2ad']['origin'] == 'mcp'

"""An MCP server on the Python SDK with a counter in its memory, and a tool that shows the metadata of its call."""

from typing import Any

from mcp.server.mcpserver import Context, MCPServer


server = MCPServer('counter')
calls = 0


@server.tool()
def count() -> int:
    """Counts its calls."""
    global calls
    calls += 1
    return calls


@server.tool()
def meta(context: Context) -> dict[str, Any]:
    """Shows the metadata of the call."""
    return dict(context.request_context.meta or {})


if __name__ == '__main__':
    server.run('stdio')

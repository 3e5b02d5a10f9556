"""An MCP server on the Python SDK 2.x whose tool asks for input with `InputRequiredResult`."""

import sys

from typing import Annotated

from mcp.server.mcpserver import Elicit, MCPServer, Resolve
from pydantic import BaseModel


class Size(BaseModel):
    size: str


async def ask_size() -> Elicit[Size]:
    return Elicit('Which size?', Size)


server = MCPServer('shop')


@server.tool()
def order(item: str, size: Annotated[Size, Resolve(ask_size)]) -> str:
    """Orders an item."""
    return f'ordered {item} in {size.size}'


if __name__ == '__main__':
    server.run('streamable-http', port=int(sys.argv[1]))

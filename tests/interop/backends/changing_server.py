"""An MCP server on the Python SDK that gets another tool while it runs."""

from mcp.server.mcpserver import Context, MCPServer


server = MCPServer('shop')


@server.tool()
async def open_department(name: str, context: Context) -> str:
    """Opens a department."""

    def sell() -> str:
        return f'sold {name}'

    server.add_tool(sell, name=name, description=f'Sells {name}')
    await context.notify_tools_changed()
    return f'opened {name}'


if __name__ == '__main__':
    server.run('stdio')

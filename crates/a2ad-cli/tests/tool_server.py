"""An MCP server on standard input and output. The arguments name its tools; each returns its name and its arguments."""
import json, sys

tools = [{"name": name, "description": f"The tool {name}", "inputSchema": {"type": "object"}} for name in sys.argv[1:]]
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if method == "initialize":
        answer = {"result": {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
                             "serverInfo": {"name": "tools", "version": "1"}}}
    elif method == "ping":
        answer = {"result": {}}
    elif method == "tools/list":
        answer = {"result": {"tools": tools}}
    elif method == "tools/call":
        result = {"tool": params["name"], "arguments": params.get("arguments")}
        answer = {"result": {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result}}
    else:
        answer = {"error": {"code": -32601, "message": "unknown method"}}
    if id is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": id, **answer}), flush=True)

// One session of a TypeScript client of MCP, which prints what it saw as JSON.
//
// The first argument is JSON: `sdk` is 2 or 1, the two lines of the official SDK; `mode` the revision that version 2
// asks for; `url` or `command` and `args` the server; `prefix` precedes the names of tools.

const { sdk, mode, url, command, args, prefix } = JSON.parse(process.argv[2]);

const seen = { asked: [], progress: [] };
const capabilities = { elicitation: {} };
const identity = { name: 'test', version: '1' };

async function open() {
  if (sdk === 2) {
    const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
    const client = new Client(identity, { capabilities, versionNegotiation: { mode } });
    client.setRequestHandler('elicitation/create', answer);
    const transport = url
      ? new StreamableHTTPClientTransport(new URL(url))
      : new StdioClientTransport({ command, args, stderr: 'ignore' });
    await client.connect(transport);
    return client;
  }
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
  const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client(identity, { capabilities });
  client.setRequestHandler(ElicitRequestSchema, answer);
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url))
    : new StdioClientTransport({ command, args, stderr: 'ignore' });
  await client.connect(transport);
  return client;
}

async function answer(request) {
  seen.asked.push(request.params.message);
  return { action: 'accept', content: { answer: 'approve' } };
}

function call(client, skill, toolArguments, options) {
  const request = { name: prefix + skill, arguments: toolArguments };
  return sdk === 2 ? client.callTool(request, options) : client.callTool(request, undefined, options);
}

const client = await open();
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
// The client checks the structured content against the output schema of the list.
seen.sum = (await call(client, 'add', { a: 2, b: 40.5 })).structuredContent;
seen.echo = (await call(client, 'echo', { message: 'one\ntwo ü' })).content;
const onprogress = (notice) => seen.progress.push(notice);
seen.written = (await call(client, 'slow-writer', { message: 'sea sections=2 delay=10ms' }, { onprogress })).content;
seen.approved = (await call(client, 'approver', { message: 'jump' })).content;
seen.resources = (await client.listResources()).resources.map((resource) => resource.uri);
seen.card = JSON.parse((await client.readResource({ uri: seen.resources[0] })).contents[0].text);
// A call that its client gives up.
const abort = new AbortController();
const held = call(client, 'echo', { message: 'hold' }, { signal: abort.signal });
// Long enough for the call to be there first: a cancellation of an unknown call is ignored.
setTimeout(() => abort.abort('no longer needed'), 1000);
seen.aborted = await held.then(() => false, () => true);
// The client does not wait until its notification is sent.
await client.listTools();
await client.close();
console.log(JSON.stringify(seen));

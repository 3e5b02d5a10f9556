// Sessions of the official JavaScript SDK with its own authentication; prints what they saw as JSON.
//
// The first argument is that of `sdk_client.py`. Over HTTP the credential is sent after a response with status 401, in
// the header that its challenge names; gRPC has no such retry, so an interceptor adds it to the metadata.

import { randomUUID } from 'node:crypto';
import { SendMessageRequest } from '@a2a-js/sdk';
import {
  ClientFactory,
  createAuthenticatingFetchWithRetry,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';

const BINDINGS = ['JSONRPC', 'HTTP+JSON', 'GRPC'];
const KINDS = {
  apiKey: 'apiKeySecurityScheme',
  bearer: 'httpAuthSecurityScheme',
  openId: 'openIdConnectSecurityScheme',
};

const { url, kind, callers } = JSON.parse(process.argv[2]);

/** The header of a credential, as a challenge asks for it. */
function headerFor(challenge, credential) {
  if (kind === 'apiKey') {
    const [, name] = challenge.match(/ApiKey name="([^"]+)"/);
    return { [name]: credential };
  }
  return /(^|, )Bearer/i.test(challenge) ? { Authorization: `Bearer ${credential}` } : undefined;
}

/** The SDK's `fetch` for one caller, and how often it has sent a request again. */
function authenticatingFetch(credential, retries) {
  let known = {};
  return createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => known,
    shouldRetryWithHeaders: async (_request, response) => {
      if (response.status !== 401) {
        return undefined;
      }
      retries.push(response.headers.get('WWW-Authenticate'));
      return headerFor(response.headers.get('WWW-Authenticate'), credential);
    },
    onSuccessfulRetry: async (headers) => {
      known = headers;
    },
  });
}

/** An interceptor that adds the credential to the metadata of each call, as the card asks for it. */
function metadata(credential) {
  return {
    before: async (call) => {
      const { scheme } = Object.values(call.agentCard.securitySchemes).find(({ scheme }) => scheme.$case === KINDS[kind]);
      const [name, value] =
        kind === 'apiKey' ? [scheme.value.name, credential] : ['Authorization', `Bearer ${credential}`];
      const serviceParameters = { ...call.options?.serviceParameters, [name.toLowerCase()]: value };
      call.options = { ...call.options, serviceParameters };
    },
    after: async () => {},
  };
}

async function connect(binding, credential, retries = []) {
  const fetchImpl = credential ? authenticatingFetch(credential, retries) : fetch;
  const transport = {
    JSONRPC: () => new JsonRpcTransportFactory({ fetchImpl }),
    'HTTP+JSON': () => new RestTransportFactory({ fetchImpl }),
    GRPC: () => new GrpcTransportFactory(),
  }[binding]();
  const interceptors = binding === 'GRPC' && credential ? [metadata(credential)] : [];
  return new ClientFactory({ transports: [transport], clientConfig: { interceptors } }).createFromUrl(`${url}/`);
}

function hello() {
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hello' }] };
  return SendMessageRequest.fromJSON({ message });
}

function error(call) {
  return call.then(
    (value) => `no error: ${JSON.stringify(value)}`,
    (caught) => `${caught.name}: ${caught.message}`,
  );
}

async function listed(client) {
  const { tasks } = await client.listTasks({ tenant: '', contextId: '', pageToken: '', status: 0 });
  return tasks.map(({ id }) => id);
}

async function run(binding) {
  const retries = [];
  const nobody = await connect(binding);
  const [one, two] = await Promise.all(Object.values(callers).map((each) => connect(binding, each, retries)));
  const task = await one.sendMessage(hello());
  const query = { id: task.id, tenant: '' };
  const seen = {
    schemes: Object.fromEntries(
      Object.entries(one.agentCard.securitySchemes).map(([name, { scheme }]) => [name, scheme.$case]),
    ),
    without: await error(nobody.sendMessage(hello())),
    text: task.artifacts[0].parts[0].content.value,
    task: task.id,
    own: (await one.getTask(query)).id,
    listed: await listed(one),
    listed_by_other: await listed(two),
    foreign: await error(two.getTask(query)),
    streamed: [],
  };
  for await (const event of two.sendMessageStream(hello())) {
    seen.streamed.push(event.payload.$case);
  }
  return { ...seen, retries };
}

const seen = {};
for (const binding of BINDINGS) {
  seen[binding] = await run(binding);
}
console.log(JSON.stringify(seen));

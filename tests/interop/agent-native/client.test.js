// The client of `@agent-native/core` and tools of a user: an HTTP function and commands behind agents of the profile
// `agent-native`. The client is that of a platform, so it reads the agent's text from the status only.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync, openSync, closeSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createProbe } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

const START_LIMIT_MILLIS = 30_000;
// Far less than the five minutes for which the client polls a state that it does not know.
const END_LIMIT_MILLIS = 20_000;
const QUICK_POLLS = { pollIntervalMs: 100, timeoutMs: END_LIMIT_MILLIS };

let running;
let client;
let A2AClient;
let callAgent;

before(async () => {
  running = await start();
  // The client calls private addresses only if they are configured; it reads this when it is loaded.
  process.env.AGENT_NATIVE_A2A_ALLOWED_ORIGINS = running.url;
  const path = './node_modules/@agent-native/core/dist/a2a/client.js';
  ({ A2AClient, callAgent } = await import(new URL(path, import.meta.url)));
  client = new A2AClient(running.url);
});

after(async () => {
  running?.program.kill('SIGKILL');
  running?.functionServer.close();
  if (running) {
    await running.exited;
    rmSync(running.folder, { recursive: true });
  }
});

test('the text of an HTTP function is in the status and at the end of the history', async () => {
  const task = await client.send(text('Show signups by source this month'));
  assert.equal(task.status.state, 'completed');
  const answer = { text: 'There were 1,247 signups: Show signups by source this month' };
  assert.deepEqual(shown(task.status.message), [answer]);
  assert.deepEqual(shown(task.history.at(-1)), [answer]);
  assert.equal(task.history.length, 2);
});

test('callAgent returns the text of an HTTP function, by polling and in one request', async () => {
  const expected = 'There were 1,247 signups: How many signups last week?';
  for (const async of [true, false]) {
    assert.equal(await callAgent(running.url, 'How many signups last week?', { async, ...QUICK_POLLS }), expected);
  }
});

test('an agent other than the default one is found below its address', async () => {
  const at = `${running.url}/a2a/reports`;
  assert.equal(await callAgent(at, 'Generate a quarterly report', QUICK_POLLS), 'section 1\nsection 2');
});

test('every update of a stream has a status, with the text so far', async () => {
  const updates = [];
  for await (const update of new A2AClient(`${running.url}/a2a/reports`).stream(text('Generate a report'))) {
    updates.push({ state: update.status.state, texts: shown(update.status.message).map((part) => part.text) });
  }
  const both = 'section 1\nsection 2';
  const states = updates.map((update) => update.state);
  assert.equal(states.at(-1), 'completed');
  assert.ok(states.slice(0, -1).every((state) => ['submitted', 'working'].includes(state)), `${states}`);
  assert.deepEqual(updates.at(-1).texts, [both]);
  assert.ok(updates.some((update) => update.state === 'working' && update.texts[0] === 'section 1'));
});

test('a rejected task ends the polling of the client', async () => {
  const started = Date.now();
  const wrong = { role: 'user', parts: [{ type: 'data', data: { question: 5 } }] };
  const task = await new A2AClient(`${running.url}/a2a/strict`).sendAndWait(wrong, QUICK_POLLS);
  assert.equal(task.status.state, 'failed');
  assert.equal(task.metadata.a2ad.state, 'rejected');
  assert.ok(Date.now() - started < END_LIMIT_MILLIS);
});

test('a repeated idempotency key runs the function once', async () => {
  const idempotencyKey = `key-${process.pid}`;
  const once = await client.sendAndWait(text('count me'), { idempotencyKey, ...QUICK_POLLS });
  const runs = running.runs();
  const again = await client.sendAndWait(text('count me'), { idempotencyKey, ...QUICK_POLLS });
  assert.equal(again.id, once.id);
  assert.equal(running.runs(), runs);
});

test('a message with only the context of a waiting task answers it', async () => {
  const asker = new A2AClient(`${running.url}/a2a/asker`);
  const asked = await asker.send(text('request a new phone'));
  assert.equal(asked.status.state, 'input-required');
  const answered = await asker.send(text('Android'), { contextId: asked.contextId });
  assert.equal(answered.id, asked.id);
  assert.deepEqual(shown(answered.status.message), [{ text: 'ordered: Android' }]);
});

function text(content) {
  return { role: 'user', parts: [{ type: 'text', text: content }] };
}

function shown(message) {
  return (message?.parts ?? []).filter((part) => part.type === 'text').map(({ text }) => ({ text }));
}

/** The function and the program, with a store and a configuration file of their own. */
async function start() {
  let runs = 0;
  const functionServer = createServer(async (request, response) => {
    runs += 1;
    const chunks = [];
    for await (const chunk of request) {
      chunks.push(chunk);
    }
    const { text: asked } = JSON.parse(Buffer.concat(chunks));
    response.setHeader('content-type', 'text/plain').end(`There were 1,247 signups: ${asked}`);
  }).listen(0, '127.0.0.1');
  await once(functionServer, 'listening');
  const folder = mkdtempSync(join(tmpdir(), 'a2ad-agent-native-'));
  const [config, log] = [join(folder, 'a2ad.toml'), join(folder, 'a2ad.log')];
  writeFileSync(config, configuration(functionServer.address().port));
  const address = `127.0.0.1:${await freePort()}`;
  const args = ['serve', '--listen', address, '--store', join(folder, 'a2ad.db'), '--config', config];
  const others = Object.entries(process.env).filter(([name]) => !name.startsWith('A2AD_') && name !== 'A2A_SECRET');
  const output = openSync(log, 'a');
  const env = Object.fromEntries(others);
  const program = spawn(process.env.A2AD_PROGRAM, args, { env, stdio: ['ignore', output, output] });
  closeSync(output);
  const server = { folder, functionServer, program, url: `http://${address}`, runs: () => runs };
  server.exited = once(program, 'exit');
  const limit = Date.now() + START_LIMIT_MILLIS;
  while (!(await isReady(server.url))) {
    const starting = program.exitCode === null && Date.now() < limit;
    assert.ok(starting, `the server did not start:\n${readFileSync(log, 'utf8')}`);
    await sleep(20);
  }
  return server;
}

function configuration(port) {
  const sections = `sleep 0.2; printf '{"type":"artifact","text":"section 1"}\\n'; sleep 0.4; printf '{"type":"artifact","text":"section 2"}\\n'`;
  const asks = `if [ -z "$A2AD_CALL_ANSWER" ]; then printf '{"type":"ask","text":"iPhone or Android?"}\\n'; else printf '{"type":"artifact","text":"ordered: Android"}\\n'; fi`;
  const agent = (id, skill) => `[agents.${id}]\nprofile = "agent-native"\nskills = ["${skill}"]\n`;
  const command = (id, script) =>
    `[skills.${id}]\ncommand = { argv = ["sh", "-c", ${JSON.stringify(script)}], protocol = "jsonl" }\n`;
  return [
    '[server]\ndefault_agent = "analytics"\n',
    agent('analytics', 'run-query'),
    agent('reports', 'write-report'),
    agent('asker', 'order-phone'),
    agent('strict', 'ask-strictly'),
    `[skills.run-query]\nname = "Run Query"\nhttp = { url = "http://127.0.0.1:${port}/" }\n`,
    command('write-report', sections),
    command('order-phone', asks),
    `[skills.ask-strictly]\nhttp = { url = "http://127.0.0.1:${port}/" }\n`,
    'input_schema = { type = "object", properties = { question = { type = "string" } }, required = ["question"] }\n',
  ].join('\n');
}

async function isReady(url) {
  try {
    return (await fetch(`${url}/readyz`)).ok;
  } catch {
    return false;
  }
}

async function freePort() {
  const probe = createProbe().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  return port;
}

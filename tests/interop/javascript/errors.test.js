// Refusals arrive as the SDK's own kinds of error, not as broken transport.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  isJsonRpcError,
  PushNotificationNotSupportedError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import { ask, cancel, collect, connect, get, message, say, url, VERSIONS, watch } from './talk.js';

const UNKNOWN = { id: 'task_that_nobody_ever_made', contextId: '' };

const OPERATIONS = {
  get,
  cancel,
  subscribe: watch,
  send: (client, task) => client.sendMessage(say('more', task)),
  stream: (client, task) => collect(client.sendMessageStream(say('more', task))),
};

for (const version of VERSIONS) {
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    test(`${version}: an unknown task is not found by ${name}`, async () => {
      await assert.rejects(operation(await connect('echo', { version }), UNKNOWN), TaskNotFoundError);
    });
  }

  test(`${version}: a task is unknown to other agents`, async () => {
    const task = await ask(await connect('echo', { version }), say('mine'));
    await assert.rejects(get(await connect('approver', { version }), task), TaskNotFoundError);
  });

  for (const name of ['send', 'stream']) {
    test(`${version}: a finished task takes no message by ${name}`, async () => {
      const client = await connect('echo', { version });
      const task = await ask(client, say('done at once'));
      await assert.rejects(OPERATIONS[name](client, task), UnsupportedOperationError);
    });
  }

  test(`${version}: a message without parts is refused as invalid parameters`, async () => {
    const client = await connect('echo', { version });
    await assert.rejects(client.sendMessage(message([])), (error) => {
      assert.ok(isJsonRpcError(error));
      assert.equal(error.envelopeCode, -32602);
      return true;
    });
  });

  // The client itself refuses when the card offers no push; this asks the server past it.
  test(`${version}: push is refused as unsupported`, async () => {
    const client = await connect('echo', { version });
    const task = await ask(client, say('no push'));
    const config = { taskId: task.id, id: 'mine', url: 'https://example.com/hook', token: '', tenant: '' };
    const serviceParameters = { 'A2A-Version': version };
    await assert.rejects(
      client.transport.createTaskPushNotificationConfig(config, { serviceParameters }),
      PushNotificationNotSupportedError,
    );
  });
}

test('1.0: a finished task takes no subscriber', async () => {
  const client = await connect('echo');
  const task = await ask(client, say('done at once'));
  await assert.rejects(watch(client, task), UnsupportedOperationError);
});

test('0.3: a subscriber of a finished task learns its outcome', async () => {
  const client = await connect('echo', { version: '0.3' });
  const task = await ask(client, say('done at once'));
  const events = await watch(client, task);
  assert.equal(events.length, 1);
  assert.deepEqual(events[0].value.status, task.status);
});

test('a version nobody speaks is refused as such', async () => {
  const body = { jsonrpc: '2.0', id: 7, method: 'GetTask', params: { id: UNKNOWN.id } };
  const headers = { 'Content-Type': 'application/json', 'A2A-Version': '99.0' };
  const answer = await fetch(`${url}/a2a/echo`, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal((await answer.json()).error.code, -32009);
});

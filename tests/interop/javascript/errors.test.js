// Errors arrive as the SDK's own error types, not as transport failures.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SendMessageConfiguration, TaskState } from '@a2a-js/sdk';
import {
  ContentTypeNotSupportedError,
  ExtensionSupportRequiredError,
  PushNotificationNotSupportedError,
  RequestMalformedError,
  TaskNotFoundError,
  UnsupportedOperationError,
} from '@a2a-js/sdk/errors';
import { cancel, collect, connect, get, message, MODES, send, subscribe, url, userMessage } from './helpers.js';

const UNKNOWN = { id: 'task_that_nobody_ever_made', contextId: '' };

const OPERATIONS = {
  get,
  cancel,
  subscribe,
  send: (client, task) => client.sendMessage(userMessage('more', task)),
  stream: (client, task) => collect(client.sendMessageStream(userMessage('more', task))),
};

for (const mode of MODES) {
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    test(`${mode.name}: unknown task is not found by ${name}`, async () => {
      await assert.rejects(operation(await connect('echo', mode), UNKNOWN), TaskNotFoundError);
    });
  }

  test(`${mode.name}: task of another agent is not found`, async () => {
    const task = await send(await connect('echo', mode), userMessage('mine'));
    await assert.rejects(get(await connect('approver', mode), task), TaskNotFoundError);
  });

  for (const name of ['send', 'stream']) {
    test(`${mode.name}: finished task rejects messages by ${name}`, async () => {
      const client = await connect('echo', mode);
      const task = await send(client, userMessage('done at once'));
      await assert.rejects(OPERATIONS[name](client, task), UnsupportedOperationError);
    });
  }

  test(`${mode.name}: message without parts is rejected as invalid parameters`, async () => {
    const client = await connect('echo', mode);
    await assert.rejects(client.sendMessage(message([])), RequestMalformedError);
  });

  // The client rejects the call itself if the card has no push, so the request goes directly to its transport.
  test(`${mode.name}: push config is rejected as unsupported`, async () => {
    const client = await connect('echo', mode);
    const task = await send(client, userMessage('no push'));
    const config = { taskId: task.id, id: 'mine', url: 'https://example.com/hook', token: '', tenant: '' };
    const serviceParameters = { 'A2A-Version': mode.version };
    await assert.rejects(
      client.transport.createTaskPushNotificationConfig(config, { serviceParameters }),
      PushNotificationNotSupportedError,
    );
  });
}

for (const mode of MODES.filter(({ version }) => version === '1.0')) {
  test(`${mode.name}: missing required extension is rejected`, async () => {
    const client = await connect('strict', mode);
    await assert.rejects(send(client, userMessage('may I?')), ExtensionSupportRequiredError);
    const serviceParameters = { 'A2A-Extensions': 'urn:example:strict' };
    const task = await client.sendMessage(userMessage('may I?'), { serviceParameters });
    assert.equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
  });

  test(`${mode.name}: unsupported output mode is rejected`, async () => {
    const client = await connect('approver', mode);
    const request = userMessage('may I?');
    request.configuration = SendMessageConfiguration.fromJSON({ acceptedOutputModes: ['image/png'] });
    await assert.rejects(send(client, request), ContentTypeNotSupportedError);
  });

  test(`${mode.name}: finished task rejects subscribers`, async () => {
    const client = await connect('echo', mode);
    const task = await send(client, userMessage('done at once'));
    await assert.rejects(subscribe(client, task), UnsupportedOperationError);
  });
}

for (const mode of MODES.filter(({ version }) => version === '0.3')) {
  test(`${mode.name}: subscriber of a finished task receives its final status`, async () => {
    const client = await connect('echo', mode);
    const task = await send(client, userMessage('done at once'));
    const events = await subscribe(client, task);
    assert.equal(events.length, 1);
    assert.deepEqual(events[0].value.status, task.status);
  });
}

test('unsupported version is rejected with its own error', async () => {
  const body = { jsonrpc: '2.0', id: 7, method: 'GetTask', params: { id: UNKNOWN.id } };
  const headers = { 'Content-Type': 'application/json', 'A2A-Version': '99.0' };
  const response = await fetch(`${url}/a2a/echo`, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal((await response.json()).error.code, -32009);
});

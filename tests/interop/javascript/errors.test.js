// Refusals arrive as the SDK's own kinds of error, not as broken transport.

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
import { ask, cancel, collect, connect, get, message, say, url, MODES, watch } from './talk.js';

const UNKNOWN = { id: 'task_that_nobody_ever_made', contextId: '' };

const OPERATIONS = {
  get,
  cancel,
  subscribe: watch,
  send: (client, task) => client.sendMessage(say('more', task)),
  stream: (client, task) => collect(client.sendMessageStream(say('more', task))),
};

for (const mode of MODES) {
  for (const [name, operation] of Object.entries(OPERATIONS)) {
    test(`${mode.name}: an unknown task is not found by ${name}`, async () => {
      await assert.rejects(operation(await connect('echo', mode), UNKNOWN), TaskNotFoundError);
    });
  }

  test(`${mode.name}: a task is unknown to other agents`, async () => {
    const task = await ask(await connect('echo', mode), say('mine'));
    await assert.rejects(get(await connect('approver', mode), task), TaskNotFoundError);
  });

  for (const name of ['send', 'stream']) {
    test(`${mode.name}: a finished task takes no message by ${name}`, async () => {
      const client = await connect('echo', mode);
      const task = await ask(client, say('done at once'));
      await assert.rejects(OPERATIONS[name](client, task), UnsupportedOperationError);
    });
  }

  test(`${mode.name}: a message without parts is refused as invalid parameters`, async () => {
    const client = await connect('echo', mode);
    await assert.rejects(client.sendMessage(message([])), RequestMalformedError);
  });

  // The client itself refuses when the card offers no push; this asks the server past it.
  test(`${mode.name}: push is refused as unsupported`, async () => {
    const client = await connect('echo', mode);
    const task = await ask(client, say('no push'));
    const config = { taskId: task.id, id: 'mine', url: 'https://example.com/hook', token: '', tenant: '' };
    const serviceParameters = { 'A2A-Version': mode.version };
    await assert.rejects(
      client.transport.createTaskPushNotificationConfig(config, { serviceParameters }),
      PushNotificationNotSupportedError,
    );
  });
}

for (const mode of MODES.filter(({ version }) => version === '1.0')) {
  test(`${mode.name}: an extension that is required has to be known`, async () => {
    const client = await connect('strict', mode);
    await assert.rejects(ask(client, say('may I?')), ExtensionSupportRequiredError);
    const serviceParameters = { 'A2A-Extensions': 'urn:example:strict' };
    const task = await client.sendMessage(say('may I?'), { serviceParameters });
    assert.equal(task.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
  });

  test(`${mode.name}: an answer nobody could read is not begun`, async () => {
    const client = await connect('approver', mode);
    const request = say('may I?');
    request.configuration = SendMessageConfiguration.fromJSON({ acceptedOutputModes: ['image/png'] });
    await assert.rejects(ask(client, request), ContentTypeNotSupportedError);
  });

  test(`${mode.name}: a finished task takes no subscriber`, async () => {
    const client = await connect('echo', mode);
    const task = await ask(client, say('done at once'));
    await assert.rejects(watch(client, task), UnsupportedOperationError);
  });
}

for (const mode of MODES.filter(({ version }) => version === '0.3')) {
  test(`${mode.name}: a subscriber of a finished task learns its outcome`, async () => {
    const client = await connect('echo', mode);
    const task = await ask(client, say('done at once'));
    const events = await watch(client, task);
    assert.equal(events.length, 1);
    assert.deepEqual(events[0].value.status, task.status);
  });
}

test('a version nobody speaks is refused as such', async () => {
  const body = { jsonrpc: '2.0', id: 7, method: 'GetTask', params: { id: UNKNOWN.id } };
  const headers = { 'Content-Type': 'application/json', 'A2A-Version': '99.0' };
  const answer = await fetch(`${url}/a2a/echo`, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.equal((await answer.json()).error.code, -32009);
});

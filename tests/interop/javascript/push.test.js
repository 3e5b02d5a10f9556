// Push notifications: the SDK registers webhooks and reads the notifications with its own types.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { StreamResponse, TaskPushNotificationConfig, TaskState } from '@a2a-js/sdk';
import { legacyPushNotificationToV1StreamResponse } from '@a2a-js/sdk/compat/v0_3';
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server';
import { V1PushNotificationSerializer } from '@a2a-js/sdk/server';
import { connect, get, MODES, send, userMessage } from './helpers.js';
import { Server } from './server.js';

const MASKED = '***';

let server;

before(async () => {
  // Receivers are on this machine.
  server = await Server.start({
    A2AD_AGENTS__APPROVER__PUSH: 'true',
    A2AD_AGENTS__ECHO__PUSH: 'true',
    A2AD_OUTBOUND__ALLOW: '127.0.0.0/8',
    A2AD_OUTBOUND__ALLOW_HTTP: 'true',
  });
});

after(() => server.remove());

/** Receives notifications until the test ends. */
async function receive(t) {
  const notifications = [];
  const waiting = new Set();
  const receiver = createServer(async (request, response) => {
    const chunks = await request.toArray();
    notifications.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) });
    response.writeHead(204).end();
    waiting.forEach((check) => check());
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  t.after(() => {
    receiver.close();
    receiver.closeAllConnections();
  });
  const url = `http://127.0.0.1:${receiver.address().port}/hook`;
  /** The first notification of a task in this state; all that came are in `notifications`. */
  const inState = (state, mode) =>
    new Promise((resolve) => {
      const check = () => {
        const found = notifications.find(({ body }) => taskOf(body, mode).status.state === state);
        if (found) {
          waiting.delete(check);
          resolve(found);
        }
      };
      waiting.add(check);
      check();
    });
  return { url, notifications, inState };
}

/** The task of a notification, as a receiver reads it with the SDK. */
function taskOf(body, { version }) {
  const response = version === '1.0' ? StreamResponse.fromJSON(body) : legacyPushNotificationToV1StreamResponse(body);
  assert.equal(response.payload.$case, 'task');
  return response.payload.value;
}

/** Asserts that the SDK's own sender would have sent the same. */
function assertSentBySdk({ headers, body }, { version }) {
  const [serializer, response] =
    version === '1.0'
      ? [new V1PushNotificationSerializer(), StreamResponse.fromJSON(body)]
      : [new V03PushNotificationSerializer(), legacyPushNotificationToV1StreamResponse(body)];
  const expected = serializer.serialize(response, response.payload.value);
  assert.equal(headers['content-type'], expected.contentType);
  assert.deepEqual(body, JSON.parse(expected.body));
}

function config(fields) {
  return TaskPushNotificationConfig.fromJSON(fields);
}

for (const mode of MODES) {
  test(`${mode.name}: inline config is notified of the finished task`, async (t) => {
    const receiver = await receive(t);
    const client = await connect('echo', { ...mode, server: server.url });
    const request = userMessage('hello');
    request.configuration = {
      acceptedOutputModes: [],
      returnImmediately: false,
      historyLength: undefined,
      taskPushNotificationConfig: config({ url: receiver.url, token: 'secret' }),
    };
    const task = await send(client, request);
    const notification = await receiver.inState(TaskState.TASK_STATE_COMPLETED, mode);
    assertSentBySdk(notification, mode);
    assert.equal(notification.headers['x-a2a-notification-token'], 'secret');
    const read = await connect('echo', { version: mode.version, server: server.url });
    assert.deepEqual(taskOf(notification.body, mode), await get(read, task));
  });

  test(`${mode.name}: config is created, read without its secrets, and deleted`, async (t) => {
    const receiver = await receive(t);
    const client = await connect('approver', { ...mode, server: server.url });
    const task = await send(client, userMessage('jump'));
    const id = 'mine';
    const authentication = { scheme: 'Bearer', credentials: 'credential' };
    const given = { id, taskId: task.id, url: receiver.url, token: 'secret', authentication };
    const created = await client.createTaskPushNotificationConfig(config(given));
    assert.deepEqual({ ...created, tenant: '' }, config(given));

    const masked = { ...given, token: MASKED, authentication: { ...authentication, credentials: MASKED } };
    const read = await client.getTaskPushNotificationConfig({ taskId: task.id, id, tenant: '' });
    assert.deepEqual({ ...read, tenant: '' }, config(masked));
    const list = async () => {
      const request = { taskId: task.id, pageSize: 0, pageToken: '', tenant: '' };
      return (await client.listTaskPushNotificationConfig(request)).configs;
    };
    assert.deepEqual(await list(), [read]);

    await receiver.inState(TaskState.TASK_STATE_INPUT_REQUIRED, mode);
    await send(client, userMessage('approve', task));
    const notification = await receiver.inState(TaskState.TASK_STATE_COMPLETED, mode);
    assertSentBySdk(notification, mode);
    assert.equal(notification.headers.authorization, 'Bearer credential');

    await client.deleteTaskPushNotificationConfig({ taskId: task.id, id, tenant: '' });
    assert.deepEqual(await list(), []);
  });
}

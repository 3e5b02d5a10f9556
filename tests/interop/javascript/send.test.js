// Sending without streaming, and reading back what was stored.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ListTasksRequest, Role, TaskState } from '@a2a-js/sdk';
import {
  assertEndsOnce,
  connect,
  get,
  message,
  MODES,
  send,
  startTask,
  subscribe,
  TERMINAL,
  userMessage,
} from './helpers.js';

/** The part that a lossy client reads. */
function asRead(part) {
  const { $case, value } = part.content;
  const content = $case === 'raw' ? { $case, value: Buffer.from(value.toString('base64')) } : part.content;
  return { ...part, content, filename: '' };
}

for (const mode of MODES) {
  test(`${mode.name}: blocking send returns the finished task`, async () => {
    const request = userMessage('hello');
    const task = await send(await connect('echo', mode), request);
    assert.ok(task.id && task.contextId);
    assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
    assert.ok(Date.parse(task.status.timestamp));
    assert.equal(task.history[0].messageId, request.message.messageId);
    assert.equal(task.history[0].role, Role.ROLE_USER);
    assert.deepEqual(task.history[0].parts, request.message.parts);
  });

  test(`${mode.name}: every kind of part is echoed unchanged`, async () => {
    const request = message([
      { text: 'Grüße, 世界 \u2028 "quoted"' },
      { data: { number: 1.5, nested: [true, null, { text: '' }], empty: {} } },
      {
        raw: Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte)).toString('base64'),
        mediaType: 'application/octet-stream',
        filename: 'all.bin',
      },
      { url: 'https://example.com/a%20b?c=d', mediaType: 'image/png', filename: 'b.png' },
    ]);
    const task = await send(await connect('echo', mode), request);
    assert.equal(task.artifacts.length, 1);
    const { parts } = request.message;
    assert.deepEqual(task.artifacts[0].parts, mode.lossy ? parts.map(asRead) : parts);
  });

  test(`${mode.name}: stored task equals the response`, async () => {
    const created = await send(await connect('echo', mode), userMessage('keep this'));
    assert.deepEqual(await get(await connect('echo', mode), created), created);
  });

  test(`${mode.name}: non-blocking send returns before the end`, async () => {
    const client = await connect('slow-writer', mode);
    const task = await startTask('slow-writer', 'sections=5 delay=100ms', mode);
    assert.ok(!TERMINAL.includes(task.status.state));
    assertEndsOnce(await subscribe(client, task), TaskState.TASK_STATE_COMPLETED);
  });
}

test('stored task is the same in every version and binding', async () => {
  const clients = await Promise.all(MODES.map((mode) => connect('echo', mode)));
  for (const writer of clients) {
    const task = await send(writer, userMessage('for all'));
    for (const reader of clients) {
      assert.deepEqual(await get(reader, task), task);
    }
  }
});

for (const mode of MODES.filter(({ version }) => version === '1.0')) {
  test(`${mode.name}: tasks of one context are paged newest first`, async () => {
    const client = await connect('echo', mode);
    const first = await send(client, userMessage('first'));
    const later = [];
    for (const text of ['second', 'third']) {
      later.push(await send(client, userMessage(text, { id: '', contextId: first.contextId })));
    }
    const list = (pageToken) =>
      client.listTasks(ListTasksRequest.fromJSON({ contextId: first.contextId, pageSize: 2, pageToken }));
    const ids = ({ tasks }) => tasks.map(({ id }) => id);
    const page = await list('');
    assert.deepEqual(ids(page), [later[1].id, later[0].id]);
    assert.deepEqual([page.totalSize, page.pageSize], [3, 2]);
    const rest = await list(page.nextPageToken);
    assert.deepEqual(ids(rest), [first.id]);
    assert.equal(rest.nextPageToken, '');
  });
}

// Sending without streaming, and reading back what was stored.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ListTasksRequest, Role, TaskState } from '@a2a-js/sdk';
import { ask, assertEndsOnce, begin, connect, get, message, say, TERMINAL, MODES, watch } from './talk.js';

/** A part as a lossy client reads it. */
function asRead(part) {
  const { $case, value } = part.content;
  const content = $case === 'raw' ? { $case, value: Buffer.from(value.toString('base64')) } : part.content;
  return { ...part, content, filename: '' };
}

for (const mode of MODES) {
  test(`${mode.name}: a blocking send returns the finished task`, async () => {
    const request = say('hello');
    const task = await ask(await connect('echo', mode), request);
    assert.ok(task.id && task.contextId);
    assert.equal(task.status.state, TaskState.TASK_STATE_COMPLETED);
    assert.ok(Date.parse(task.status.timestamp));
    assert.equal(task.history[0].messageId, request.message.messageId);
    assert.equal(task.history[0].role, Role.ROLE_USER);
    assert.deepEqual(task.history[0].parts, request.message.parts);
  });

  test(`${mode.name}: every kind of part comes back as it was sent`, async () => {
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
    const task = await ask(await connect('echo', mode), request);
    assert.equal(task.artifacts.length, 1);
    const { parts } = request.message;
    assert.deepEqual(task.artifacts[0].parts, mode.lossy ? parts.map(asRead) : parts);
  });

  test(`${mode.name}: a stored task reads as it was answered`, async () => {
    const answered = await ask(await connect('echo', mode), say('keep this'));
    assert.deepEqual(await get(await connect('echo', mode), answered), answered);
  });

  test(`${mode.name}: a send that does not wait returns before the end`, async () => {
    const client = await connect('slow-writer', mode);
    const task = await begin('slow-writer', 'sections=5 delay=100ms', mode);
    assert.ok(!TERMINAL.includes(task.status.state));
    assertEndsOnce(await watch(client, task), TaskState.TASK_STATE_COMPLETED);
  });
}

test('a task of any version and binding reads the same in every other', async () => {
  const clients = await Promise.all(MODES.map((mode) => connect('echo', mode)));
  for (const writer of clients) {
    const task = await ask(writer, say('for all'));
    for (const reader of clients) {
      assert.deepEqual(await get(reader, task), task);
    }
  }
});

for (const mode of MODES.filter(({ version }) => version === '1.0')) {
  test(`${mode.name}: tasks of one context are listed page by page, newest first`, async () => {
    const client = await connect('echo', mode);
    const first = await ask(client, say('first'));
    const later = [];
    for (const text of ['second', 'third']) {
      later.push(await ask(client, say(text, { id: '', contextId: first.contextId })));
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

// Cancelling: granted once, final, and refused ever after.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TaskState } from '@a2a-js/sdk';
import { TaskNotCancelableError } from '@a2a-js/sdk/errors';
import { ask, begin, cancel, connect, get, say, TERMINAL, MODES } from './talk.js';

for (const mode of MODES) {
  test(`${mode.name}: a running task is cancelled for good`, async () => {
    const client = await connect('echo', mode);
    const task = await begin('echo', 'hold this', mode);
    assert.ok(!TERMINAL.includes(task.status.state));
    const canceled = await cancel(client, task);
    assert.deepEqual([canceled.id, canceled.status.state], [task.id, TaskState.TASK_STATE_CANCELED]);
    await assert.rejects(cancel(client, task), TaskNotCancelableError);
    assert.deepEqual((await get(client, task)).status, canceled.status);
  });

  test(`${mode.name}: a waiting task can be cancelled`, async () => {
    const client = await connect('approver', mode);
    const canceled = await cancel(client, await ask(client, say('may I?')));
    assert.equal(canceled.status.state, TaskState.TASK_STATE_CANCELED);
  });

  test(`${mode.name}: a finished task is not cancelable and stays as it is`, async () => {
    const client = await connect('echo', mode);
    const task = await ask(client, say('done at once'));
    await assert.rejects(cancel(client, task), TaskNotCancelableError);
    assert.deepEqual(await get(client, task), task);
  });
}

// The script of the page at `/`, as the server sends it: its parser, its view of a task, and its calls, first to a
// scripted server and then to the real one.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { url } from './helpers.js';

const response = await fetch(`${url}/`, { headers: { Accept: 'text/html' } });
const html = await response.text();
const [, script] = /<script type="module">(.*?)<\/script>/s.exec(html);
const [, style] = /<style>(.*?)<\/style>/s.exec(html);
const { Conversation, EMPTY, EventParser, reduce, statusText } = await import(
  `data:text/javascript;base64,${Buffer.from(script).toString('base64')}`
);

test('policy permits the style and the script of the page, and nothing else', () => {
  const policy = response.headers.get('Content-Security-Policy').split('; ');
  const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  assert.ok(policy.includes("default-src 'none'"));
  assert.ok(policy.includes(`script-src ${hash(script)}`));
  assert.ok(policy.includes(`style-src ${hash(style)}`));
  assert.ok(policy.includes("connect-src 'self'"));
  assert.doesNotMatch(html.replace(script, ''), /<script[^>]*src|<link|<img|\son[a-z]+=|\sstyle=/);
});

test('parser returns the same events however the text is split', () => {
  const text = [
    ': comment\nid: 1\ndata: a\n\n',
    'id:2\r\ndata:  b\r\ndata\r\ndata: c: d\r\n\r\n',
    'event: x\rdata: e\u2028\r\rretry: 1\n:\n\n',
    'data: f\n\nid: 9\ndata: incomplete',
  ].join('');
  const events = [
    { id: '1', data: 'a' },
    { id: '2', data: ' b\n\nc: d' },
    { id: '2', data: 'e\u2028' },
    { id: '2', data: 'f' },
  ];
  for (let first = 0; first <= text.length; first += 1) {
    for (let second = first; second <= text.length; second += 1) {
      const parser = new EventParser();
      const pieces = [text.slice(0, first), text.slice(first, second), text.slice(second)];
      assert.deepEqual(
        pieces.flatMap((piece) => parser.push(piece)),
        events,
      );
    }
  }
});

const ids = { taskId: 't', contextId: 'c' };
const agentMessage = (messageId, text) => ({ messageId, role: 'ROLE_AGENT', parts: [{ text }] });
const task = (state, rest = {}) => ({ task: { id: 't', contextId: 'c', status: { state }, ...rest } });
const status = (state, message) => ({ statusUpdate: { ...ids, status: { state, message } } });
const chunk = (artifactId, text, append) => ({
  artifactUpdate: { ...ids, artifact: { artifactId, parts: [{ text }] }, append },
});
const view = (...events) => events.reduce(reduce, EMPTY);
const shown = ({ entries }) => entries.map(({ kind, text }) => [kind, text]);

test('chunks are appended to their artifact, or replace it', () => {
  const done = view(
    task('TASK_STATE_SUBMITTED'),
    status('TASK_STATE_WORKING', agentMessage('m1', 'one')),
    chunk('a', 'Hel'),
    status('TASK_STATE_WORKING', agentMessage('m2', 'two')),
    chunk('b', 'draft'),
    chunk('a', 'lo', true),
    chunk('b', 'final', false),
    status('TASK_STATE_COMPLETED'),
  );
  assert.deepEqual(shown(done), [
    ['progress', 'one\ntwo'],
    ['artifact', 'Hello'],
    ['artifact', 'final'],
  ]);
  assert.deepEqual([done.taskId, done.contextId, done.state], ['t', 'c', 'TASK_STATE_COMPLETED']);
  assert.equal(statusText(done), 'Completed');
});

test('snapshot with only a status keeps what was received', () => {
  const resumed = view(
    task('TASK_STATE_WORKING'),
    status('TASK_STATE_WORKING', agentMessage('m1', 'one')),
    chunk('a', 'Hel'),
    task('TASK_STATE_WORKING', { status: { state: 'TASK_STATE_WORKING', message: agentMessage('m1', 'one') } }),
    chunk('a', 'lo', true),
  );
  assert.deepEqual(shown(resumed), [
    ['progress', 'one'],
    ['artifact', 'Hello'],
  ]);
});

test('complete snapshot replaces artifacts and repeats no message', () => {
  const artifacts = [{ artifactId: 'a', name: 'note', parts: [{ text: 'Hello' }, { data: { n: 1 } }] }];
  const question = agentMessage('m2', 'which?');
  const history = [{ ...agentMessage('u', 'go'), role: 'ROLE_USER' }, agentMessage('m1', 'one'), question];
  const asked = view(
    status('TASK_STATE_WORKING', agentMessage('m1', 'one')),
    chunk('a', 'Hel'),
    task('', { status: { state: 'TASK_STATE_INPUT_REQUIRED', message: question }, artifacts, history }),
  );
  assert.deepEqual(shown(asked), [
    ['progress', 'one'],
    ['artifact', 'Hello{\n  "n": 1\n}\n'],
    ['question', 'which?'],
  ]);
  assert.deepEqual(shown(view(task('TASK_STATE_WORKING', { artifacts, history })))[0], ['progress', 'one\nwhich?']);
});

test('every kind of part and message is shown as text', () => {
  const parts = [
    { raw: 'dHdv', filename: 'two.bin', mediaType: 'a/b' },
    { url: 'https://f.example/3' },
    { data: null },
    { text: '<b>' },
  ];
  const text = 'two.bin (a/b, 3 bytes)\n\nfile: https://f.example/3\n\nnull\n\n<b>';
  const answered = view({ message: { ...agentMessage('m', ''), parts } });
  assert.deepEqual([shown(answered), answered.state], [[['answer', text]], 'ANSWERED']);
  assert.deepEqual(shown(view(status('TASK_STATE_FAILED', agentMessage('m', 'no')))), [['error', 'no']]);
  assert.deepEqual(shown(view(status('TASK_STATE_COMPLETED', agentMessage('m', 'yes')))), [['answer', 'yes']]);
  assert.deepEqual(view({ later: 1 }), EMPTY);
});

/** A conversation with a server that gives one reply to each request: a function, or a response. */
function scripted(replies, options = {}) {
  const requests = [];
  const request = async (path, { headers, body, signal }) => {
    requests.push({ path, headers, ...JSON.parse(body) });
    const reply = replies.shift();
    return typeof reply === 'function' ? reply(signal) : reply;
  };
  const conversation = new Conversation({ path: 'a2a/x', streaming: true, request, retryMs: 1, ...options });
  return { requests, conversation };
}

const stream = (...events) => {
  const text = events.map(([id, result]) => `id: ${id}\ndata: ${JSON.stringify({ result })}\n\n`).join('');
  return new Response(text, { headers: { 'Content-Type': 'text/event-stream' } });
};
const json = (body, status = 200) => Response.json(body, { status });
const unreachable = () => Promise.reject(new TypeError('fetch failed'));

test('lost stream is resumed after the last event', async () => {
  const { requests, conversation } = scripted([
    stream([1, task('TASK_STATE_SUBMITTED')], [4, chunk('a', 'Hel')]),
    unreachable,
    json({ error: { code: -32000, message: 'it restarts' } }, 503),
    new Response('bad gateway', { status: 502 }),
    stream([4, task('TASK_STATE_WORKING')], [5, chunk('a', 'lo', true)], [6, status('TASK_STATE_COMPLETED')]),
  ]);
  const notices = new Set();
  conversation.changed = () => notices.add(conversation.view.notice);
  assert.equal(await conversation.send('hi'), true);
  assert.deepEqual(shown(conversation.view), [
    ['sent', 'hi'],
    ['artifact', 'Hello'],
  ]);
  assert.deepEqual(
    [...notices].filter(Boolean),
    [
      'The connection was lost.',
      'The server cannot be reached.',
      'The server is not available: it restarts.',
      'The server is not available: HTTP status 502 without an A2A response.',
    ].map((text) => `${text} Trying again every second.`),
  );
  assert.equal(statusText(conversation.view), 'Completed');
  assert.equal(requests.length, 5);
  const [first, ...resumed] = requests;
  assert.equal(first.path, 'a2a/x');
  assert.equal(first.method, 'SendStreamingMessage');
  assert.equal(first.headers['A2A-Version'], '1.0');
  assert.equal(first.headers.Accept, 'text/event-stream');
  assert.equal(first.headers['Last-Event-ID'], undefined);
  for (const { method, params, headers } of resumed) {
    assert.deepEqual([method, params, headers['Last-Event-ID']], ['SubscribeToTask', { id: 't' }, '4']);
    assert.equal(headers.Accept, 'text/event-stream');
  }
});

test('message without a response is sent again with the same id', async () => {
  const { requests, conversation } = scripted([unreachable, stream(), stream([1, task('TASK_STATE_COMPLETED')])]);
  assert.equal(await conversation.send('hi'), true);
  assert.deepEqual(
    requests.map(({ method }) => method),
    Array(3).fill('SendStreamingMessage'),
  );
  assert.equal(new Set(requests.map(({ params }) => params.message.messageId)).size, 1);
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  assert.match(requests[0].params.message.messageId, uuid);
});

test('answer goes to the task that asks, also after it was refused', async () => {
  const question = status('TASK_STATE_INPUT_REQUIRED', agentMessage('m1', 'which?'));
  const { requests, conversation } = scripted([
    stream([1, task('TASK_STATE_WORKING')], [2, question]),
    json({ error: { code: -32602, message: 'too short' } }),
    stream([3, task('TASK_STATE_WORKING')], [4, status('TASK_STATE_COMPLETED')]),
    stream([1, task('TASK_STATE_COMPLETED')]),
  ]);
  await conversation.send('go');
  assert.match(statusText(conversation.view), /The agent asks/);
  assert.equal(await conversation.send('a'), false);
  assert.equal(statusText(conversation.view), 'The call failed');
  assert.equal(await conversation.send('this one'), true);
  assert.deepEqual(shown(conversation.view), [
    ['sent', 'go'],
    ['question', 'which?'],
    ['sent', 'a'],
    ['error', 'too short'],
    ['sent', 'this one'],
  ]);
  await conversation.send('again');
  assert.deepEqual(shown(conversation.view), [['sent', 'again']]);
  const targets = requests.map(({ params: { message } }) => [message.taskId, message.contextId]);
  assert.deepEqual(targets, [[undefined, undefined], ['t', 'c'], ['t', 'c'], [undefined, undefined]]);
});

test('stream that stays open after a question is closed', async () => {
  let closed = false;
  const result = status('TASK_STATE_AUTH_REQUIRED', agentMessage('m', 'log in'));
  const text = `data: ${JSON.stringify({ result })}\n\n`;
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
    cancel: () => {
      closed = true;
    },
  });
  const { conversation } = scripted([new Response(body, { headers: { 'Content-Type': 'text/event-stream' } })]);
  await conversation.send('hi');
  assert.ok(closed);
  assert.match(statusText(conversation.view), /needs a credential/);
});

test('cancel without a connection ends the attempts', async () => {
  const { requests, conversation } = scripted(Array(100).fill(unreachable), { retryMs: 60_000 });
  const sent = conversation.send('hi');
  while (!conversation.view.lost) {
    await new Promise(setImmediate);
  }
  await conversation.cancel();
  assert.equal(await sent, false);
  assert.deepEqual([statusText(conversation.view), requests.length, conversation.view.busy], ['Stopped', 1, false]);
});

test('errors are shown with the message of the server', async () => {
  const { conversation } = scripted([
    json({ error: { code: -32000, message: 'agent "x" is disabled' } }, 404),
    new Response('<h1>Not here</h1>', { status: 404 }),
    new Response('data: {"error":{"message":"the store failed"}}\n\n', {
      headers: { 'Content-Type': 'text/event-stream' },
    }),
  ]);
  for (const expected of ['agent "x" is disabled', 'HTTP status 404 without an A2A response', 'the store failed']) {
    assert.equal(await conversation.send('hi'), false);
    assert.deepEqual(shown(conversation.view), [
      ['sent', 'hi'],
      ['error', expected],
    ]);
    assert.equal(statusText(conversation.view), 'The call failed');
  }
});

const talk = (agent, options = {}) =>
  new Conversation({ path: `${url}/a2a/${agent}`, streaming: true, retryMs: 10, pollMs: 10, ...options });

for (const streaming of [true, false]) {
  const mode = streaming ? 'streaming' : 'polling';

  test(`${mode}: agents of the server can be called`, async () => {
    const echo = talk('echo', { streaming });
    await echo.send('hello <b>');
    assert.deepEqual(shown(echo.view), [
      ['sent', 'hello <b>'],
      ['artifact', 'hello <b>'],
    ]);
    assert.equal(statusText(echo.view), 'Completed');

    const approver = talk('approver', { streaming });
    await approver.send('may I?');
    const { taskId } = approver.view;
    assert.equal(approver.view.entries.at(-1).kind, 'question');
    await approver.send('approve');
    assert.deepEqual([approver.view.taskId, statusText(approver.view)], [taskId, 'Completed']);
    assert.equal(approver.view.entries.filter(({ kind }) => kind === 'question').length, 1);
  });

  test(`${mode}: task is canceled`, async () => {
    let cancel;
    const echo = talk('echo', { streaming });
    echo.changed = () => {
      if (echo.view.state === 'TASK_STATE_WORKING') cancel ??= echo.cancel();
    };
    await echo.send('hold on');
    await cancel;
    assert.deepEqual([statusText(echo.view), echo.view.busy, echo.view.canceling], ['Canceled', false, false]);
    assert.ok(echo.view.entries.every(({ kind }) => kind !== 'error'));
  });
}

test('broken streams of the server lose and repeat nothing', async () => {
  const whole = talk('slow-writer');
  await whole.send('the sea sections=6 delay=30ms');
  const { text } = whole.view.entries.find(({ kind }) => kind === 'artifact');

  let broken = 0;
  // Each connection delivers two pieces and then breaks.
  const request = async (...args) => {
    const response = await fetch(...args);
    let pieces = 0;
    const transform = (piece, controller) => {
      pieces += 1;
      if (pieces <= 2) {
        controller.enqueue(piece);
      } else {
        broken += 1;
        controller.error(new TypeError('network error'));
      }
    };
    return new Response(response.body.pipeThrough(new TransformStream({ transform })), response);
  };
  const writer = talk('slow-writer', { request });
  await writer.send('the sea sections=6 delay=30ms');
  assert.ok(broken > 1, `${broken}`);
  assert.equal(statusText(writer.view), 'Completed');
  assert.deepEqual(shown(writer.view), [
    ['sent', 'the sea sections=6 delay=30ms'],
    ...shown(whole.view).slice(1),
  ]);
  assert.equal(writer.view.entries.find(({ kind }) => kind === 'artifact').text, text);
});

// Pages of other origins in a real browser: they reach no agent and read nothing, except where the configuration
// permits their origin, and public cards.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, newPage, Recorder, serveSite } from './browser.js';
import { Server } from './server.js';

const CARDS = ['/.well-known/agent-card.json', '/a2a/echo/.well-known/agent-card.json', '/.well-known/agent.json'];
const JSON_TYPE = { 'Content-Type': 'application/json' };
const VERSION = { 'A2A-Version': '1.0' };

const rpc = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
const message = (text) => ({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text }] } });
const legacySend = rpc('message/send', {
  message: { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
});

/** Every way in which a page can send a request, for `attempt`. Most do not need a preflight. */
const ways = (task) => {
  const send = rpc('SendMessage', message('hi'));
  const stream = rpc('SendStreamingMessage', message('hi'));
  const [echo, tasks, events] = ['/a2a/echo', '/a2a/approver/tasks', `/a2a/approver/tasks/${task}:subscribe`];
  return {
    'plain text': { how: 'fetch', path: echo, body: 'hi', mode: 'no-cors' },
    'plain text to the default agent': { how: 'fetch', path: '/a2a/demo', body: 'hi', mode: 'no-cors' },
    'JSON-RPC as plain text': { how: 'fetch', path: echo, body: send, mode: 'no-cors' },
    'JSON-RPC without a content type': { how: 'fetch', path: echo, body: send, untyped: true, mode: 'no-cors' },
    'JSON-RPC at the root': { how: 'fetch', path: '/', body: send, untyped: true, mode: 'no-cors' },
    'JSON-RPC of 0.3': { how: 'fetch', path: echo, body: legacySend, untyped: true, mode: 'no-cors' },
    'JSON-RPC with a content type': { how: 'fetch', path: echo, body: send, headers: { ...JSON_TYPE, ...VERSION } },
    'JSON-RPC that streams': { how: 'fetch', path: echo, body: stream, untyped: true },
    'HTTP+JSON': {
      how: 'fetch',
      path: `${echo}/message:send`,
      body: JSON.stringify(message('hi')),
      headers: JSON_TYPE,
    },
    form: { how: 'form', path: echo, body: rpc('SendMessage', message('a=b')) },
    beacon: { how: 'beacon', path: echo, body: 'hi', type: 'text/plain' },
    'beacon without a content type': { how: 'beacon', path: '/', body: send, type: '' },
    'event source': { how: 'events', path: events },
    'list of tasks': { how: 'fetch', path: tasks },
    'list of tasks without CORS': { how: 'fetch', path: tasks, mode: 'no-cors' },
    'list of tasks as an image': { how: 'img', path: tasks },
    'list of tasks as a script': { how: 'script', path: tasks },
    'list of tasks in a frame': { how: 'iframe', path: tasks },
    'home page in a frame': { how: 'iframe', path: '/' },
    cancel: {
      how: 'fetch',
      path: '/a2a/approver',
      body: rpc('CancelTask', { id: task }),
      untyped: true,
      mode: 'no-cors',
    },
  };
};

/** Runs in the page. Sends one request and returns what the page could read of the response. */
async function attempt({ how, server, path, body, type, headers, mode = 'cors', untyped }) {
  const url = server + path;
  const settled = (target) =>
    new Promise((resolve) => ['load', 'error'].forEach((name) => target.addEventListener(name, resolve)));
  const embed = async (element, attributes) => {
    const done = settled(Object.assign(element, attributes));
    document.body.append(element);
    await done;
    return element.contentDocument?.body?.innerText ?? '';
  };
  switch (how) {
    case 'fetch': {
      const content = untyped ? new Blob([body]) : body;
      const method = body === undefined ? 'GET' : 'POST';
      const response = await fetch(url, { method, mode, headers, body: content }).catch(() => undefined);
      return response ? await response.text() : '';
    }
    case 'form': {
      // The body is the name, an equals sign and the value.
      const [name, value] = body.split('=');
      const frame = Object.assign(document.createElement('iframe'), { name: `f${Math.random()}` });
      document.body.append(frame);
      const form = Object.assign(document.createElement('form'), {
        method: 'POST',
        action: url,
        enctype: 'text/plain',
        target: frame.name,
      });
      form.append(Object.assign(document.createElement('input'), { name, value }));
      document.body.append(form);
      const done = settled(frame);
      form.submit();
      await done;
      return frame.contentDocument?.body?.innerText ?? '';
    }
    case 'beacon':
      navigator.sendBeacon(url, new Blob([body], { type }));
      return '';
    case 'events': {
      const source = new EventSource(url);
      const data = await new Promise((resolve) => {
        source.onmessage = (event) => resolve(event.data);
        source.onerror = () => resolve('');
      });
      source.close();
      return data;
    }
    default:
      return embed(document.createElement(how), { src: url });
  }
}

/** Sends a request to the server in every way; returns the responses of the server and what the page could read. */
async function attemptAll(frame, recorder, server, task) {
  const results = [];
  for (const [name, way] of Object.entries(ways(task))) {
    const read = await frame.evaluate(attempt, { ...way, server });
    results.push({ name, read, exchanges: await recorder.take() });
  }
  return results;
}

let browser;
let server;
let recorder;
let site;

before(async () => {
  [browser, server, site] = await Promise.all([launch(), Server.start(), serveSite()]);
  recorder = await Recorder.start(server.url);
});

after(async () => {
  recorder?.close();
  site?.close();
  await Promise.all([browser?.close(), server?.remove()]);
});

/** Calls the server from outside of a browser. */
async function call(agent, method, params = {}) {
  const response = await fetch(`${server.url}/a2a/${agent}`, {
    method: 'POST',
    headers: { ...JSON_TYPE, ...VERSION },
    body: rpc(method, params),
  });
  const { result, error } = await response.json();
  assert.equal(error, undefined);
  return result;
}

/** The tasks of the agents that the pages try to call. */
async function allTasks() {
  const parameters = { includeArtifacts: true, historyLength: 100, pageSize: 100 };
  const lists = ['demo', 'echo', 'approver'].map((agent) => call(agent, 'ListTasks', parameters));
  return (await Promise.all(lists)).flatMap(({ tasks }) => tasks);
}

/** A task that waits for an answer. */
async function waitingTask() {
  const { task } = await call('approver', 'SendMessage', message('wait'));
  assert.equal(task.status.state, 'TASK_STATE_INPUT_REQUIRED');
  return task.id;
}

/** Opens a page, calls `use` with it and the response, and closes it. */
async function withPage(url, use) {
  const page = await newPage(browser);
  try {
    await use(page, await page.goto(url));
  } finally {
    await page.context().close();
  }
}

/** A frame whose origin is `null`: it has these attributes. */
async function nullFrame(page, attributes) {
  const handle = await page.evaluateHandle((attributes) => {
    const frame = Object.assign(document.createElement('iframe'), attributes);
    document.body.append(frame);
    return new Promise((resolve) => frame.addEventListener('load', () => resolve(frame)));
  }, attributes);
  const frame = await handle.asElement().contentFrame();
  assert.equal(await frame.evaluate(() => self.origin), 'null');
  return frame;
}

/** Asserts that a page reaches no agent of the server, and that all it can read matches `readable`. */
async function assertRefused(frame, target, readable = /^$/) {
  const task = await waitingTask();
  const before = await allTasks();
  for (const { name, read, exchanges } of await attemptAll(frame, recorder, target, task)) {
    assert.deepEqual(statuses(exchanges), [403], name);
    assert.match(read, readable, name);
  }
  assert.deepEqual(await allTasks(), before);
}

const statuses = (exchanges) => exchanges.map(({ status }) => status);

/** The URLs of the server, by number and by name. */
const targets = () => ['127.0.0.1', 'localhost'].map((host) => `http://${host}:${recorder.port}`);

// Without this, the tests below could pass because the requests are not valid.
test('page of the server itself can send in each of the ways', async () => {
  for (const target of targets()) {
    await withPage(`${target}/healthz`, async (page) => {
      await recorder.take();
      const before = await allTasks();
      const results = await attemptAll(page.mainFrame(), recorder, target, await waitingTask());
      for (const { name, exchanges } of results) {
        assert.deepEqual(statuses(exchanges), [200], name);
      }
      const unread = results.filter(({ read }) => !read).map(({ name }) => name);
      assert.deepEqual(unread, [
        'beacon',
        'beacon without a content type',
        'list of tasks as an image',
        'list of tasks as a script',
        'home page in a frame',
      ]);
      // Each POST but the cancel made a task, and there is the one to cancel.
      const posts = Object.values(ways('')).filter(({ body }) => body).length;
      assert.equal((await allTasks()).length - before.length, posts);
    });
  }
});

for (const host of ['localhost', '127.0.0.1', 'evil.test']) {
  test(`page of another origin (${host}) reaches no agent and reads nothing`, async () => {
    for (const target of targets()) {
      await withPage(`http://${host}:${site.port}/`, (page) => assertRefused(page.mainFrame(), target));
    }
  });
}

for (const [name, attributes] of Object.entries({
  'sandboxed frame': { sandbox: 'allow-scripts allow-forms', srcdoc: '<!doctype html><title>sandboxed</title>' },
  'data URL': { src: 'data:text/html,<!doctype html><title>data</title>' },
})) {
  test(`page without an origin (${name}) reaches no agent and reads nothing`, async () => {
    for (const target of targets()) {
      await withPage(`http://localhost:${site.port}/`, async (page) =>
        assertRefused(await nullFrame(page, attributes), target),
      );
    }
  });
}

test('page of a foreign name that resolves to the server is refused', async () => {
  const rebound = `http://evil.test:${recorder.port}`;
  await withPage(rebound, async (page, response) => {
    assert.equal(response.status(), 403);
    await recorder.take();
    await assertRefused(page.mainFrame(), rebound, /^$|"PERMISSION_DENIED"/);
  });
});

test('user can follow a link from another origin, whose page reads nothing', async () => {
  await withPage(`http://localhost:${site.port}/`, async (page) => {
    const opened = page.waitForEvent('popup');
    await page.evaluate((url) => {
      self.opened = window.open(url);
    }, targets()[0]);
    const popup = await opened;
    await popup.getByRole('heading', { name: 'a2ad', level: 1 }).waitFor();
    await assert.rejects(
      page.evaluate(() => self.opened.document.body.innerText),
      /SecurityError/,
    );
    assert.deepEqual(statuses(await recorder.take()), [200]);
  });
});

test('page of any origin can read public cards', async () => {
  await withPage(`http://evil.test:${site.port}/`, async (page) => {
    const sandboxed = await nullFrame(page, { sandbox: 'allow-scripts', srcdoc: '<!doctype html>' });
    for (const frame of [page.mainFrame(), sandboxed]) {
      for (const path of CARDS) {
        // The second request needs a preflight.
        for (const headers of [{}, VERSION]) {
          const card = await frame.evaluate(attempt, { how: 'fetch', server: targets()[0], path, headers });
          assert.equal(typeof JSON.parse(card).name, 'string', path);
        }
      }
    }
    const exchanges = await recorder.take();
    assert.deepEqual([...new Set(exchanges.map(({ method }) => method))].sort(), ['GET', 'OPTIONS']);
  });
});

/** Runs in the page. Calls an agent with a stream as response; returns each piece of it as it arrives. */
async function streamedPieces({ server, agent, body, headers }) {
  const response = await fetch(`${server}/a2a/${agent}`, { method: 'POST', headers, body });
  const pieces = [];
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    pieces.push(piece);
  }
  return { pieces, dialect: response.headers.get('A2AD-Dialect') };
}

test('page of a configured origin can call and stream, and no other', async (context) => {
  const configured = `http://localhost:${site.port}`;
  const other = await Server.start({ A2AD_SERVER__CORS_ORIGINS: JSON.stringify([configured]) });
  context.after(() => other.remove());
  const recorder = await Recorder.start(other.url);
  context.after(() => recorder.close());
  const target = `http://127.0.0.1:${recorder.port}`;
  const headers = { ...JSON_TYPE, ...VERSION };
  const send = { how: 'fetch', server: target, path: '/a2a/echo', body: rpc('SendMessage', message('hi')), headers };

  await withPage(configured, async (page) => {
    const { result } = JSON.parse(await page.evaluate(attempt, send));
    assert.equal(result.task.artifacts[0].parts[0].text, 'hi');
    assert.deepEqual(
      (await recorder.take()).map(({ method, origin, status }) => [method, origin, status]),
      [
        ['OPTIONS', configured, 204],
        ['POST', configured, 200],
      ],
    );
    const body = rpc('SendStreamingMessage', message('the sea sections=4 delay=50ms'));
    const stream = { server: target, agent: 'slow-writer', body, headers };
    const { pieces, dialect } = await page.evaluate(streamedPieces, stream);
    assert.ok(pieces.length > 3, `${pieces.length}`);
    assert.match(pieces.at(-1), /TASK_STATE_COMPLETED/);
    assert.match(dialect, /^1\.0/);
    await recorder.take();

    const sandboxed = await nullFrame(page, { sandbox: 'allow-scripts', srcdoc: '<!doctype html>' });
    assert.equal(await sandboxed.evaluate(attempt, send), '');
    assert.deepEqual(statuses(await recorder.take()), [403]);
  });
  await withPage(`http://127.0.0.1:${site.port}/`, async (page) => {
    for (const way of [send, { ...send, headers: {} }]) {
      assert.equal(await page.evaluate(attempt, way), '');
      assert.deepEqual(statuses(await recorder.take()), [403]);
    }
  });
});

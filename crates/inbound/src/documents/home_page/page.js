// The boxes of the page at `/`. Each sends text to one agent, with A2A 1.0 over JSON-RPC, and shows the task while it
// changes. Only the end of this file uses the document; tests import the rest. Every text of an agent or of the server
// becomes a text node.

const LABELS = {
  TASK_STATE_SUBMITTED: 'Waiting to start',
  TASK_STATE_WORKING: 'Working',
  TASK_STATE_INPUT_REQUIRED: 'The agent asks. Answer in the field above.',
  TASK_STATE_AUTH_REQUIRED: 'The agent needs a credential. Answer above.',
  TASK_STATE_COMPLETED: 'Completed',
  TASK_STATE_FAILED: 'Failed',
  TASK_STATE_CANCELED: 'Canceled',
  TASK_STATE_REJECTED: 'Rejected',
  ANSWERED: 'Answered',
};
const ASKING = ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED'];
const FAILED = ['TASK_STATE_FAILED', 'TASK_STATE_REJECTED'];
// `ANSWERED` is not a state of A2A: the agent replied with a message and there is no task.
const ENDED = [...FAILED, 'TASK_STATE_COMPLETED', 'TASK_STATE_CANCELED', 'ANSWERED'];
// HTTP statuses of a server that is restarting or has too much to do.
const TEMPORARY = [429, 502, 503, 504];

/** Parses server-sent events from text that arrives in pieces of any size. */
export class EventParser {
  #rest = '';
  #data = [];
  #id = '';

  /** Returns the events that this piece completes. */
  push(piece) {
    const events = [];
    // A carriage return at the end may be the first half of a line break.
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    for (const line of lines) {
      const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
      if (name === 'data') this.#data.push(value);
      if (name === 'id') this.#id = value;
      if (line === '' && this.#data.length > 0) {
        events.push({ id: this.#id, data: this.#data.join('\n') });
        this.#data = [];
      }
    }
    return events;
  }
}

/** What a box shows before its first task. `entries` are the parts of the conversation in order. */
export const EMPTY = { taskId: '', contextId: '', state: '', eventId: '', entries: [], seen: [] };

/** The view after one more event, which has the form of a `StreamResponse`. */
export function reduce(view, { task, message, statusUpdate, artifactUpdate }) {
  if (task) {
    const current = task.status.message?.messageId;
    const earlier = (task.history ?? []).filter((each) => each.role === 'ROLE_AGENT' && each.messageId !== current);
    let next = { ...view, taskId: task.id, contextId: task.contextId };
    next = earlier.reduce((view, each) => withMessage(view, 'progress', each), next);
    next = (task.artifacts ?? []).reduce((view, each) => withArtifact(view, each, false), next);
    return withStatus(next, task.status);
  }
  if (statusUpdate) {
    const { taskId, contextId, status } = statusUpdate;
    return withStatus({ ...view, taskId, contextId }, status);
  }
  if (artifactUpdate) return withArtifact(view, artifactUpdate.artifact, artifactUpdate.append);
  if (message) return { ...withMessage(view, 'answer', message), state: 'ANSWERED' };
  return view;
}

function withStatus(view, { state, message }) {
  let kind = 'progress';
  if (ASKING.includes(state)) kind = 'question';
  if (FAILED.includes(state)) kind = 'error';
  if (state === 'TASK_STATE_COMPLETED') kind = 'answer';
  return { ...withMessage(view, kind, message), state };
}

/** Adds a message of the agent once, although a snapshot of the task may repeat it. */
function withMessage(view, kind, message) {
  if (!message || view.seen.includes(message.messageId)) return view;
  const next = { ...view, seen: [...view.seen, message.messageId] };
  const text = textOf(message.parts, '\n');
  const sent = view.entries.findLastIndex((entry) => entry.kind === 'sent');
  const at = view.entries.findIndex((entry, at) => at > sent && entry.kind === 'progress');
  // The progress since the last text of the user is one entry, so that it does not interrupt the results.
  if (kind === 'progress' && at >= 0) return replaced(next, at, { text: `${view.entries[at].text}\n${text}` });
  return added(next, { kind, text });
}

function withArtifact(view, { artifactId, name, parts }, append) {
  const at = view.entries.findIndex((entry) => entry.artifactId === artifactId);
  const text = textOf(parts, '');
  if (at < 0) return added(view, { kind: 'artifact', artifactId, title: name || 'Result', text });
  return replaced(view, at, { text: append ? view.entries[at].text + text : text });
}

function added(view, entry) {
  return { ...view, entries: [...view.entries, { title: TITLES[entry.kind], ...entry }] };
}

function replaced(view, at, changes) {
  return { ...view, entries: view.entries.with(at, { ...view.entries[at], ...changes }) };
}

const TITLES = { sent: 'You', progress: 'Progress', question: 'Question', answer: 'Answer', error: 'Error' };

function textOf(parts, separator) {
  return (parts ?? []).map(partText).join(separator);
}

function partText(part) {
  if ('text' in part) return part.text;
  if ('data' in part) return `${JSON.stringify(part.data, null, 2)}\n`;
  const name = part.filename || 'file';
  if ('url' in part) return `${name}: ${part.url}\n`;
  const bytes = Math.floor(((part.raw ?? '').replace(/=+$/, '').length * 3) / 4);
  return `${name} (${part.mediaType || 'unknown type'}, ${bytes} bytes)\n`;
}

/** The line below the text field. */
export function statusText({ state, busy, canceling, notice }) {
  if (notice) return notice;
  if (canceling) return 'Canceling';
  return LABELS[state] ?? (busy ? 'Sending' : 'Ready');
}

/** There is no complete response: the request can be repeated. */
class ConnectionLost extends Error {}

/** The task of a box and the requests about it. `changed` is called after each change of `view`. */
export class Conversation {
  view = EMPTY;
  #stop = new AbortController();

  constructor({ path, streaming, changed, request = (...args) => fetch(...args), retryMs = 1000, pollMs = 300 }) {
    Object.assign(this, { path, streaming, changed, request, retryMs, pollMs });
  }

  /**
   * Sends a text: to the task if it waits for one, else as a new task. Follows the task until it ends or asks. Returns
   * whether the agent received the text.
   */
  async send(text) {
    const { state, taskId, contextId } = this.view;
    const ids = ASKING.includes(state) ? { taskId, contextId } : {};
    const before = ids.taskId ? this.view : EMPTY;
    // The server runs messages with the same UUID once, so it is safe to send this one again.
    const message = { messageId: uuid(), role: 'ROLE_USER', parts: [{ text }], ...ids };
    this.#stop = new AbortController();
    const sent = added(before, { kind: 'sent', text });
    this.#set({ ...sent, state: '', busy: true, received: false, lost: false, notice: '' });
    try {
      await this.#follow(message);
    } catch (error) {
      this.#set({ ...added(this.view, { kind: 'error', text: error.message }), notice: 'The call failed' });
    }
    const received = this.view.received;
    this.#set({ ...this.view, busy: false, canceling: false, state: received ? this.view.state : before.state });
    return received;
  }

  /** Cancels the task. Without a task or a connection, only the requests of this page end. */
  async cancel() {
    const { busy, canceling, received, lost, taskId } = this.view;
    if (!busy || canceling) return;
    if (!received || lost) {
      this.#stop.abort();
      return;
    }
    this.#set({ ...this.view, canceling: true });
    try {
      // The task in the response is not used: it could be ahead of the events that have arrived.
      await this.#call('CancelTask', { id: taskId });
    } catch (error) {
      this.#set({ ...added(this.view, { kind: 'error', text: error.message }), canceling: false });
    }
  }

  async #follow(message) {
    const { signal } = this.#stop;
    while (!this.#isSettled()) {
      let pause = this.pollMs;
      try {
        await (this.streaming ? this.#stream(message) : this.#poll(message));
      } catch (error) {
        if (!(error instanceof ConnectionLost)) throw error;
        pause = this.retryMs;
        this.#set({ ...this.view, lost: true, notice: `${error.message} Trying again every second.` });
      }
      if (!this.#isSettled()) await wait(pause, signal);
      if (signal.aborted) {
        this.#set({ ...this.view, notice: this.view.received ? 'Stopped. The task may still run.' : 'Stopped' });
        return;
      }
    }
  }

  #isSettled() {
    return ENDED.includes(this.view.state) || ASKING.includes(this.view.state);
  }

  /** Sends the message, or continues after the last event, and reads events until the task ends or asks. */
  async #stream(message) {
    const { received, taskId, eventId } = this.view;
    const accept = { Accept: 'text/event-stream' };
    const response = received
      ? await this.#request('SubscribeToTask', { id: taskId }, { ...accept, 'Last-Event-ID': eventId })
      : await this.#request('SendStreamingMessage', { message }, accept);
    if (!response.headers.get('Content-Type')?.startsWith('text/event-stream')) {
      this.#receive(eventId, await resultOf(response));
      return;
    }
    const [parser, decoder, reader] = [new EventParser(), new TextDecoder(), response.body.getReader()];
    try {
      // A subscription continues after a question, so the end of the stream is not awaited.
      while (!this.#isSettled()) {
        const { done, value } = await reader.read().catch(() => connectionLost());
        if (done) connectionLost();
        for (const { id, data } of parser.push(decoder.decode(value, { stream: true }))) {
          this.#receive(id, parsed(data, 'The server sent an event that is not an A2A response.'));
        }
      }
    } finally {
      reader.cancel().catch(() => {});
    }
  }

  /** Sends the message, or gets the task that it started. */
  async #poll(message) {
    const { received, taskId } = this.view;
    const event = received
      ? { task: await this.#call('GetTask', { id: taskId }) }
      : await this.#call('SendMessage', { message, configuration: { returnImmediately: true } });
    this.#receive('', event);
  }

  #receive(eventId, event) {
    this.#set({ ...reduce(this.view, event), eventId, received: true, lost: false, notice: '' });
  }

  async #call(method, params) {
    return resultOf(await this.#request(method, params, { Accept: 'application/json' }));
  }

  async #request(method, params, headers) {
    const response = await this.request(this.path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'A2A-Version': '1.0', ...headers },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: this.#stop.signal,
      cache: 'no-store',
    }).catch(() => connectionLost('The server cannot be reached.'));
    if (TEMPORARY.includes(response.status)) {
      const reason = await resultOf(response).catch((error) => error.message);
      connectionLost(`The server is not available: ${reason}.`);
    }
    return response;
  }

  #set(view) {
    this.view = view;
    this.changed?.();
  }
}

function connectionLost(text = 'The connection was lost.') {
  throw new ConnectionLost(text);
}

async function resultOf(response) {
  const text = await response.text().catch(() => connectionLost());
  return parsed(text, `HTTP status ${response.status} without an A2A response`);
}

/** The result of a JSON-RPC response. Throws its error, or `otherwise` if the text is not such a response. */
function parsed(text, otherwise) {
  let response;
  try {
    response = JSON.parse(text);
  } catch {
    throw new Error(otherwise);
  }
  if (!response?.result) throw new Error(response?.error?.message || otherwise);
  return response.result;
}

/** Returns after this time, or as soon as the signal is aborted. */
function wait(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}

/** A random UUID; `crypto.randomUUID` does not exist on pages that are served over plain HTTP. */
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Makes a form of the page work. */
function attach(form) {
  const [field, status, log] = ['input', '[role=status]', '[role=log]'].map((each) => form.querySelector(each));
  const [send, cancel] = form.querySelectorAll('button');
  const show = () => {
    frame = 0;
    const { busy, canceling, entries } = conversation.view;
    setText(status, statusText(conversation.view));
    // Disabled buttons would lose the keyboard focus.
    send.setAttribute('aria-disabled', Boolean(busy));
    cancel.setAttribute('aria-disabled', !busy || Boolean(canceling));
    showEntries(log, entries);
    // Before the first entry there is nothing to scroll.
    if (entries.length > 0) log.tabIndex = 0;
  };
  let frame = 0;
  const changed = () => {
    frame ||= requestAnimationFrame(show);
  };
  const { path, streaming } = form.dataset;
  const conversation = new Conversation({ path, streaming: streaming === 'true', changed });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const text = field.value;
    if (conversation.view.busy || !text.trim()) return;
    field.value = '';
    const received = await conversation.send(text);
    if (!received && !field.value) field.value = text;
    // After a click on the button, the answer can be typed at once.
    if (ASKING.includes(conversation.view.state) && form.contains(document.activeElement)) field.focus();
  });
  cancel.addEventListener('click', () => conversation.cancel());
  send.disabled = false;
  cancel.disabled = false;
  show();
}

/** Changes only the elements whose entry has changed, and keeps the end in view if it is. */
function showEntries(log, entries) {
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 8;
  while (log.children.length > entries.length) log.lastChild.remove();
  entries.forEach(({ kind, title, text }, at) => {
    const element = log.children[at] ?? log.appendChild(newEntry());
    element.className = kind;
    setText(element.children[0], title);
    setText(element.children[1], text);
  });
  if (atEnd) log.scrollTop = log.scrollHeight;
}

function newEntry() {
  const [element, title, text] = ['div', 'strong', 'p'].map((name) => document.createElement(name));
  text.dir = 'auto';
  element.append(title, text);
  return element;
}

/** Appends where possible, so that screen readers announce only what is new. */
function setText(element, text) {
  const node = element.firstChild ?? element.appendChild(document.createTextNode(''));
  if (!text.startsWith(node.data)) node.data = text;
  else if (text !== node.data) node.appendData(text.slice(node.data.length));
}

if (typeof document === 'object') document.querySelectorAll('form').forEach(attach);

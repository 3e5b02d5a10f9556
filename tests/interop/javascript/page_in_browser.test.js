// The page at `/` in a real browser, used as a person does: with keyboard and pointer.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { launch, newPage } from './browser.js';
import { url } from './helpers.js';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser?.close());

/**
 * Opens the page, calls `use` and closes the page. Fails if the browser reported an error or a violation of the content
 * security policy, or if a request went elsewhere.
 */
async function withHomePage(use, options = {}) {
  const page = await newPage(browser, options);
  const problems = [];
  page.on('console', (entry) => problems.push(`${entry.type()}: ${entry.text()}`));
  page.on('pageerror', (error) => problems.push(`${error}`));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== url) problems.push(request.url());
  });
  await page.addInitScript(() =>
    addEventListener('securitypolicyviolation', (event) => console.error(event.violatedDirective, event.blockedURI)),
  );
  try {
    await page.goto(`${url}/`);
    await use(page);
    assert.deepEqual(problems, []);
  } finally {
    await page.context().close();
  }
}

/** The box of an agent, found like assistive technology does. */
function boxOf(page, agent) {
  const region = page.getByRole('region', { name: new RegExp(`/a2a/${agent}$`) });
  return {
    region,
    field: region.getByLabel(/^Text for /),
    send: region.getByRole('button', { name: 'Send' }),
    cancel: region.getByRole('button', { name: 'Cancel' }),
    log: region.getByRole('log', { name: /^Result of / }),
    /** Returns once the line below the field has this text. */
    status: (text) => region.getByRole('status').filter({ hasText: text }).waitFor(),
  };
}

const isFocused = (locator) => locator.evaluate((element) => element === document.activeElement);

/** Title and text of each entry. */
const entries = (log) =>
  log.evaluate((log) => Array.from(log.children, (entry) => Array.from(entry.children, (part) => part.textContent)));

test('agent asks back and its result is streamed into the page, with the keyboard only', async () => {
  await withHomePage(async (page) => {
    const types = [];
    page.on('response', (response) => types.push(response.headers()['content-type']));
    const { field, send, cancel, log, status } = boxOf(page, 'currency');
    await field.focus();
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('convert 100 USD');
    await page.keyboard.press('Enter');
    await status('The agent asks');
    const question = 'Which currency do you want to convert to?';
    assert.deepEqual(await entries(log), [
      ['You', 'convert 100 USD'],
      ['Question', question],
    ]);
    assert.ok(await isFocused(field));

    await page.keyboard.type('EUR');
    await page.keyboard.press('Enter');
    await status('Completed');
    const [sent, asked, answer, progress, result, ...rest] = await entries(log);
    assert.deepEqual([sent[1], asked, answer, rest], ['convert 100 USD', ['Question', question], ['You', 'EUR'], []]);
    assert.equal(progress[0], 'Progress');
    assert.match(result.join(': '), /^Result: 100 USD is [\d.]+ EUR\.$/);
    assert.deepEqual(types, ['text/event-stream', 'text/event-stream']);

    for (const next of [send, cancel, log]) {
      await page.keyboard.press('Tab');
      assert.ok(await isFocused(next));
    }
  });
});

test('field has the focus when an agent asks after a click', async () => {
  await withHomePage(async (page) => {
    const { field, send, log, status } = boxOf(page, 'approver');
    await send.click();
    await status('The agent asks');
    assert.ok(await isFocused(field));
    await page.keyboard.type('approve');
    await send.click();
    await status('Completed');
    assert.equal((await entries(log)).at(0)[0], 'You');
  });
});

test('result grows while the agent works, until it is canceled', async () => {
  await withHomePage(async (page) => {
    const { field, cancel, log, status } = boxOf(page, 'slow-writer');
    await field.fill('the sea sections=50 delay=100ms');
    await field.press('Enter');
    const lengths = new Set();
    while (lengths.size < 3) {
      const result = (await entries(log)).find(([title]) => !['You', 'Progress'].includes(title));
      if (result) lengths.add(result[1].length);
      await sleep(20);
    }
    await status('Working');
    await cancel.click();
    await status('Canceled');
  });
});

test('markup of an agent is shown as text', async () => {
  await withHomePage(async (page) => {
    const { field, log, status } = boxOf(page, 'echo');
    const markup = '<img src=x onerror=alert(1)><script>alert(2)</script>';
    await field.fill(markup);
    await field.press('Enter');
    await status('Completed');
    assert.deepEqual(await entries(log), [
      ['You', markup],
      ['echo-result', markup],
    ]);
  });
});

test('page shows the default agent first, and commands and a labeled field for each', async () => {
  await withHomePage(async (page) => {
    const headings = await page.getByRole('heading', { level: 2 }).allTextContents();
    const agents = headings.map((heading) => heading.split('/a2a/')[1]);
    assert.equal(headings[0], 'Demo /a2a/demo');
    assert.deepEqual(await page.getByRole('navigation').getByRole('link').allTextContents(), agents);
    for (const agent of agents) {
      const { region, field } = boxOf(page, agent);
      const commands = await region.locator('.commands pre').allTextContents();
      assert.deepEqual(
        commands.map((command) => command.split(' ')[0]),
        ['a2ad', 'curl'],
      );
      assert.equal(await field.count(), 1);
    }
    await page.getByRole('link', { name: 'currency' }).press('Enter');
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'card');
  });
});

test('page fits a narrow screen', async () => {
  await withHomePage(
    async (page) => {
      const { field, status } = boxOf(page, 'echo');
      await field.fill('a-text-without-a-space-'.repeat(20));
      await field.press('Enter');
      await status('Completed');
      for (const summary of await page.locator('summary').all()) {
        await summary.click();
      }
      const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.deepEqual([content, screen], [320, 320]);
    },
    { viewport: { width: 320, height: 640 } },
  );
});

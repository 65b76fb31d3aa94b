// Walks through the console by the keyboard alone, and checks its pages with axe-core. Prints one JSON document.
'use strict';
const fs = require('fs');
const { chromium } = require('playwright-core');

const given = JSON.parse(process.env.GIVEN);
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const found = { addresses: [], walked: [], violations: [], wide: [], foreign: [], sizes: {}, texts: {} };

// Presses Tab until the element is reached that a selector means: a person without a mouse does the same.
async function reach(page, selector) {
  for (let presses = 0; presses < 250; presses += 1) {
    if (await page.evaluate((it) => document.activeElement.matches(it), selector)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${selector} is not reached on ${page.url()}: ${await page.innerText('body')}`);
}

// Opens an address. Networks of other tests on this host come and go meanwhile, for which Chromium gives up once.
async function open(page, address) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await page.goto(given.url + address);
    } catch (error) {
      if (tries === 5 || !error.message.includes('ERR_NETWORK_CHANGED')) throw error;
      await page.waitForTimeout(500);
    }
  }
}

async function type(page, selector, text) {
  await reach(page, selector);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(text);
}

// Presses Enter on an element, and waits for the next page.
async function press(page, selector) {
  await reach(page, selector);
  await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')]);
  const at = new URL(page.url());
  found.walked.push(at.pathname + at.search);
}

async function signIn(page, user, from) {
  await open(page, from);
  await type(page, 'input[name="username"]', user.name);
  await type(page, 'input[name="password"]', user.password);
  await press(page, 'input[name="password"]');
}

async function judge(page, where) {
  await page.evaluate(axe);
  const result = await page.evaluate(() => axe.run({ resultTypes: ['violations'] }));
  for (const one of result.violations) {
    found.violations.push([...where, one.id, one.impact, one.nodes[0].html.slice(0, 200)]);
  }
}

async function steps(page) {
  const job = given.job;
  await signIn(page, given.member, '/');
  await press(page, 'nav a[href="/jobs"]');
  await press(page, 'main a[href="/jobs/new"]');
  for (const [name, text] of Object.entries(job.fields)) await type(page, `[name="${name}"]`, text);
  await press(page, 'main .buttons button[value="check"]');
  found.texts.checked = await page.innerText('main');
  // the window that chooses a file belongs to the system
  await page.setInputFiles('input[name="code"]', job.code);
  await press(page, 'main .buttons button[value="submit"]');
  found.texts.submitted = await page.innerText('main');
  // the script of the page sees that the job runs. Before, it may load the page anew at each change, also under a key
  await page.waitForSelector('main td:has-text("RUNNING")', { timeout: 60000 });
  await page.waitForLoadState('load');
  await press(page, 'main a[href*="/log/"]');
  await page.waitForFunction(() => document.querySelector('pre.log').textContent.includes('step 3'), null, {
    timeout: 60000,
  });
  found.texts.log = await page.innerText('pre.log');
  await judge(page, ['log']);
  await press(page, 'main a[href^="/jobs/"]');
  await press(page, 'main form[action$="/stop"] button');
  found.texts.stopped = await page.innerText('main');
}

async function check(page, address) {
  for (const [width, scheme] of [[320, 'light'], [1300, 'light'], [1300, 'dark']]) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: scheme });
    const answer = await open(page, address);
    found.sizes[address] = (await answer.body()).length;
    const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - window.innerWidth);
    if (wide > 0) found.wide.push([address, width, wide]);
    await judge(page, [address, width, scheme]);
  }
  found.addresses.push(address);
}

(async () => {
  const browser = await chromium.launch({ executablePath: given.chromium, args: ['--no-sandbox'] });
  const newPage = async () => {
    const context = await browser.newContext({ ignoreHTTPSErrors: true });
    const page = await context.newPage();
    page.on('request', (it) => {
      if (!it.url().startsWith(given.url)) found.foreign.push(it.url());
    });
    return page;
  };
  await steps(await newPage());
  const page = await newPage();
  await check(page, '/login');
  await signIn(page, given.administrator, '/');
  for (const address of given.pages) await check(page, address);
  await browser.close();
  console.log(JSON.stringify(found));
})().catch((error) => {
  console.error(error.stack, JSON.stringify(found, null, 1));
  process.exit(1);
});

// What all walks through the console share. A walk prints one JSON document.
'use strict';
const fs = require('fs');
const { chromium } = require('playwright-core');

const given = JSON.parse(process.env.GIVEN);
const found = { violations: [], wide: [], foreign: [], errors: [], sizes: {} };
// no host but the console's has an address, whatever a page asks for
const ALONE = '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1';
// window -> name of the person
const signedIn = new Map();
const WIDE = 1300;
const SIZES = [[320, 'light'], [WIDE, 'light'], [320, 'dark'], [WIDE, 'dark']];

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

// Clicks what leads to another page.
async function click(page, selector) {
  await Promise.all([page.waitForEvent('load'), page.click(selector)]);
}

async function signIn(page, user, from = '/') {
  signedIn.set(page, user.name);
  await open(page, from);
  await page.fill('input[name="username"]', user.name);
  await page.fill('input[name="password"]', user.password);
  await click(page, 'form[action="/login"] button');
}

async function judge(page, where) {
  // large: once for each page, whatever the sizes of its window
  if (!(await page.evaluate(() => 'axe' in window))) {
    await page.evaluate(fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  }
  const result = await page.evaluate(() => axe.run({ resultTypes: ['violations'] }));
  for (const one of result.violations) {
    found.violations.push([...where, one.id, one.impact, one.nodes[0].html.slice(0, 200)]);
  }
}

// Opens a page, and looks at it in each size and scheme. Returns its status.
async function check(page, address, sizes = SIZES) {
  const answer = await open(page, address);
  found.sizes[address] = (await answer.body()).length;
  for (const [width, scheme] of sizes) {
    await page.setViewportSize({ width, height: 800 });
    await page.emulateMedia({ colorScheme: scheme });
    const wide = await page.evaluate(() => document.scrollingElement.scrollWidth - window.innerWidth);
    if (wide > 0) found.wide.push([address, width, wide]);
    await judge(page, [address, width, scheme]);
    if (width === WIDE) await picture(page, `${signedIn.get(page) || 'nobody'}-${words(address)}-${scheme}`);
  }
  return answer.status();
}

// The words of an address.
function words(address) {
  return address.replace(/[^A-Za-z0-9]+/g, '-').replace(/^-|-$/g, '') || 'home';
}

// Writes what a window shows, if a person asked for pictures.
async function picture(page, file) {
  if (!given.pictures) return;
  fs.mkdirSync(given.pictures, { recursive: true });
  await page.screenshot({ path: `${given.pictures}/${file}.png` });
}

// Runs a walk, which gets a function that opens a window without cookies.
function walk(steps) {
  (async () => {
    const options = { executablePath: given.chromium, args: ['--no-sandbox', ALONE] };
    const browser = await chromium.launch(options);
    await steps(async (wanted = {}) => {
      const context = await browser.newContext({ ignoreHTTPSErrors: true, ...wanted });
      context.setDefaultTimeout(120000);
      const page = await context.newPage();
      page.on('request', (it) => {
        if (!it.url().startsWith(given.url)) found.foreign.push(it.url());
      });
      page.on('pageerror', (it) => found.errors.push([page.url(), it.message]));
      page.on('dialog', (it) => {
        found.errors.push([page.url(), `dialog: ${it.message()}`]);
        it.dismiss();
      });
      // a refused script or style
      page.on('console', (it) => {
        if (it.text().includes('Content Security Policy')) found.errors.push([page.url(), it.text()]);
      });
      return page;
    });
    await browser.close();
    console.log(JSON.stringify(found));
  })().catch((error) => {
    console.error(error.stack, JSON.stringify(found, null, 1));
    process.exit(1);
  });
}

module.exports = { LIGHT: SIZES.slice(0, 2), given, found, open, click, signIn, judge, check, walk };

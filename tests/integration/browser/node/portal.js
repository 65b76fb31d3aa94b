// Walks through OpenPAI's portal as a member and as an administrator. Prints one document.
'use strict';
const { chromium } = require('playwright-core');

const given = JSON.parse(process.env.GIVEN);
const COLUMNS = ['cpu', 'mem', 'gpu', 'gpumem', 'disk', 'eth'];
const found = { pages: {}, failures: [], dialogs: [], hardware: {}, unmonitored: '' };

const words = async (page) => (await page.innerText('body')).replace(/\s+/g, ' ');

// Waits until a page shows a pattern. Returns its words.
async function shows(page, text) {
  for (let tries = 0; tries < 60; tries += 1) {
    const all = await words(page);
    if (new RegExp(text).test(all)) return all;
    await page.waitForTimeout(500);
  }
  throw new Error(`${page.url()} does not show ${text}: ${await words(page)}`);
}

async function session(browser, who, url = given.url) {
  const page = await (await browser.newContext({ viewport: { width: 1300, height: 900 } })).newPage();
  page.on('pageerror', (error) => found.failures.push(`${page.url()}: ${error.message}`));
  page.on('dialog', async (dialog) => {
    found.dialogs.push(`${who.name}: ${dialog.message()}`);
    await dialog.accept();
  });
  await page.goto(`${url}/index.html`);
  await page.click('text=Sign in');
  await page.fill('input[type=text]', who.name);
  await page.fill('input[type=password]', who.password);
  await page.keyboard.press('Enter');
  await shows(page, `Welcome, ${who.name}`);
  return page;
}

async function open(page, address, text) {
  await page.goto(`${given.url}${address}`);
  found.pages[address] = (await shows(page, text)).slice(0, 2000);
}

// The form of one job, its page, and its stop.
async function submit(page) {
  await page.goto(`${given.url}/submit.html#/general`);
  await shows(page, 'Commands can not be empty');
  for (const area of await page.$$('textarea')) {
    if (await area.isVisible()) {
      await area.fill('python -V');
      break;
    }
  }
  await page.keyboard.press('Tab');
  await page.click('button:has-text("Submit")');
  await page.waitForURL('**/job-detail.html*', { timeout: 30000 });
  found.job = new URL(page.url()).searchParams.get('jobName');
  found.submitted = (await shows(page, 'Job State[^A-Za-z]+Waiting')).slice(0, 600);
  await page.click('button:has-text("Stop")');
  await page.click('.ms-Dialog-main .ms-Button--primary');
  found.stopped = (await shows(page, 'Job State[^A-Za-z]+Stop')).slice(0, 600);
}

// What Prometheus has of a machine and of a job with an idle GPU.
async function measured(page) {
  await open(page, '/home.html', `${given.idle}.*usage`);
  await open(page, '/cluster-view/hardware.html', given.node);
  for (const column of COLUMNS) {
    found.hardware[column] = await page.getAttribute(`[id="${column}:${given.node}"] .metric-span`, 'title');
  }
}

(async () => {
  const browser = await chromium.launch({ executablePath: given.chromium, args: ['--no-sandbox'] });
  const member = await session(browser, given.member);
  await submit(member);
  await open(member, '/job-list.html', found.job);
  await open(member, '/user-profile.html', 'Create application token');
  await open(member, '/virtual-clusters.html', 'default');
  const administrator = await session(browser, given.administrator);
  await open(administrator, '/user-view.html', given.member.name);
  await measured(administrator);
  const other = await session(browser, given.administrator, given.unmonitored);
  found.unmonitored = await shows(other, 'Abnormal jobs');
  console.log(JSON.stringify(found));
  await browser.close();
})().catch((error) => {
  console.error(error, JSON.stringify(found));
  process.exit(1);
});

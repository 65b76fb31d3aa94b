// Drives the extension of OpenPAI in a real VS Code: adds the console, lists jobs, submits a file. Prints one document.
'use strict';
const { chromium } = require('playwright-core');

const given = JSON.parse(process.env.GIVEN);
const QUICK = '.quick-input-widget';
const found = { asked: [], said: [], tree: [], settings: '' };

const texts = (page, selector) =>
  page.$$eval(selector, (all) => all.map((one) => one.innerText.replace(/\s+/g, ' ').trim()).filter(Boolean));

// Waits until a page shows what is looked for.
async function until(page, what, look) {
  for (let tries = 0; tries < 120; tries += 1) {
    const seen = await look();
    if (seen) return seen;
    await page.waitForTimeout(500);
  }
  await page.screenshot({ path: given.picture });
  throw new Error(`${what} does not appear, see ${given.picture}: ${await page.innerText('body')}`);
}

async function command(page, name) {
  await page.keyboard.press('F1');
  await page.waitForSelector(`${QUICK} input`, { state: 'visible' });
  await page.keyboard.type(name);
  await until(page, name, async () => ((await texts(page, `${QUICK} .monaco-list-row`))[0] || '').startsWith(name));
  await page.keyboard.press('Enter');
}

const notice = (page, text) =>
  until(page, text, async () => (await texts(page, '.notification-list-item-message')).find((one) => one.includes(text)));

// The question above an input or a list, once it is there.
const question = (page, text) =>
  until(page, text, async () => {
    if (!(await page.isVisible(QUICK))) return false;
    const words = await texts(page, `${QUICK} .quick-input-message, ${QUICK} .quick-input-title`);
    const hints = await page.$$eval(`${QUICK} input`, (all) => all.map((one) => one.placeholder));
    return [...words, ...hints].find((one) => one.includes(text));
  });

async function add(page) {
  await command(page, 'PAI: Add PAI Cluster');
  found.asked.push(await question(page, 'enter the host'));
  await page.keyboard.type(given.host);
  await page.keyboard.press('Enter');
  found.asked.push(await notice(page, "click 'Finish'"));
  const lines = () => page.$$eval('.monaco-editor .view-line', (all) => all.map((one) => one.innerText).join('\n'));
  await until(page, 'the settings of the cluster', async () => (await lines()).includes('rest_server_uri'));
  found.settings = await lines();
  await page.click('.monaco-editor .view-lines');
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.insertText(JSON.stringify(given.cluster, null, 2));
  await page.keyboard.press('ControlOrMeta+s');
  await page.waitForTimeout(2000);
  await page.click('.notification-list-item .monaco-button:has-text("Finish")');
}

async function submit(page) {
  await command(page, 'PAI: Submit Job to PAI Cluster');
  found.asked.push(await notice(page, 'select a PAI job config'));
  await page.waitForTimeout(2000);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(given.file);
  await page.waitForTimeout(2000);
  for (const text of ['auto uploading', 'job name suffix']) {
    await until(page, text, async () => {
      const ready = await page.$$eval(`${QUICK} input`, (all, it) => all.some((one) => one.placeholder.includes(it)), text);
      const accept = await page.$(`${QUICK} .monaco-button:has-text("OK")`);
      if (!ready && accept && (await accept.isVisible())) await accept.click();
      return ready;
    });
    found.asked.push(text);
    await page.click(`${QUICK} .monaco-list-row:has-text("No"):not(:has-text("Yes"))`);
  }
  found.said.push(await notice(page, 'Success'));
}

async function list(page) {
  await command(page, 'View: Show Open Platform for AI');
  const rows = () => texts(page, '.pane-body .monaco-list-row');
  await until(page, given.job, async () => {
    for (const closed of await page.$$('.pane-body .monaco-tl-twistie.collapsed:not(.codicon-tree-item-loading)')) {
      await closed.click().catch(() => null);
    }
    return (await rows()).filter((one) => one === given.job).length > 1;
  });
  found.tree = await rows();
}

(async () => {
  const browser = await chromium.launch({ executablePath: given.chromium, args: ['--no-sandbox'] });
  const page = await (await browser.newContext({ viewport: { width: 1300, height: 900 } })).newPage();
  await page.goto(given.editor);
  await page.waitForSelector('.monaco-workbench', { timeout: 120000 });
  await page.waitForTimeout(8000);
  await add(page);
  await submit(page);
  await list(page);
  await page.screenshot({ path: given.picture });
  console.log(JSON.stringify(found));
  await browser.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});

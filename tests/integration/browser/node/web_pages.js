// Opens the web page of a job from the console, and lets its scripts attack the console. Prints one JSON document.
'use strict';
const { chromium } = require('playwright-core');

const given = JSON.parse(process.env.GIVEN);
const found = {};

// What a hostile program in the job does in the browser of its owner.
async function attack({ console: there, other }) {
  const outcome = async (act) => {
    try {
      return String(await act());
    } catch (error) {
      return error.name;
    }
  };
  const all = {};
  all.echo = await outcome(() => new Promise((done, fail) => {
    const socket = new WebSocket(location.href.replace('https:', 'wss:') + 'socket');
    socket.onopen = () => socket.send('ping me');
    socket.onmessage = (event) => done(event.data);
    socket.onerror = () => fail(new Error('refused'));
  }));
  all.cookies = document.cookie;
  document.cookie = '__Host-Http-pai=planted; Path=/; Secure';
  document.cookie = '__Host-Http-pai-form=planted; Path=/; Secure';
  all.read = await outcome(async () => (await fetch(`${there}/jobs`, { credentials: 'include' })).text());
  all.opaque = await outcome(async () => (await fetch(`${there}/jobs`, { credentials: 'include', mode: 'no-cors' })).type);
  all.open = await outcome(async () => (await fetch(`${there}/jobs/${other}/open`, { credentials: 'include', mode: 'no-cors' })).type);
  all.other = await outcome(async () => (await fetch(`/open/${other}/`)).status);
  all.worker = await outcome(() => navigator.serviceWorker.register('worker.js'));
  all.api = await outcome(async () => (await fetch(`${there}/rest-server/api/v2/jobs`, { credentials: 'include' })).status);
  return all;
}

async function signIn(page) {
  await page.goto(`${given.console}/login`);
  await page.fill('input[name="username"]', 'alice');
  await page.fill('input[name="password"]', given.password);
  await Promise.all([page.waitForNavigation(), page.press('input[name="password"]', 'Enter')]);
}

(async () => {
  const browser = await chromium.launch({ executablePath: given.chromium, args: ['--no-sandbox'] });
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  context.setDefaultTimeout(120000);
  const page = await context.newPage();
  await signIn(page);
  await page.goto(`${given.console}/jobs/alice~note`);
  await Promise.all([page.waitForURL('**/open/alice~note/'), page.click('main a[href$="/open"]')]);
  found.at = page.url();
  found.text = await page.innerText('body');
  const session = async () => (await context.cookies()).filter((it) => it.name === '__Host-Http-pai').map((it) => it.value);
  const before = await session();
  found.attack = await page.evaluate(attack, given);
  found.kept = before.length === 1 && (await session())[0] === before[0];
  found.paths = (await context.cookies()).filter((it) => it.name === '__Secure-pai-web').map((it) => it.path);
  // a form of the web page, with everything but the origin of the console
  const form = await (await context.newPage()).goto(`${given.console}/jobs/alice~note`);
  const token = /name="form" value="([^"]+)"/.exec(await form.text())[1];
  const answer = page.waitForResponse((it) => it.request().method() === 'POST');
  await page.evaluate(({ console: there, token: value }) => {
    document.body.innerHTML = `<form method="post" action="${there}/jobs/alice~note/stop"><input name="form" value="${value}"></form>`;
    document.forms[0].submit();
  }, { ...given, token });
  found.form = (await answer).status();
  await page.waitForURL('**/stop');
  await page.goto(found.at);
  const opened = context.waitForEvent('page');
  await page.evaluate((it) => { window.there = window.open(`${it}/jobs`); }, given.console);
  await (await opened).waitForLoadState();
  found.handle = await page.evaluate(() => window.there.closed);
  await page.evaluate((it) => new Promise((done) => {
    const frame = document.createElement('iframe');
    frame.onload = done;
    frame.src = `${it}/jobs`;
    document.body.append(frame);
  }), given.console);
  const frame = page.frames().find((it) => it.parentFrame() !== null);
  found.frame = frame.url();
  // without a session, a script could plant one that the attacker knows
  await context.clearCookies({ name: '__Host-Http-pai' });
  await page.evaluate(() => {
    document.cookie = '__Host-Http-pai=planted; Path=/; Secure';
    document.cookie = '__Host-pai=planted; Path=/; Secure';
  });
  const planted = (await context.cookies()).filter((it) => it.value === 'planted');
  found.planted = planted.map((it) => it.name);
  await browser.close();
  console.log(JSON.stringify(found));
})().catch((error) => {
  console.error(error.stack, JSON.stringify(found, null, 1));
  process.exit(1);
});

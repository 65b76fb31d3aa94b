// Walks through the console by the keyboard alone, in two languages, and without scripts. Checks its pages with axe-core.
'use strict';
const { given, found, open, click, signIn, judge, check, walk } = require('./console.js');

Object.assign(found, { addresses: [], walked: {}, texts: {}, untranslated: [], plain: {}, typed: {} });

// Presses Tab until the element is reached that a selector means: a person without a mouse does the same.
async function reach(page, selector) {
  for (let presses = 0; presses < 250; presses += 1) {
    if (await page.evaluate((it) => document.activeElement.matches(it), selector)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${selector} is not reached on ${page.url()}: ${await page.innerText('body')}`);
}

async function type(page, selector, text) {
  await reach(page, selector);
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type(text);
}

// Presses Enter on an element, and waits for the next page.
async function press(page, selector, walked) {
  await reach(page, selector);
  await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')]);
  const at = new URL(page.url());
  walked.push(at.pathname + at.search);
}

async function byKeyboard(page, job, language) {
  const walked = (found.walked[language] = []);
  const texts = (found.texts[language] = {});
  const go = (selector) => press(page, selector, walked);
  await open(page, '/');
  await type(page, 'input[name="username"]', given.member.name);
  await type(page, 'input[name="password"]', given.member.password);
  await go('input[name="password"]');
  await go('nav a[href="/jobs"]');
  await go('main a[href="/jobs/new"]');
  for (const [name, text] of Object.entries(job.fields)) await type(page, `[name="${name}"]`, text);
  await go('main .buttons button[value="check"]');
  texts.checked = await page.innerText('main');
  // the window that chooses a file belongs to the system
  await page.setInputFiles('input[name="code"]', job.code);
  await go('main .buttons button[value="submit"]');
  texts.submitted = await page.innerText('main');
  // the script of the page sees that the job runs. Before, it may load the page anew at each change, also under a key
  await page.waitForSelector('main td .state.running', { timeout: 60000 });
  await page.waitForLoadState('load');
  await go('main a[href*="/log/"]');
  await page.waitForFunction(() => document.querySelector('pre.log').textContent.includes('step 3'), null, {
    timeout: 60000,
  });
  texts.log = await page.innerText('pre.log');
  await judge(page, ['log', language]);
  await untranslated(page, language);
  await go('main a[href^="/jobs/"]');
  await go('main form[action$="/stop"] button');
  texts.stopped = await page.innerText('main');
}

// Words of the page itself without a Chinese character. Values of the cluster are in other elements.
async function untranslated(page, language) {
  if (language !== 'zh') return;
  const words = await page.evaluate(() => {
    const own = 'h2, th[scope="col"], caption, label:not(.check, :has([name^="p."])), button, legend, summary, dt, nav a, .button, .hint';
    const texts = [...document.querySelectorAll(own)].flatMap((it) => [...it.childNodes].filter((one) => one.nodeType === 3));
    return texts.map((it) => it.textContent.trim()).filter((it) => /[a-z]{3}/i.test(it) && !/[\u4e00-\u9fff]/.test(it) && it !== 'GPU');
  });
  if ((await page.getAttribute('html', 'lang')) !== 'zh') words.push('lang');
  for (const word of words) found.untranslated.push([new URL(page.url()).pathname, word]);
}

// A job from the form to its end in a browser without scripts, with the mouse.
async function withoutScripts(page, user, fields) {
  await signIn(page, user, '/jobs/new');
  for (const [name, text] of Object.entries(fields)) await page.fill(`[name="${name}"]:not(select)`, text).catch(() => page.selectOption(`[name="${name}"]`, text));
  await click(page, 'main .buttons button[value="check"]');
  await click(page, 'main .buttons button[value="submit"]');
  found.plain.job = new URL(page.url()).pathname;
  await click(page, 'main form[action$="/stop"] button');
  found.plain.stopped = await page.innerText('main');
}

// A form that is checked while a person types: slow answers, an error at its field, and the file beside the form.
async function whileTyping(page, user, fields) {
  const typed = found.typed;
  Object.assign(typed, { sent: 0, most: 0 });
  let open = 0;
  await page.route('**/jobs/new', async (route) => {
    if (route.request().method() !== 'POST') return route.continue();
    typed.sent += 1;
    open += 1;
    typed.most = Math.max(typed.most, open);
    await new Promise((done) => setTimeout(done, 700));
    await route.continue().catch(() => {});
    open -= 1;
  });
  await signIn(page, user, '/jobs/new');
  await page.setViewportSize({ width: 1300, height: 800 });
  typed.wide = await sides(page);
  for (const [name, text] of Object.entries(fields)) await type(page, `[name="${name}"]`, text);
  const instances = page.locator('[name="r0.instances"]');
  await instances.focus();
  await page.keyboard.press('ControlOrMeta+a');
  for (const letter of 'two-and-more') {
    await page.keyboard.type(letter);
    await page.waitForTimeout(300);
  }
  await page.waitForSelector('[name="r0.instances"][aria-invalid="true"]');
  typed.focus = await instances.evaluate((it) => document.activeElement === it && it.value);
  typed.problem = await instances.evaluate((it) => document.getElementById(it.getAttribute('aria-describedby')).textContent);
  typed.live = await page.getAttribute('#checked', 'aria-live');
  typed.said = await page.innerText('#checked');
  await judge(page, ['typed', 1300]);
  await page.setViewportSize({ width: 320, height: 800 });
  typed.narrow = await sides(page);
  if (await page.evaluate(() => document.scrollingElement.scrollWidth > window.innerWidth)) found.wide.push(['typed', 320]);
  await judge(page, ['typed', 320]);
  await page.setViewportSize({ width: 1300, height: 800 });
  await type(page, '[name="r0.instances"]', '2');
  await page.waitForSelector('#submit button');
  typed.file = await page.innerText('#file');
  typed.invalid = await page.locator('[aria-invalid]').count();
  typed.valid = await page.innerText('#checked');
}

// Left and upper edges of the form and of the file.
async function sides(page) {
  const boxes = await Promise.all(['form.job', '.beside'].map((it) => page.locator(it).boundingBox()));
  return boxes.map((it) => [Math.round(it.x), Math.round(it.y)]);
}

walk(async (newPage) => {
  for (const [language, job] of Object.entries(given.jobs)) {
    await byKeyboard(await newPage({ locale: { en: 'en-GB', zh: 'zh-CN' }[language] }), job, language);
  }
  await whileTyping(await newPage(), given.member, given.typed);
  const plain = await newPage({ javaScriptEnabled: false });
  await withoutScripts(plain, given.member, given.plain);
  const administrators = { plain: await newPage({ javaScriptEnabled: false }), zh: await newPage({ locale: 'zh-CN' }) };
  const page = await newPage();
  await check(page, '/login');
  for (const one of [page, ...Object.values(administrators)]) await signIn(one, given.administrator);
  found.plain.pages = {};
  for (const address of given.pages) {
    await check(page, address);
    found.addresses.push(address);
    const answer = await open(administrators.plain, address);
    found.plain.pages[address] = [answer.status(), await administrators.plain.innerText('h1')];
    await administrators.zh.setViewportSize({ width: 320, height: 800 });
    await open(administrators.zh, address);
    const wide = await administrators.zh.evaluate(() => document.scrollingElement.scrollWidth - window.innerWidth);
    if (wide > 0) found.wide.push([address, 'zh', wide]);
    await untranslated(administrators.zh, 'zh');
  }
});

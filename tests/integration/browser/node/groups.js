// Opens pages as people of two groups, and as an administrator, with names that try to be scripts.
'use strict';
const { LIGHT, given, found, open, click, signIn, check, walk } = require('./console.js');

Object.assign(found, { pages: {}, strangers: {}, pwned: [] });

// Status and text of an answer to a script of the page itself, with the cookie of the person.
const asked = (page, address, method) =>
  page.evaluate(
    async ([url, how]) => {
      const form = document.querySelector('input[name="form"]').value;
      const words = how === 'POST' ? { method: how, body: new URLSearchParams({ form, do: 'submit' }), redirect: 'manual' } : {};
      const answer = await fetch(url, words);
      return [answer.status, answer.status === 200 ? await answer.text() : ''];
    },
    [address, method],
  );

async function saveTemplate(page, template) {
  await open(page, '/templates/new');
  for (const [name, text] of Object.entries(template)) await page.fill(`[name="${name}"]`, text);
  await click(page, 'main form button.main');
  found.template = new URL(page.url()).pathname;
}

walk(async (newPage) => {
  for (const [name, person] of Object.entries(given.people)) {
    const page = await newPage();
    await signIn(page, person);
    if (person.template) await saveTemplate(page, person.template);
    found.pages[name] = {};
    for (const address of person.pages) {
      const answer = await open(page, address.replace('TEMPLATE', found.template));
      found.pages[name][address] = [answer.status(), await page.content()];
      if (await page.evaluate(() => window.pwned)) found.pwned.push(address);
    }
    found.strangers[name] = [];
    await open(page, '/account');
    for (const [method, address] of person.strange) {
      found.strangers[name].push([method, address, ...(await asked(page, address.replace('TEMPLATE', found.template), method))]);
    }
  }
  const page = await newPage();
  await signIn(page, given.administrator);
  found.pages.root = {};
  for (const address of given.pages) {
    const status = await check(page, address.replace('TEMPLATE', found.template), LIGHT);
    found.pages.root[address] = [status, await page.content()];
    if (await page.evaluate(() => window.pwned)) found.pwned.push(address);
  }
});

// Five tasks of docs/console.md, by the words of the pages alone: no address, no selector that a person cannot see.
'use strict';
const { given, found, signIn, check, walk } = require('./console.js');

Object.assign(found, { texts: {} });

const place = async (page, locator) => Promise.all([page.waitForEvent('load'), locator.click()]);
const link = (page, name) => place(page, page.getByRole('link', { name, exact: true }));
const menu = (page, name) => place(page, page.getByRole('navigation').getByRole('link', { name, exact: true }));
// a form has a button for the key Enter, which no one sees
const button = (page, name) => place(page, page.getByRole('button', { name, exact: true }).and(page.locator(':not(.unseen)')));
const main = (page) => page.innerText('main');

async function submitFromTemplate(page) {
  await menu(page, 'Templates');
  await page.getByLabel('Words').fill('tensorflow 2 gpus');
  await button(page, 'Search');
  await link(page, 'openpai-single');
  await page.getByLabel('Name of the job').fill(given.job);
  await button(page, 'Check');
  found.texts.checked = await main(page);
  await button(page, 'Submit');
  found.texts.submitted = await main(page);
}

async function findOutWhy(page) {
  await menu(page, 'Home');
  await link(page, given.job);
  // the page is loaded again when the scheduler says something
  await page.getByRole('heading', { name: 'Why the job waits' }).waitFor({ timeout: 60000 });
  found.texts.why = await page.getByRole('region', { name: 'Why the job waits' }).innerText();
  found.texts.holder = await page.getByRole('row', { name: 'notebook' }).innerText();
  await check(page, new URL(page.url()).pathname);
}

async function findIdleNotebook(page) {
  await menu(page, 'Home');
  found.texts.idle = await page.getByRole('row', { name: 'notebook' }).innerText();
  await link(page, 'notebook');
  await button(page, 'Stop');
  found.texts.stopped = await main(page);
}

async function addUser(page, newPage) {
  await menu(page, 'Users and groups');
  await page.getByLabel('Name', { exact: true }).fill('dora');
  await page.getByLabel(/^New password,/).fill('the first password');
  await page.getByLabel('team', { exact: true }).check();
  await button(page, 'Add a user');
  found.texts.added = await main(page);
  const hers = await newPage();
  await signIn(hers, { name: 'dora', password: 'the first password' });
  await menu(hers, 'Account');
  await hers.getByLabel(/^Old password|^Current password/).fill('the first password');
  await hers.getByLabel(/^New password,/).fill('a password of her own');
  await hers.getByLabel(/again/i).fill('a password of her own');
  await button(hers, 'Set the password');
  const again = await newPage();
  await signIn(again, { name: 'dora', password: 'a password of her own' });
  found.texts.dora = await again.innerText('body');
  await menu(page, 'Users and groups');
  await link(page, 'dora');
  await page.getByLabel('Name of the user').fill('dora');
  await button(page, 'Remove the user');
  found.texts.removed = await main(page);
}

async function findSickNode(page) {
  await menu(page, 'Health');
  found.texts.health = await page.getByRole('row', { name: 'worker-2' }).innerText();
  await link(page, 'worker-2');
  found.texts.node = await main(page);
}

walk(async (newPage) => {
  const member = await newPage();
  await signIn(member, given.member);
  await submitFromTemplate(member);
  await findOutWhy(member);
  const administrator = await newPage();
  await signIn(administrator, given.administrator);
  await findIdleNotebook(administrator);
  await addUser(administrator, newPage);
  await findSickNode(administrator);
});

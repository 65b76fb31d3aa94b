// Opens pages of a large cluster, and finds things in them as people do.
'use strict';
const { LIGHT, given, found, open, click, signIn, check, walk } = require('./console.js');

Object.assign(found, { status: {}, milliseconds: {}, texts: {} });

walk(async (newPage) => {
  for (const [name, person] of Object.entries(given.people)) {
    const page = await newPage();
    await signIn(page, person);
    for (const address of person.pages) {
      found.status[`${name} ${address}`] = await check(page, address, LIGHT);
      found.milliseconds[`${name} ${address}`] = await page.evaluate(() => {
        const at = performance.getEntriesByType('navigation')[0];
        return Math.round(at.loadEventEnd - at.startTime);
      });
    }
    // from page to page, and by the filters
    await open(page, '/nodes');
    await click(page, 'a[rel="next"]');
    found.texts[`${name} next`] = await page.innerText('main');
    await page.selectOption('select[name="state"]', 'free');
    await page.fill('input[name="keyword"]', 'gpu-99');
    await click(page, 'main form[action="/nodes"] button');
    found.texts[`${name} nodes`] = await page.innerText('main');
    await open(page, '/jobs');
    await page.selectOption('select[name="state"]', 'RUNNING');
    await page.fill('input[name="keyword"]', 'job_975');
    await click(page, 'main form[action="/jobs"] button');
    found.texts[`${name} jobs`] = await page.innerText('main');
    await click(page, 'main tbody th a');
    found.texts[`${name} job`] = await page.innerText('main');
  }
});

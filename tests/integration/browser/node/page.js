// Judges a page that the test has already, with its style. Chromium asks no console for it.
'use strict';
const { given, check, walk } = require('./console.js');

walk(async (newPage) => {
  const page = await newPage();
  await page.route('**/*', (it) => {
    const found = given.files[new URL(it.request().url()).pathname];
    return it.fulfill(found ? { contentType: found[0], body: found[1] } : { status: 404, body: '' });
  });
  await check(page, given.address);
});

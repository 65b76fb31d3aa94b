// Runs the page's script over a stand-in for the browser's document, and prints what it drew.
"use strict";
const page = require("fs").readFileSync(process.argv[2], "utf8");
const data = page.match(/id="data">([\s\S]*?)<\/script>/)[1];
const script = page.match(/<script>\n([\s\S]*?)<\/script>/)[1];
const elements = {};
const find = name => (elements[name] = elements[name] || {innerHTML: "", textContent: name === "data" ? data : "", value: ""});
global.document = {getElementById: find, querySelector: find};
(0, eval)(script);
const rows = () => [...elements.rows.innerHTML.matchAll(/<tr data-i="\d+"><th[^>]*>([^<]*)</g)].map(match => match[1]);
const drawn = {bad: rows(), first: elements.detail.innerHTML};
elements.only.onchange({target: {checked: false}});
drawn.all = rows();
elements.find.value = "warn";
elements.find.oninput();
drawn.found = rows();
elements.rows.onclick({target: {tagName: "TH", closest: () => ({dataset: {i: "2"}})}});
drawn.clicked = elements.detail.innerHTML;
const D = JSON.parse(data);
drawn.cells = D.machines.map((m, i) => Object.fromEntries(D.checks.map((c, n) => {
  elements.rows.onclick({target: {tagName: "TD", cellIndex: n + 1, closest: () => ({dataset: {i: String(i)}})}});
  return [c[0], elements.detail.innerHTML];
})));
process.stdout.write(JSON.stringify(drawn));

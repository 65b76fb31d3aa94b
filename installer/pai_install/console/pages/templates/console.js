// What scripts add to pages that work without them: a log that grows, and a job whose changes are seen at once.
'use strict';
const mostLines = 5000;

// The stream begins with the last lines of the log, so the text of the page makes room for them.
function followLog(log) {
  const source = new EventSource(log.dataset.follow);
  let lines = [];
  let planned = false;
  const show = () => {
    planned = false;
    const atEnd = log.scrollTop + log.clientHeight >= log.scrollHeight - 40;
    log.textContent = `${lines.join('\n')}\n`;
    if (atEnd) log.scrollTop = log.scrollHeight;
  };
  source.onopen = () => {
    lines = [];
  };
  source.onmessage = (event) => {
    lines.push(event.data);
    if (lines.length > mostLines) lines = lines.slice(-mostLines);
    if (!planned) {
      planned = true;
      requestAnimationFrame(show);
    }
  };
  source.addEventListener('end', () => {
    source.close();
    log.dataset.ended = 'yes';
  });
  log.scrollTop = log.scrollHeight;
}

function followState(state) {
  const source = new EventSource(state.dataset.changes);
  source.onmessage = (event) => {
    if (event.data !== state.dataset.state) {
      source.close();
      location.reload();
    }
  };
}

for (const log of document.querySelectorAll('[data-follow]')) followLog(log);
for (const state of document.querySelectorAll('[data-changes]')) followState(state);

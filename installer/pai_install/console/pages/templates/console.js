// What scripts add to pages that work without them: a log that grows, a job whose changes are seen at once, and a form
// that is checked while a person types.
'use strict';
const mostLines = 5000;
const pauseMs = 500;
const longestMs = 30000;
const mostTries = 6;

// The stream begins with the last lines of the log, so the text of the page makes room for them.
// An answer that is no stream, such as 503 while a control plane is lost, is asked for again.
function followLog(log, tries = 0) {
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
    tries = 0;
  };
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED && tries < mostTries) {
      setTimeout(() => followLog(log, tries + 1), pauseMs * 2 ** tries);
    }
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

// Takes what the server found from the page that answers a check. A field keeps its text and its focus.
function takeCheck(answer) {
  if (!answer.getElementById('checked')) return;
  for (const id of ['checked', 'submit', 'file', 'preview']) {
    const part = document.getElementById(id);
    const fresh = answer.getElementById(id);
    if (part && fresh && !part.isEqualNode(fresh)) part.replaceChildren(...fresh.childNodes);
  }
  for (const field of document.querySelectorAll('[aria-describedby^="problem-"]')) {
    const note = document.getElementById(field.getAttribute('aria-describedby'));
    const fresh = answer.getElementById(note.id);
    note.textContent = fresh ? fresh.textContent : '';
    if (note.textContent) field.setAttribute('aria-invalid', 'true');
    else field.removeAttribute('aria-invalid');
  }
}

// Checks a form after a pause of typing, one request at a time.
function checkTyped(form) {
  let timer = 0;
  let busy = false;
  let again = false;
  const plan = (wait) => {
    clearTimeout(timer);
    timer = setTimeout(check, wait);
  };
  async function check() {
    const body = new FormData(form);
    again = busy;
    if (busy || (body.get('content') || '').length > Number(form.dataset.typed)) return;
    body.delete('code');
    body.set('do', 'typed');
    busy = true;
    let wait = pauseMs;
    try {
      const answer = await fetch(form.getAttribute('action'), { method: 'POST', body, signal: AbortSignal.timeout(longestMs) });
      again ||= answer.status === 429;
      wait = 1000 * Number(answer.headers.get('Retry-After')) || pauseMs;
      takeCheck(new DOMParser().parseFromString(await answer.text(), 'text/html'));
    } catch {
      // no answer: the button Check says why
    }
    busy = false;
    if (again) plan(wait);
  }
  form.addEventListener('input', (event) => {
    if (event.target.type !== 'file') plan(pauseMs);
  });
}

for (const form of document.querySelectorAll('[data-typed]')) checkTyped(form);
for (const log of document.querySelectorAll('[data-follow]')) followLog(log);
for (const state of document.querySelectorAll('[data-changes]')) followState(state);

// SPDX-License-Identifier: MIT
// The page /debug/pprof/ui: takes a profile and shows it in place. Whatever
// comes from the program goes into the page as text.
'use strict';
(function () {
const ROWS = 60;
let profile = null, functions = [], name = '', by = 'flat', ends = null;
// What was taken last; and what it is compared with, the same at an earlier
// moment.
let last = null, base = null;

function say(text, isBad) {
  $('state').textContent = text;
  $('state').className = isBad ? 'bad' : '';
}

// ---- taking one ----

function addressOf(form) {
  const query = new URLSearchParams();
  for (const [key, value] of new FormData(form))
    if (value) query.set(key, value);
  const text = String(query);
  return form.getAttribute('action') + (text ? '?' + text : '');
}

// Shows how much of the time is over; returns how to stop that.
function watch(seconds) {
  const began = performance.now(), bar = $('progress');
  const look = () => {
    const now = (performance.now() - began) / 1000;
    bar.value = Math.min(now / (seconds || 1), 1);
    say(now < seconds ? Math.floor(now) + ' of ' + seconds + ' s' :
      seconds ? 'it is being written' : 'asked for');
  };
  const timer = setInterval(look, 100);
  bar.hidden = $('stop').hidden = false;
  look();
  return () => {
    clearInterval(timer);
    bar.hidden = $('stop').hidden = true;
  };
}

async function unpack(packed) {
  if (packed[0] !== 0x1f || packed[1] !== 0x8b) return packed;
  const stream = new Blob([packed]).stream()
    .pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function fetchProfile(address) {
  const answer = await fetch(address, {signal: ends.signal});
  if (!answer.ok)
    throw new Error(answer.status + ': ' + (await answer.text()).trim());
  const packed = new Uint8Array(await answer.arrayBuffer());
  URL.revokeObjectURL($('save').href);
  $('save').href = URL.createObjectURL(new Blob([packed]));
  $('save').download = name.replace(/[^\w.-]/g, '_') + '.pb.gz';
  return readProfile(await unpack(packed));
}

// Once more what is shown, to be shown instead of it or as a difference to it.
async function take(form, isAgain, isDifference) {
  if (ends) return;
  const seconds = form.elements.seconds;
  const buttons = document.querySelectorAll('form button, #what button');
  const first = isDifference ? base || profile : null;
  ends = new AbortController();
  name = form.dataset.name;
  buttons.forEach(b => b.disabled = true);
  const done = watch(seconds ? +seconds.value : 0);
  try {
    profile = await fetchProfile(addressOf(form));
    [last, base] = [form, first];
    done();
    choose(isAgain);
  } catch (e) {
    done();
    say(e.name === 'AbortError' ? 'stopped' : e.message, true);
  }
  ends = null;
  buttons.forEach(b => b.disabled = false);
}

// ---- showing it ----

function choose(isAgain) {
  const before = $('type').value;
  const at = profile.types.findIndex(t => t.type === profile.byDefault);
  $('type').replaceChildren(...profile.types.map(
    (t, i) => new Option(t.type + ' (' + t.unit + ')', i)));
  $('type').value = isAgain ? before : at < 0 ? profile.types.length - 1 : at;
  $('result').hidden = false;
  draw();
}

const timeOf = p => p.time ? new Date(p.time / 1e6).toLocaleTimeString() : '?';
function draw() {
  const {data, functions: all} = stacksOf(profile, +$('type').value, base);
  functions = all;
  data.title = $('program').textContent + ' ' + name + ' ' + data.title;
  say(data.total ? profile.samples.length + ' stacks' :
    'There is nothing in it: nothing was counted, or it is not turned on.');
  flameGraph.show(data);
  $('when').textContent = (base ? timeOf(base) + ' \u2192 ' : '') +
    timeOf(profile);
  table();
  $('result').scrollIntoView({block: 'start'});
}

const cell = (row, text) => { row.insertCell().textContent = text; };
function table() {
  const rows = document.createElement('tbody'), print = flameGraph.print();
  const number = base ? print.signed : print.number;
  functions.sort((a, b) => Math.abs(b[by]) - Math.abs(a[by]));
  for (const f of functions.slice(0, ROWS)) {
    const row = rows.insertRow(), button = document.createElement('button');
    cell(row, number(f.flat));
    cell(row, print.percent(f.flat));
    cell(row, number(f.cum));
    cell(row, print.percent(f.cum));
    button.textContent = f.name;
    button.title = 'find it in the graph';
    button.addEventListener('click', () => flameGraph.searchFor(whole(f.name)));
    row.insertCell().append(button);
  }
  $('top').tBodies[0].replaceWith(rows);
  for (const key of ['flat', 'cum'])
    $('by-' + key).setAttribute('aria-pressed', key === by);
}

document.querySelectorAll('form').forEach(form =>
  form.addEventListener('submit', e => { e.preventDefault(); take(form); }));
$('again').addEventListener('click', () => take(last, true));
$('compare').addEventListener('click', () => take(last, true, true));
$('stop').addEventListener('click', () => ends && ends.abort());
$('type').addEventListener('change', draw);
for (const key of ['flat', 'cum'])
  $('by-' + key).addEventListener('click', () => { by = key; table(); });
})();

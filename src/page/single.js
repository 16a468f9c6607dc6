// SPDX-License-Identifier: MIT
// One chart by itself, in the elements of flamegraph.html: in the file of
// -flamegraph, and in the page that a program serves. All of its data is there,
// so that a box is enlarged without asking anybody.
'use strict';
const flameGraph = (function () {
let data = null, order = '';

function tell(text) { $('info').textContent = text; }
function zoomTo(i) {
  chart.show(chart.boxes, i);
  search();
}
const chart = new Flame({zoom: zoomTo, tell, menu: () =>
  getSelection().selectAllChildren($('info'))}, {fits:
  !document.body.classList.contains('one')});
$('g').append(chart.element);

// A group that is repeated can take a browser's matcher for ever, of one name,
// and nothing stops it.
const repeatsGroup = text => /\)[*+{]/.test(text.replace(/\\./gs, 'x')
  .replace(/\[[^\]]*\]/g, 'x'));
function search() {
  const text = $('q').value;
  let expression = null;
  $('q').className = '';
  $('found').textContent = '';
  try {
    if (repeatsGroup(text)) throw Error('a group cannot be repeated here');
    expression = text ? new RegExp(text, 'i') : null;
  } catch (e) {
    $('q').className = 'bad';
    $('found').textContent = e.message;
  }
  if (!data) return;
  const found = chart.search(expression && (name => expression.test(name)));
  if (found) $('found').textContent = found.n + ' boxes, ' +
    (found.hides ? 'at least ' : '') + chart.print.number(found.sum) + ' (' +
    chart.print.percent(found.sum) + ')';
  chart.draw();
}
function searchFor(expression) { $('q').value = expression; search(); }
function clear() {
  if (!data) return;
  if ($('q').value) searchFor('');
  else { chart.selected = 0; zoomTo(0); }
  chart.element.focus({preventScroll: true});
}
function reset() {
  searchFor('');
  clear();
}
function flip() {
  chart.options.flip = !chart.options.flip;
  if (data) zoomTo(chart.zoom);
}
function arrange() {
  const zoomed = chart.boxes.sum(chart.zoom);
  order = order ? '' : 'n';
  chart.boxes = new Boxes(data, order);
  zoomTo(Math.max(chart.boxes.find(zoomed), 0));
}
function theme() {
  document.documentElement.classList.toggle('dark');
  chart.colors.clear();
  chart.draw();
}

const keys = {
  Backspace: () => chart.outwards(),
  '/': () => $('q').focus(), n: () => chart.next(1), N: () => chart.next(-1),
  o: flip, f: flip, b: arrange, t: theme,
  '?': () => { $('more').open = !$('more').open; },
};
// Those keys that an element takes for itself.
const keeps = (tag, key) => /^(INPUT|SELECT)$/.test(tag) ||
  key === 'Enter' && /^(BUTTON|A|SUMMARY)$/.test(tag);
document.addEventListener('keydown', e => {
  if (e.key === 'Escape') { clear(); e.preventDefault(); return; }
  if (e.target === $('q')) {
    if (e.key === 'Enter') chart.element.focus({preventScroll: true});
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || !data ||
      keeps(e.target.tagName, e.key)) return;
  if (chart.key(e.key)) { /* it moved */ }
  else if (keys[e.key]) keys[e.key]();
  else return;
  e.preventDefault();
});
$('q').addEventListener('input', search);
$('reset').addEventListener('click', reset);
$('flip').addEventListener('click', flip);
$('theme').addEventListener('click', theme);
$('info').addEventListener('dblclick', () =>
  getSelection().selectAllChildren($('info')));
if (matchMedia('(prefers-color-scheme: dark)').matches) theme();

function show(next) {
  data = next;
  document.title = $('title').textContent = shown(data.title) || 'flame graph';
  $('about').replaceChildren(...data.lines.concat(data.diff ?
    ['Red: more than before; blue: less; striped: new.'] : [], data.cut ?
    ['The deepest calls are left out.'] : []).map(line =>
    make('div', {}, shown(line))));
  chart.boxes = new Boxes(data, order);
  zoomTo(0);
  if (!chart.boxes.w[0]) tell('The profile is empty, or all its values are 0.');
}
// What is drawn, for tests.
window.cpprof = {shown: () => chart.drawn()};
// The file of -flamegraph has its data inside.
if ($('data')) show(JSON.parse($('data').textContent));
return {show, searchFor, print: () => chart.print};
})();

// SPDX-License-Identifier: MIT
// Draws stacks as boxes on their callers, into the elements of flamegraph.html.
// What is drawn is an object as page.h tells; names come into the page as text.
'use strict';
const flameGraph = (function () {
const $ = id => document.getElementById(id);
const g = $('g'), H = 17;
let D, N = 0, bottom = 0, zoom = 0, selected = 0, flipped = false, hits = null;
// By box: parent, first child's end, depth, left edge and weight.
let up, end, deep, x, w;
const at = k => D.boxes[k];

const name = i => D.names[at(5 * i)];
const isInline = i => at(5 * i + 1) & 1;
const plus = i => at(5 * i + 3), minus = i => at(5 * i + 4);

function place() {
  up = new Int32Array(N); end = new Int32Array(N); deep = new Int32Array(N);
  x = new Float64Array(N); w = new Float64Array(N);
  const left = [], way = [], edge = [];
  for (let i = 0; i < N; i++) {
    while (way.length && !left[left.length - 1]) {
      end[way.pop()] = i; left.pop(); edge.pop();
    }
    const d = way.length;
    up[i] = d ? way[d - 1] : -1;
    deep[i] = d;
    w[i] = plus(i) + minus(i);
    x[i] = d ? edge[d - 1] : 0;
    if (d) { edge[d - 1] += w[i]; left[d - 1]--; }
    way.push(i); left.push(at(5 * i + 2)); edge.push(x[i]);
  }
  while (way.length) end[way.pop()] = N;
}

function number(v) {
  const u = D.units, abs = Math.abs(v) / D.divide_by;
  let k = 0;
  while (k + 1 < u.length && abs * u[k + 1][1] >= 1) k++;
  const t = (v / D.divide_by * u[k][1]).toFixed(2);
  return t.replace(/\.?0+$/, '') +
    (u[k][0] === 'count' ? '' : u[k][0]);
}
const percent = v =>
  D.total ? (100 * v / Math.abs(D.total)).toFixed(2) + '%' : '';
function value(i) {
  const v = plus(i) - minus(i);
  if (!D.diff) return number(v) + ' (' + percent(v) + ')';
  return (v > 0 ? '+' : '') + number(v) + ' (' + percent(v) + '; ' +
    number(minus(i)) + ' -> ' + number(plus(i)) + ')';
}

// Functions of one package or namespace have one colour.
function hue(s) {
  const p = s.replace(/[(<].*$/, '').match(/^(.*)(::|[.\/])/);
  let h = 2166136261;
  for (const c of p ? p[1] : s)
    h = Math.imul(h ^ c.codePointAt(0), 16777619);
  return (h >>> 0) % 360;
}
function color(i) {
  if (!D.diff) return 'hsl(' + hue(name(i)) + ' var(--S) var(--L))';
  const part = w[i] ? (plus(i) - minus(i)) / w[i] : 0;
  const s = Math.round(Math.sqrt(Math.abs(part)) * 75);
  return 'hsl(' + (part > 0 ? 4 : 214) + ' ' + s + '% var(--L))';
}

function box(i, left, width) {
  const e = document.createElement('div');
  const row = flipped ? bottom - deep[i] : deep[i];
  e.className = 'b' + (width < 20 ? ' n' : '') +
    (isInline(i) && width >= 20 ? ' i' : '') +
    (i === selected ? ' s' : '') +
    (i !== zoom && i < zoom && end[i] >= end[zoom] ? ' a' : '') +
    (hits ? hits[i] ? ' m' : ' o' : '');
  e.style.cssText = 'left:' + left + 'px;width:' + Math.max(width, 1) +
    'px;top:' + row * H + 'px;background:' + color(i);
  if (width >= 20) e.textContent = name(i);
  e.dataset.i = i;
  e.title = name(i) + (isInline(i) ? ' (inline)' : '') + '\n' +
    value(i);
  return e;
}
function draw() {
  if (!N) return;
  const all = g.clientWidth, scale = all / (w[zoom] || 1);
  const seen = [];
  for (let i = up[zoom]; i >= 0; i = up[i]) seen.push(i, 0, all);
  bottom = deep[zoom];
  for (let i = zoom; i < end[zoom];) {
    const width = w[i] * scale;
    if (width < 0.7) { i = end[i]; continue; }
    seen.push(i, (x[i] - x[zoom]) * scale, width);
    bottom = Math.max(bottom, deep[i]);
    i++;
  }
  const list = document.createDocumentFragment();
  for (let k = 0; k < seen.length; k += 3)
    list.append(box(seen[k], seen[k + 1], seen[k + 2]));
  g.style.height = (bottom + 1) * H + 'px';
  g.replaceChildren(list);
}
function tell(i) {
  if (!N) return;
  $('info').textContent = name(i) + (isInline(i) ? ' (inline)' : '') +
    '  ' + value(i);
}
function zoomTo(i) { zoom = selected = i; draw(); tell(i); }
function select(i) {
  if (!(i >= 0 && i < N)) return;
  selected = i; draw(); tell(i);
  const e = g.querySelector('.s');
  if (e) e.scrollIntoView({block: 'nearest'});
}

function search() {
  if (!N) return;
  const q = $('q').value;
  let re = null;
  $('q').className = '';
  try { re = q ? new RegExp(q, 'i') : null; }
  catch (e) { $('q').className = 'bad'; return; }
  hits = null;
  $('found').textContent = '';
  if (re) {
    const names = D.names.map(n => re.test(n));
    let sum = 0, n = 0, until = 0;
    hits = new Uint8Array(N);
    for (let i = 0; i < N; i++) {
      if (!names[at(5 * i)]) continue;
      hits[i] = 1; n++;
      if (i >= until) { sum += plus(i) - minus(i); until = end[i]; }
    }
    $('found').textContent = n + ' boxes, ' + number(sum) + ' (' +
      percent(sum) + ')';
  }
  draw();
}
function clear() {
  if (!N) return;
  if ($('q').value) { $('q').value = ''; search(); }
  else zoomTo(0);
  g.focus();
}
function flip() { flipped = !flipped; draw(); }
function theme() { document.documentElement.classList.toggle('dark'); }

// Boxes beside a box, at its depth or one deeper.
function beside(i, step) {
  for (let k = i + step; k >= 0 && k < N; k += step)
    if (deep[k] === deep[i] && w[k]) return k;
  return i;
}
const moves = {
  ArrowLeft: i => beside(i, -1), ArrowRight: i => beside(i, 1),
  ArrowUp: i => flipped ? child(i) : up[i],
  ArrowDown: i => flipped ? up[i] : child(i),
};
const child = i => end[i] > i + 1 ? i + 1 : i;
// Those keys that an element takes for itself.
const keeps = (tag, key) => /^(INPUT|SELECT)$/.test(tag) ||
  key === 'Enter' && /^(BUTTON|A|SUMMARY)$/.test(tag);
document.addEventListener('keydown', e => {
  if (e.key === 'Escape') { clear(); e.preventDefault(); return; }
  if (e.target === $('q')) {
    if (e.key === 'Enter') g.focus();
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || !N) return;
  if (keeps(e.target.tagName, e.key)) return;
  if (moves[e.key]) select(moves[e.key](selected));
  else if (e.key === 'Enter') zoomTo(selected);
  else if (e.key === 'Backspace') zoomTo(Math.max(up[zoom], 0));
  else if (e.key === '/') $('q').focus();
  else if (e.key === 'f') flip();
  else if (e.key === 't') theme();
  else return;
  e.preventDefault();
});
const boxOf = e => e.target.dataset.i === undefined ? -1 :
  +e.target.dataset.i;
g.addEventListener('click', e => {
  const i = boxOf(e);
  if (i >= 0) zoomTo(i);
});
g.addEventListener('mouseover', e => {
  const i = boxOf(e);
  if (i >= 0) tell(i);
});
g.addEventListener('mouseleave', () => tell(selected));
$('info').addEventListener('dblclick', () =>
  getSelection().selectAllChildren($('info')));
g.addEventListener('contextmenu', e => {
  const i = boxOf(e);
  if (i < 0) return;
  tell(i);
  getSelection().selectAllChildren($('info'));
  e.preventDefault();
});
$('q').addEventListener('input', search);
$('reset').addEventListener('click', () => {
  searchFor('');
  if (N) zoomTo(0);
});
$('flip').addEventListener('click', flip);
$('theme').addEventListener('click', theme);
addEventListener('resize', draw);
if (matchMedia('(prefers-color-scheme: dark)').matches) theme();

function show(data) {
  D = data;
  N = D.boxes.length / 5;
  zoom = selected = 0;
  place();
  document.title = $('title').textContent = D.title || 'flame graph';
  $('about').replaceChildren(...D.lines.concat(
    D.diff ? ['Red: more than in the base; blue: less.'] : [],
    D.cut ? ['The deepest calls are left out.'] : []).map(line => {
    const e = document.createElement('div');
    e.textContent = line;
    return e;
  }));
  search();
  tell(0);
}
function searchFor(expression) { $('q').value = expression; search(); }
return {show, searchFor, number, percent};
})();

// SPDX-License-Identifier: MIT
// Views that show what reports print: peek and traces as text, the listing of
// source and instructions, and the graph. Documents of the server are read as
// data: their text is taken over, and of a picture the shapes; nothing else.
'use strict';

// ---- text ----------------------------------------------------------------------

const MOST_TEXT = 2000000;

async function textView(format, more) {
  const q = query({...more, max: MOST_TEXT});
  const answer = await get('api/report/' + format + '?' + q, 'text');
  const text = await answer.text();
  const e = make('pre', {className: 'text', tabIndex: 0});
  if (format === 'peek') e.append(...text.split('\n').map(callLine));
  else e.append(shown2(text));
  if ((answer.headers.get('X-Cpprof-Note') || '').endsWith('cut'))
    e.append(make('p', {className: 'dim'}, '... cut here; the command line ' +
      'below prints all of it.'));
  return {element: e, text};
}
// A line of a peek: "values |   name (inline)"; the name leads to its sandwich.
function callLine(line) {
  const m = line.match(/^([^|]*\| +)(.*?)((?: \((?:partial-)?inline\))?)$/);
  const whole_ = document.createDocumentFragment();
  if (!m) whole_.append(shown2(line) + '\n');
  else whole_.append(m[1], make('a', {href: address('sandwich',
    {p: whole(m[2]), sym: ''})}, shown(m[2])), m[3] + '\n');
  return whole_;
}
// As shown(), but lines end.
const shown2 = text => text.split('\n').map(line =>
  line.split('\t').map(shown).join('\t')).join('\n');

// ---- source --------------------------------------------------------------------

const UNITS = {ns: 1, us: 1e3, ms: 1e6, s: 1e9, mins: 6e10, hrs: 3.6e12, B: 1,
  kB: 1024, MB: 1048576, GB: 1073741824, TB: 1099511627776};
function valueOf(text) {
  const m = text.match(/^(-?[\d.]+)([a-zA-Z]*)$/);
  // "." is nothing, but is no number.
  return m && Math.abs(+m[1]) * (UNITS[m[2]] || 1) || 0;
}

// "flat cum text" of a line.
const CODE = /^ +(\S+) +(\S+) {11}([^]*) $/;

// A line of the listing: the number, its values and text, and what is folded
// below it.
function codeLine(number, code, folded, most) {
  const m = code.textContent.match(CODE) || ['', '', '', code.textContent];
  const [, flat, cum] = m;
  const heat = Math.sqrt(valueOf(cum) / (most || 1));
  const e = make('div', {className: 'l' + (cum && cum !== '.' ? '' : ' cold') +
    (folded ? ' live' : '')}, make('span', {}, flat === '.' ? '' : flat),
  make('span', {}, cum === '.' ? '' : cum), make('span', {},
    (folded ? '\u25b8 ' : '') + number), make('span', {}, shown2(m[3])));
  if (heat > 0) e.style.background = 'rgba(' + style('--heat') + ',' +
    (0.05 + 0.4 * Math.min(heat, 1)).toFixed(3) + ')';
  e.dataset.heat = valueOf(cum);
  e.tabIndex = folded ? 0 : -1;
  if (!folded) return [e];
  // Without the column that lines have for their number.
  const asm = make('pre', {className: 'asm', hidden: true},
    shown2(folded.textContent.replace(/^ {11}/gm, '')).replace(/\n$/, ''));
  e.setAttribute('role', 'button');
  e.setAttribute('aria-expanded', 'false');
  e.onclick = () => {
    asm.hidden = !asm.hidden;
    e.children[2].textContent = (asm.hidden ? '\u25b8 ' : '\u25be ') + number;
    e.setAttribute('aria-expanded', String(!asm.hidden));
  };
  return [e, asm];
}

async function sourceView(symbol) {
  const url = 'api/listing?' + query({sym: symbol});
  const page = await tree(url);
  const e = make('div', {className: 'pad source'});
  const lines = [], pres = [...page.querySelectorAll('pre')];
  const cumOf = number => number.nextElementSibling ? valueOf(
    (number.nextElementSibling.textContent.match(CODE) || [])[2] || '') : 0;
  // Of all functions: one that takes little is as cold as it is.
  const most = pres.reduce((m, pre) => Math.max(m,
    ...Array.from(pre.querySelectorAll('span.line'), cumOf)), 0);
  for (const pre of pres) {
    const file = pre.previousElementSibling;
    const name = file && file.previousElementSibling;
    const box = make('div', {className: 'code'});
    const numbers = [...pre.querySelectorAll('span.line')];
    for (const number of numbers) {
      const code = number.nextElementSibling;
      const next = code && code.nextElementSibling;
      const folded = next && next.classList.contains('asm') ? next : null;
      const made = codeLine(number.textContent.trim(), code, folded, most);
      lines.push(made[0]);
      box.append(...made);
    }
    const isMissing = numbers.every(n => n.nextElementSibling &&
      /^(\?\?\?|)$/.test((n.nextElementSibling.textContent.match(CODE) ||
        ['', '', '', ''])[3]));
    const why = !isMissing ? [] : [make('div', {className: 'dim'}, 'The source is not there, or ' +
        'may not be shown (docs/web.md); -source_path=FOLDER tells where it is.')];
    const total = pre.firstChild ? pre.firstChild.textContent.trim() : '';
    e.append(make('h2', {}, shown(name ? name.textContent : '')),
      make('div', {className: 'dim'}, shown(file ? file.textContent : '') +
        '   ' + shown(total).replace(/\s+/g, ' ')),
    ...why, box);
  }
  const hottest = lines.filter(l => +l.dataset.heat > 0).sort((a, b) =>
    b.dataset.heat - a.dataset.heat);
  let at = -1;
  const match = step => {
    if (!hottest.length) return;
    at = (at + (at < 0 && step < 0 ? 0 : step) + hottest.length) % hottest.length;
    hottest[at].scrollIntoView({block: 'center'});
    hottest[at].focus();
  };
  return {element: e, match, key: name => {
    if (name === 'Enter' && document.activeElement.onclick)
      document.activeElement.onclick();
    else return false;
    return true;
  }};
}

// ---- graph ---------------------------------------------------------------------

const SHAPES = new Set(['svg', 'g', 'path', 'polygon', 'polyline', 'ellipse',
  'text', 'a', 'title', 'circle', 'rect', 'line']);
const LOOKS = ['d', 'points', 'fill', 'stroke', 'stroke-width', 'x', 'y', 'cx',
  'cy', 'rx', 'ry', 'r', 'width', 'height', 'text-anchor', 'font-family',
  'font-size', 'transform', 'viewBox', 'class', 'stroke-dasharray',
  'fill-opacity', 'stroke-opacity', 'x1', 'x2', 'y1', 'y2'];
const SVG = 'http://www.w3.org/2000/svg';

// What is less is green in dot's picture, and blue in all others.
const blue = color => color.replace(/^#(..)(..)(..)$/, (all, r, g, b) =>
  g > r && g > b ? '#' + r + b + g : all);

// The same shape, made here: what it may do besides being seen stays behind.
function copyShape(from) {
  if (from.nodeType === 3) return document.createTextNode(shown(from.data));
  if (from.nodeType !== 1 || !SHAPES.has(from.localName)) return null;
  const e = document.createElementNS(SVG, from.localName === 'a' ? 'g' :
    from.localName);
  for (const name of LOOKS)
    if (from.hasAttribute(name) && !/url|script/i.test(from.getAttribute(name)))
      e.setAttribute(name, blue(from.getAttribute(name)));
  const link = from.getAttributeNS('http://www.w3.org/1999/xlink', 'title');
  if (from.localName === 'a' && link) {
    e.dataset.title = link;
    const title = document.createElementNS(SVG, 'title');
    title.textContent = shown(link);
    e.append(title);
  }
  for (const child of from.childNodes) {
    if (from.localName === 'g' && child.localName === 'title') continue;
    const made = copyShape(child);
    if (made) e.append(made);
  }
  return e;
}

// on {menu(name, x, y), tell(text)}
async function graphView(on) {
  const q = query();
  const page = await tree('api/report/svg?' + q);
  const svg = copyShape(page.documentElement);
  const e = make('div', {className: 'graph', tabIndex: 0, role: 'img',
    'aria-label': 'graph of calls; the views tree and top tell the same'}, svg);
  let selected = null, scale = 1, x = 0, y = 0;
  const place = () => {
    svg.style.transform = 'translate(' + x + 'px,' + y + 'px) scale(' + scale + ')';
  };
  const zoom = (by, px, py) => {
    const next = Math.min(Math.max(scale * by, 0.02), 20);
    x = px - (px - x) * next / scale;
    y = py - (py - y) * next / scale;
    scale = next;
    place();
  };
  const nodes = () => [...svg.querySelectorAll('g.node')].filter(nameOf);
  e.fit = () => {
    svg.removeAttribute('viewBox');
    svg.removeAttribute('width');
    svg.removeAttribute('height');
    scale = 1; x = y = 0;
    place();
    const r = svg.getBBox();
    svg.setAttribute('width', Math.ceil(r.width + 20));
    svg.setAttribute('height', Math.ceil(r.height + 20));
    svg.setAttribute('viewBox', [r.x - 10, r.y - 10, r.width + 20,
      r.height + 20].join(' '));
    const before = scale;
    const fits = Math.min(e.clientWidth / (r.width + 20),
      e.clientHeight / (r.height + 20), 1.4) * 0.98;
    // A large one begins where its root is, large enough to be read.
    scale = Math.max(fits, 0.7);
    const top = node => node.getBoundingClientRect().top;
    const root = nodes().reduce((a, b) => a && top(a) <= top(b) ? a : b, null);
    x = (e.clientWidth - (r.width + 20) * scale) / 2;
    if (scale > fits && root) {
      const b = root.getBoundingClientRect(), all = e.getBoundingClientRect();
      const now = (b.left + b.width / 2 - all.left) / before * scale;
      x = e.clientWidth / 2 - now;
    }
    y = 6;
    place();
  };
  const nameOf = node => {
    const a = node.querySelector('[data-title]');
    // That of the legend has no value.
    const found = a && /^(.*) \([^()]*\)$/s.exec(a.dataset.title);
    return found ? found[1] : null;
  };
  const choose = node => {
    if (selected) selected.classList.remove('on');
    selected = node;
    if (!node) return;
    node.classList.add('on');
    on.tell(shown(node.querySelector('[data-title]').dataset.title));
  };
  e.addEventListener('wheel', event => {
    event.preventDefault();
    const r = e.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - r.left,
      event.clientY - r.top);
  }, {passive: false});
  // One pointer drags, two pinch; one that rests on a node opens the menu.
  const down = new Map();
  let timer = 0;
  const nodeAt = event => document.elementFromPoint(event.clientX,
    event.clientY).closest('g.node');
  const menu = event => {
    const node = nodeAt(event);
    if (!node || !nameOf(node)) return false;
    choose(node);
    on.menu(nameOf(node), event.clientX, event.clientY);
    return true;
  };
  const apart = () => {
    const [a, b] = [...down.values()];
    return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1;
  };
  e.addEventListener('pointerdown', event => {
    clearTimeout(timer);
    if (event.button) return;
    down.set(event.pointerId, event);
    e.setPointerCapture(event.pointerId);
    if (nodeAt(event)) choose(nodeAt(event));
    if (event.pointerType === 'touch' && down.size === 1)
      timer = setTimeout(() => menu(event), LONG_MS);
  });
  e.addEventListener('pointermove', event => {
    const before = down.get(event.pointerId), wide = down.size === 2 && apart();
    if (!before) return;
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    if (Math.hypot(dx, dy) > 2) clearTimeout(timer);
    down.set(event.pointerId, event);
    x += dx / down.size;
    y += dy / down.size;
    const r = e.getBoundingClientRect();
    if (wide) zoom(apart() / wide, event.clientX - r.left, event.clientY - r.top);
    place();
  });
  for (const name of ['pointerup', 'pointercancel'])
    e.addEventListener(name, event => {
      clearTimeout(timer);
      down.delete(event.pointerId);
    });
  e.addEventListener('contextmenu', event => {
    if (menu(event)) event.preventDefault();
  });
  return {element: e, has_nodes: nodes().length > 0, selectedName: () =>
    selected && nameOf(selected), search: test => {
    let n = 0;
    for (const node of nodes()) {
      const hit = test && test(nameOf(node));
      node.classList.toggle('hit', !!hit);
      n += !!hit;
    }
    return {n};
  }, match: step => {
    const hits = nodes().filter(n => n.classList.contains('hit'));
    const among = hits.length ? hits : nodes(), k = among.indexOf(selected);
    const node = among[(k + (k < 0 && step < 0 ? 0 : step) + among.length) %
      among.length];
    if (!node) return;
    choose(node);
    const r = node.getBoundingClientRect(), all = e.getBoundingClientRect();
    x += all.left + all.width / 2 - r.left - r.width / 2;
    y += all.top + all.height / 2 - r.top - r.height / 2;
    place();
  }, key: name => {
    const steps = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60],
      ArrowDown: [0, -60]};
    if (name in steps) { x += steps[name][0]; y += steps[name][1]; place(); }
    else if (name === '+' || name === '-')
      zoom(name === '+' ? 1.25 : 0.8, e.clientWidth / 2, e.clientHeight / 2);
    else return false;
    return true;
  }};
}

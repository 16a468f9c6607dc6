// SPDX-License-Identifier: MIT
// Stacks as boxes on a canvas of the size of what is seen, however high the
// whole is. The data is that of src/report/flame/boxes.h: seven numbers a box,
// each before its children. What the server left out is hatched.
'use strict';
const H = 19; // pixels of a row
const STRIDE = 7;
const LONG_MS = 500; // of a long press
const FONT = '12px ui-monospace, SFMono-Regular, Menlo, monospace';

// ---- sums of names: the address of a box -------------------------------------

function addSum(s, a, b) {
  s[0] = Math.imul(s[0] ^ a, 16777619);
  s[1] = Math.imul(s[1] ^ b, 0x5bd1e995);
  s[1] ^= s[1] >>> 15;
}
const NO_SUM = [2166136261 | 0, 0x9747b28c | 0];
function sumOf(name) {
  const s = NO_SUM.slice();
  for (const c of name) addSum(s, c.codePointAt(0), c.codePointAt(0));
  return s;
}
const hex = s => s.map(n => (n >>> 0).toString(16).padStart(8, '0')).join('');

// ---- colours -------------------------------------------------------------------

// Functions of one namespace, package or file have one colour.
function hueOf(name) {
  const p = name.replace(/[(<].*$/, '').match(/^(.*)(::|[./])/);
  let h = 2166136261;
  for (const c of p ? p[1] : name)
    h = Math.imul(h ^ c.codePointAt(0), 16777619);
  return (h >>> 0) % 360;
}
const isDark = () => document.documentElement.classList.contains('dark');
const style = name =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- a tree --------------------------------------------------------------------

// By box: parent, end of its part of the walk, depth, left edge, weight.
class Boxes {
  // order 'n': children by name; width 'new' or 'old' of a comparison.
  constructor(data, order, width) {
    this.data = data;
    this.at = order === 'n' ? byName(data) : data.boxes;
    this.n = this.at.length / STRIDE;
    this.up = new Int32Array(this.n);
    this.end = new Int32Array(this.n);
    this.deep = new Int32Array(this.n);
    this.x = new Float64Array(this.n);
    this.w = new Float64Array(this.n);
    this.inside = new Float64Array(this.n); // weight of the children
    this.width = width;
    const left = [], way = [], edge = [];
    for (let i = 0; i < this.n; i++) {
      while (way.length && !left[left.length - 1]) {
        this.end[way.pop()] = i; left.pop(); edge.pop();
      }
      const d = way.length;
      this.up[i] = d ? way[d - 1] : -1;
      this.deep[i] = d;
      this.w[i] = this.weigh(this.plus(i), this.minus(i));
      this.x[i] = d ? edge[d - 1] : 0;
      if (d) {
        edge[d - 1] += this.w[i]; left[d - 1]--;
        this.inside[way[d - 1]] += this.w[i];
      }
      way.push(i); left.push(this.at[STRIDE * i + 2]); edge.push(this.x[i]);
    }
    while (way.length) this.end[way.pop()] = this.n;
  }
  weigh(plus, minus) {
    return this.width === 'new' ? plus : this.width === 'old' ? minus :
      plus + minus;
  }
  number(i) { return this.at[STRIDE * i]; }
  name(i) { return this.data.names[this.number(i)]; }
  isInline(i) { return this.at[STRIDE * i + 1] & 1; }
  plus(i) { return this.at[STRIDE * i + 3]; }
  minus(i) { return this.at[STRIDE * i + 4]; }
  value(i) { return this.plus(i) - this.minus(i); }
  self(i) { return this.at[STRIDE * i + 5] - this.at[STRIDE * i + 6]; }
  // The weight of what is below a box and was not sent.
  hidden(i) {
    const own = this.weigh(this.at[STRIDE * i + 5], this.at[STRIDE * i + 6]);
    const rest = this.w[i] - own - this.inside[i];
    return rest > this.w[0] * 1e-9 ? rest : 0;
  }
  hidesBelow(i) {
    for (let k = i; k < this.end[i]; k++) if (this.hidden(k)) return true;
    return false;
  }
  // From the outermost to this one, without the root.
  path(i) {
    const names = [];
    for (; i > 0; i = this.up[i]) names.push(this.name(i));
    return names.reverse();
  }
  sum(i) {
    const s = NO_SUM.slice();
    for (const name of this.path(i)) addSum(s, ...sumOf(name));
    return i > 0 ? hex(s) : '';
  }
  find(sum) {
    if (!sum) return 0;
    const names = this.data.names.map(sumOf);
    const sums = [NO_SUM];
    for (let i = 1; i < this.n; i++) {
      const s = sums[this.deep[i] - 1].slice();
      addSum(s, ...names[this.number(i)]);
      if (hex(s) === sum) return i;
      sums[this.deep[i]] = s;
    }
    return -1;
  }
}

// The boxes with children in the order of their names.
function byName(data) {
  const at = data.boxes, out = [], children = [], way = [], left = [];
  const nameOf = i => data.names[at[STRIDE * i]];
  for (let i = 0; i < at.length / STRIDE; i++) {
    while (way.length && !left[left.length - 1]) { way.pop(); left.pop(); }
    children.push([]);
    if (way.length) {
      children[way[way.length - 1]].push(i);
      left[left.length - 1]--;
    }
    way.push(i);
    left.push(at[STRIDE * i + 2]);
  }
  for (const todo = [0]; todo.length;) {
    const i = todo.pop();
    for (let k = 0; k < STRIDE; k++) out.push(at[STRIDE * i + k]);
    children[i].sort((a, b) => nameOf(a) < nameOf(b) ? 1 : -1);
    for (const child of children[i]) todo.push(child);
  }
  return out;
}

// ---- a chart -------------------------------------------------------------------

class Flame {
  // on: {zoom(i), menu(i, x, y), tell(text)}. Options: flip: callers below
  // callees; skip: so many rows at the root are not drawn; fits: the element is
  // as high as its boxes, as far as the style allows; label.
  constructor(on, options) {
    this.on = on;
    this.options = options || {};
    this.canvas = make('canvas');
    this.tall = make('div', {className: 'tall'});
    this.element = make('div', {className: 'flame', tabIndex: 0, role: 'img',
      'aria-label': this.options.label || 'flame graph'}, this.canvas, this.tall);
    this.zoom = this.selected = 0;
    this.over = -1;
    this.hits = null;
    this.colors = new Map();
    this.rects = [];
    const e = this.element;
    e.addEventListener('scroll', () => this.draw());
    e.addEventListener('mousemove', event => this.hover(this.hit(event)));
    e.addEventListener('mouseleave', () => this.hover(-1));
    e.addEventListener('click', event => {
      const i = this.hit(event);
      if (i >= 0 && !this.held) { this.selected = i; this.on.zoom(i); }
      this.held = false;
    });
    e.addEventListener('contextmenu', event => {
      if (this.menu(event)) event.preventDefault();
    });
    this.touch(e);
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(e);
  }
  menu(event) {
    const i = this.hit(event);
    if (i < 0) return false;
    this.select(i);
    this.on.menu(i, event.clientX, event.clientY);
    return true;
  }
  // Fingers: a tap is a click, a long press opens the menu. Two of them that
  // part enlarge what is between them; that come together go one box out.
  touch(e) {
    const down = new Map();
    let timer = 0, apart = 0;
    const middle = () => {
      const [a, b] = [...down.values()];
      return {clientX: (a.x + b.x) / 2, clientY: (a.y + b.y) / 2,
        apart: Math.hypot(a.x - b.x, a.y - b.y)};
    };
    e.addEventListener('pointerdown', event => {
      this.held = false;
      clearTimeout(timer);
      if (event.pointerType !== 'touch') return;
      const {clientX: x, clientY: y} = event;
      down.set(event.pointerId, {x, y, from: [x, y]});
      if (down.size === 2) apart = middle().apart;
      if (down.size === 1)
        timer = setTimeout(() => { this.held = this.menu(event); }, LONG_MS);
    });
    e.addEventListener('pointermove', event => {
      const finger = down.get(event.pointerId);
      if (!finger) return;
      [finger.x, finger.y] = [event.clientX, event.clientY];
      if (Math.hypot(finger.x - finger.from[0], finger.y - finger.from[1]) > 8)
        clearTimeout(timer);
      if (down.size !== 2 || !apart) return;
      const now = middle(), i = this.hit(now);
      if (now.apart > apart * 1.4 && i >= 0) this.on.zoom(i);
      else if (now.apart < apart * 0.7) this.outwards();
      else return;
      this.held = true;
      apart = 0;
    });
    for (const name of ['pointerup', 'pointercancel'])
      e.addEventListener(name, event => {
        clearTimeout(timer);
        down.delete(event.pointerId);
      });
  }
  outwards() {
    if (this.zoom > 0) this.on.zoom(Math.max(this.boxes.up[this.zoom], 0));
  }
  show(boxes, zoom) {
    const again = this.boxes && this.boxes.data === boxes.data;
    this.boxes = boxes;
    this.print = printer(boxes.data);
    this.zoom = zoom;
    this.over = -1;
    if (!again || this.selected < zoom || this.selected >= boxes.end[zoom])
      this.selected = zoom;
    this.colors.clear();
    this.search(this.expression);
    this.layout();
    this.draw(); // which makes room to scroll
    const y = this.row(this.zoom) * H, seen = this.element.clientHeight;
    this.element.scrollTop = this.options.flip ? y + H - seen * 2 / 3 :
      y - seen / 3;
    this.draw();
    this.tell();
  }
  layout() {
    const b = this.boxes;
    this.bottom = b.deep[this.zoom];
    const least = 0.5 / Math.max(this.element.clientWidth, 1) * b.w[this.zoom];
    for (let i = this.zoom; i < b.end[this.zoom];) {
      if (b.w[i] < least) { i = b.end[i]; continue; }
      if (b.deep[i] > this.bottom) this.bottom = b.deep[i];
      i++;
    }
  }
  row(i) {
    const skip = this.options.skip || 0;
    return this.options.flip ? this.bottom - this.boxes.deep[i] :
      this.boxes.deep[i] - skip;
  }
  color(i, dark) {
    const b = this.boxes;
    if (b.data.diff) {
      const all = b.plus(i) + b.minus(i);
      const part = all ? (b.plus(i) - b.minus(i)) / all : 0;
      const s = Math.round(Math.sqrt(Math.abs(part)) * 70);
      return 'hsl(' + (part > 0 ? 8 : 214) + ' ' + s + '% ' +
        (dark ? 36 : 78 - s / 6) + '%)';
    }
    const k = b.number(i);
    let color = this.colors.get(k);
    if (!color) {
      const h = hueOf(b.name(i));
      color = dark ? 'hsl(' + h + ' 30% 33%)' : 'hsl(' + h + ' 58% 80%)';
      this.colors.set(k, color);
    }
    return i ? color : dark ? '#2b3038' : '#e6e9ed';
  }
  draw() {
    const b = this.boxes, e = this.element;
    if (!b || !e.clientWidth) return;
    const rows = this.bottom + 1 - (this.options.skip || 0);
    const full = Math.max(rows * H + 2, 1);
    if (this.options.fits) {
      e.style.flex = 'none';
      e.style.height = full + 'px';
    }
    const width = e.clientWidth, height = e.clientHeight;
    const scale = window.devicePixelRatio || 1;
    this.tall.style.height = full + 'px';
    if (this.canvas.width !== Math.round(width * scale) ||
        this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = width + 'px';
      this.canvas.style.height = height + 'px';
      this.layout();
    }
    const c = this.canvas.getContext('2d');
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, width, height);
    c.font = FONT;
    c.textBaseline = 'middle';
    const dark = isDark(), letter = c.measureText('m').width;
    // A chart that grows upwards stands on the ground.
    const shift = this.options.flip ? Math.max(height - full, 0) : 0;
    const look = {c, dark, letter, top: e.scrollTop - shift, height,
      text: style('--fg'), hit: style('--hit'), line: style('--bg')};
    const per = width / (b.w[this.zoom] || 1);
    this.rects = [];
    for (let i = b.up[this.zoom]; i >= 0; i = b.up[i])
      this.box(look, i, 0, width);
    for (let i = this.zoom; i < b.end[this.zoom];) {
      const w = b.w[i] * per;
      if (w < 0.5) { i = b.end[i]; continue; }
      this.box(look, i, (b.x[i] - b.x[this.zoom]) * per, w);
      const hidden = b.hidden(i) * per;
      if (hidden >= 1.5)
        this.rest(look, i, (b.x[i] + b.inside[i] - b.x[this.zoom]) * per, hidden);
      i++;
    }
  }
  box(look, i, x, w) {
    if (this.boxes.deep[i] < (this.options.skip || 0)) return;
    const c = look.c, b = this.boxes, y = this.row(i) * H - look.top;
    this.rects.push({i, x, y, w});
    if (y + H < 0 || y > look.height) return;
    const above = this.isAbove(i);
    c.globalAlpha = above ? 0.55 : this.hits && !this.hits[i] ? 0.32 : 1;
    c.fillStyle = this.color(i, look.dark);
    c.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.5), H - 1);
    c.globalAlpha = 1;
    if (b.data.diff && i && !b.minus(i) && b.plus(i)) this.stripes(look, x, y, w);
    if (w > 8 && b.isInline(i)) {
      c.fillStyle = look.text;
      c.globalAlpha = 0.45;
      for (let k = y + 2; k < y + H - 3; k += 4) c.fillRect(x + 1, k, 1.5, 2);
      c.globalAlpha = 1;
    }
    if (this.hits && this.hits[i]) {
      c.fillStyle = look.hit;
      c.fillRect(x, y + H - 3, Math.max(w - 1, 1), 2);
    }
    if (i === this.selected || i === this.over) {
      c.strokeStyle = look.text;
      c.lineWidth = i === this.selected ? 1.5 : 1;
      c.strokeRect(x + 0.75, y + 0.75, Math.max(w - 2.5, 1), H - 2.5);
    }
    if (w < 24) return;
    c.globalAlpha = above ? 0.7 : this.hits && !this.hits[i] ? 0.6 : 1;
    c.fillStyle = look.text;
    c.fillText(cut(shown(b.name(i)), Math.floor((w - 9) / look.letter)), x + 5,
      y + H / 2);
    c.globalAlpha = 1;
  }
  isAbove(i) {
    return i < this.zoom && this.boxes.end[i] >= this.boxes.end[this.zoom];
  }
  // Lines across a box, one each `step` pixels: rising or falling.
  hatch(c, x, y, w, step, rises) {
    c.save();
    c.beginPath();
    c.rect(x, y, w - 1, H - 1);
    c.clip();
    c.beginPath();
    for (let k = x - H; k < x + w; k += step) {
      c.moveTo(k, rises ? y + H : y);
      c.lineTo(k + H, rises ? y : y + H);
    }
    c.stroke();
    c.restore();
  }
  // New in a comparison.
  stripes(look, x, y, w) {
    look.c.strokeStyle = look.dark ? '#fff3' : '#fff9';
    look.c.lineWidth = 2;
    this.hatch(look.c, x, y, w, 7, true);
  }
  // What is too small to be sent.
  rest(look, i, x, w) {
    const y = (this.row(i) + (this.options.flip ? -1 : 1)) * H - look.top;
    if (y + H < 0 || y > look.height) return;
    look.c.strokeStyle = look.dark ? '#ffffff2a' : '#00000020';
    look.c.lineWidth = 1;
    this.hatch(look.c, x, y, w, 5, false);
  }
  hit(event) {
    const r = this.canvas.getBoundingClientRect();
    const x = event.clientX - r.left, y = event.clientY - r.top;
    for (let k = this.rects.length - 1; k >= 0; k--) {
      const t = this.rects[k];
      if (y >= t.y && y < t.y + H && x >= t.x && x < t.x + Math.max(t.w, 1))
        return t.i;
    }
    return -1;
  }
  hover(i) {
    if (i === this.over) return;
    this.over = i;
    this.draw();
    this.tell();
  }
  tell() {
    const i = this.over >= 0 ? this.over : this.selected;
    this.on.tell(this.text(i));
  }
  text(i) {
    const b = this.boxes, p = this.print;
    let text = shown(b.name(i)) + (b.isInline(i) ? ' (inline)' : '');
    if (b.data.diff)
      text += '   ' + p.signed(b.value(i)) + '   ' + p.number(b.minus(i)) +
        ' \u2192 ' + p.number(b.plus(i)) +
        (!i ? '' : !b.minus(i) ? '   new' : !b.plus(i) ? '   gone' : '');
    else
      text += '   ' + p.number(b.value(i)) + ' (' + p.percent(b.value(i)) + ')';
    text += '   self ' + p.number(b.self(i));
    const hidden = b.hidden(i);
    if (hidden)
      text += '   smaller, not drawn: ' + p.number(hidden);
    return text;
  }
  select(i) {
    if (!(i >= 0 && i < this.boxes.n)) return;
    this.selected = i;
    const y = this.row(i) * H, e = this.element;
    if (y < e.scrollTop) e.scrollTop = y;
    if (y + H > e.scrollTop + e.clientHeight)
      e.scrollTop = y + H - e.clientHeight;
    this.over = -1;
    this.draw();
    this.tell();
  }
  // Marks what matches; {n, sum} or null.
  search(expression) {
    this.expression = expression;
    this.hits = null;
    if (!expression || !this.boxes) return null;
    const b = this.boxes, names = b.data.names.map(n => expression.test(n));
    let n = 0, sum = 0, until = 0;
    this.hits = new Uint8Array(b.n);
    for (let i = 1; i < b.n; i++) {
      if (!names[b.number(i)]) continue;
      this.hits[i] = 1;
      n++;
      if (i >= until) { sum += b.value(i); until = b.end[i]; }
    }
    return {n, sum};
  }
  next(step) {
    if (!this.hits) return;
    const n = this.boxes.n;
    for (let k = 1; k <= n; k++) {
      const i = (this.selected + step * k + n * 2) % n;
      if (this.hits[i] && i >= this.zoom && i < this.boxes.end[this.zoom]) {
        this.select(i);
        return;
      }
    }
  }
  beside(step) {
    const b = this.boxes;
    for (let k = this.selected + step; k >= 0 && k < b.n; k += step)
      if (b.deep[k] === b.deep[this.selected] && b.w[k]) return k;
    return this.selected;
  }
  key(name) {
    const b = this.boxes, i = this.selected;
    const child = b.end[i] > i + 1 ? i + 1 : i;
    const moves = {ArrowLeft: this.beside(-1), ArrowRight: this.beside(1),
      ArrowUp: this.options.flip ? child : b.up[i],
      ArrowDown: this.options.flip ? b.up[i] : child};
    if (name in moves) this.select(moves[name]);
    else if (name === 'Enter') this.on.zoom(i);
    else return false;
    return true;
  }
  // For tests, and for who cannot see: what is drawn.
  drawn() {
    const r = this.canvas.getBoundingClientRect();
    return this.rects.map(t => ({name: this.boxes.name(t.i), x: r.left + t.x,
      y: r.top + t.y, width: t.w, value: this.boxes.value(t.i),
      self: this.boxes.self(t.i), text: this.text(t.i),
      color: this.color(t.i, isDark()), isSelected: t.i === this.selected,
      isAbove: this.isAbove(t.i), isHit: !!(this.hits && this.hits[t.i])}));
  }
}

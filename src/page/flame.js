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
const hues = new Map(); // by name, for all charts
function hueOf(name) {
  const hue = hues.get(name);
  if (hue !== undefined) return hue;
  const p = name.replace(/[(<].*$/, '').match(/^(.*)(::|[./])/);
  let h = 2166136261;
  for (const c of p ? p[1] : name)
    h = Math.imul(h ^ c.codePointAt(0), 16777619);
  if (hues.size > 100000) hues.clear();
  hues.set(name, (h >>> 0) % 360);
  return hues.get(name);
}
const isDark = () => document.documentElement.classList.contains('dark');
const style = name =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// ---- a tree --------------------------------------------------------------------

// By box: parent, end of its part of the walk, depth, left edge, weight.
class Boxes {
  // order 'n': children by name; width 'new' or 'old' of a comparison.
  constructor(data, order, width) {
    const at = order === 'n' ? byName(data) : data.boxes;
    const n = at.length / STRIDE, left = new Int32Array(n); // children to come
    this.data = data;
    this.at = at;
    this.n = n;
    this.up = new Int32Array(n);
    this.end = new Int32Array(n);
    this.deep = new Int32Array(n);
    this.x = new Float64Array(n);
    this.w = new Float64Array(n);
    this.inside = new Float64Array(n); // weight of the children
    this.width = width;
    const {up, end, deep, x, w, inside} = this;
    let in_ = -1; // the box that the next one is in
    for (let i = 0; i < n; i++) {
      for (; in_ >= 0 && !left[in_]; in_ = up[in_]) end[in_] = i;
      up[i] = in_;
      w[i] = this.weigh(at[STRIDE * i + 3], at[STRIDE * i + 4]);
      if (in_ >= 0) {
        deep[i] = deep[in_] + 1;
        x[i] = x[in_] + inside[in_];
        inside[in_] += w[i];
        left[in_]--;
      }
      left[i] = at[STRIDE * i + 2];
      in_ = i;
    }
    for (; in_ >= 0; in_ = up[in_]) end[in_] = n;
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
  sum(i) { return this.way(i).slice(0, 16); }
  // The same with what leads the server there.
  way(i) {
    const s = NO_SUM.slice();
    let steps = '';
    for (const name of this.path(i)) {
      addSum(s, ...sumOf(name));
      steps += (s[0] & 255).toString(16).padStart(2, '0');
    }
    return i > 0 ? hex(s) + '-' + steps : '';
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

// Lines across, `step` pixels apart: what is filled with it costs no more than
// one colour.
function hatch(c, scale, step, width, color, rises) {
  const n = Math.round(step * scale), tile = make('canvas', {width: n, height: n});
  const t = tile.getContext('2d');
  t.strokeStyle = color;
  t.lineWidth = width * scale;
  if (rises) { t.translate(0, n); t.scale(1, -1); }
  t.beginPath();
  for (const k of [-n, 0, n]) {
    t.moveTo(k - n, -n);
    t.lineTo(k + 2 * n, 2 * n);
  }
  t.stroke();
  const pattern = c.createPattern(tile, 'repeat');
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
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
    this.marks = ['chosen', 'over'].map(className => make('div', {className,
      hidden: true}));
    this.element = make('div', {className: 'flame', tabIndex: 0, role: 'img',
      'aria-label': this.options.label || 'flame graph'}, this.canvas, this.tall,
    ...this.marks);
    this.zoom = this.selected = 0;
    this.over = -1;
    this.hits = null;
    this.colors = new Map();
    this.rects = [];
    const e = this.element;
    e.addEventListener('scroll', () => {
      if (e.scrollTop !== this.top) this.draw();
    });
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
    this.watcher = new ResizeObserver(() => { if (!this.covers()) this.draw(); });
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
    this.search(this.test);
    this.laid = -1;
    this.place(); // which makes room to scroll
    const y = this.row(this.zoom) * H, seen = this.element.clientHeight;
    this.element.scrollTop = this.options.flip ? y + H - seen * 2 / 3 :
      y - seen / 3;
    this.paint();
    this.tell();
  }
  // What is drawn at this width: boxes of a pixel of the screen or more.
  layout(width) {
    const b = this.boxes, zoom = this.zoom, end = b.end[zoom];
    const skip = this.options.skip || 0, deep = b.deep, rects = [];
    this.laid = width;
    this.from = b.x[zoom];
    this.per = width / (b.w[zoom] || 1);
    const least = 1 / (window.devicePixelRatio || 1) / this.per;
    const {up, x, w} = b, filled = new Float64Array(b.n);
    let bottom = deep[zoom];
    for (let i = up[zoom]; i >= 0; i = up[i])
      if (deep[i] >= skip) rects.push(i);
    for (let i = zoom; i < end;) {
      if (w[i] < least) { i = b.end[i]; continue; }
      if (deep[i] > bottom) bottom = deep[i];
      if (deep[i] >= skip) rects.push(i);
      if (i > zoom) filled[up[i]] = x[i] + w[i] - x[up[i]];
      i++;
    }
    this.filled = filled; // by box: how far those below it reach
    this.bottom = bottom;
    this.rects = rects;
  }
  // Where a box is: those above the enlarged one are as wide as that.
  left(i) {
    return i < this.zoom ? 0 : (this.boxes.x[i] - this.from) * this.per;
  }
  wide(i) {
    return i < this.zoom ? this.laid : this.boxes.w[i] * this.per;
  }
  high(i) { return this.row(i) * H + this.shift - this.top; }
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
    if (!this.boxes || !this.element.clientWidth) return;
    this.place();
    this.paint();
  }
  // Gives the canvas the size of what is seen, and the element room to scroll.
  place() {
    const e = this.element, scale = window.devicePixelRatio || 1;
    if (this.laid !== e.clientWidth) this.layout(e.clientWidth);
    const rows = this.bottom + 1 - (this.options.skip || 0);
    this.full = Math.max(rows * H + 2, 1);
    if (this.options.fits) {
      e.style.flex = 'none';
      e.style.height = this.full + 'px';
    }
    this.tall.style.height = this.full + 'px';
    const width = e.clientWidth, height = e.clientHeight;
    if (this.laid !== width) this.layout(width); // a bar to scroll has come
    if (!this.covers()) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
      this.canvas.style.width = width + 'px';
      this.canvas.style.height = height + 'px';
    }
    // A chart that grows upwards stands on the ground.
    this.shift = this.options.flip ? Math.max(height - this.full, 0) : 0;
  }
  // Has the canvas the size of what is seen?
  covers() {
    const e = this.element, scale = window.devicePixelRatio || 1;
    return this.canvas.width === Math.round(e.clientWidth * scale) &&
      this.canvas.height === Math.round(e.clientHeight * scale);
  }
  // What depends on light and dark only.
  look(c, scale) {
    let look = this.colors.get('look');
    if (look && look.scale === scale) return look;
    const dark = isDark(), text = style('--fg');
    c.font = FONT;
    look = {scale, dark, text, hit: style('--hit'), ground: style('--bg'),
      letter: c.measureText('m').width,
      rest: hatch(c, scale, 5, 1, dark ? '#ffffff2a' : '#00000020', false),
      isNew: hatch(c, scale, 7, 2, dark ? '#fff3' : '#fff9', true)};
    this.colors.set('look', look);
    return look;
  }
  // In passes, so that colours change seldom.
  paint() {
    const b = this.boxes, e = this.element, scale = window.devicePixelRatio || 1;
    const c = this.canvas.getContext('2d', {alpha: false});
    const look = this.look(c, scale), height = e.clientHeight;
    this.top = e.scrollTop;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.globalAlpha = 1;
    c.fillStyle = look.ground;
    c.fillRect(0, 0, e.clientWidth, height);
    const seen = this.rects.filter(i => {
      const y = this.high(i);
      return y + 2 * H >= 0 && y - H <= height;
    });
    this.fill(c, look, seen);
    c.fillStyle = look.rest;
    // What is below a box and too small.
    const next = this.options.flip ? -H : H, least = 1.5 / this.per;
    for (const i of seen) {
      const rest = i < this.zoom ? 0 : b.inside[i] + b.hidden(i) - this.filled[i];
      if (rest >= least) c.fillRect(this.left(i) + this.filled[i] * this.per,
        this.high(i) + next, rest * this.per - 1, H - 1);
    }
    if (b.data.diff) {
      c.fillStyle = look.isNew;
      for (const i of seen)
        if (i && this.wide(i) > 2 && !b.minus(i) && b.plus(i))
          c.fillRect(this.left(i), this.high(i), this.wide(i) - 1, H - 1);
    }
    c.fillStyle = look.hit;
    if (this.hits) for (const i of seen)
      if (this.hits[i]) c.fillRect(this.left(i), this.high(i) + H - 3,
        Math.max(this.wide(i) - 1, 1), 2);
    this.words(c, look, seen);
    this.mark(this.marks[0], this.selected);
    this.mark(this.marks[1], this.over);
  }
  // The boxes, colour by colour: to change it costs as much as to draw one.
  // Their edges are those of pixels.
  fill(c, look, seen) {
    const piles = new Map(), scale = look.scale;
    for (const i of seen) {
      const color = this.color(i, look.dark), pile = piles.get(color);
      if (pile) pile.push(i);
      else piles.set(color, [i]);
    }
    let alpha = 1;
    for (const [color, pile] of piles) {
      c.fillStyle = color;
      for (const i of pile) {
        const x = this.left(i), w = this.wide(i);
        const a = this.isAbove(i) ? 0.55 : this.hits && !this.hits[i] ? 0.32 : 1;
        if (a !== alpha) c.globalAlpha = alpha = a;
        const left = Math.round(x * scale) / scale;
        const right = Math.round((x + w - (w > 3 ? 1 : 0)) * scale) / scale;
        c.fillRect(left, this.high(i), Math.max(right - left, 1 / scale), H - 1);
      }
    }
    c.globalAlpha = 1;
  }
  // Names, and the dotted edge of what is inlined.
  words(c, look, seen) {
    const b = this.boxes;
    c.font = FONT;
    c.textBaseline = 'middle';
    c.fillStyle = look.text;
    for (const i of seen) {
      const w = this.wide(i);
      if (w <= 8) continue;
      const x = this.left(i), y = this.high(i);
      if (b.isInline(i)) {
        c.globalAlpha = 0.45;
        for (let k = y + 2; k < y + H - 3; k += 4) c.fillRect(x + 1, k, 1.5, 2);
      }
      if (w < 24) continue;
      c.globalAlpha = this.isAbove(i) ? 0.7 : this.hits && !this.hits[i] ? 0.6 :
        1;
      c.fillText(cut(shown(b.name(i)), Math.floor((w - 9) / look.letter)), x + 5,
        y + H / 2);
    }
    c.globalAlpha = 1;
  }
  // A frame around a box, which moves without painting anew.
  mark(frame, i) {
    frame.hidden = i < 0 || !this.rects.includes(i);
    if (frame.hidden) return;
    const w = this.wide(i);
    frame.style.transform = 'translate(' + this.left(i) + 'px,' +
      (this.high(i) + this.top) + 'px)';
    frame.style.width = Math.max(w - (w > 3 ? 1 : 0), 1) + 'px';
  }
  isAbove(i) {
    return i < this.zoom && this.boxes.end[i] >= this.boxes.end[this.zoom];
  }
  hit(event) {
    const r = this.canvas.getBoundingClientRect();
    const x = event.clientX - r.left, y = event.clientY - r.top;
    for (let k = this.rects.length - 1; k >= 0; k--) {
      const i = this.rects[k], top = this.high(i), left = this.left(i);
      if (y >= top && y < top + H && x >= left &&
          x < left + Math.max(this.wide(i), 1)) return i;
    }
    return -1;
  }
  hover(i) {
    if (i === this.over) return;
    this.over = i;
    this.mark(this.marks[1], i);
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
      text += '   ' + p.signed(b.value(i), b.plus(i) + b.minus(i)) + '   ' +
        p.number(b.minus(i)) +
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
    this.mark(this.marks[0], i);
    this.mark(this.marks[1], -1);
    this.tell();
  }
  // Marks the boxes whose names pass a test, or none; {n, sum, hides} of what is
  // enlarged, or null. hides: something that is not drawn may match as well.
  search(test) {
    this.test = test;
    this.hits = null;
    if (!test || !this.boxes) return null;
    const b = this.boxes, names = b.data.names.map(test);
    let n = 0, sum = 0, until = 0, hides = false;
    this.hits = new Uint8Array(b.n);
    for (let i = 0; i < b.n; i++) {
      this.hits[i] = i && names[b.number(i)] ? 1 : 0;
      if (i < this.zoom || i >= b.end[this.zoom]) continue;
      n += this.hits[i];
      if (i < until) continue;
      if (this.hits[i]) { sum += b.value(i); until = b.end[i]; }
      else if (b.hidden(i)) hides = true;
    }
    return {n, sum, hides};
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
    return this.rects.map(i => ({name: this.boxes.name(i), x: r.left + this.left(i),
      y: r.top + this.high(i), width: this.wide(i), value: this.boxes.value(i),
      self: this.boxes.self(i), text: this.text(i),
      color: this.color(i, isDark()), isSelected: i === this.selected,
      isAbove: this.isAbove(i), isHit: !!(this.hits && this.hits[i])}));
  }
}

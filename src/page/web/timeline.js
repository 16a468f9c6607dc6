// SPDX-License-Identifier: MIT
// When samples were taken: a strip for each thread, above them all of them
// together. What is marked, by dragging or by keys, becomes a filter; what was
// marked with Shift before is what that is compared with.
'use strict';
const TIME_LABEL = 'end_timestamp_ns';
const STRIP = 20;

// A span in the unit that suits it.
function seconds(ns) {
  const [unit, of] = [['s', 1e9], ['ms', 1e6], ['us', 1e3], ['ns', 1]].find(
    ([, size]) => ns >= size) || ['ns', 1];
  return (ns / of).toFixed(2).replace(/\.?0+$/, '') + unit;
}

// The first and last nanosecond that a filter of this label means; null: another.
function spanIn(filter) {
  const found = new RegExp('^' + TIME_LABEL + '=(\\d+)ns:(\\d+)ns$').exec(filter);
  return found && found.slice(1).map(BigInt);
}

// The same for a person: the time of day, and the date if it is of this age.
function spanText(span) {
  if (span[0] < 1000000000000000000n)
    return span.map(t => seconds(Number(t))).join(' to ');
  const [from, to] = span.map(t => new Date(Number(t / 1000000n)).toISOString()
    .replace(/(\.\d\d).*/, '$1').split('T'));
  return from.join(' ') + ' to ' + (from[0] === to[0] ? to[1] : to.join(' ')) +
    ' UTC';
}

// on: {tell(text)}.
class Timeline {
  constructor(data, on) {
    this.data = data;
    this.on = on;
    this.print = printer(data);
    this.n = data.rows[0].length - 1;
    data.rows.sort((a, b) => a[0].localeCompare(b[0], 'en', {numeric: true}));
    this.from = this.to = 0; // the columns that are marked
    this.base = null;        // what they are compared with: two columns
    const all = new Float64Array(this.n);
    for (const [, ...values] of data.rows)
      values.forEach((v, k) => { all[k] += Math.abs(v); });
    this.all = all;
    this.strips = [['all threads', all], ...data.rows.map(([name, ...values]) =>
      [name || '(no thread)', values])].map(([name, values]) => ({name, values,
      canvas: make('canvas')}));
    this.mark = make('div', {className: 'span', hidden: true});
    this.baseMark = make('div', {className: 'span base', hidden: true});
    this.lane = make('div', {className: 'lane'}, ...this.strips.map(s =>
      s.canvas), this.mark, this.baseMark);
    this.table = make('div', {className: 'timeline', tabIndex: 0, role: 'slider',
      'aria-label': 'time'}, make('div', {className: 'names'},
      ...this.strips.map(s => make('div', {title: shown(s.name)},
        shown(s.name)))), this.lane);
    this.element = make('div', {className: 'stack'}, make('div',
      {className: 'scroll'}, this.table));
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.lane);
    this.point(this.lane);
    this.base = this.columns(effective('tb'));
    const now = this.columns(effective('tf'));
    if (now) [this.from, this.to] = now;
    this.mark.hidden = !now;
    this.place();
  }
  // Those that a filter means; null: none.
  columns(filter) {
    const span = spanIn(filter), d = this.data;
    const [a, b] = (span || []).map(t => (t - BigInt(d.from)) / BigInt(d.step));
    return span && span[0] <= span[1] && b >= 0n && a < BigInt(this.n) ?
      [a, b].map(k => Math.min(Math.max(Number(k), 0), this.n - 1)) : null;
  }
  point(e) {
    let down = false;
    const column = event => {
      const r = e.getBoundingClientRect();
      return Math.min(Math.max(Math.floor((event.clientX - r.left) / r.width *
        this.n), 0), this.n - 1);
    };
    e.addEventListener('pointerdown', event => {
      if (event.button) return;
      down = true;
      e.setPointerCapture(event.pointerId);
      this.set(column(event), column(event));
    });
    e.addEventListener('pointermove', event => {
      if (down) this.set(this.from, column(event));
      else this.say(column(event), column(event));
    });
    e.addEventListener('pointerup', event => {
      if (down && this.from !== this.to) this.keep(event.shiftKey);
      down = false;
    });
    e.addEventListener('pointercancel', () => { down = false; });
  }
  draw() {
    const scale = window.devicePixelRatio || 1, width = this.lane.clientWidth;
    const color = style('--accent');
    let most = 1;
    for (const {values} of this.strips.slice(1))
      for (const v of values) most = Math.max(most, Math.abs(v));
    this.strips.forEach(({values, canvas}, row) => {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(STRIP * scale);
      const c = canvas.getContext('2d'), w = canvas.width / this.n;
      const top = row ? most : this.all.reduce((m, v) => Math.max(m, v), 1);
      c.fillStyle = color;
      for (let k = 0; k < this.n; k++) {
        if (!values[k]) continue;
        const part = Math.abs(values[k]) / top, left = Math.round(k * w);
        // All together are bars; a thread is darker where it has more.
        const height = row ? 1 : Math.max(part, 0.06);
        c.globalAlpha = row ? 0.15 + 0.85 * Math.sqrt(part) : 1;
        c.fillRect(left, (1 - height) * canvas.height, Math.max(Math.round(
          (k + 1) * w) - left, 1), height * canvas.height);
      }
    });
    this.place();
  }
  marked() {
    return [Math.min(this.from, this.to), Math.max(this.from, this.to)];
  }
  place() {
    const put = (mark, [a, b]) => {
      mark.style.left = a / this.n * 100 + '%';
      mark.style.width = (b + 1 - a) / this.n * 100 + '%';
    };
    put(this.mark, this.marked());
    this.baseMark.hidden = !this.base;
    if (this.base) put(this.baseMark, this.base);
  }
  set(from, to) {
    [this.from, this.to] = [from, to];
    this.mark.hidden = false;
    this.place();
    this.say(from, to);
    this.table.setAttribute('aria-valuenow', to);
    this.table.setAttribute('aria-valuetext', $('detail').textContent);
  }
  say(from, to) {
    const a = Math.min(from, to), b = Math.max(from, to), d = this.data;
    const sum = this.all.slice(a, b + 1).reduce((s, v) => s + v, 0);
    this.on.tell(seconds(a * d.step) + ' to ' + seconds((b + 1) * d.step) +
      ' after the first sample   ' + this.print.number(sum) + ' (' +
      this.print.percent(sum) + ')');
  }
  // What is marked, as a filter, or to be compared with.
  keep(isBase) {
    if (isBase) {
      this.base = this.marked();
      this.mark.hidden = true;
      this.place();
      this.on.tell('Mark what is to be compared with this.');
      return;
    }
    const at = k => BigInt(this.data.from) + BigInt(k) * BigInt(this.data.step);
    const filter = ([a, b]) => TIME_LABEL + '=' + at(a) + 'ns:' +
      (at(b + 1) - 1n) + 'ns';
    go('flamegraph', {tf: filter(this.marked()), tb: this.base ?
      filter(this.base) : '', z: ''});
  }
  key(name, shift) {
    const step = {ArrowLeft: -1, ArrowRight: 1}[name];
    if (step) {
      const to = Math.min(Math.max(this.to + (this.mark.hidden ? 0 : step), 0),
        this.n - 1);
      this.set(shift ? this.from : to, to);
    } else if (name === 'Enter' && !this.mark.hidden) this.keep(shift);
    else return false;
    return true;
  }
}

// SPDX-License-Identifier: MIT
// Tables: of all functions, of labels, and the tree that is the flame graph for
// who cannot see it. Only rows that are seen are elements.
'use strict';
const ROW = 23;

// Text with a part of it marked.
function marked(text, part) {
  const e = document.createDocumentFragment();
  const at = part ? text.indexOf(part) : -1;
  if (at < 0) { e.append(text); return e; }
  e.append(text.slice(0, at), make('mark', {}, part),
    text.slice(at + part.length));
  return e;
}

// A table whose rows are made when they are seen. `columns`: {id, label, title,
// cell(row, td), sort(row)}; `rows` are numbers.
class List {
  constructor(columns, on) {
    this.columns = columns;
    this.on = on;
    this.rows = []; // until they are there
    this.selected = -1;
    this.head = make('tr');
    this.body = make('tbody');
    this.table = make('table', {className: 'list', role: 'grid', tabIndex: 0,
      'aria-label': 'functions'}, make('thead', {}, this.head), this.body);
    this.element = make('div', {className: 'stack'},
      this.scroll = make('div', {className: 'scroll'}, this.table));
    this.scroll.addEventListener('scroll', () => this.draw());
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.scroll);
    this.body.addEventListener('click', event => this.at(event, this.on.open));
    this.body.addEventListener('contextmenu', event => {
      if (this.at(event, row => this.on.menu(row, event.clientX, event.clientY)))
        event.preventDefault();
    });
  }
  at(event, use) {
    const tr = event.target.closest('tr.row');
    if (!tr) return false;
    this.selected = +tr.dataset.k;
    this.draw();
    use(this.rows[this.selected]);
    return true;
  }
  show(rows, sorted) {
    this.rows = rows;
    this.head.replaceChildren(...this.columns.map(column => make('th',
      {role: 'columnheader', className: column.wide ? 'wide' : '',
        'aria-sort': sorted === column.id ? 'descending' : 'none'},
      make('button', {title: column.title || '', onclick: () =>
        this.on.sort(column.id), 'aria-pressed': String(sorted === column.id)},
      column.label))));
    this.table.setAttribute('aria-rowcount', rows.length + 1);
    if (this.selected >= rows.length) this.selected = -1;
    this.draw(true);
  }
  draw(anew) {
    const first = Math.max(Math.floor(this.scroll.scrollTop / ROW) - 12, 0);
    const end = Math.min(this.rows ? this.rows.length : 0, first + 24 +
      Math.ceil(this.scroll.clientHeight / ROW));
    const key = first + ' ' + end + ' ' + this.selected;
    if (!this.rows || !anew && key === this.drawn) return;
    this.drawn = key;
    const gap = n => make('tr', {'aria-hidden': 'true'},
      make('td', {colSpan: this.columns.length}));
    const before = gap(), after = gap(), rows = [];
    before.firstChild.style.height = first * ROW + 'px';
    after.firstChild.style.height = (this.rows.length - end) * ROW + 'px';
    for (let k = first; k < end; k++) {
      const tr = make('tr', {className: 'row', role: 'row',
        id: 'row' + k, 'aria-rowindex': k + 2,
        'aria-selected': String(k === this.selected)});
      tr.dataset.k = k;
      for (const column of this.columns) {
        const td = make('td', {className: column.wide ? 'wide' : ''});
        column.cell(this.rows[k], td);
        tr.append(td);
      }
      rows.push(tr);
    }
    this.body.replaceChildren(...(first ? [before] : []), ...rows,
      ...(end < this.rows.length ? [after] : []));
  }
  select(k) {
    this.selected = Math.min(Math.max(k, 0), this.rows.length - 1);
    const y = this.selected * ROW, s = this.scroll;
    if (y < s.scrollTop) s.scrollTop = y;
    if (y + 2.5 * ROW > s.scrollTop + s.clientHeight)
      s.scrollTop = y + 2.5 * ROW - s.clientHeight;
    this.draw();
    this.table.setAttribute('aria-activedescendant', 'row' + this.selected);
  }
  key(name) {
    const page = Math.floor(this.scroll.clientHeight / ROW) - 2;
    const steps = {ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page,
      Home: -1e9, End: 1e9};
    if (name in steps) this.select(this.selected + steps[name]);
    else if (name === 'Enter' && this.selected >= 0)
      this.on.open(this.rows[this.selected]);
    else return false;
    return true;
  }
}

// ---- top -----------------------------------------------------------------------

const MOST_ROWS = 50000;

const sortedBy = () => param('by') || (param('sort') === 'cum' ? 'cum' : 'flat');
// The rows that match. Where there are more than the page takes, they are those
// that have most of what it sorts by.
async function askTable(expression) {
  const more = {max: MOST_ROWS, q: expression};
  const by = sortedBy().replace('%', '');
  const data = await ask('table', more, 'view');
  return data.rows > data.names.length && /^(flat|cum)$/.test(by) ?
    ask('table', {...more, sort: by}, 'view') : data;
}

// The table of functions: on {open(name), menu(name, x, y), tell(text)}.
class Top {
  constructor(data, on) {
    this.data = this.all = data;
    this.on = on;
    this.print = printer(data);
    this.by = sortedBy();
    this.list = new List(this.columns(), {
      open: row => this.on.open(this.data.names[row]),
      menu: (row, x, y) => this.on.menu(this.data.names[row], x, y),
      sort: id => { this.by = id; go(state.view, {by: id}, true); }});
    this.element = this.list.element;
  }
  columns() {
    const d = this.data, p = this.print;
    const most = column => d[column].reduce((m, v) =>
      Math.max(m, Math.abs(v)), 1);
    const value = (id, label, title) => {
      const of = most(id);
      return {id, label, title, cell: (row, td) => {
        const v = this.data[id][row];
        td.className = 'bar-cell' + (!d.diff ? '' : v > 0 ? ' more' :
          v < 0 ? ' less' : '');
        td.style.backgroundSize = Math.abs(v) / of * 100 + '% 2px';
        td.textContent = !v ? '0' : d.diff ? p.signed(v) : p.number(v);
      }};
    };
    const percent = (id, of) => ({id, label: '%', wide: true,
      cell: (row, td) => {
        td.className = 'wide dim';
        td.textContent = p.percent(this.data[of][row]);
      }});
    const pair = (id, of, title) => ({id, label: title, wide: true,
      cell: (row, td) => {
        const old = this.data['old_' + of][row], now = old + this.data[of][row];
        td.className = 'wide dim';
        td.textContent = p.number(old) + ' \u2192 ' + p.number(now);
      }});
    const columns = [value('flat', 'flat', 'of the function itself'),
      percent('flat%', 'flat')];
    if (d.diff) columns.push(pair('old_flat', 'flat', 'old \u2192 new'));
    columns.push(value('cum', 'cum', 'with all that it called'),
      percent('cum%', 'cum'));
    if (d.diff) columns.push(pair('old_cum', 'cum', 'old \u2192 new'));
    columns.push({id: 'name', label: 'function', cell: (row, td) => {
      td.title = shown(this.data.names[row]);
      td.append(marked(td.title, this.text));
    }});
    return columns;
  }
  // All in their order, but of a comparison those that are asked for.
  rows() {
    const d = this.data, only = param('only'), rows = [];
    for (const i of this.order(this.by.replace('%', ''))) {
      if (only && d.diff && !this.is(only, i)) continue;
      rows.push(i);
    }
    return rows;
  }
  // All rows by a column. It is kept with the data: to sort costs more than all
  // else that a key press asks for.
  order(by) {
    const d = this.data, orders = d.orders = d.orders || {};
    if (orders[by]) return orders[by];
    const rows = Uint32Array.from(d.names.keys()), v = d[by];
    if (by === 'name') rows.sort((a, b) => d.names[a] < d.names[b] ? -1 : 1);
    else if (v) rows.sort((a, b) => Math.abs(v[b]) - Math.abs(v[a]) || a - b);
    return orders[by] = rows;
  }
  is(only, i) {
    const d = this.data, old = d.old_cum[i], now = old + d.cum[i];
    return only === 'grew' ? d.cum[i] > 0 : only === 'shrank' ? d.cum[i] < 0 :
      only === 'new' ? !old && now : only === 'gone' ? old && !now : true;
  }
  find(text) { return askTable(text); }
  search() { this.show(this.all, ''); }
  show(data, text) {
    this.data = data;
    this.text = text;
    this.by = sortedBy();
    const rows = this.rows(), d = this.data;
    this.list.show(rows, this.by);
    const flat = rows.reduce((sum, i) => sum + d.flat[i], 0);
    const p = this.print;
    this.on.tell(rows.length + ' functions, flat ' + (d.diff ? p.signed(flat) :
      p.number(flat)) + ' (' + p.percent(flat).replace('-0.00', '0.00') + ')' +
      (d.rows > d.names.length ? ', of the largest ' + d.names.length + ' of ' +
      d.rows : ''));
    return {n: rows.length, sum: flat};
  }
  key(name) { return this.list.key(name); }
  selectedName() {
    const row = this.list.rows[this.list.selected];
    return row === undefined ? null : this.data.names[row];
  }
}

// ---- tags ----------------------------------------------------------------------

// A filter for a value of the labels: of numbers the range that is shown as one.
// A comma would part it in two.
const tagFilter = (key, [text, , range]) =>
  key + '=' + (range || whole(text).replace(/,/g, '\\x2c'));

function tagsView(data) {
  const p = printer(data), e = make('div', {className: 'pad tags'});
  for (const {key, values} of data.keys) {
    const sum = values.reduce((s, v) => s + v[1], 0);
    const most = values.reduce((m, v) => Math.max(m, Math.abs(v[1])), 1);
    const table = make('table', {});
    for (const tag of values.slice(0, 200)) {
      const [text, value] = tag;
      const bar = make('td', {className: 'bar-cell'}, p.number(value));
      bar.style.backgroundSize = Math.abs(value) / most * 100 + '% 2px';
      table.append(make('tr', {}, make('td', {title: shown(text)},
        make('button', {className: 'link', title: 'only these samples',
          onclick: () => go(state.view, {tf: tagFilter(key, tag)})},
        shown(text) || '(empty)')), bar,
      make('td', {className: 'dim'}, p.percent(value))));
    }
    if (values.length > 200)
      table.append(make('tr', {}, make('td', {className: 'dim'},
        values.length - 200 + ' more')));
    e.append(make('section', {}, make('h2', {}, shown(key) + ' ',
      make('span', {className: 'dim'}, p.number(sum) + ' '),
      make('button', {className: 'link', title: 'as frames at the root',
        onclick: () => go('flamegraph', {tr: key, z: ''})}, 'as root frames')),
    table));
  }
  if (!data.keys.length)
    return note(CHIPS.some(effective) ? nothing() : 'No sample has labels.');
  return e;
}

// ---- tree ----------------------------------------------------------------------

const MOST_OPEN = 60; // rows of a tree that is new

// The flame graph as rows that open: on {open(name), menu(name, x, y), tell}.
class Tree {
  constructor(boxes, on) {
    this.boxes = boxes;
    this.on = on;
    this.print = printer(boxes.data);
    this.n_named = 0;
    this.body = make('tbody');
    this.table = make('table', {className: 'list tree', tabIndex: 0,
      role: 'treegrid', 'aria-label': 'calls'});
    this.element = make('div', {className: 'stack'}, make('div',
      {className: 'scroll'}, this.table));
    this.table.append(make('thead', {}, make('tr', {}, ...['function', 'cum',
      boxes.data.diff ? 'old \u2192 new' : 'cum%', 'self'].map(text =>
      make('th', {}, make('button', {tabIndex: -1}, text))))), this.body);
    this.body.append(this.row(0));
    this.open(this.body.firstChild);
    // The heaviest way, until it parts, or fills the page.
    let last = this.body.firstChild;
    for (let k = 0; k < MOST_OPEN && last && last.nextSibling && +last.nextSibling.dataset.i >= 0; k++) {
      const i = +last.nextSibling.dataset.i;
      if (boxes.w[i] < 0.6 * boxes.w[+last.dataset.i]) break;
      last = last.nextSibling;
      this.open(last);
    }
    this.select(this.body.firstChild);
    this.body.addEventListener('click', event => {
      const tr = event.target.closest('tr');
      this.select(tr);
      if (event.target.className === 'twist' || event.detail === 2)
        this.toggle(tr);
    });
    this.body.addEventListener('contextmenu', event => {
      const tr = event.target.closest('tr');
      this.select(tr);
      event.preventDefault();
      if (this.selectedName())
        this.on.menu(this.selectedName(), event.clientX, event.clientY);
    });
  }
  // Of boxes b, which are this.boxes or deeper ones.
  row(i, hidden, b = this.boxes) {
    const p = this.print;
    const has = !hidden && (b.end[i] > i + 1 || b.hidden(i));
    const level = b.deep[i] + (hidden ? 2 : 1);
    const tr = make('tr', {className: 'row', role: 'row', 'aria-level': level});
    if (has) tr.setAttribute('aria-expanded', 'false');
    tr.dataset.i = hidden ? -1 : i;
    tr.boxes = b;
    const name = hidden ? 'smaller ones' : shown(b.name(i));
    const first = make('td', {title: name}, make('span', {className: 'twist',
      'aria-hidden': 'true'}, has ? '\u25b8' : ''),
    hidden ? make('span', {className: 'dim'}, name) : this.marked(b.name(i)));
    // Names keep some room, however deep they are.
    first.style.paddingLeft = 'min(' + (14 * level - 4) + 'px, 30vw)';
    const v = hidden || b.value(i), isDiff = b.data.diff && !hidden;
    tr.append(first, make('td', {className: !isDiff ? '' : v > 0 ? 'more' :
      v < 0 ? 'less' : ''}, isDiff ? p.signed(v, b.plus(i) + b.minus(i)) : p.number(v)),
    make('td', {className: 'dim'}, isDiff ? p.number(b.minus(i)) +
      ' \u2192 ' + p.number(b.plus(i)) : p.percent(v)),
    make('td', {}, hidden ? '' : p.number(b.self(i))));
    return tr;
  }
  // With what the server left out, when there is something and `more` asks it.
  async open(tr, more) {
    let b = tr.boxes, i = +tr.dataset.i;
    if (i < 0 || tr.getAttribute('aria-expanded') !== 'false') return;
    tr.setAttribute('aria-expanded', 'true');
    tr.querySelector('.twist').textContent = '\u25be';
    if (more && b.hidden(i) && i) {
      const sum = b.sum(i);
      const data = await this.on.deeper(b.way(i)).catch(() => null);
      const deeper = data && data.zoom >= 0 && new Boxes(data, param('so'), '');
      if (tr.getAttribute('aria-expanded') !== 'true' || !tr.isConnected) return;
      if (deeper) { b = deeper; i = deeper.find(sum); }
    }
    const rows = [];
    for (let k = i + 1; k < b.end[i]; k = b.end[k])
      rows.push(this.row(k, 0, b));
    if (b.hidden(i)) rows.push(this.row(i, b.hidden(i), b));
    tr.after(...rows);
  }
  close(tr) {
    if (tr.getAttribute('aria-expanded') !== 'true') return;
    tr.setAttribute('aria-expanded', 'false');
    tr.querySelector('.twist').textContent = '\u25b8';
    const level = +tr.getAttribute('aria-level');
    while (tr.nextSibling && +tr.nextSibling.getAttribute('aria-level') > level)
      tr.nextSibling.remove();
  }
  toggle(tr) {
    if (tr.getAttribute('aria-expanded') === 'true') this.close(tr);
    else this.open(tr, true);
  }
  select(tr) {
    if (!tr) return;
    if (this.chosen) this.chosen.setAttribute('aria-selected', 'false');
    this.chosen = tr;
    tr.setAttribute('aria-selected', 'true');
    tr.scrollIntoView({block: 'nearest'});
    tr.id = tr.id || 'row' + this.n_named++;
    this.table.setAttribute('aria-activedescendant', tr.id);
    const i = +tr.dataset.i;
    if (i >= 0)
      this.on.tell(tr.boxes.path(i).map(shown).join(' \u203a ') || 'root');
  }
  // The text where the name has it, else the whole name.
  marked(name) {
    const label = shown(name);
    return marked(label, !this.test || !this.test(name) ? '' :
      label.includes(this.text) ? this.text : label);
  }
  search(test, text) {
    this.test = test;
    this.text = text;
    for (const tr of this.body.children) {
      const i = +tr.dataset.i, td = tr.firstChild;
      if (i > 0)
        td.replaceChildren(td.firstChild, this.marked(tr.boxes.name(i)));
    }
    return {n: this.body.querySelectorAll('mark').length};
  }
  // The next row that is open and matches.
  match(step) {
    let tr = this.chosen;
    do
      tr = step > 0 ? tr.nextSibling || this.body.firstChild :
        tr.previousSibling || this.body.lastChild;
    while (tr !== this.chosen && !tr.querySelector('mark'));
    this.select(tr);
  }
  key(name) {
    const tr = this.chosen, isOpen = tr.getAttribute('aria-expanded') === 'true';
    if (name === 'ArrowDown') this.select(tr.nextSibling);
    else if (name === 'ArrowUp') this.select(tr.previousSibling);
    else if (name === 'ArrowRight')
      if (isOpen) this.select(tr.nextSibling); else this.open(tr, true);
    else if (name === 'ArrowLeft' && isOpen) this.close(tr);
    else if (name === 'ArrowLeft') {
      const level = +tr.getAttribute('aria-level');
      let up = tr;
      while (up && +up.getAttribute('aria-level') >= level)
        up = up.previousSibling;
      this.select(up);
    } else if (name === 'Enter' && this.selectedName())
      this.on.open(this.selectedName());
    else return false;
    return true;
  }
  selectedName() {
    const i = +this.chosen.dataset.i;
    return i > 0 ? this.chosen.boxes.name(i) : null;
  }
}

// SPDX-License-Identifier: MIT
// The page: the view that the address names, the bar of filters, keys and the
// menu. cpprof.shown() tells tests what is drawn.
'use strict';
const main = $('main'), search = $('q');
const VIEWS = [['flamegraph', 'Flame'], ['sandwich', 'Sandwich'],
  ['inverted', 'Inverted'], ['top', 'Top'], ['tree', 'Tree'],
  ['graph', 'Graph'], ['source', 'Source'], ['peek', 'Peek'],
  ['traces', 'Traces'], ['tags', 'Tags'], ['timeline', 'Timeline']];
let view = null; // what is shown: {element, search, key, selectedName, ...}
let noted = '';   // what the server says of the filters
let round = 0;   // of render(): a later one wins
let told = '';   // the view that the line at the bottom is of

// ---- small parts ---------------------------------------------------------------

const tell = text => { $('detail').textContent = text || '\u00a0'; };
const note = (text, bad) =>
  make('div', {className: 'note' + (bad ? ' bad' : '')}, text);
// Unless somebody types: letters are keys elsewhere.
function focusOn(element) {
  if (document.activeElement !== search) element.focus({preventScroll: true});
}
function put(element, made) {
  main.replaceChildren(element);
  view = made || {element};
  main.dataset.state = 'ready';
  if (told !== state.view) tell('');
  told = state.view;
  // So that keys scroll it.
  if (document.activeElement === document.body) focusOn(main);
}
const charts = () => view ? [view.flame, view.callers].filter(c => c) : [];
// What is searched for, if the field has no option.
const expression = () => /^\w+=/.test(search.value) ? '' : search.value;

// ---- the bar -------------------------------------------------------------------

const CHIPS = ['f', 'i', 'h', 's', 'sf', 'prunefrom', 'tf', 'tb', 'ti', 'ts',
  'th', 'tr', 'tl'];
const settingOf = name => state.start.parameters[name];

function showBar() {
  const views = state.profile.keys.includes(TIME_LABEL) ? VIEWS :
    VIEWS.slice(0, -1);
  $('views').replaceChildren(...views.map(([name, label], k) => {
    const link = make('a', {href: address(name, {}), title: 'key ' +
      (k < 10 ? (k + 1) % 10 : 'T')}, label);
    if (name === state.view) link.setAttribute('aria-current', 'page');
    link.onclick = event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      go(name, {});
    };
    return link;
  }));
  // Later: to look where it is costs a layout.
  const current = $('views').querySelector('[aria-current]');
  if (current) requestAnimationFrame(() =>
    current.scrollIntoView({block: 'nearest', inline: 'nearest'}));
  $('chips').replaceChildren(...CHIPS.filter(effective).map(name => {
    const text = settingOf(name) + '=' + shown(effective(name));
    return make('span', {className: 'chip'}, make('span', {title: text},
      spanIn(effective(name)) ? settingOf(name) + ': ' +
      spanText(spanIn(effective(name))) : text),
      make('button', {title: 'remove', 'aria-label': 'remove ' + text,
        onclick: () => go(state.view, {[name]: ''})}, '\u00d7'));
  }));
  $('options').replaceChildren(...options());
  $('words').textContent = commandLine();
  $('near').hidden = !['sandwich', 'inverted'].includes(state.view) &&
    !param('z') && !effective('tb');
  $('type').replaceChildren(...state.profile.types.map(([type, unit], k) =>
    make('option', {value: type, selected: effective('si') ?
      effective('si') === type || effective('si') === String(k) :
      k === state.profile.index}, shown(type) + ' / ' + shown(unit))));
  $('type').hidden = state.profile.types.length < 2;
  $('lines').replaceChildren(...['functions', 'filefunctions', 'files', 'lines',
    'addresses'].map(name => make('option', {value: name,
    selected: (effective('g') || 'functions') === name}, name)));
  $('title').textContent = shown(state.profile.title) +
    (isDiff() ? ' (difference)' : '');
  document.title = $('title').textContent + ' \u2013 cpprof';
}

const turn = name => go(state.view, {[name]: isOn(name) ? '' : 't'}, true);
// Switches of the view.
function options() {
  const toggle = (name, label, title) => make('button', {title,
    'aria-pressed': String(isOn(name)), onclick: () => turn(name)}, label);
  const choice = (name, label, words) => {
    const e = make('select', {'aria-label': label, onchange: () =>
      go(state.view, {[name]: e.value}, true)}, ...words.map(([value, text]) =>
      make('option', {value, selected: param(name) === value}, text)));
    return e;
  };
  const made = [];
  const isChart = ['flamegraph', 'inverted', 'sandwich'].includes(state.view);
  if (isChart) {
    if (state.view !== 'sandwich')
      made.push(toggle('flip', 'flip', 'callers below (o)'));
    made.push(toggle('rec', 'fold', 'calls of a function by itself are one ' +
      'box (r)'));
    made.push(choice('so', 'order', [['', 'by weight'], ['n', 'by name']]));
  }
  if (effective('tb') ||
      (state.start.bases.length && state.start.base_flag === 'diff_base'))
    made.push(toggle('norm', 'normalize', 'what is compared is scaled to the ' +
      'total of what it is compared with'));
  if (isDiff() && isChart)
    made.push(choice('dw', 'width', [['', 'width: old + new'], ['new', 'width: new'],
      ['old', 'width: old']]));
  if (isDiff() && state.view === 'top')
    made.push(choice('only', 'rows', [['', 'all'], ['grew', 'grew'],
      ['shrank', 'shrank'], ['new', 'new'], ['gone', 'gone']]));
  return made;
}

// The server matches and adds up: it knows what is too small to be drawn, and
// there an expression takes no longer than names are long.
const askFor = (part, text) => part.find ? part.find(text) : ask('found',
  {q: text, ...part.asked}, 'found ' + (part.options && part.options.label));
function showFound(part, data, text) {
  if (part.find) return part.show(data, text);
  const names = new Set(data.names);
  const {n} = part.search(name => names.has(name), text);
  if (part.draw) part.draw();
  return {n, sum: data.value};
}
function searchNothing(part) {
  const changes = part.hits;
  part.search(null);
  if (changes && part.draw) part.draw();
}
let searches = 0; // a later one wins
let searched = null; // when the last one is there
const applySearch = () => searched = searchParts();
async function searchParts() {
  const mine = ++searches, text = expression();
  const parts = [...charts(), ...(view && view.search ? [view] : [])];
  search.className = search.title = '';
  if (!text) {
    parts.forEach(searchNothing);
    tellFound(noted, '');
    return;
  }
  $('found').classList.toggle('old', $('found').dataset.of !== text);
  try {
    const data = await Promise.all(parts.map(part => askFor(part, text)));
    if (mine !== searches) return;
    const found = parts.map((part, k) => showFound(part, data[k], text));
    tellFound(found.length < 2 ? found.map(foundText).join() || noted :
      'callees ' + foundText(found[0]) + '; callers ' + foundText(found[1]), text);
  } catch (e) {
    if (mine !== searches || e.name === 'AbortError') return;
    parts.forEach(searchNothing);
    search.className = 'bad';
    search.title = e.message;
    tellFound('', text);
  }
}
// A sum, and the expression that it is of: until that of another one is there, it
// is pale.
function tellFound(words, text) {
  const e = $('found');
  e.textContent = words;
  e.dataset.of = text;
  e.title = text && 'of ' + shown(text);
  e.classList.remove('old');
}
function foundText({n, sum}) {
  const p = view.flame ? view.flame.print : view.print;
  return n + (!p ? ' found' : (view instanceof Top ? ', ' : ' drawn, ') +
    p.number(sum) + ' (' + p.percent(sum) + ')');
}

// A filter for what is searched or selected; focus and show from replace.
function refine(name, text) {
  if (!text) text = expression() && search.className !== 'bad' ? search.value :
    selectedName() && whole(selectedName());
  if (!text) { tell('search for something, or select it, first'); return; }
  const before = ['i', 'h'].includes(name) ? effective(name) : '';
  search.value = '';
  go(state.view, {[name]: before ? before + '|' + text : text, z: '', zc: ''});
}
const selectedName = () => {
  if (!view) return null;
  if (view.selectedName) return view.selectedName();
  const chart = view.callers && document.activeElement === view.callers.element ?
    view.callers : view.flame;
  return chart && chart.selected > 0 ? chart.boxes.name(chart.selected) : null;
};

// "focus=parse ignore=idle": what the command line would take.
function takeWords(text) {
  const changes = {z: ''};
  for (const part of text.match(/\w+=('[^']*'|\S*)/g) || []) {
    const at = part.indexOf('=');
    const name = part.slice(0, at), value = part.slice(at + 1).replace(
      /^'(.*)'$/, '$1');
    const known = Object.entries(state.start.parameters).find(([short, setting]) =>
      short === name || setting === name);
    if (!known) { tell('no option is called ' + name); return false; }
    changes[known[0]] = value;
  }
  search.value = '';
  go(state.view, changes);
  return true;
}

// ---- views ---------------------------------------------------------------------

const zoomOf = (chart, i) => go(state.view, {z: chart.boxes.sum(i)});
const onName = {open: name => go('sandwich', {p: whole(name), z: '', zc: ''}),
  menu: (name, x, y) => openMenu(name, x, y), tell};

function boxesOf(data) {
  return new Boxes(data, param('so'), data.diff ? param('dw') : '');
}
// What the boxes of all charts are asked for with.
const chartAt = more => ({w: pixels(), ...more});
const pixels = () => Math.min(Math.max(Math.ceil(
  main.clientWidth * (window.devicePixelRatio || 1) / 200) * 200, 400), 8000);

// Shows a box as wide as the chart: with the boxes that are there at once, then
// with the deeper ones that the server has. False: another view came.
async function enlarge(mine, flame, all, more, z, slot) {
  const least = (flame.options.skip || 1) - 1;
  flame.asked = {...more, w: '', z};
  let boxes = boxesOf(all), i = boxes.find(z);
  if (i < 0 && flame.boxes) {
    boxes = boxesOf(flame.boxes.data);
    i = boxes.find(z);
  }
  flame.show(boxes, Math.max(i, least));
  if (!z || (i >= 0 && !boxes.hidesBelow(i))) return true;
  main.dataset.state = 'loading';
  const deeper = await ask('boxes', {...more, z: i < 0 ? z : boxes.way(i)},
    slot);
  if (mine !== round) return false;
  const better = boxesOf(deeper), at = deeper.zoom < 0 ? -1 : better.find(z);
  if (at >= 0) flame.show(better, at);
  else {
    flame.asked.z = '';
    tell('The box that was enlarged is not there any more.');
  }
  return true;
}

// Why there is nothing to see.
function nothing() {
  if (CHIPS.some(effective)) return 'The filters leave nothing.';
  return state.profile.types.length > 1 ? 'No sample has a value of this type; ' +
    'v, or the field at the top, chooses another.' : state.profile.samples ?
    'All values are 0.' : 'The profile is empty.';
}

async function showFlame(mine, inverted) {
  const more = chartAt({inv: inverted ? 't' : ''});
  const all = await ask('boxes', more, 'view');
  if (mine !== round) return;
  if (!all.boxes[3] && !all.boxes[4]) {
    put(note(nothing()));
    return;
  }
  let flame = view && view.flame && !view.callers ? view.flame : null;
  const flip = param('flip') === 't';
  if (!flame || flame.options.flip !== flip || flame.inverted !== inverted) {
    flame = new Flame({zoom: i => zoomOf(flame, i), tell,
      menu: (i, x, y) => i && openMenu(flame.boxes.name(i), x, y)},
    {flip, label: inverted ? 'callers of each function' : 'flame graph'});
    flame.inverted = inverted;
  }
  if (!flame.wrap || main.firstChild !== flame.wrap) {
    flame.wrap = make('div', {className: 'stack'}, flame.element);
    put(flame.wrap, {flame});
    focusOn(flame.element);
  }
  if (!await enlarge(mine, flame, all, more, param('z'), 'view')) return;
  if (all.cut && !param('z'))
    tell('The deepest boxes are left out; enlarge one.');
  main.dataset.state = 'ready';
}

// The two charts of the sandwich, and the line between them. The address has
// what is enlarged: z of the callees, zc of the callers.
function makeSandwich(inwards, outwards) {
  const below = boxesOf(inwards), above = boxesOf(outwards);
  // Of one function there is one box, which is the line between the charts.
  const single = below.n > 1 && below.end[1] === below.n &&
    above.end[1] === above.n;
  const chart = (zoomed, options) => {
    const flame = new Flame({tell, zoom: i => go(state.view, {[zoomed]:
      i < flame.options.skip ? '' : flame.boxes.sum(i)}),
    menu: (i, x, y) => i && openMenu(flame.boxes.name(i), x, y)},
    {skip: single ? 2 : 1, ...options});
    return flame;
  };
  const callers = chart('zc', {flip: true, label: 'callers'});
  const flame = chart('z', {label: 'callees'});
  const p = printer(inwards), v = below.value(0);
  let self = 0;
  for (let k = 1; k < below.n; k = below.end[k]) self += below.self(k);
  const label = make('div', {className: 'pivot'}, make('span', {},
    cut(shown(single ? below.name(1) : param('p')), 120)), make('small', {},
    (below.data.diff ? p.signed(v) : p.number(v) + ' (' + p.percent(v) + ')') +
    ', self ' + p.number(self)));
  put(make('div', {className: 'stack'}, callers.element, label, flame.element),
    {flame, callers, inwards, outwards});
  focusOn(flame.element);
}

async function showSandwich(mine) {
  if (!param('p'))
    return showTop(mine, 'Choose the function whose callers and callees are shown.');
  const more = chartAt({p: param('p')}), other = {...more, callers: 't'};
  const inwards = await ask('boxes', more, 'callees');
  const outwards = await ask('boxes', other, 'callers');
  if (mine !== round) return;
  if (!inwards.boxes[3] && !inwards.boxes[4]) {
    put(note('No function matches ' + shown(param('p')) + '.'));
    return;
  }
  if (!view || view.inwards !== inwards || view.outwards !== outwards)
    makeSandwich(inwards, outwards);
  if (await enlarge(mine, view.callers, outwards, other, param('zc'),
    'callers') && await enlarge(mine, view.flame, inwards, more, param('z'),
    'callees'))
    main.dataset.state = 'ready';
}

// `asks`: what a function is chosen for.
async function showTop(mine, asks) {
  const data = await askTable('');
  if (mine !== round) return;
  if (!data.rows) {
    put(note(nothing()));
    return;
  }
  const top = new Top(data, onName);
  if (asks) top.element.prepend(make('div', {className: 'pivot'}, asks));
  put(top.element, top); // and render() fills it
  focusOn(top.list.table);
}

async function showTree(mine) {
  const data = await ask('boxes', {w: 4000}, 'view');
  if (mine !== round) return;
  if (!data.boxes[3] && !data.boxes[4]) {
    put(note(nothing()));
    return;
  }
  const made = new Tree(new Boxes(data, param('so'), ''), {...onName, deeper:
    way => ask('boxes', {w: 4000, z: way}, 'deeper')});
  put(made.element, made);
  made.select(made.chosen); // which tells where it is
  focusOn(made.table);
}

async function showTags(mine) {
  const data = await ask('labels', {}, 'view');
  if (mine === round) put(tagsView(data));
}

async function showTimeline(mine) {
  const data = await ask('times', {tb: null,
    ...(spanIn(effective('tf')) && {tf: null})}, 'view');
  if (mine !== round) return;
  if (!data.rows.length) {
    put(note('No sample has a time: that is the label ' + TIME_LABEL + '.'));
    return;
  }
  const made = new Timeline(data, {tell});
  put(made.element, made);
  focusOn(made.table);
}

// Peek and source are of functions that are looked for.
async function showSymbol(mine, make_) {
  const symbol = param('sym') || param('p') || effective('f');
  if (!symbol) {
    await showTop(mine, 'Choose a function.');
    if (mine !== round) return;
    view.on = {...onName, open: name => go(state.view, {sym: whole(name)})};
    return;
  }
  const made = await make_(symbol);
  if (mine !== round) return;
  // What is shown is selected, if that is one function.
  const name = /^\^(.*)\$$/s.test(symbol) && symbol.slice(1, -1).replace(
    /\\(.)/gs, '$1');
  made.selectedName = () => name && whole(name) === symbol ? name : null;
  put(made.element, made);
}

async function showText(mine, format) {
  const made = await textView(format);
  if (mine === round) put(made.element, made);
}

async function showGraph(mine) {
  const made = await graphView(onName);
  if (mine !== round) return;
  if (!made.has_nodes) {
    put(note(nothing()));
    return;
  }
  put(made.element, made);
  made.element.fit();
  focusOn(made.element);
}

const shows = {
  flamegraph: mine => showFlame(mine, param('inv') === 't'),
  inverted: mine => showFlame(mine, true),
  sandwich: showSandwich, top: showTop, tree: showTree, tags: showTags,
  graph: showGraph, timeline: showTimeline,
  source: mine => showSymbol(mine, sourceView),
  disasm: mine => showSymbol(mine, symbol => textView('disasm', {sym: symbol})),
  peek: mine => showSymbol(mine, symbol => textView('peek', {sym: symbol})),
  traces: mine => showText(mine, 'traces'),
};

render = async function () {
  const mine = ++round;
  noted = '';
  closeMenu();
  showBar();
  main.dataset.state = 'loading';
  tellFound('', '');
  // pprof's pivot is the sandwich.
  if (state.view === 'flamegraph' && param('p'))
    return go('sandwich', {}, true);
  try {
    await (shows[state.view] || shows.flamegraph)(mine);
    if (mine === round) applySearch();
  } catch (e) {
    if (mine !== round || e.name === 'AbortError') return;
    put(note(e instanceof Refused ? e.message : e instanceof TypeError ?
      'cpprof does not answer any more: ' + e.message : String(e), true));
    if (!(e instanceof Refused || e instanceof TypeError)) throw e;
  }
};

// ---- menu ----------------------------------------------------------------------

const copy = text => navigator.clipboard ? navigator.clipboard.writeText(text).then(
  () => tell('copied'), () => tell(text)) : tell(text);

function stackText() {
  const chart = view && view.flame;
  return chart ? chart.boxes.path(chart.selected).join('\n') : '';
}
const ACTIONS = [
  ['callers and callees', 's', name => go('sandwich', {p: whole(name), z: '', zc: ''})],
  ['source and instructions', 'a', name => go('source', {sym: whole(name)})],
  ['peek', 'p', name => go('peek', {sym: whole(name)})],
  ['graph around it', 'x', name => go('graph', {f: whole(name)})],
  ['focus', 'F', name => refine('f', whole(name))],
  ['ignore', 'I', name => refine('i', whole(name))],
  ['hide', 'H', name => refine('h', whole(name))],
  ['show from', 'W', name => refine('sf', whole(name))],
  ['copy the name', 'c', name => copy(name)],
];
// A frame without a function, "[FILE <0xADDRESS>]", can be shown and copied; no
// filter or report finds it.
const canDo = (key, name) => 'sc'.includes(key) ||
  !/^\[.* <0x[0-9a-f]+>\]$/s.test(name);
function openMenu(name, x, y) {
  const menu = $('menu');
  menu.replaceChildren(...ACTIONS.map(([label, key, act]) => make('button',
    {role: 'menuitem', disabled: !canDo(key, name), onclick: () => { closeMenu(); act(name); }}, label,
    make('kbd', {}, key))));
  menu.hidden = false;
  menu.style.left = Math.max(Math.min(x, innerWidth - menu.offsetWidth - 4), 0) +
    'px';
  menu.style.top = Math.max(Math.min(y, innerHeight - menu.offsetHeight - 4), 0) +
    'px';
  menu.firstChild.focus();
}
function closeMenu() { $('menu').hidden = true; }
addEventListener('pointerdown', event => {
  if (!event.target.closest('#menu')) closeMenu();
});

// ---- dialogs -------------------------------------------------------------------

const KEYS = [['/', 'search; Enter with focus=... sets a filter'],
  ['n N', 'next match, the one before; in a source hot lines'], ['arrows', 'move'],
  ['Enter', 'enlarge a box; open a row'], ['Backspace', 'one box out'],
  ['Escape', 'nothing selected, all boxes'], ['1 ... 9 0 T', 'the views'],
  ['s a p x', 'of what is selected: sandwich, source, peek, graph'],
  ['F I H W', 'focus, ignore, hide, show from'], ['u', 'undo: back'],
  ['c C', 'copy the name; the stack'], ['m', 'menu, as the right button'],
  ['o b r', 'flip; order by name; fold recursion'], ['i', 'inverted, and back'],
  ['v g w', 'next sample type, kind of row, width of a difference'],
  ['Shift', 'in a timeline: what is marked is what to compare with'], ['t S', 'light or dark; save'],
  ['k', 'saved configs'], ['? ', 'this']];
function dialog(title, ...content) {
  const d = $('about');
  d.replaceChildren(make('h2', {}, title), ...content, make('p', {},
    make('button', {onclick: () => d.close()}, 'close')));
  d.showModal();
}
const help = () => dialog('Keys', make('table', {}, ...KEYS.map(([key, text]) =>
  make('tr', {}, make('td', {}, make('kbd', {}, key)), make('td', {}, text)))));
const about = () => dialog(shown(state.profile.title),
  ...state.profile.lines.map(line => make('div', {}, shown(line))),
  make('div', {}, state.profile.samples + ' samples, total ' +
    printer(state.profile).number(state.profile.total)),
  ...(isDiff() ? [make('div', {}, 'Red: more than before; blue: ' +
    'less; striped: new.')] : []));

// What is shown, to be kept: with the filters, except for the profile itself.
const EXPORTS = [['the profile as it was read', 'download', 'profile.pb.gz'],
  ['what the filters leave, as a profile', 'proto', 'filtered.pb.gz'],
  ['a flame graph, one file of HTML', 'flamegraph', 'flamegraph.html'],
  ['the graph as SVG', 'svg', 'graph.svg'],
  ['stacks as JSON', 'json', 'stacks.json'],
  ['stacks, a line each', 'collapsed', 'stacks.txt'],
  ['the table as text', 'top', 'top.txt']];
const save = () => dialog('Save', ...EXPORTS.map(([label, format, file]) =>
  make('div', {}, make('a', {download: file, href: format === 'download' ?
    'download' : 'api/report/' + format + '?' + query()}, label))));

// ---- keys ----------------------------------------------------------------------

function theme(name) {
  const dark = name ? name === 'dark' : !isDark();
  document.documentElement.className = dark ? 'dark' : '';
  charts().forEach(c => { c.colors.clear(); c.draw(); });
  if (view && view.lane) view.draw();
  try { if (!name) localStorage.setItem('cpprof-theme', dark ? 'dark' : 'light'); }
  catch (e) { /* not allowed here */ }
}
function clear() {
  closeMenu();
  if (search.value) { search.value = ''; applySearch(); }
  else if (view && view.flame && !view.callers) {
    view.flame.selected = 0;
    if (param('z')) go(state.view, {z: ''});
    else view.flame.select(0);
  }
  else if (view && view.callers && (param('z') || param('zc')))
    go(state.view, {z: '', zc: ''});
  focusView();
}
function focusView() {
  const e = main.querySelector('[tabindex="0"]');
  if (e) e.focus({preventScroll: true});
}
function outwards() {
  const chart = charts().find(c => c.element === document.activeElement) ||
    (view && view.flame);
  if (chart) chart.outwards();
}
async function nextMatch(step) {
  await searched;
  charts().forEach(c => c.next(step));
  if (view && view.match) view.match(step);
}
function menuByKey() {
  const name = selectedName(), r = main.getBoundingClientRect();
  if (name) openMenu(name, r.left + 40, r.top + 40);
}
function nextType() {
  const types = state.profile.types.map(t => t[0]);
  const k = (types.indexOf($('type').value) + 1) % types.length;
  go(state.view, {si: types[k], z: param('z')});
}
// As if the next one were chosen in a field.
function nextOf(field) {
  if (!field) return;
  field.selectedIndex = (field.selectedIndex + 1) % field.length;
  field.onchange();
}
const plain = {
  '/': () => search.focus(), '?': help, t: () => theme(), u: () => history.back(),
  Backspace: outwards, k: () => configs(), m: menuByKey, v: nextType, S: save,
  i: () => go(state.view === 'inverted' ? 'flamegraph' : 'inverted', {z: ''}),
  g: () => nextOf($('lines')),
  w: () => nextOf($('options').querySelector(
    '[aria-label=width], [aria-label=rows]')),
  o: () => turn('flip'),
  r: () => turn('rec'),
  f: () => plain.o(), b: () => go(state.view, {so: param('so') ? '' : 'n'}, true),
  n: () => nextMatch(1), N: () => nextMatch(-1),
  C: () => copy(stackText()), T: () => go('timeline', {}),
};
document.addEventListener('keydown', event => {
  const key = event.key, inMenu = !$('menu').hidden;
  if ($('about').open) return;
  if (key === 'Escape') { clear(); event.preventDefault(); return; }
  if (inMenu && (key === 'ArrowDown' || key === 'ArrowUp')) {
    const e = document.activeElement;
    const next = key === 'ArrowDown' ? e.nextSibling : e.previousSibling;
    if (next) next.focus();
    event.preventDefault();
    return;
  }
  if (event.target === search) {
    if (key !== 'Enter') return;
    clearTimeout(typing);
    applySearch();
    if (!/^\w+=/.test(search.value) || takeWords(search.value)) focusView();
    return;
  }
  if (event.ctrlKey && key === 'f' && document.activeElement !== search) {
    search.focus();
    event.preventDefault();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey ||
      /^(SELECT|INPUT)$/.test(event.target.tagName) ||
      (key === 'Enter' && /^(BUTTON|A)$/.test(event.target.tagName))) return;
  const chart = charts().find(c => c.element === document.activeElement) ||
    (view && view.flame);
  if (chart && chart.key(key)) { /* it moved */ }
  else if (!chart && view && view.key && view.key(key, event.shiftKey)) { /* it moved */ }
  else if (/^\d$/.test(key) && VIEWS[(+key + 9) % 10])
    go(VIEWS[(+key + 9) % 10][0], {});
  else if (plain[key]) plain[key]();
  else {
    const action = ACTIONS.find(a => a[1] === key), name = selectedName();
    if (!action) return;
    if (name && !canDo(key, name)) tell(shown(name) + ' has no function');
    else if ('FIHW'.includes(key)) refine({F: 'f', I: 'i', H: 'h', W: 'sf'}[key],
      name ? whole(name) : '');
    else if (name) action[2](name);
    else tell('select something first');
  }
  event.preventDefault();
});

// ---- begin ---------------------------------------------------------------------

let typing = 0;
search.addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(applySearch, 60);
  complete();
});
// A value as takeWords() reads it.
const quote = text => /\s/.test(text) ? "'" + text.replace(/'/g, '\\x27') + "'" :
  text;
// What the last word can become: an option, a label, or the name of a function.
async function completions(word) {
  const part = /^(\w+)=(.*)$/.exec(word), text = part ? part[2] : word;
  const known = word && !part ? Object.values(state.start.parameters)
    .filter(name => name.startsWith(word)).map(name => name + '=') : [];
  if (part && /^tag(focus|ignore)$/.test(part[1])) {
    const data = await ask('labels', {}, 'names');
    return data.keys.flatMap(k => k.values.map(v => [k.key + '=' + v[0],
      tagFilter(k.key, v)])).filter(names => names.some(t => t.includes(text)))
      .map(([, t]) => part[1] + '=' + quote(t));
  }
  if (text.length < 2) return known;
  const data = await ask('table', {max: MOST_ROWS}, 'names');
  const names = data.names.filter(n => n.includes(text)).slice(0, 20).map(quoted);
  return known.concat(part ? names.map(n => part[1] + '=' + quote(n)) : names);
}
async function complete() {
  const text = search.value, word = /\S*$/.exec(text)[0];
  const front = text.slice(0, text.length - word.length);
  const found = await completions(word).catch(() => []);
  if (text !== search.value) return; // more was written meanwhile
  $('names').replaceChildren(...found.slice(0, 20).map(text =>
    make('option', {value: front + text})));
}
for (const button of $('refine').children)
  button.onclick = () => refine(button.dataset.filter);
$('type').onchange = () => go(state.view, {si: $('type').value});
$('lines').onchange = () => go(state.view, {g: $('lines').value, z: ''});
$('theme').onclick = () => theme();
$('help').onclick = help;
$('fold').onclick = () => $('fold').setAttribute('aria-expanded',
  String(document.querySelector('header').classList.toggle('open')));
$('save').onclick = save;
$('configs').onclick = configs;
$('title').onclick = about;
$('title').onkeydown = event => { if (event.key === 'Enter') about(); };
$('copy').onclick = () => copy($('words').textContent);
addEventListener('popstate', () => { readAddress(); render(); });

// What every page needs, and what a flame graph shows, is in the page when it
// comes. If the profile is still being read then, it is asked for: the server
// answers when it has read it, if that does not take long.
function takeFirst({profile, boxes}, note, asked) {
  profile.note = '';
  keep(urlOf('profile', {}), profile);
  if (boxes) keep(urlOf('boxes', asked), Object.assign(boxes, {note}));
}
const isFlame = () => /^(flamegraph|inverted)$/.test(state.view) && !param('p');
const firstBoxes = () => chartAt({inv: state.view === 'inverted' ||
  param('inv') === 't' ? 't' : ''});
async function askFirst() {
  const asked = firstBoxes();
  if (!isFlame()) return ask('profile', {}, 'profile');
  const data = await getData(urlOf('first', asked), 'first');
  takeFirst(data, data.note, asked);
  return data.profile;
}
// Until the profile is read.
async function waitForProfile() {
  const first = askFirst(), came = first.catch(() => new Promise(() => {}));
  for (let pause = 10; !state.start.ready; pause = Math.min(2 * pause, 40)) {
    if (state.start.failed) throw new Refused(state.start.failed.split('\n')
      .map(shown).join('\n'));
    main.replaceChildren(note(shown(state.start.progress || 'reading ' +
      state.start.sources.join(', ')) + ' ...' + (state.start.seconds > 1 ?
      ' ' + state.start.seconds + ' s' : '')));
    await Promise.race([came, new Promise(done => setTimeout(done, pause))]);
    state.start = await (await get('api/status', 'status')).json();
  }
  await first.catch(askFirst);
}
function findTheme() {
  let saved = null;
  try { saved = localStorage.getItem('cpprof-theme'); } catch (e) { /* none */ }
  theme(saved || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' :
    'light'));
}
// What the bar shows. A filter of the address may be wrong: it can be taken away
// in the bar, which then shows what is there without filters.
async function readProfile(came) {
  state.start = came.start || await (await get('api/status', 'status')).json();
  try {
    if (came.first) takeFirst(isFlame() ? came.first.data :
      {profile: came.first.data}, came.first.note, firstBoxes());
    else await waitForProfile();
    state.profile = await ask('profile', {}, 'profile');
  } catch (e) {
    if (!(e instanceof Refused && state.start.ready)) throw e;
    state.profile = await ask('profile', Object.fromEntries(
      FILTERS.map(name => [name, null])), 'profile');
  }
}
async function begin() {
  const came = JSON.parse($('first').textContent);
  $('first').remove();
  try {
    await readProfile(came);
  } catch (e) {
    put(note(e instanceof Refused ? e.message : 'cpprof has ended; its terminal ' +
      'tells why.', true));
    return;
  }
  await render();
  // They were made for a page of usual width.
  if (came.first && isFlame() && pixels() > came.width) {
    answers.delete(urlOf('boxes', firstBoxes()));
    render();
  }
  watch();
}
// What is drawn, for tests.
window.cpprof = {shown: () => charts().flatMap(c => c.drawn()), state};
findTheme();
readAddress();
// This runs while the server makes the data, which stand below.
addEventListener('DOMContentLoaded', begin);

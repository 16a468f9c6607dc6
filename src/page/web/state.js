// SPDX-License-Identifier: MIT
// What the page shows is in its address: the view, and parameters that are
// pprof's where they mean the same. This file reads and changes it, and asks the
// server.
'use strict';
// ---- the state ---------------------------------------------------------------

// Filters and the like: every view is asked for with them.
const FILTERS = ['f', 'i', 'h', 's', 'sf', 'prunefrom', 'tf', 'ti', 'ts', 'th',
  'tb', 'tr', 'tl', 'g', 'si', 'mean', 'norm', 'rel', 'dropneg', 'noinlines', 'showcolumns',
  'unit', 'nf', 'ef', 'n', 'trim', 'sort', 'calltree', 'compact', 'intel',
  'rec'];
const state = {view: 'flamegraph', at: new URLSearchParams(), start: null,
  profile: null};

function readAddress() {
  state.view = location.pathname.split('/').pop() || 'flamegraph';
  state.at = new URLSearchParams(location.search);
}
const param = name => state.at.get(name) || '';

// The address of a view with changes: {name: value}; '' removes one.
function address(view, changes) {
  const next = new URLSearchParams(state.at);
  for (const [name, value] of Object.entries(changes || {})) {
    if (value === '' || value === null) next.delete(name);
    else next.set(name, value);
  }
  // An option of the command line is cleared by an empty parameter.
  for (const [name, value] of Object.entries(changes || {}))
    if (value === '' && startValue(name)) next.set(name, '');
  const text = next.toString();
  return view + (text ? '?' + text : '');
}
function startValue(name) {
  return state.start ? state.start.settings[state.start.parameters[name]] || ''
    : '';
}
// The value that counts: of the address, else of the command line.
const effective = name => state.at.has(name) ? param(name) : startValue(name);
const isDiff = () => state.start.bases.length > 0 || effective('tb') !== '';
const isOn = name => /^t(rue)?$/.test(effective(name));

let render = () => {};
function go(view, changes, replace) {
  history[replace ? 'replaceState' : 'pushState'](null, '',
    address(view, changes));
  readAddress();
  render();
}

// ---- the server --------------------------------------------------------------

const answers = new Map(); // as they came, the latest last
const coming = new Map();  // promises of those that are asked for, by URL
const asked = {};          // by slot: what aborts a request of it
const MOST_ANSWERS = 24;

function query(more) {
  const q = new URLSearchParams();
  for (const name of FILTERS)
    if (state.at.has(name)) q.set(name, param(name));
  for (const [name, value] of Object.entries(more || {})) {
    if (value === null && startValue(name)) q.set(name, '');
    else if (value === null) q.delete(name);
    else if (value !== '' && value !== undefined) q.set(name, value);
  }
  return q;
}
class Refused extends Error {}
async function get(url, slot) {
  if (asked[slot]) asked[slot].abort();
  const mine = asked[slot] = new AbortController();
  const answer = await fetch(url, {signal: mine.signal});
  if (!answer.ok) throw new Refused((await answer.text()).trim());
  return answer;
}
async function getData(url, slot) {
  const answer = await get(url, slot), data = await answer.json();
  data.note = answer.headers.get('X-Cpprof-Note') || '';
  return data;
}
const urlOf = (name, more) => {
  const q = query(more);
  q.set('gz', 't');
  return 'api/' + name + '?' + q;
};
// JSON of the server; a later one of the same slot takes its place.
async function ask(name, more, slot) {
  const url = urlOf(name, more);
  let data = answers.get(url);
  if (!data) {
    if (!coming.has(url))
      coming.set(url, getData(url, slot || name).finally(() =>
        coming.delete(url)));
    data = await coming.get(url);
  }
  if (data.note) noted = data.note;
  keep(url, data);
  return data;
}
// As the latest answer.
function keep(url, data) {
  answers.delete(url);
  answers.set(url, data);
  if (answers.size > MOST_ANSWERS)
    answers.delete(answers.keys().next().value);
}

// A document that the server makes, as a tree: no script of it runs.
function tree(url) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open('GET', url);
    request.responseType = 'document';
    // A reason is a text, which is not to be had this way.
    request.onload = () => request.status === 200 && request.response ?
      done(request.response) : get(url, 'tree').then(() =>
        failed(new Refused('no answer')), failed);
    request.onerror = () => failed(new Error('no answer'));
    request.send();
  });
}

// ---- the command line ----------------------------------------------------------

const word = text => /^[\w@%+=:,./-]+$/.test(text) ? text :
  "'" + text.replace(/'/g, "'\\''") + "'";

const FORMATS = {flamegraph: 'flamegraph', sandwich: 'peek', inverted: 'top',
  top: 'top', tree: 'tree', graph: 'svg', source: 'weblist', disasm: 'disasm',
  peek: 'peek', traces: 'traces', tags: 'tags',
  timeline: 'tags'};
const SEARCHES = ['peek', 'weblist', 'disasm'];

function commandLine() {
  const start = state.start, values = {...start.settings};
  for (const [name, setting] of Object.entries(start.parameters))
    if (state.at.has(name)) values[setting] = param(name);
  if (!isDiff()) delete values.normalize; // it means nothing
  const format = FORMATS[state.view] || 'top';
  const words = ['cpprof', '-' + format];
  if (SEARCHES.includes(format))
    words[1] += '=' + word(param('sym') || param('p') || param('f') || '.');
  for (const [name, value] of Object.entries(values)) {
    if (value === '') continue;
    if (value === 't' || value === 'true') words.push('-' + name);
    else if (value === 'f' || value === 'false')
      words.push('-' + name + '=false');
    else words.push('-' + name + '=' + word(value));
  }
  // The table has all rows, in the order that was clicked.
  if (state.view === 'top' && !('trim' in values)) words.push('-trim=false');
  if (state.view === 'top' && param('by') === 'cum' && !('sort' in values))
    words.push('-cum');
  for (const base of start.bases)
    words.push('-' + start.base_flag + '=' + word(base));
  return words.concat(start.sources.map(word)).join(' ');
}

// SPDX-License-Identifier: MIT
// Saved configs, which are those of pprof's page: filters and options under a
// name. And a line that says when the server has ended.
'use strict';

// ---- configs -------------------------------------------------------------------

const letter = value => ({true: 't', false: 'f'})[value] || value || '';
// Does it say what counts now?
const isConfig = (parameters, names) => names.every(name =>
  letter(effective(name)) === letter(parameters[name]));

function useConfig(parameters, names) {
  const changes = {z: '', zc: ''};
  for (const name of names) changes[name] = parameters[name] || '';
  $('about').close();
  go(state.view, changes);
}

// Has it done so? What is wrong is told in `told`.
async function changeConfig(method, path, query, told) {
  try {
    const answer = await fetch(path + '?' + query, {method});
    if (!answer.ok) throw new Error((await answer.text()).trim());
    await configs();
  } catch (e) { told.textContent = e.message; }
}

function configRow(name, parameters, names, told, isOwn) {
  const words = Object.entries(parameters).map(([parameter, value]) =>
    settingOf(parameter) + '=' + shown(value)).join(' ');
  const use = make('button', {className: 'link', onclick: () =>
    useConfig(parameters, names)}, shown(name));
  if (isConfig(parameters, names)) use.setAttribute('aria-current', 'true');
  const remove = make('button', {title: 'delete', 'aria-label': 'delete ' + name},
    '\u00d7');
  remove.onclick = () => { // asked twice
    if (remove.textContent !== 'delete') remove.textContent = 'delete';
    else changeConfig('DELETE', 'deleteconfig',
      new URLSearchParams({config: name}), told);
  };
  return make('tr', {}, make('td', {}, use), make('td', {className: 'dim words'},
    words), make('td', {}, isOwn ? remove : ''));
}

async function configs() {
  let data;
  try { data = await (await get('api/configs', 'configs')).json(); }
  catch (e) { tell(e.message); return; }
  const told = make('p', {className: 'more', role: 'alert'}, data.error);
  const name = make('input', {'aria-label': 'name of a new one', spellcheck: false,
    placeholder: 'name'});
  const save = () => {
    const q = query({config: name.value});
    if (name.value) changeConfig('POST', 'saveconfig', q, told);
    else name.focus();
  };
  name.onkeydown = event => { if (event.key === 'Enter') save(); };
  $('about').close();
  dialog('Saved configs', make('table', {className: 'configs'},
    configRow('Default', {}, data.saved, told, false),
    ...data.configs.map(c => configRow(c.name, c.parameters, data.saved, told,
      true))),
  make('p', {}, name, ' ', make('button', {onclick: save},
    'save the filters and options of now')), told);
}

// ---- the server ----------------------------------------------------------------

// Of a process that runs there is another profile by then: the same view of it.
async function takeNew(start) {
  if (start.turn !== state.start.turn) {
    state.start = start;
    answers.clear();
    coming.clear();
    state.profile = await ask('profile', {}, 'profile');
    await render();
  }
  if (start.over && !state.start.over)
    tell('The process is not recorded any more; cpprof\'s terminal tells why.');
  if (!start.stopped !== !state.start.stopped)
    tell(start.stopped ? 'The process is stopped. This goes on when it does (kill -CONT).' :
      'The process goes on.');
  Object.assign(state.start, {over: start.over, stopped: start.stopped});
}
// Looks now and then whether it is there. One that comes back may show another
// profile.
const WATCH_MS = 3000;
async function watch() {
  let gone = null;
  for (;;) {
    await new Promise(done => setTimeout(done, WATCH_MS));
    if (document.hidden) continue;
    try {
      const live = state.start.live && !gone;
      const answer = await fetch('api/status', {method: live ? 'GET' : 'HEAD'});
      if (gone) location.reload();
      if (live) await takeNew(await answer.json());
    } catch (e) {
      if (gone) continue;
      gone = make('div', {className: 'more', role: 'alert', id: 'gone'},
        'cpprof has ended: what is shown stays, and nothing more comes.');
      document.querySelector('footer').prepend(gone);
    }
  }
}

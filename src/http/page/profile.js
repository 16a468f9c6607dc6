// SPDX-License-Identifier: MIT
// Reads profile.proto, and makes of one of its values what flameGraph.show()
// draws and a table shows. Any bytes may come: what is no profile is an Error.
'use strict';

const readProfile = (function () {
const text = new TextDecoder();

function fields(bytes, use) {
  let at = 0;
  function varint() {
    let low = 0, high = 0;
    for (let i = 0; i < 10; i++) {
      if (at >= bytes.length) throw new Error('the profile is cut off');
      const b = bytes[at++], v = b & 127;
      if (i < 5) low |= v << 7 * i;
      if (i === 4) high |= v >> 4;
      if (i > 4) high |= v << 7 * i - 32;
      // Signed; ids, which are not, count from 1.
      if (b < 128) return high * 4294967296 + (low >>> 0);
    }
    throw new Error('a number of the profile does not end');
  }
  while (at < bytes.length) {
    const tag = varint(), kind = tag & 7;
    let value = null;
    if (kind === 0) value = varint();
    else if (kind === 2) {
      const n = varint(), end = at + n;
      if (!(n >= 0 && end <= bytes.length))
        throw new Error('the profile is cut off');
      value = bytes.subarray(at, end);
      at = end;
    } else if (kind === 1) at += 8;
    else if (kind === 5) at += 4;
    else throw new Error('this is not a profile');
    if (value !== null) use(Math.floor(tag / 8), value, varints);
  }
  function varints(value, to) {
    if (typeof value === 'number') { to.push(value); return; }
    const [b, a] = [bytes, at];
    bytes = value; at = 0;
    while (at < bytes.length) to.push(varint());
    bytes = b; at = a;
  }
}

// The fields of a message that are numbers, by their number; lists in [].
function message(bytes, lists = {}, nested = {}) {
  const m = {};
  for (const k in lists) m[k] = [];
  for (const k in nested) m[k] = [];
  fields(bytes, (field, value, varints) => {
    if (lists[field]) varints(value, m[field]);
    else if (nested[field]) m[field].push(nested[field](value));
    else m[field] = value;
  });
  return m;
}

return function (bytes) {
  const m = message(bytes, {13: 1}, {
    1: message, 11: message, 6: b => text.decode(b), 3: message, 5: message,
    2: b => message(b, {1: 1, 2: 1}),
    4: b => message(b, {}, {4: message}),
  });
  const string = i => m[6][i || 0] || '';
  if (!m[1].length) throw new Error('this is not a profile');
  return {
    types: m[1].map(t => ({type: string(t[1]), unit: string(t[2])})),
    samples: m[2].map(s => ({locations: s[1], values: s[2]})),
    frames: framesOf(m, string),
    byDefault: string(m[14]), time: m[9] || 0, duration: m[10] || 0,
    comments: m[13].map(string),
  };
};

// By location its names, the caller first, and whether they are inlined.
function framesOf(m, string) {
  const functions = new Map(m[5].map(f => [f[1], string(f[2])]));
  const files = new Map(m[3].map(f => [f[1], string(f[5])]));
  const frames = new Map();
  for (const l of m[4]) {
    const of = l[4].map((line, i) => ({
      name: functions.get(line[1]) || '?', isInline: i + 1 < l[4].length,
    })).reverse();
    const file = (files.get(l[2]) || '').replace(/.*\//, '');
    const address = l[3] < 0 ? l[3] + 18446744073709551616 : l[3] || 0;
    frames.set(l[1], of.length ? of : [{
      name: '0x' + address.toString(16) + (file ? ' [' + file + ']' : ''),
      isInline: false,
    }]);
  }
  return frames;
}
})();

const stacksOf = (function () {
// Below this part of the whole nothing can be seen, even when zoomed into.
const PART = 0.0005;
const UNITS = {
  nanoseconds: [['ns', 1], ['us', 1e-3], ['ms', 1e-6], ['s', 1e-9]],
  bytes: [['B', 1], ['kB', 1 / 1024], ['MB', 1 / 1048576],
          ['GB', 1 / 1073741824]],
};

// Each name has a number, in the order of names.
function number(names, numbers, name) {
  let i = numbers.get(name);
  if (i === undefined) {
    i = names.push(name) - 1;
    numbers.set(name, i);
  }
  return i;
}

// Nodes of a tree of callers, found by their parent and frame. Half a million
// of them are usual, so they are numbers in arrays.
function makeTree() {
  const frame = [0], parent = [0], plus = [0], minus = [0];
  const selfPlus = [0], selfMinus = [0];
  let slots = new Int32Array(1024); // 0: free, which the root never needs
  function slotOf(at, f) {
    const mask = slots.length - 1;
    let h = Math.imul(at, 0x9e3779b1) ^ Math.imul(f, 0x85ebca6b);
    h ^= h >>> 15;
    for (let i = h & mask; ; i = i + 1 & mask) {
      const n = slots[i];
      if (!n || parent[n] === at && frame[n] === f) return i;
    }
  }
  function grow() {
    slots = new Int32Array(slots.length * 2);
    for (let n = 1; n < frame.length; n++)
      slots[slotOf(parent[n], frame[n])] = n;
  }
  function child(at, f) {
    const i = slotOf(at, f);
    let n = slots[i];
    if (n) return n;
    n = slots[i] = frame.length;
    frame.push(f); parent.push(at); plus.push(0); minus.push(0);
    selfPlus.push(0); selfMinus.push(0);
    if (n * 2 > slots.length) grow();
    return n;
  }
  return {frame, parent, plus, minus, selfPlus, selfMinus, child};
}

// A tree of callers, and the functions, by the value of that number; of the
// difference to `base`, when there is one.
return function (profile, k, base) {
  const names = ['root'], numbers = new Map(), tree = makeTree();
  const parts = [{p: profile, k, sign: 1}];
  if (base) parts.push({p: base, sign: -1, k: base.types.findIndex(t =>
    t.type === profile.types[k].type)});
  for (const part of parts) {
    part.ways = new Map(); // by location: names * 2 + inlined
    for (const [id, frames] of part.p.frames)
      part.ways.set(id, frames.map(f =>
        2 * number(names, numbers, f.name) + (f.isInline ? 1 : 0)));
  }
  const unknown = [2 * number(names, numbers, '?')];
  const flat = new Float64Array(names.length);
  const cum = new Float64Array(names.length);
  const seen = new Int32Array(names.length).fill(-1);
  let n = 0;

  function add(sample, ways, v) {
    const sums = v > 0 ? tree.plus : tree.minus, weight = Math.abs(v);
    let at = 0, frame = 0;
    sums[0] += weight;
    n++;
    for (let i = sample.locations.length - 1; i >= 0; i--) {
      for (frame of ways.get(sample.locations[i]) || unknown) {
        at = tree.child(at, frame);
        sums[at] += weight;
        if (seen[frame >> 1] !== n) {
          seen[frame >> 1] = n;
          cum[frame >> 1] += v;
        }
      }
    }
    (v > 0 ? tree.selfPlus : tree.selfMinus)[at] += weight;
    if (at) flat[frame >> 1] += v;
  }
  for (const {p, k, sign, ways} of parts)
    for (const sample of p.samples)
      if (sample.values[k]) add(sample, ways, sign * sample.values[k]);
  const functions = names.map((name, i) =>
    ({name, flat: flat[i], cum: cum[i]})).filter(f => f.flat || f.cum);
  return {data: drawn(tree, names, profile, k, base), functions};
};

// The boxes that can be seen, from the root on, the largest child first.
function boxesOf({frame, parent, plus, minus, selfPlus, selfMinus}) {
  const weight = i => plus[i] + minus[i], least = weight(0) * PART;
  const children = new Map(), boxes = [], left = [0];
  for (let i = 1; i < frame.length; i++) {
    if (weight(i) < least) continue;
    const beside = children.get(parent[i]);
    if (beside) beside.push(i);
    else children.set(parent[i], [i]);
  }
  while (left.length) {
    const i = left.pop();
    const shown = (children.get(i) || []).sort((a, b) => weight(a) - weight(b));
    boxes.push(frame[i] >> 1, frame[i] & 1, shown.length, plus[i], minus[i],
      selfPlus[i], selfMinus[i]);
    left.push(...shown);
  }
  return boxes;
}

function drawn(tree, names, profile, k, base) {
  const {type, unit} = profile.types[k];
  const time = profile.time ? new Date(profile.time / 1e6) : null;
  const [plus, minus] = [tree.plus[0], tree.minus[0]];
  return {
    title: type, names, boxes: boxesOf(tree), total: base ?
      minus || plus : plus + minus, diff: minus > 0 || !!base,
    cut: false, divide_by: 1, units: UNITS[unit] || [[unit, 1]],
    lines: ['Type: ' + type + ' (' + unit + ')',
            time ? 'Time: ' + time.toLocaleString() : '',
            profile.duration ?
              'Duration: ' + (profile.duration / 1e9).toFixed(2) + ' s' : '',
            ...profile.comments].filter(line => line),
  };
}
})();

// SPDX-License-Identifier: MIT
// Elements, text and values, for all pages. Text of a profile enters elements as
// text only.
'use strict';
const $ = id => document.getElementById(id);

// An element: its properties, then children, which may be strings.
function make(tag, properties, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name.startsWith('aria-') || name === 'role' || name === 'for')
      e.setAttribute(name, value);
    else
      e[name] = value;
  }
  e.append(...children);
  return e;
}

// ---- text -------------------------------------------------------------------

// Control characters, and those that turn the direction of a line, are shown.
const shown = text => text.replace(
  /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
  c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
const quoted = text => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
const whole = name => '^' + quoted(name) + '$';
// The middle of a long text is left out, or where little fits its end.
function cut(text, n) {
  if (text.length <= n) return text;
  if (n < 3) return '';
  if (n < 10) return text.slice(0, n - 1) + '\u2026';
  const front = Math.ceil((n - 1) / 2);
  return text.slice(0, front) + '\u2026' + text.slice(text.length - (n - 1 - front));
}

// ---- values ------------------------------------------------------------------

// Prints the values of an answer: units[] goes from small to large.
function printer(data) {
  function number(v) {
    if (!v) return '0';
    const u = data.units, abs = Math.abs(v) / data.divide_by;
    let k = 0;
    while (k + 1 < u.length && abs * u[k + 1][1] >= 1) k++;
    const t = (v / data.divide_by * u[k][1]).toFixed(2).replace(/\.?0+$/, '');
    return t + (u[k][0] === 'count' ? '' : u[k][0]);
  }
  const percent = v => data.total ?
    (100 * v / Math.abs(data.total)).toFixed(2) + '%' : '';
  // Of a difference. What is left of a scaled one by rounding is nothing.
  const signed = (v, of = data.total) => Math.abs(v) < Math.abs(of) * 1e-6 ? '0' :
    (v > 0 ? '+' : '') + number(v);
  return {number, percent, signed};
}

'use strict';
// The state at step k is made by following the steps from the first one: going
// back needs nothing of its own.
const R = JSON.parse(document.getElementById('recording').textContent);
const DEAD = -1, GONE = -2, CONTROL = -3, FIRED = -1;
const COLOURS = ['#2563eb', '#d97706', '#059669', '#c026d3', '#dc2626',
                 '#0891b2', '#65a30d', '#7c3aed'];
const MAX_LISTED = 40;
const $ = id => document.getElementById(id);
const colourOf = scope => COLOURS[R.scopes[scope].iteration % COLOURS.length];
const last = R.steps.length;
let at = 0;        // steps done
let state = null;  // after them
let pinned = -1;   // a node
let timer = null;

// --- The state ---------------------------------------------------------------

function follow(count) {
  const s = {tokens: new Map(), pending: new Map(), ready: new Map(),
             moreReady: new Map(), fired: new Map(), live: new Set(),
             produced: new Map(), open: new Map()};
  for (let i = 0; i < count; i++) {
    const step = R.steps[i];
    if (step.starts) {
      s.live.add(step.scope);
      s.pending.set(step.scope, new Map());
      s.fired.set(step.scope, new Map());
    }
    for (const [place, scope, value] of step.tokens || []) {
      const key = scope + ':' + place;
      s.tokens.delete(key);
      if (value !== GONE) s.tokens.set(key, {place, scope, value});
    }
    const pending = s.pending.get(step.scope);
    for (const [node, n] of step.pending || []) {
      if (pending) pending.set(node, n);
    }
    if (step.node !== undefined && s.fired.has(step.scope)) {
      s.fired.get(step.scope).set(step.node, step.kind);
    }
    if (step.outputs) {
      if (!s.produced.has(step.node)) s.produced.set(step.node, []);
      s.produced.get(step.node).push([step.scope, step.outputs]);
    }
    s.ready.set(step.scope, step.ready || []);
    s.moreReady.set(step.scope, step.more_ready || 0);
    s.open.set(step.scope, openText(step));
    if (step.kind === 'end') {
      s.live.delete(step.scope);
      s.ready.delete(step.scope);
    }
  }
  return s;
}

// What keeps the iteration of the step from its end.
function openText(step) {
  const ready = (step.ready || []).length + (step.more_ready || 0);
  const parts = [];
  if (ready) parts.push(`${ready} ready`);
  if (step.running) parts.push(`${step.running} running`);
  if (step.children) parts.push(counted(step.children, 'frame'));
  return parts.join(', ');
}

const counted = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

// Which iteration a node is shown in: that of the step, else the newest live
// one of its frame, else the last one that there was.
function shownScopes(s, step) {
  const shown = new Map();
  for (const scope of s.fired.keys()) {
    const frame = R.instances[R.scopes[scope].instance].frame;
    const old = shown.get(frame);
    if (old === undefined || s.live.has(scope) || !s.live.has(old)) {
      shown.set(frame, scope);
    }
  }
  if (step) {
    shown.set(R.instances[R.scopes[step.scope].instance].frame, step.scope);
  }
  return shown;
}

// An Enter fires outside of the frame that it is drawn in.
function firesIn(node) {
  const frame = R.nodes[node].frame;
  return /^(Ref)?Enter$/.test(R.nodes[node].op) ? R.frames[frame].parent
                                                : frame;
}

// --- Text --------------------------------------------------------------------

function el(tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  return e;
}

function chip(scope) {
  const c = el('span', R.scopes[scope].iteration, 'chip');
  c.style.background = colourOf(scope);
  c.title = R.scopes[scope].name;
  return c;
}

function valueText(value) {
  return value === DEAD ? 'dead' : value === CONTROL ? 'done'
                                                     : R.values[value][1];
}

function valueElement(value) {
  const kind = value === DEAD ? 'value dead' : 'value';
  return el('span', breakable(valueText(value)), kind);
}

// A long name may break behind its slashes.
const breakable = name => name.replaceAll('/', '/\u200b');

function nodeItem(scope, node, more) {
  const li = el('li', undefined, 'pick');
  li.append(chip(scope), breakable(R.nodes[node].name) + ' ',
            el('span', R.nodes[node].op + (more || ''), 'op'));
  li.onclick = () => { pin(node); centre(node); };
  return li;
}

// There are `more` than these items.
function fill(list, items, more = 0) {
  const shown = items.slice(0, MAX_LISTED).map(make => make());
  more += items.length - shown.length;
  if (more > 0) shown.push(el('li', `… ${more} more`, 'none'));
  if (!items.length) shown.push(el('li', 'none', 'none'));
  $(list).replaceChildren(...shown);
}

// A skipped Exit's dead token waits for the end of its frame, in which the Exit
// may still be live.
function skipText(step) {
  return ' is skipped: dead' +
         (step.kept ? ', kept until its frame ends' : '') +
         (step.dropped ? ', dropped since it was live' : '');
}

function endText(step) {
  if (!step.ends_frame) return 'the iteration ends';
  const exits = (step.dead_exits || []).map(n => R.nodes[n].name).join(', ');
  return 'the iteration ends, and with it its frame' +
         (exits ? `; dead Exits leave: ${exits}` : '');
}

function caption(step) {
  if (!step) return at === 0 ? ['before the run'] : ['nothing happened'];
  const parts = [chip(step.scope), R.scopes[step.scope].name + '  '];
  const node = step.node !== undefined ? R.nodes[step.node] : null;
  if (step.kind === 'end') {
    parts.push(endText(step));
  } else if (step.kind === 'arrive') {
    const names = (step.arrivals || []).map(
        ([n, v]) => `${R.nodes[n].name} = ${valueText(v)}`);
    if (step.starts_frame) parts.push('starts, and with it its frame');
    else if (step.starts) parts.push('starts');
    else parts.push('gets ');
    if (step.starts && names.length) parts.push(': ');
    parts.push(el('span', names.slice(0, 4).join(', ') +
                  (names.length > 4 ? ` … ${names.length - 4} more` : ''),
                  'value'));
  } else {
    parts.push(el('b', node.name), ' ', el('span', node.op, 'op'));
    if (step.kind === 'skip') parts.push(skipText(step));
    if (step.kind === 'answer') parts.push(' answers');
    (step.outputs || []).forEach((v, i) => {
      parts.push(i ? ', ' : ' → ', valueElement(v));
    });
    if (step.kind !== 'skip' && step.dropped) {
      parts.push(`; ${counted(step.dropped, 'dead token')} dropped`);
    }
  }
  return parts;
}

// What a node is, and what it has produced up to now.
function describe(node) {
  const n = R.nodes[node], box = el('div');
  box.append(el('b', n.name), el('br'), el('span', n.op, 'op'));
  if (n.frame) {
    box.append(el('span', ' in frame ' + R.frames[n.frame].name, 'op'));
  }
  n.outputs.forEach((t, i) => box.append(el('div', `:${i} ${t}`, 'value')));
  for (const a of n.attrs) box.append(el('div', a, 'attrs value'));
  const scopes = [...state.pending].filter(
      ([s, p]) => state.live.has(s) && p.get(node) > 0);
  for (const [s, p] of scopes.slice(-4)) {
    box.append(el('div', `${R.scopes[s].name}: waits for ${p.get(node)}`));
  }
  const produced = state.produced.get(node) || [];
  if (produced.length > 8) box.append(el('div', `… ${produced.length - 8} earlier`, 'none'));
  for (const [scope, values] of produced.slice(-8)) {
    const line = el('div');
    line.append(chip(scope));
    values.forEach((v, i) => line.append(i ? ', ' : '', valueElement(v)));
    box.append(line);
  }
  return box;
}

function pin(node) {
  pinned = node;
  $('pinned').replaceChildren(node < 0 ? el('span', 'hover over one; click to keep it here', 'none')
                                       : describe(node));
}

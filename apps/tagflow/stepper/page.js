// The picture, the panel and the controls; follows page_state.js.

// --- The picture -------------------------------------------------------------

const view = $('view');
const svg = view.querySelector('svg');
const scene = $('scene');
const whole = svg.viewBox.baseVal;
const bounds = {x: whole.x, y: whole.y, width: whole.width,
                height: whole.height};
svg.removeAttribute('viewBox');
const NS = 'http://www.w3.org/2000/svg';
const overlay = document.createElementNS(NS, 'g');
scene.append(overlay);
const boxes = R.nodes.map((n, i) => {
  const g = $('n' + i);
  return g ? {g, box: g.querySelector('.box'), bb: g.getBBox()} : null;
});
const paths = R.edges.map((e, i) => {
  const g = $('e' + i);
  return g ? {g, path: g.firstElementChild,
              length: g.firstElementChild.getTotalLength()} : null;
});

function svgElement(tag, attributes, text) {
  const e = document.createElementNS(NS, tag);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

function drawToken(x, y, token, labelled) {
  const colour = token.value === DEAD ? '#a7adb5' : colourOf(token.scope);
  const g = svgElement('g', {class: 'token'});
  if (token.value === CONTROL) {
    g.append(svgElement('path', {
      d: `M${x},${y - 5}l5,5l-5,5l-5,-5z`, fill: colour}));
  } else {
    g.append(svgElement('circle', {cx: x, cy: y, r: 6, fill: colour}));
    if (token.value === DEAD) {
      g.append(svgElement('path', {
        d: `M${x - 2.4},${y - 2.4}l4.8,4.8m0,-4.8l-4.8,4.8`}));
    } else if (labelled) {
      g.append(svgElement('text', {x: x + 9, y: y + 4, fill: colour},
                          R.values[token.value][0]));
    }
  }
  overlay.append(g);
}

function drawTokens() {
  const byPlace = new Map();
  for (const token of state.tokens.values()) {
    if (!byPlace.has(token.place)) byPlace.set(token.place, []);
    byPlace.get(token.place).push(token);
  }
  for (const [place, tokens] of byPlace) {
    const shown = tokens.slice(-6);
    shown.forEach((token, i) => {
      if (place < 0) {
        const b = boxes[-1 - place];
        if (b && !isHidden(-1 - place)) {
          drawToken(b.bb.x + b.bb.width - 4 - 13 * i,
                    b.bb.y + b.bb.height + 2, token, i === 0);
        }
        return;
      }
      const p = paths[place];
      if (!p || isEdgeHidden(place)) return;
      const where = 0.5 + (i - (shown.length - 1) / 2) *
          Math.min(0.2, 16 / Math.max(p.length, 1));
      const {x, y} = p.path.getPointAtLength(p.length * where);
      drawToken(x, y, token, true);
    });
    if (place >= 0 && paths[place]) paths[place].g.classList.add('carries');
  }
}

function drawNodes(step, shown) {
  const ready = new Map();
  for (const [scope, nodes] of state.ready) {
    for (const node of nodes) ready.set(node, scope);
  }
  boxes.forEach((b, i) => {
    if (!b || isHidden(i)) return;
    b.box.style.stroke = '';
    b.g.classList.remove('now', 'ready', 'skipped', 'unseen');
    const scope = shown.get(firesIn(i));
    const kind = scope !== undefined && state.fired.get(scope).get(i);
    const pending = scope !== undefined && state.live.has(scope) &&
        state.pending.get(scope).get(i);
    if (kind === 'skip') b.g.classList.add('skipped');
    if (ready.has(i)) {
      b.g.classList.add('ready');
      b.box.style.stroke = colourOf(ready.get(i));
    }
    if (kind && kind !== 'skip') {
      overlay.append(svgElement('rect', {
        class: 'bar', x: b.bb.x + 11, y: b.bb.y + b.bb.height - 5.5,
        width: b.bb.width - 22, height: 3, rx: 1.5, fill: colourOf(scope),
        opacity: state.live.has(scope) ? 0.9 : 0.35}));
    }
    if (pending > 0) {
      const partly = [...state.tokens.values()].some(
          t => t.scope === scope && t.place >= 0 && R.edges[t.place][2] === i);
      const g = svgElement('g', {class: partly ? 'waits partly' : 'waits'});
      g.append(svgElement('circle', {cx: b.bb.x, cy: b.bb.y + 1, r: 7.5}),
               svgElement('text', {x: b.bb.x, y: b.bb.y + 4.4}, pending));
      overlay.append(g);
    }
  });
  const arrived = (step && step.arrivals || []).map(a => a[0]);
  if (step && step.node !== undefined) arrived.push(step.node);
  for (const node of arrived) {
    const b = boxes[node];
    if (!b) continue;
    b.g.classList.add('now');
    b.box.style.stroke = colourOf(step.scope);
  }
}

// --- The panel ---------------------------------------------------------------

function listState() {
  const ready = [];
  let moreReady = 0;
  for (const [scope, nodes] of [...state.ready].reverse()) {
    for (const node of nodes) ready.push(() => nodeItem(scope, node));
    moreReady += state.moreReady.get(scope);
  }
  fill('ready', ready, moreReady);

  const met = new Map();
  for (const t of state.tokens.values()) {
    if (t.place >= 0) met.set(t.scope + ':' + R.edges[t.place][2], t.scope);
  }
  const waiting = [];
  for (const [key, scope] of met) {
    const node = Number(key.split(':')[1]);
    const pending = (state.pending.get(scope) || new Map()).get(node);
    if (pending > 0 && state.live.has(scope)) {
      waiting.push(() => nodeItem(scope, node, ` waits for ${pending}`));
    }
  }
  fill('waiting', waiting);

  const byInstance = new Map();
  for (const scope of state.live) {
    const instance = R.scopes[scope].instance;
    if (!byInstance.has(instance)) byInstance.set(instance, []);
    byInstance.get(instance).push(scope);
  }
  const depth = i => {
    let d = 0;
    while (R.instances[i].caller >= 0) {
      i = R.scopes[R.instances[i].caller].instance;
      d++;
    }
    return d;
  };
  // Each frame, and what is open in each of its iterations.
  fill('frames', [...byInstance].map(([instance, scopes]) => () => {
    const li = el('li');
    const name = R.scopes[scopes[0]].name;
    li.append(breakable(name.slice(0, name.lastIndexOf('/'))) + '  ');
    li.style.paddingLeft = 26 + Math.min(depth(instance), 12) * 12 + 'px';
    scopes.slice(0, 16).forEach(s => {
      const open = state.open.get(s);
      li.append(chip(s));
      if (open) li.append(el('span', open + ' ', 'op'));
    });
    if (scopes.length > 16) li.append(`… ${scopes.length - 16} more`);
    return li;
  }));

  fill('list', [...state.tokens.values()].reverse().map(t => () => {
    const li = el('li');
    const edge = t.place >= 0 ? R.edges[t.place] : null;
    const name = node => breakable(R.nodes[node].name);
    const from = name(edge ? edge[0] : -1 - t.place);
    li.append(chip(t.scope), valueElement(t.value),
              el('span', edge ? ` ${from} → ${name(edge[2])}`
                              : ` leaves ${from}`, 'op'));
    return li;
  }));
}

function legend() {
  const line = (mark, text) => {
    const cell = el('span');
    cell.append(mark);
    $('legend').append(cell, el('span', text));
  };
  const dots = el('span');
  COLOURS.slice(0, 4).forEach((c, i) => {
    const d = el('span', i, 'chip');
    d.style.background = c;
    dots.append(d);
  });
  line(dots, 'tokens and bars, by iteration');
  const mark = (draw, width) => {
    const s = svgElement('svg', {width: width || 40, height: 20});
    draw(s);
    return s;
  };
  line(mark(s => s.append(
      svgElement('circle', {cx: 10, cy: 10, r: 6, fill: '#a7adb5'}),
      svgElement('path', {d: 'M7.6,7.6l4.8,4.8m0,-4.8l-4.8,4.8',
                          stroke: '#fff'}))), 'a dead token');
  line(mark(s => s.append(
      svgElement('path', {d: 'M10,5l5,5l-5,5l-5,-5z', fill: COLOURS[0]}))),
      'a control token');
  const box = (stroke, width, bar) => mark(s => {
    s.append(svgElement('rect', {x: 3, y: 3, width: 34, height: 14, rx: 3,
                                 fill: '#fff', stroke,
                                 'stroke-width': width}));
    if (bar) {
      s.append(svgElement('rect', {x: 6, y: 12, width: 28, height: 3,
                                   fill: stroke}));
    }
  });
  line(box(COLOURS[0], 3.4), 'fires in this step');
  line(box(COLOURS[0], 2), 'ready');
  line(mark(s => s.append(
      svgElement('rect', {x: 3, y: 3, width: 34, height: 14, rx: 3,
                          fill: '#fff', stroke: '#68707c'}),
      svgElement('rect', {x: 6, y: 12, width: 28, height: 3,
                          fill: COLOURS[0]}))), 'has fired in this iteration');
  line(mark(s => s.append(
      svgElement('rect', {x: 3, y: 3, width: 34, height: 14, rx: 3,
                          fill: '#f0f0f0', stroke: '#b9bec5'}))),
      'skipped: an input was dead');
  line(mark(s => {
    const g = svgElement('g', {class: 'waits partly'});
    g.append(svgElement('circle', {cx: 11, cy: 10, r: 7.5}),
             svgElement('text', {x: 11, y: 13.4}, '2'));
    s.append(g);
  }), 'waits for 2 more inputs, has some');
  line(mark(s => s.append(
      svgElement('path', {d: 'M2,10h34', stroke: '#8a93a0',
                          'stroke-dasharray': '4 3'}))), 'control edge');
  line(mark(s => s.append(
      svgElement('path', {d: 'M2,10h34', stroke: '#3f6fd1',
                          'stroke-width': 2}))), 'to the next iteration');
}

// --- Moving ------------------------------------------------------------------

const camera = {x: 0, y: 0, k: 1};
let isFitted = true;  // until somebody moves or zooms

function applyCamera() {
  scene.setAttribute('transform',
                     `translate(${camera.x},${camera.y}) scale(${camera.k})`);
  // Names of frames stay readable from afar.
  scene.style.setProperty('--far', Math.min(3, Math.max(1, 0.8 / camera.k)));
  view.classList.toggle('far', camera.k < 0.5);
}

function fit() {
  isFitted = true;
  const w = view.clientWidth, h = view.clientHeight - 44;
  camera.k = Math.min(w / bounds.width, h / bounds.height, 1.5);
  camera.x = (w - bounds.width * camera.k) / 2 - bounds.x * camera.k;
  camera.y = 44 + Math.max(0, (h - bounds.height * camera.k) / 2) -
      bounds.y * camera.k;
  applyCamera();
}

function zoom(factor, x, y) {
  isFitted = false;
  const k = Math.min(4, Math.max(0.05, camera.k * factor));
  camera.x = x - (x - camera.x) * k / camera.k;
  camera.y = y - (y - camera.y) * k / camera.k;
  camera.k = k;
  applyCamera();
}

// Moves to what shows the node: its box, or the folded frame that hides it.
function centre(node, onlyIfHidden) {
  if (!boxes[node]) return;  // it is not drawn
  const around = foldedAround(R.nodes[node].frame);
  const b = around ? $('f' + around).getBBox() : boxes[node].bb;
  // Who looks at one node wants to read it.
  const isSmall = camera.k < 0.55 && !around;
  if (isSmall) {
    isFitted = false;
    camera.k = 0.85;
  }
  const x = (b.x + b.width / 2) * camera.k + camera.x;
  const y = (b.y + b.height / 2) * camera.k + camera.y;
  const w = view.clientWidth, h = view.clientHeight;
  if (onlyIfHidden && !isSmall && (isFitted ||
      (x > 80 && x < w - 80 && y > 80 && y < h - 60))) return;
  camera.x += w / 2 - x;
  camera.y += h / 2 - y;
  applyCamera();
}

function go(to) {
  at = Math.min(last, Math.max(0, to));
  state = follow(at);
  const step = at > 0 ? R.steps[at - 1] : null;
  overlay.replaceChildren();
  paths.forEach(p => p && p.g.classList.remove('carries'));
  drawFrames();
  drawNodes(step, shownScopes(state, step));
  drawTokens();
  listState();
  $('caption').replaceChildren(...caption(step));
  $('slider').value = at;
  $('count').textContent = `step ${at} of ${last}`;
  pin(pinned);
  if (step) {
    const node = firstNode(step);
    if (node !== undefined && $('follow').checked) centre(node, true);
  }
  try {
    history.replaceState(null, '', '#step=' + at);
  } catch (e) { /* none */ }
}

// What a step is about.
function firstNode(step) {
  return step.node !== undefined ? step.node
                                 : ((step.arrivals || [])[0] || [])[0];
}

function play(on) {
  clearInterval(timer);
  timer = null;
  if (on) {
    if (at === last) go(0);
    timer = setInterval(() => at < last ? go(at + 1) : play(false), 450);
  }
  $('play').textContent = timer ? '❚❚' : '▶▶';
}

function showTip(node, event) {
  const tip = $('tip');
  tip.replaceChildren(describe(node));
  tip.style.display = 'block';
  tip.style.left = Math.min(event.clientX + 14,
                            innerWidth - tip.offsetWidth - 8) + 'px';
  tip.style.top = Math.max(4, Math.min(event.clientY + 14,
                           innerHeight - tip.offsetHeight - 8)) + 'px';
}

function start() {
  $('title').textContent = $('title').title = R.title;
  $('slider').max = last;
  for (const text of R.notes) $('notes').append(el('div', text, 'note'));
  if (R.error) $('notes').append(el('div', R.error, 'note failure'));
  if (R.result) {
    $('notes').append(el('div', R.result.trim(), 'note value lines'));
  }
  for (const n of R.nodes) {
    const option = el('option');
    option.value = n.name;
    $('names').append(option);
  }
  boxes.forEach((b, i) => {
    if (!b) return;
    const title = b.g.querySelector('title');
    if (title) title.remove();  // the tip says more
    b.g.onmousemove = event => showTip(i, event);
    b.g.onmouseleave = () => { $('tip').style.display = 'none'; };
    b.g.onclick = () => pin(i);
  });
  $('first').onclick = () => go(0);
  $('back').onclick = () => go(at - 1);
  $('next').onclick = () => go(at + 1);
  $('last').onclick = () => go(last);
  $('play').onclick = () => play(!timer);
  $('slider').oninput = () => go(Number($('slider').value));
  $('find').oninput = () => {
    const text = $('find').value.toLowerCase();
    boxes.forEach((b, i) => b && b.g.classList.toggle('found',
        text !== '' && R.nodes[i].name.toLowerCase().includes(text)));
    const exact = R.nodes.findIndex(n => n.name.toLowerCase() === text);
    if (exact >= 0) { pin(exact); centre(exact); }
  };
  const middle = f => zoom(f, view.clientWidth / 2, view.clientHeight / 2);
  $('closer').onclick = () => middle(1.3);
  $('further').onclick = () => middle(1 / 1.3);
  $('fit').onclick = () => {
    $('follow').checked = false;
    fit();
  };
  $('fold').onclick = foldAll;
  R.frames.forEach((f, i) => {
    const name = $('t' + i);
    if (name) name.onclick = () => fold(i);
  });
  addEventListener('keydown', event => {
    if (event.target.id === 'find' || event.altKey || event.ctrlKey ||
        event.metaKey) return;
    const moves = {ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1),
                   ArrowDown: () => go(at + 1), ArrowUp: () => go(at - 1),
                   PageDown: () => go(at + 10), PageUp: () => go(at - 10),
                   Home: () => go(0), End: () => go(last),
                   ' ': () => play(!timer)};
    const move = moves[event.key];
    if (!move) return;
    if (event.key !== ' ') play(false);
    event.preventDefault();
    move();
  });
  view.addEventListener('wheel', event => {
    event.preventDefault();
    const r = view.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 500), event.clientX - r.left,
         event.clientY - r.top);
  }, {passive: false});
  let from = null;
  view.addEventListener('mousedown', event => {
    if (event.target.closest('button')) return;
    from = {x: event.clientX - camera.x, y: event.clientY - camera.y};
    view.classList.add('dragged');
    event.preventDefault();
  });
  addEventListener('mousemove', event => {
    if (!from) return;
    isFitted = false;
    camera.x = event.clientX - from.x;
    camera.y = event.clientY - from.y;
    applyCamera();
  });
  addEventListener('mouseup', () => {
    from = null;
    view.classList.remove('dragged');
  });
  addEventListener('resize', () => isFitted && fit());
  addEventListener('hashchange', () => go(stepOfHash()));
  legend();
  fit();
  $('legends').open = camera.k > 0.6;
  go(stepOfHash());
  // The whole of a large graph is only dots: begins where the run does.
  if (at === 0 && camera.k < 0.3 && last > 0) {
    const node = firstNode(R.steps.find(s => firstNode(s) !== undefined) || {});
    if (node !== undefined) centre(node);
  }
}

function stepOfHash() {
  const match = /step=(\d+)/.exec(location.hash);
  return match ? Number(match[1]) : 0;
}

start();

// The frames of the picture: the iterations that run in them, and folding;
// follows page_state.js.

// Frames whose insides are hidden. A click at a frame's name folds it.
const folded = new Set();

// The outermost folded frame around this one, which may be itself; 0: none.
function foldedAround(frame) {
  let around = 0;
  for (; frame > 0; frame = R.frames[frame].parent) {
    if (folded.has(frame)) around = frame;
  }
  return around;
}

const isHidden = node => foldedAround(R.nodes[node].frame) > 0;

// An edge from or to the inside of a folded frame stays.
function isEdgeHidden(edge) {
  const [from, , to] = R.edges[edge];
  const around = foldedAround(R.nodes[from].frame);
  return around > 0 && around === foldedAround(R.nodes[to].frame);
}

const isIn = (frame, outer) => {
  while (frame > 0 && frame !== outer) frame = R.frames[frame].parent;
  return frame === outer;
};

function show(element, isShown) {
  if (element) element.style.display = isShown ? '' : 'none';
}

function applyFolds() {
  boxes.forEach((b, i) => b && show(b.g, !isHidden(i)));
  paths.forEach((p, i) => p && show(p.g, !isEdgeHidden(i)));
  R.frames.forEach((f, i) => {
    const isShown = !foldedAround(f.parent);
    show($('f' + i), isShown);
    show($('t' + i), isShown);
  });
}

function fold(frame) {
  if (!folded.delete(frame)) folded.add(frame);
  applyFolds();
  go(at);
}

// Unfolds all frames, or folds them if none is.
function foldAll() {
  if (folded.size > 0) {
    folded.clear();
  } else {
    R.frames.forEach((f, i) => i > 0 && $('f' + i) && folded.add(i));
  }
  applyFolds();
  go(at);
}

// What happens in a folded frame, in the middle of its box.
function drawFolded(frame, live) {
  const b = $('f' + frame).getBBox();
  const nodes = R.nodes.filter(n => isIn(n.frame, frame)).length;
  let ready = 0, tokens = 0;
  for (const [scope, list] of state.ready) {
    if (isIn(R.instances[R.scopes[scope].instance].frame, frame)) {
      ready += list.length + state.moreReady.get(scope);
    }
  }
  for (const t of state.tokens.values()) {
    const node = t.place < 0 ? -1 - t.place : R.edges[t.place][2];
    if (isIn(R.nodes[node].frame, frame)) tokens++;
  }
  const lines = [counted(nodes, 'node')];
  if (live.length) lines.push(`${ready} ready, ${counted(tokens, 'token')}`);
  const text = svgElement('text', {class: 'folded',
                                   y: b.y + b.height / 2});
  lines.forEach((line, i) => text.append(svgElement('tspan', {
    x: b.x + b.width / 2, dy: i ? '1.4em' : 0}, line)));
  overlay.append(text);
}

function drawFrames() {
  R.frames.forEach((f, i) => {
    const g = $('f' + i);
    if (!g) return;
    const live = [...state.live].filter(
        s => R.instances[R.scopes[s].instance].frame === i);
    g.classList.toggle('live', live.length > 0);
    g.classList.toggle('closed', folded.has(i));
    g.querySelector('rect').style.stroke =
        live.length ? colourOf(live[live.length - 1]) : '';
    const text = $('t' + i);
    if (text.dataset.name === undefined) text.dataset.name = text.textContent;
    text.textContent = (folded.has(i) ? '▸ ' : '▾ ') + text.dataset.name +
        (live.length ? '  ·  iteration ' + live.slice(-5).map(
            s => R.scopes[s].iteration).join(', ') : '');
    if (folded.has(i) && !foldedAround(f.parent)) drawFolded(i, live);
  });
}

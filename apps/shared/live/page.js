'use strict';
// Pictures come by a WebSocket; rates are differences of two of them.
const $ = id => document.getElementById(id);
const socket = new WebSocket(
    `ws://${location.host}/live${location.search}`);
const folded = new Set();   // keys of frames
let before = null;          // the last picture
let rates = new Map();      // trips per second, smoothed
let watching = [];
let isOver = false;

// An element; text never becomes markup.
function make(tag, kind, ...content) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...content.filter(one => one !== null));
  return element;
}

const groups = new Intl.NumberFormat('en-US', {maximumFractionDigits: 0});
const count = number => groups.format(number).replaceAll(',', '\u2009');

function perSecond(rate) {
  if (rate === undefined) return '';
  if (rate >= 1e6) return `${(rate / 1e6).toFixed(2)} M/s`;
  if (rate >= 1e4) return `${(rate / 1e3).toFixed(1)} k/s`;
  return `${rate >= 100 ? count(rate) : rate.toFixed(1)} /s`;
}

function bytes(number) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (number >= 1024 && unit < 4) { number /= 1024; ++unit; }
  return `${unit === 0 ? number : number.toFixed(1)} ${units[unit]}`;
}

$('title').textContent = document.title;

const short = device => device.replace(/^.*\/device:/, '');
const send = wish => socket.readyState === 1 &&
    socket.send(JSON.stringify(wish));

function plural(number, word) {
  return `${count(number)} ${word}${number === 1 ? '' : 's'}`;
}

// --- Rates -------------------------------------------------------------------

// What counts up, by a key that stays from picture to picture.
function totals(picture) {
  const all = new Map();
  const add = (key, number) => all.set(key, (all.get(key) || 0) + number);
  for (const {task, view} of picture.parts) {
    if (!view) continue;
    for (const loop of view.loops)
      add(`loop ${task} ${loop.device} ${loop.name}`, loop.trips);
    view.devices.forEach((device, i) =>
        add(`device ${task} ${i}`, device.fired));
  }
  return all;
}

function followRates(picture) {
  const now = totals(picture);
  if (before) {
    const old = totals(before), passed = picture.seconds - before.seconds;
    for (const [key, number] of now) {
      if (!old.has(key) || passed <= 0 || number < old.get(key)) continue;
      const rate = (number - old.get(key)) / passed;
      const smooth = rates.get(key);
      rates.set(key, smooth === undefined || rate === 0 ? rate
                                                        : .6 * smooth + .4 * rate);
    }
  }
  // A part that was busy is missing for once: its rates stay.
  if (picture.parts.every(part => part.view)) before = picture;
}

// --- The boxes ---------------------------------------------------------------

function find() { return $('find').value.trim().toLowerCase(); }

function marked(text) {
  const wanted = find(), element = make('span', '', text);
  if (wanted && text.toLowerCase().includes(wanted)) {
    element.className = 'found';
    ++hits;
  }
  return element;
}
let hits = 0;

function items(iteration) {
  const rows = make('div', 'items');
  for (const node of iteration.nodes) {
    const name = make('div', 'name mono', marked(node.name));
    name.title = `${node.op}: watch its output`;
    name.onclick = () => watch(`${node.name}:0`);
    rows.append(name, make('div', 'soft', !node.runs
        ? `${node.op} waits for ${plural(node.missing, 'more input')}`
        : node.op === '_Recv' ? 'waits for another device' : `${node.op} runs`));
  }
  for (const token of iteration.tokens) {
    const where = token.input < 0 ? `${token.node} →`
                                  : `→ ${token.node}, input ${token.input}`;
    const value = make('div', 'mono', token.value);
    value.title = token.value;
    rows.append(make('div', 'mono soft', marked(where)), value);
  }
  const more = iteration.more_nodes + iteration.more_tokens;
  if (more) rows.append(make('div', 'soft', `and ${count(more)} more`));
  return rows;
}

function boxOfIteration(iteration, isRoot) {
  const box = make('div', iteration.stopped ? 'iteration held' : 'iteration');
  const head = make('div', 'counts');
  head.append(make('b', 'num', isRoot ? 'outside of loops'
                                      : `iteration ${count(iteration.number)}`));
  const cell = (number, word) => head.append(
      make('span', number && word !== 'fired' ? 'live' : '',
           `${count(number)} ${word}`));
  const {fired, waiting, running, untouched} = iteration;
  if (iteration.stopped) {
    head.append(make('span', 'live', 'held'));
  } else if (fired + waiting + running + untouched === 0) {
    // Its tokens are on their way.
    head.append(make('span', '', 'begins next'));
  } else {
    cell(fired, 'fired');
    cell(waiting, 'waiting');
    cell(running, 'running');
    cell(untouched, 'to come');
  }
  box.append(head);
  if (iteration.nodes.length + iteration.tokens.length > 0)
    box.append(items(iteration));
  return box;
}

// A frame that stays in its place keeps its key.
function boxOfFrame(task, view, frame, inside) {
  const key = `${task} ${frame.device} ${frame.tag}`;
  const isRoot = frame.name === '';
  const box = make('div', `frame${isRoot ? ' root' : ''}${
      folded.has(key) ? ' folded' : ''}`);
  box.dataset.key = key;
  const head = make('div', 'head');
  head.append(make('b', '', marked(isRoot ? 'root' : frame.name)));
  if (!isRoot) {
    const numbers = frame.iterations.map(one => one.number);
    const flight = numbers.length + frame.more_iterations;
    if (frame.tag !== frame.name) head.append(make('span', 'soft', frame.tag));
    head.append(make('span', 'num', `${flight} of ${frame.window} in flight`));
    if (numbers.length)
      head.append(make('span', 'num soft', `at iteration ${
          count(numbers[numbers.length - 1])}`));
    head.append(make('span', 'num', perSecond(
        rates.get(`loop ${task} ${frame.device} ${frame.name}`))));
  }
  head.append(make('span', 'soft', short(view.devices[frame.device].name)));
  head.onclick = () => {
    folded.has(key) ? folded.delete(key) : folded.add(key);
    box.classList.toggle('folded');
  };
  box.append(head);
  for (const iteration of frame.iterations)
    if (!isRoot || iteration.nodes.length + iteration.tokens.length > 0)
      box.append(boxOfIteration(iteration, isRoot));
  if (frame.more_iterations)
    box.append(make('div', 'soft',
                    `and ${plural(frame.more_iterations, 'more iteration')}`));
  box.append(...inside);
  return box;
}

function boxesOf({task, view}) {
  const boxes = task ? [make('div', 'task', task)] : [];
  if (!view) {
    boxes.push(make('p', 'none', 'busy: it has not come to rest in time'));
    return boxes;
  }
  // Parents come before their children.
  const children = view.frames.map(() => []), roots = [];
  for (let i = view.frames.length - 1; i >= 0; --i) {
    const frame = view.frames[i];
    const box = boxOfFrame(task, view, frame, children[i].reverse());
    (frame.parent < 0 ? roots : children[frame.parent]).push(box);
  }
  boxes.push(...roots.reverse());
  if (view.more_frames)
    boxes.push(make('p', 'soft',
                    `and ${plural(view.more_frames, 'more frame')}`));
  return boxes;
}

// --- The tables --------------------------------------------------------------

function rows(table, head, lines) {
  table.replaceChildren(
      make('tr', '', ...head.map(text => make('th', '', text))),
      ...lines.map(line => make('tr', '', ...line.map(text => {
        const cell = make('td', '', text);
        cell.title = text;
        return cell;
      }))));
}

function fill(name, text, share) {
  const box = make('div', 'fill',
                   make('div', 'what', make('span', '', name),
                        make('span', '', text)));
  if (share !== null) {
    const inner = make('i');
    inner.style.width = `${Math.min(100, 100 * share)}%`;
    box.append(make('div', 'track', inner));
  }
  return box;
}

// Lines that differ in their iterations alone are one.
function grouped(lines) {
  const same = new Map();
  for (const line of lines) {
    const kind = line.replaceAll(/\/\d+/g, (part, at, whole) =>
        whole.slice(0, at).endsWith('task:') ? part : '/*');
    const known = same.get(kind);
    same.set(kind, known ? {...known, more: known.more + 1} : {line, more: 0});
  }
  return [...same.values()].map(({line, more}) =>
      more ? `${line}; and so in ${plural(more, 'more iteration')}` : line);
}

function none(text) { return make('div', 'none', text); }

function drawTables(picture) {
  const devices = [], loops = [], waits = [];
  for (const {task, view} of picture.parts) {
    const of = name => task ? `${task} ${name}` : name;
    if (!view) continue;
    view.devices.forEach((device, i) => devices.push(
        [of(short(device.name)), count(device.fired),
         perSecond(rates.get(`device ${task} ${i}`))]));
    for (const loop of view.loops)
      loops.push([of(`${loop.name} on ${
                      short(view.devices[loop.device].name)}`),
                  count(loop.trips),
                  perSecond(rates.get(`loop ${task} ${loop.device} ${
                                      loop.name}`))]);
    for (const line of view.kernels) waits.push(of(line));
    for (const line of view.waits) waits.push(of(line));
  }
  rows($('devices'), ['device', 'nodes fired', 'rate'], devices);
  rows($('loops'), ['loop', 'trips', 'rate'], loops);
  $('waits').replaceChildren(...(waits.length
      ? grouped(waits).map(text => make('li', '', text))
      : [none('nobody')]));
  $('queues').replaceChildren(...(picture.queues.length
      ? picture.queues.map(queue => fill(
            queue.name + (queue.closed ? ' (closed)' : ''),
            queue.capacity ? `${count(queue.size)} of ${count(queue.capacity)}`
                           : plural(queue.size, 'element'),
            queue.capacity ? queue.size / queue.capacity : null))
      : [none('there is none')]));
  $('memory').replaceChildren(
      ...picture.memory.map(device => fill(
          short(device.device),
          device.limit > 0
              ? `${bytes(device.in_use)} of ${bytes(device.limit)}`
              : `${bytes(device.in_use)}, at most ${bytes(device.peak)}`,
          device.limit > 0 ? device.in_use / device.limit : null)),
      fill('this process', bytes(picture.process_bytes), null));
}

function drawFrameNames(picture) {
  const names = new Set(), nodes = new Set();
  for (const {view} of picture.parts) {
    if (!view) continue;
    for (const loop of view.loops) names.add(loop.name);
    for (const frame of view.frames)
      for (const iteration of frame.iterations)
        for (const node of iteration.nodes) nodes.add(`${node.name}:0`);
  }
  const known = new Set([...$('frame').options].map(option => option.value));
  for (const name of names)
    if (!known.has(name)) {
      const option = make('option', '', name);
      option.value = name;
      $('frame').append(option);
    }
  const listed = new Set([...$('nodes').options].map(option => option.value));
  for (const name of nodes)
    if (!listed.has(name) && listed.size < 1000) {
      const option = make('option');
      option.value = name;
      $('nodes').append(option);
    }
}

// --- Watched tensors ---------------------------------------------------------

function watch(tensor) {
  if (!watching.includes(tensor)) watching = [...watching, tensor];
  send({do: 'watch', tensors: watching});
}

function drawWatched(picture) {
  $('watching').hidden = !picture.can_watch;
  watching = picture.watched.map(one => one.tensor);
  $('watched').replaceChildren(...picture.watched.map(one => {
    const box = make('div', 'watched');
    const end = make('button', '', '×');
    end.title = 'watch it no more';
    end.onclick = () => send({do: 'watch', tensors: watching.filter(
        tensor => tensor !== one.tensor)});
    box.append(end, make('b', 'mono', one.tensor), make('div', 'soft',
        one.times ? `in ${one.tag}, computed ${plural(one.times, 'time')}`
                  : 'not computed yet'));
    if (one.times) box.append(make('div', 'mono', one.value));
    return box;
  }));
}

// --- The whole ---------------------------------------------------------------

function say(kind, text) {
  $('state').className = `pill ${kind}`;
  $('state').textContent = text;
}

function draw(picture) {
  if (picture.over) {
    isOver = true;
    say('', 'the run has ended');
    for (const button of document.querySelectorAll('header button'))
      button.disabled = true;
    return;
  }
  followRates(picture);
  const views = picture.parts.map(part => part.view).filter(view => view);
  const isStopped = views.some(view => view.stopped);
  if (!picture.running) say('', 'no run');
  else if (isStopped) say('stopped', 'held');
  else if (!views.length) say('running', 'busy');
  else say('running', 'running');
  // The parts of a loop on several devices make the same trips.
  const trips = new Map();
  for (const {task, view} of picture.parts)
    for (const {device, name} of view ? view.loops : [])
      trips.set(name, Math.max(trips.get(name) || 0,
                               rates.get(`loop ${task} ${device} ${name}`) || 0));
  const all = [...trips.values()].reduce((sum, rate) => sum + rate, 0);
  $('rate').textContent = picture.running
      ? `run ${views.length ? views[0].step : ''}, trips: ${perSecond(all)}`
      : '';
  if (picture.stop && !isStopped)
    $('rate').textContent += `, to stop ${
        picture.stop.frame ? `"${picture.stop.frame}"` : 'any loop'
        } at iteration ${count(picture.stop.iteration)}`;
  $('go').disabled = !picture.stop;
  $('next').disabled = !picture.stop;
  $('error').textContent = picture.error;
  hits = 0;
  if (views.length || !picture.running)
    $('frames').replaceChildren(...picture.parts.flatMap(boxesOf));
  $('found').textContent = find() ? plural(hits, 'place') : '';
  drawTables(picture);
  drawFrameNames(picture);
  drawWatched(picture);
  $('foot').textContent = `${plural(picture.viewers, 'viewer')}; a look took ${
      picture.look_ms.toFixed(2)} ms`;
}

socket.onmessage = message => draw(JSON.parse(message.data));
socket.onclose = () => {
  if (!isOver) say('lost', 'the run has gone');
};

// The frame of "next" is that of the stop, if the user has not chosen one.
const frame = () => $('frame').value;
$('pause').onclick = () => send({do: 'stop', frame: '', iteration: 0});
$('go').onclick = () => send({do: 'go'});
$('next').onclick = () => send({do: 'next', frame: frame()});
$('stop').onclick = () => send({do: 'stop', frame: frame(),
                                iteration: Number($('number').value) || 0});
$('watch').onsubmit = event => {
  event.preventDefault();
  const tensor = $('tensor').value.trim();
  if (tensor) watch(tensor.includes(':') ? tensor : `${tensor}:0`);
  $('tensor').value = '';
};
$('find').oninput = () => before && draw(before);
$('fold').onclick = () => {
  for (const box of document.querySelectorAll('.frame:not(.root)')) {
    folded.add(box.dataset.key);
    box.classList.add('folded');
  }
};
$('unfold').onclick = () => {
  folded.clear();
  for (const box of document.querySelectorAll('.frame'))
    box.classList.remove('folded');
};
document.onkeydown = event => {
  if (/INPUT|SELECT/.test(event.target.tagName)) return;
  const button = {p: 'pause', g: 'go', n: 'next'}[event.key];
  if (button) $(button).click();
};

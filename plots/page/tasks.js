/* One task: what is under the pointer, what is said of it, its messages, and searching. */

/* The task of a lane at a time; the nearest within `slack`. */
function taskAt(lane, time, slack) {
  if (!lane) return null;
  let best = null, distance = slack;
  for (let i = firstAbove(lane.reach, time - slack, 0, lane.n);
       i < lane.n && lane.start[i] <= time + slack; i++) {
    const far = Math.max(lane.start[i] - time, time - lane.end[i], 0);
    if (far <= distance && (far < distance || best === null || lane.start[i] >= lane.start[best])) {
      best = i;
      distance = far;
    }
  }
  return best === null ? null : lane.order[best];
}

function waitAt(run, row, time) {
  if (!run.waitsOf || !options.waits) return null;
  const i = firstAbove(run.all['waits/end'], time, run.waitsOf[row], run.waitsOf[row + 1]);
  return i < run.waitsOf[row + 1] && run.all['waits/start'][i] <= time ? i : null;
}

/* {row, task} or {row, wait} at a point of a timeline. */
function hitTimeline(panel, x, y) {
  const {run, layout} = panel, row = Math.floor((y - 2) / layout.height);
  if (row < 0 || row >= run.rows.length || x < LEFT || x > view.width - RIGHT) return null;
  const time = view.x.invert(x), slack = view.x.invert(x + 1.5) - time;
  const inSends = layout.sends && (y - 2) % layout.height >= layout.sendsAt - 0.5;
  const {computes, sends} = run.rows[row];
  const task = taskAt(inSends ? sends : computes, time, slack);
  return task !== null ? {row, task} : inSends ? {row} : {row, wait: waitAt(run, row, time)};
}

/* ---- words ---- */

function taskName(run, task) {
  const word = words(run.kinds[run.origin[task]].word);
  const number = numberOf(run, task);
  return number === NONE ? word : `${word} ${number}`;
}

/* [[name, value], ...] */
function describeTask(run, task) {
  const rows = [], add = (name, value) => rows.push([name, value]);
  if (run.peer[task] === NONE)
    add('device', rowName(run, run.device[task]));
  else
    add('from – to', `${rowName(run, run.device[task])} → ${rowName(run, run.peer[task])}`);
  if (run.stage[task] !== NONE) add('stage', run.stage[task]);
  if (run.mini_batch[task] !== NONE) add('mini-batch', run.mini_batch[task]);
  if (run.micro_batch[task] !== NONE && run.kinds[run.origin[task]].word !== 'update')
    add('micro-batch', run.micro_batch[task]);
  add('start', exactTime(run.start[task]));
  add('end', exactTime(run.end[task]));
  add('duration', exactTime(run.end[task] - run.start[task]));
  if (run.version.has(task)) add('weights', `version ${run.version.get(task)}`);
  if (run.bytes[task] > 0) {
    add('size', formatBytes(run.bytes[task]));
    add('mean rate', formatRate(run.bytes[task] / (run.end[task] - run.start[task]) * 1e12));
  }
  add('task', `#${task}`);
  return rows;
}

const CAUSE_WORDS = {
  dependency: 'waits for what is computed elsewhere',
  flush: 'waits for the end of the mini-batch',
  messages: 'waits for messages',
  collectives: 'waits for collectives'
};
const CAUSE_NAMES = {
  dependency: 'waiting for others',
  flush: 'waiting for flush',
  messages: 'waiting for messages',
  collectives: 'waiting for collectives'
};

const causeWords = word => CAUSE_WORDS[word] || words(word);
const causeName = word => CAUSE_NAMES[word] || words(word);

function describeWait(run, row, wait) {
  const start = run.all['waits/start'][wait], end = run.all['waits/end'][wait];
  return [
    ['device', rowName(run, row)], ['start', exactTime(start)], ['end', exactTime(end)],
    ['duration', exactTime(end - start)]
  ];
}

/* ---- messages of a task ---- */

/* Of a task's micro-batch: the last message from each device that arrived before it started, and
 * the first one to each device that left after it ended, with nothing else of the micro-batch on
 * this device in between. The results file has no edges; these are the messages that the task read
 * and sent. */
function messagesOf(run, task) {
  const {row, before, after} = neighbours(run, task), arrived = new Map(), left = new Map();
  for (const lane of run.lanes) {
    if (!lane.sends) continue;
    for (let i = 0; i < lane.n; i++) {
      const message = lane.order[i];
      if (run.mini_batch[message] !== run.mini_batch[task] ||
          run.micro_batch[message] !== run.micro_batch[task])
        continue;
      if (run.peer[message] === row && run.end[message] <= run.start[task] &&
          run.end[message] > before)
        arrived.set(lane.row, message);
      if (lane.row === row && run.start[message] >= run.end[task] && run.start[message] < after &&
          !left.has(run.peer[message]))
        left.set(run.peer[message], message);
    }
  }
  return [...arrived.values(), ...left.values()].slice(0, 64);
}

/* When the micro-batch's task before this one on its device started, and when the next one starts.
 */
function neighbours(run, task) {
  const row = run.device[task], {computes} = run.rows[row];
  let before = -1, after = Infinity;
  for (let i = 0; i < computes.n; i++) {
    const other = computes.order[i];
    if (other === task || run.mini_batch[other] !== run.mini_batch[task] ||
        run.micro_batch[other] !== run.micro_batch[task])
      continue;
    if (run.end[other] <= run.start[task])
      before = Math.max(before, run.start[other]);
    else if (run.start[other] >= run.end[task])
      after = Math.min(after, run.end[other]);
  }
  return {row, before, after};
}

/* ---- the box beside the pointer ---- */

const tip = element('div', {id: 'tip', role: 'tooltip', hidden: true});

function fillTip(colour, title, rows, note) {
  const list = element(
      'dl', null,
      rows.map(([name, value]) => [element('dt', null, name), element('dd', null, `${value}`)]));
  tip.replaceChildren(
      element('p', {class: 'title'}, swatch(colour.fill, colour.pattern), title), list);
  if (note) tip.append(element('p', {class: 'note'}, note));
}

function placeTip(x, y) {
  tip.hidden = false;
  const {width, height} = tip.getBoundingClientRect();
  const left = x + 18 + width > window.innerWidth ? Math.max(4, x - width - 14) : x + 18;
  tip.style.left = `${left}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, window.innerHeight - height - 6))}px`;
}

function tipOfTask(run, task) {
  fillTip({fill: run.palette[run.origin[task]].fill}, taskName(run, task), describeTask(run, task));
  tip.dataset.task = task;
}

function tipOfWait(run, row, wait) {
  const {word} = run.causes[run.all['waits/cause'][wait]];
  fillTip({pattern: hatchImage(word)}, causeWords(word), describeWait(run, row, wait));
  delete tip.dataset.task;
}

function hideTip() {
  tip.hidden = true;
  let changed = false;
  for (const {run} of view.panels)
    if (run && run.hovered !== undefined && run.hovered !== null) {
      run.hovered = null;
      changed = true;
    }
  if (changed) invalidate();
}

function hoverTimeline(panel, event, x, y) {
  const hit = hitTimeline(panel, x, y), {run} = panel;
  const task = hit && hit.task !== undefined ? hit.task : null;
  if (run.hovered !== task) {
    run.hovered = task;
    invalidate();
  }
  if (task !== null)
    tipOfTask(run, task);
  else if (hit && hit.wait !== undefined && hit.wait !== null)
    tipOfWait(run, hit.row, hit.wait);
  else {
    tip.hidden = true;
    return;
  }
  placeTip(event.clientX, event.clientY);
}

/* ---- searching ---- */

const search = {
  run: null,
  found: [],
  at: -1
};

/* "forward 3, stage 2", "#17", "all_reduce", "device 1": every part must hold. */
function parseQuery(run, text) {
  return text.toLowerCase()
      .split(/[,;]/)
      .map(part => part.trim())
      .filter(part => part)
      .map(part => {
        const id = part.match(/^#(\d+)$/), pair = part.match(/^([a-z _-]*?)\s*(\d+)$/);
        if (id) return task => task === Number(id[1]);
        if (!pair) return kindTest(run, part);
        const name = pair[1].trim().replace(/[ -]/g, '_'), number = Number(pair[2]);
        const columns = {
          stage: 'stage',
          device: 'device',
          gpu: 'device',
          mini_batch: 'mini_batch',
          micro_batch: 'micro_batch',
          to: 'peer'
        };
        if (columns[name]) return task => run[columns[name]][task] === number;
        const kind = name ? kindTest(run, name) : () => true;
        return task => kind(task) && numberOf(run, task) === number;
      });
}

function kindTest(run, text) {
  const word = text.replace(/[ -]/g, '_');
  const exact = run.kinds.some(kind => kind.word === word);
  const kinds = run.kinds.map(
      kind => exact ?
          kind.word === word :
          kind.word.startsWith(word) || (LETTERS[kind.word] || '').toLowerCase() === word);
  return task => kinds[run.origin[task]];
}

function findTasks(run, text) {
  const tests = parseQuery(run, text), found = [];
  if (tests.length === 0) return found;
  for (let task = 0; task < run.start.length; task++)
    if (run.start[task] >= 0 && tests.every(test => test(task))) found.push(task);
  return found.sort((a, b) => run.start[a] - run.start[b] || a - b);
}

function searchFor(runs, text) {
  search.at = -1;
  search.found = [];
  for (const run of runs) {
    search.run = run;
    search.found = findTasks(run, text);
    if (search.found.length > 0) break;
  }
  if (search.found.length > 0)
    stepSearch(1);
  else
    sayFound(text.trim() ? 'no task found' : '');
  invalidate();
}

const sayFound = text => {
  document.getElementById('found').textContent = text;
};

function stepSearch(by) {
  const {run, found} = search;
  if (found.length === 0) return;
  search.at = (search.at + by + found.length) % found.length;
  const task = found[search.at];
  sayFound(`${search.at + 1} of ${formatCount(found.length)}`);
  mark(run, task);
}

/* Brings a task into view, outlined, and says what it is. */
function mark(run, task) {
  run.marked = task;
  const [from, until] = span(), long = run.end[task] - run.start[task];
  if (run.start[task] < from || run.end[task] > until || long < (until - from) / 400) {
    const wide = Math.max(long * 12, (until - from) > long * 400 ? long * 40 : until - from);
    const middle = (run.start[task] + run.end[task]) / 2;
    show(middle - wide / 2, middle + wide / 2);
  }
  invalidate();
  document.getElementById('said').textContent = `${taskName(run, task)}: ` +
      describeTask(run, task).map(([name, value]) => `${name} ${value}`).join(', ');
}

/* To the neighbour on the device, or to what the device above or below does meanwhile. */
function walk(by, rows) {
  const {run} = view.panels.find(panel => panel.run && panel.run.marked >= 0) ||
      view.panels.find(panel => panel.run) || {};
  if (!run) return;
  if (!(run.marked >= 0)) return mark(run, run.rows.find(row => row.computes).computes.order[0]);
  const row = Math.max(0, Math.min(run.rows.length - 1, run.device[run.marked] + rows)),
        {computes} = run.rows[row];
  if (!computes) return;
  const i = rows ?
      Math.max(0, firstAbove(computes.start, run.start[run.marked], 0, computes.n) - 1) :
      computes.order.indexOf(run.marked) + by;
  mark(run, computes.order[Math.max(0, Math.min(computes.n - 1, i))]);
}

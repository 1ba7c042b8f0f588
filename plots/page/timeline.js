/* What each device does when: a lane of what it computes, and a thinner one of what it sends. */

/* What is shown besides the tasks. */
const options = {path: false, waits: true, messages: true};

function rowHeight(nRows) {
  for (const [most, height] of [[4, 46], [8, 36], [16, 28], [32, 20], [64, 15], [128, 11], [512, 8]])
    if (nRows <= most) return height;
  return Math.max(3, Math.floor(12000 / nRows));
}

/* Places of a row's lanes, in points from its top. */
function layoutOf(run) {
  const height = rowHeight(run.rows.length), gap = height >= 15 ? 3 : height >= 8 ? 1 : 0;
  const sends = run.lanes.some(lane => lane.sends) ? Math.max(1, Math.round((height - gap) * 0.26)) : 0;
  const split = sends && height >= 11 ? 1 : 0;
  return {height, compute: height - gap - sends - split, sendsAt: height - gap - sends, sends};
}

function timelinePanel(run, canvas) {
  const layout = layoutOf(run);
  const panel = {run, canvas, layout, height: run.rows.length * layout.height + 4, kind: 'timeline'};
  panel.draw = pen => drawTimeline(panel, pen);
  return panel;
}

function laneBox(panel, lane) {
  const {height, compute, sendsAt, sends} = panel.layout, top = 2 + lane.row * height;
  return lane.sends ? {top: top + sendsAt, high: sends} : {top, high: compute};
}

function drawTimeline(panel, pen) {
  const {run, height} = panel;
  run.palette = run.palette || palette(run.kinds);
  drawRows(panel, pen);
  clipped(pen, height, () => {
    drawGrid(pen, height);
    if (options.waits) drawWaits(panel, pen);
    drawLanes(panel, pen);
    drawEnd(panel, pen);
    drawOom(panel, pen);
    if (options.path) drawPath(panel, pen);
    drawFound(panel, pen);
    drawMarked(panel, pen);
  });
}

/* ---- rows ---- */

const rowName = (run, row) => `${run.rows[row].name.match(/[-(,]/) ? 'GPUs' : 'GPU'} ${run.rows[row].name}`;

function drawRows(panel, pen) {
  const {run, layout} = panel, every = Math.ceil(11 / layout.height);
  pen.textAlign = 'right';
  run.rows.forEach((row, r) => {
    const top = 2 + r * layout.height;
    pen.fillStyle = ink.lane;
    pen.fillRect(LEFT, top, view.width - LEFT - RIGHT, layout.compute);
    if (r === run.chosen) {
      pen.fillStyle = ink.accent;
      pen.fillRect(LEFT - 5, top, 3, layout.compute);
    }
    if (r % every && r !== run.chosen) return;
    pen.fillStyle = r === run.chosen ? ink.text : ink.soft;
    pen.fillText(rowName(run, r), LEFT - 12, top + layout.compute / 2, LEFT - 16);
  });
}

/* ---- tasks ---- */

/* The level whose bins are as fine as pixels; null where none is: then tasks are few. */
function levelFor(run, lane, pixel) {
  return lane.levelAt.find(level => run.makespan / level.bins <= pixel) || null;
}

/* A lane with more tasks in view is drawn pixel by pixel. */
const MOST_BOXES = 160;

function drawLanes(panel, pen) {
  const {run} = panel, [from, until] = span(), dense = [];
  const pixel = (until - from) / ((view.width - LEFT - RIGHT) * view.scale);
  for (const lane of run.lanes) {
    const first = firstAbove(lane.reach, from, 0, lane.n), last = firstAbove(lane.start, until, first, lane.n);
    const level = last - first > MOST_BOXES ? levelFor(run, lane, pixel) : null;
    if (last - first > MOST_BOXES) dense.push({lane, level, first, last});
    else drawBoxes(panel, pen, lane, first, last);
  }
  if (dense.length > 0) drawDense(panel, pen, dense);
}

/* Lanes with more tasks than one can see become a row of pixels each, which are stretched. */
function drawDense(panel, pen, dense) {
  const width = Math.ceil((view.width - LEFT - RIGHT) * view.scale);
  const strip = panel.strip = panel.strip || document.createElement('canvas');
  if (strip.width !== width || strip.height < dense.length) Object.assign(strip, {width, height: dense.length});
  const stripPen = strip.getContext('2d'), image = stripPen.createImageData(width, dense.length);
  const pixels = new Uint32Array(image.data.buffer), shades = shadesOf(panel.run);
  dense.forEach(({lane, level, first, last}, i) => {
    const row = pixels.subarray(i * width, (i + 1) * width);
    if (level) fillFromBins(panel.run, level, row, shades);
    else fillFromTasks(panel.run, lane, first, last, row, shades);
  });
  stripPen.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  dense.forEach(({lane}, i) => {
    const {top, high} = laneBox(panel, lane);
    pen.drawImage(strip, 0, i, width, 1, LEFT, top, width / view.scale, high);
  });
}

/* 256 colours of each kind, by the share of a pixel that it takes: what is not taken shows what lies
 * below. */
function shadesOf(run) {
  return run.palette.map(({fill}) => {
    const [r, g, b] = rgb(fill);
    return Uint32Array.from({length: 256}, (_, share) => (Math.round(255 * Math.sqrt(share / 255)) << 24 | b << 16 | g << 8 | r) >>> 0);
  });
}

function fillFromBins(run, level, row, shades) {
  const [from, until] = span(), width = row.length;
  const step = (until - from) / width * level.bins / run.makespan, origin = from * level.bins / run.makespan;
  for (let px = 0; px < width; px++) {
    const first = Math.floor(origin + px * step), last = Math.min(level.bins, Math.max(first + 1, Math.floor(origin + (px + 1) * step)));
    let most = 0, kind = 0, sum = 0;
    for (let bin = first; bin < last; bin++) {
      const share = run.binShare[level.at + bin];
      sum += share;
      if (share > most) { most = share; kind = run.binKind[level.at + bin]; }
    }
    if (sum > 0) row[px] = shades[kind][Math.round(sum / (last - first))];
  }
}

function fillFromTasks(run, lane, first, last, row, shades) {
  const [from, until] = span(), scale = row.length / (until - from);
  for (let i = first; i < last; i++) {
    const left = Math.max(0, Math.floor((lane.start[i] - from) * scale));
    const right = Math.min(row.length, Math.ceil((lane.end[i] - from) * scale));
    const colour = shades[run.origin[lane.order[i]]][255];
    for (let px = left; px < right; px++) row[px] = colour;
  }
}

/* A second stage of a device, or every second mini-batch, is lighter, as in pictures. */
function shadeOf(run, task) {
  if (run.nChunks > 1) return (run.chunks[run.device[task]].get(run.stage[task]) || 0) % 2;
  return run.mini_batches > 1 ? run.mini_batch[task] % 2 : 0;
}

function drawBoxes(panel, pen, lane, first, last) {
  const {run} = panel, {top, high} = laneBox(panel, lane), lines = high >= 8;
  for (let i = first; i < last; i++) {
    const task = lane.order[i], look = run.palette[run.origin[task]];
    const left = Math.max(LEFT - 4, view.x(lane.start[i])), right = Math.min(view.width, view.x(lane.end[i]));
    const wide = Math.max(right - left, 0.6);
    pen.fillStyle = look.shade[lane.sends ? 0 : shadeOf(run, task)];
    pen.fillRect(left, top, lines && wide > 4 ? wide - 0.75 : wide, high);
    if (high >= 9 && wide > 11 && !lane.sends) drawLabel(pen, run, task, left, wide, top + high / 2, look);
  }
}

/* "F 3" of a forward of micro-batch 3; "3" where there is less room. */
const LETTERS = {forward: 'F', backward: 'B', backward_input: 'BI', backward_weight: 'BW', recompute: 'R', update: 'U'};

function numberOf(run, task) {
  return run.micro_batches > 1 && run.micro_batch[task] !== NONE && run.kinds[run.origin[task]].word !== 'update'
    ? run.micro_batch[task] : run.mini_batch[task];
}

function drawLabel(pen, run, task, left, wide, middle, look) {
  const number = `${numberOf(run, task)}`, word = run.kinds[run.origin[task]].word;
  const long = `${LETTERS[word] || word} ${number}`;
  const text = wide > 8 + long.length * 6.4 ? long : wide > 3 + number.length * 6.4 ? number : '';
  if (!text) return;
  pen.fillStyle = inkOn(look.shade[shadeOf(run, task)]);
  pen.textAlign = 'center';
  pen.fillText(text, left + wide / 2, middle + 0.5);
}

/* ---- what lies below and above ---- */

function hatchPattern(pen, run, cause) {
  run.hatches = run.hatches || {};
  const key = `${cause}@${view.scale}`;
  if (!run.hatches[key]) {
    run.hatches[key] = pen.createPattern(hatchTile(run.causes[cause].word, view.scale), 'repeat');
    run.hatches[key].setTransform(new DOMMatrix().scale(1 / view.scale));
  }
  return run.hatches[key];
}

function drawWaits(panel, pen) {
  const {run, layout} = panel, [from, until] = span();
  if (!run.waitsOf) return;
  const start = run.all['waits/start'], end = run.all['waits/end'], cause = run.all['waits/cause'];
  for (let row = 0; row < run.rows.length; row++) {
    const top = 2 + row * layout.height;
    for (let i = firstAbove(end, from, run.waitsOf[row], run.waitsOf[row + 1]); i < run.waitsOf[row + 1] && start[i] < until; i++) {
      const left = Math.max(LEFT, view.x(start[i])), right = Math.min(view.width, view.x(end[i]));
      if (right - left < 0.8) continue;
      pen.fillStyle = hatchPattern(pen, run, cause[i]);
      pen.fillRect(left, top, right - left, layout.compute);
    }
  }
}

/* Where this run is over and another is not. */
function drawEnd(panel, pen) {
  const {run, height} = panel;
  if (run.makespan >= view.until) return;
  const x = view.x(run.makespan);
  pen.fillStyle = ink.panel;
  pen.fillRect(x, 0, view.width - x, height);
  pen.fillStyle = ink.soft;
  pen.fillRect(x, 0, 1, height);
  pen.textAlign = 'left';
  const text = `ends at ${formatTime(run.makespan)}`;
  if (height > 16 && pen.measureText(text).width + 14 < view.width - RIGHT - x) pen.fillText(text, x + 7, height / 2);
}

function drawOom(panel, pen) {
  const {run, layout} = panel;
  run.rows.forEach((row, r) => {
    if (row.oom_time === null) return;
    const x = view.x(Math.max(0, row.oom_time)), top = 2 + r * layout.height;
    pen.fillStyle = ink.bad;
    pen.fillRect(x - 1, top, 2, layout.compute);
    if (layout.compute >= 14) drawFlag(pen, '✕ out of memory', x, top + layout.compute / 2);
  });
}

/* Words beside a line, on a ground of their own. */
function drawFlag(pen, text, x, middle) {
  const wide = pen.measureText(text).width + 10;
  pen.fillStyle = ink.bad;
  pen.fillRect(x, middle - 8, wide, 16);
  pen.fillStyle = ink.panel;
  pen.textAlign = 'left';
  pen.fillText(text, x + 5, middle + 0.5);
}

function pathPoints(panel) {
  const {run, layout} = panel, [from, until] = span(), points = [];
  const start = run.all['critical_path/start'], end = run.all['critical_path/end'], task = run.all['critical_path/task'];
  const y = t => { const row = run.device[t]; return 2 + row * layout.height + (run.peer[t] === NONE ? layout.compute - 1.5 : layout.sendsAt + layout.sends / 2); };
  for (let i = Math.max(0, firstAbove(end, from, 0, end.length) - 1); i < start.length; i++) {
    if (task[i] === NONE) continue;
    points.push({from: view.x(start[i]), to: view.x(end[i]), y: y(task[i])});
    if (start[i] > until) break;
  }
  return points;
}

function drawPath(panel, pen) {
  const points = pathPoints(panel);
  for (const [colour, width] of [[ink.panel, 5], [ink.path, 2.4]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.lineJoin = 'round';
    pen.beginPath();
    points.forEach(({from, to, y}, i) => {
      if (i === 0) pen.moveTo(from, y);
      else pen.lineTo(from, y);
      pen.lineTo(to, y);
    });
    pen.stroke();
  }
  pen.lineWidth = 1;
}

/* ---- one task, and what was searched for ---- */

function taskBox(panel, task) {
  const {run} = panel, lane = {row: run.device[task], sends: run.peer[task] !== NONE};
  const left = view.x(run.start[task]), right = view.x(run.end[task]);
  return {left, wide: Math.max(right - left, 2), ...laneBox(panel, lane)};
}

function outline(panel, pen, task, colour, width) {
  const {left, wide, top, high} = taskBox(panel, task);
  pen.lineWidth = width;
  pen.strokeStyle = colour;
  pen.strokeRect(left - 0.5, top - 0.5, wide + 0.5, high + 1);
  pen.lineWidth = 1;
}

function drawFound(panel, pen) {
  if (search.run !== panel.run || search.found.length === 0) return;
  const [from, until] = span();
  let drawn = 0;
  pen.fillStyle = ink.panel + '99';
  pen.fillRect(LEFT, 0, view.width, panel.height);
  for (const task of search.found) {
    if (panel.run.end[task] < from || panel.run.start[task] > until || drawn++ > 4000) continue;
    const {left, wide, top, high} = taskBox(panel, task);
    pen.fillStyle = panel.run.palette[panel.run.origin[task]].fill;
    pen.fillRect(left, top, wide, high);
    if (drawn < 400) outline(panel, pen, task, ink.text, 1);
  }
}

function drawMarked(panel, pen) {
  const {run} = panel;
  for (const task of new Set([run.marked, run.hovered])) {
    if (task === undefined || task === null) continue;
    if (options.messages) drawMessages(panel, pen, task);
    outline(panel, pen, task, ink.panel, 4);
    outline(panel, pen, task, ink.text, 2);
  }
}

/* An arrow from sender to receiver: it leaves when the message starts and arrives when it ends. */
function drawArrow(panel, pen, message) {
  const {run, layout} = panel, middle = row => 2 + row * layout.height + layout.compute / 2;
  const x0 = view.x(run.start[message]), x1 = view.x(run.end[message]);
  const y0 = middle(run.device[message]), y1 = middle(run.peer[message]);
  const angle = Math.atan2(y1 - y0, x1 - x0);
  for (const [colour, width] of [[ink.panel, 4.5], [ink.text, 1.6]]) {
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
    pen.moveTo(x1 - 9 * Math.cos(angle - 0.4), y1 - 9 * Math.sin(angle - 0.4));
    pen.lineTo(x1, y1);
    pen.lineTo(x1 - 9 * Math.cos(angle + 0.4), y1 - 9 * Math.sin(angle + 0.4));
    pen.stroke();
  }
  pen.lineWidth = 1;
}

function drawMessages(panel, pen, task) {
  const {run} = panel;
  if (run.messagesOf !== task) {
    run.messagesOf = task;
    run.messages = run.peer[task] === NONE ? messagesOf(run, task) : [task];
  }
  run.messages.forEach(message => drawArrow(panel, pen, message));
}

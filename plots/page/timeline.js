/* What each device does when: a lane of what it computes, and a thinner one of what it sends. */

/* What is shown besides the tasks. */
const options = {
  path: false,
  waits: true,
  messages: true
};

function rowHeight(nRows) {
  for (const [most, height] of [
           [4, 46], [8, 36], [16, 28], [32, 20], [64, 15], [128, 11], [512, 8], [1024, 5]])
    if (nRows <= most) return height;
  return 3;
}

/* Places of a row's lanes, in points from its top. */
function layoutOf(run) {
  const height = rowHeight(run.rows.length), gap = height >= 15 ? 3 : height >= 8 ? 1 : 0;
  const sends =
      run.lanes.some(lane => lane.sends) ? Math.max(1, Math.round((height - gap) * 0.26)) : 0;
  const split = sends && height >= 11 ? 1 : 0;
  return {height, compute: height - gap - sends - split, sendsAt: height - gap - sends, sends};
}

function timelinePanel(run, canvas) {
  const layout = layoutOf(run);
  const panel =
      {run, canvas, layout, height: run.rows.length * layout.height + 4, kind: 'timeline'};
  panel.draw = pen => drawTimeline(panel, pen);
  return panel;
}

function laneBox(panel, lane) {
  const {height, compute, sendsAt, sends} = panel.layout, top = 2 + lane.row * height;
  return lane.sends ? {top: top + sendsAt, high: sends} : {top, high: compute};
}

/* Rows outside of the window wait until they are scrolled to. */
function rowInWindow(panel, row) {
  const top = 2 + row * panel.layout.height;
  return top + panel.layout.height > panel.shown[0] && top < panel.shown[1];
}

function drawTimeline(panel, pen) {
  const {run, height} = panel;
  panel.shown = shownPart(panel);
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

const isSeveral = (run, row) => /[-(,]/.test(run.rows[row].name);

const rowName = (run, row) =>
    `${isSeveral(run, row) ? 'GPUs' : 'GPU'} ${run.rows[row].name}`;

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

/* The level of which several bins are in a pixel; null where there is none: then tasks are few. */
function levelFor(run, lane, pixel) {
  return lane.levelAt.find(level => run.makespan / level.bins <= pixel / 3) || null;
}

/* A lane with more tasks in view is drawn pixel by pixel. */
const MOST_BOXES = 160;

function drawLanes(panel, pen) {
  const {run} = panel, [from, until] = span(), dense = [];
  const pixel = (until - from) / ((view.width - LEFT - RIGHT) * view.scale);
  for (const lane of run.lanes) {
    if (!rowInWindow(panel, lane.row)) continue;
    const first = firstAbove(lane.reach, from, 0, lane.n),
          last = firstAbove(lane.start, until, first, lane.n);
    const level = last - first > MOST_BOXES ? levelFor(run, lane, pixel) : null;
    if (last - first > MOST_BOXES)
      dense.push({lane, level, first, last});
    else
      drawBoxes(panel, pen, lane, first, last);
  }
  if (dense.length > 0) drawDense(panel, pen, dense);
}

/* Lanes with more tasks than one can see: in each column of pixels the heights of the colours are
 * the shares of its time, in the order of the legend, so that what alternates quickly is not told
 * by chance. */
function drawDense(panel, pen, dense) {
  const width = Math.ceil((view.width - LEFT - RIGHT) * view.scale), {run} = panel,
        strips = dense.map(({lane}) => laneBox(panel, lane));
  const tall = strips.map(({high}) => Math.max(1, Math.round(high * view.scale))),
        height = tall.reduce((a, b) => a + b);
  const canvas = panel.strip = panel.strip || document.createElement('canvas');
  if (canvas.width !== width || canvas.height < height) Object.assign(canvas, {width, height});
  const canvasPen = canvas.getContext('2d'), image = canvasPen.createImageData(width, height),
        pixels = new Uint32Array(image.data.buffer);
  let at = 0;
  dense.forEach((part, i) => {
    const shares = new Float32Array(width * part.lane.used.length);
    if (part.level)
      sharesOfBins(run, part, width, shares);
    else
      sharesOfTasks(run, part, width, shares);
    fillColumns(
        shares, pixelColours(run, part.lane), pixels.subarray(at * width, (at + tall[i]) * width),
        width, tall[i]);
    at += tall[i];
  });
  canvasPen.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  at = 0;
  strips.forEach(({top, high}, i) => {
    pen.drawImage(canvas, 0, at, width, tall[i], LEFT, top, width / view.scale, high);
    at += tall[i];
  });
}

/* Of the lane's kinds, as they stand in the memory of an image. */
function pixelColours(run, lane) {
  return Uint32Array.from(lane.used, kind => {
    const [r, g, b] = rgb(run.palette[kind].fill);
    return (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  });
}

/* Shares of the lane's first kind for each column of pixels, then those of the second, ... */
function sharesOfBins(run, {lane, level}, width, shares) {
  const [from, until] = span(), kinds = run.binKind.subarray(level.at, level.at + level.bins),
               taken = run.binShare.subarray(level.at, level.at + level.bins);
  const step = (until - from) / width * level.bins / run.makespan,
        origin = from * level.bins / run.makespan;
  for (let px = 0; px < width; px++) {
    const first = Math.floor(origin + px * step),
          last = Math.min(level.bins, Math.max(first + 1, Math.floor(origin + (px + 1) * step)));
    const each = 1 / (255 * (last - first));
    for (let bin = first; bin < last; bin++)
      if (taken[bin] > 0) shares[lane.place[kinds[bin]] * width + px] += taken[bin] * each;
  }
}

function sharesOfTasks(run, {lane, first, last}, width, shares) {
  const [from, until] = span(), scale = width / (until - from);
  for (let i = first; i < last; i++) {
    const at = lane.place[run.origin[lane.order[i]]] * width,
          end = Math.min(width, (lane.end[i] - from) * scale);
    for (let now = Math.max(0, (lane.start[i] - from) * scale); now < end;) {
      const px = Math.floor(now), next = Math.min(end, px + 1);
      shares[at + px] += next - now;
      now = next;
    }
  }
}

/* From below: the first kind, the next, ...; what is idle shows what lies behind. What takes any
 * time is one pixel high at least. */
function fillColumns(shares, colours, pixels, width, tall) {
  const below = new Float32Array(width), sums = new Float32Array(width);
  for (let k = 0; k < colours.length; k++)
    for (let px = 0; px < width; px++) sums[px] += shares[k * width + px];
  for (let k = 0; k < colours.length; k++) {
    for (let px = 0; px < width; px++) {
      const share = shares[k * width + px];
      if (share === 0) continue;
      const from = below[px], until = from + share * tall / Math.max(1, sums[px]);
      const last = Math.min(tall, Math.max(Math.round(until), from === 0 ? 1 : 0));
      for (let row = Math.round(from); row < last; row++)
        pixels[(tall - 1 - row) * width + px] = colours[k];
      below[px] = until;
    }
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
    const left = Math.max(LEFT - 4, view.x(lane.start[i])),
          right = Math.min(view.width, view.x(lane.end[i]));
    const wide = Math.max(right - left, 0.6);
    pen.fillStyle = look.shade[lane.sends ? 0 : shadeOf(run, task)];
    pen.fillRect(left, top, lines && wide > 4 ? wide - 0.75 : wide, high);
    if (high >= 9 && wide > 11 && !lane.sends)
      drawLabel(pen, run, task, left, wide, top + high / 2, look);
  }
}

/* "F 3" of a forward of micro-batch 3; "3" where there is less room. */
const LETTERS = {
  forward: 'F',
  backward: 'B',
  backward_input: 'BI',
  backward_weight: 'BW',
  recompute: 'R',
  update: 'U'
};

function numberOf(run, task) {
  return run.micro_batches > 1 && run.micro_batch[task] !== NONE &&
          run.kinds[run.origin[task]].word !== 'update' ?
      run.micro_batch[task] :
      run.mini_batch[task];
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
  const {run} = panel;
  if (!run.waitsOf) return;
  for (let row = 0; row < run.rows.length; row++)
    if (rowInWindow(panel, row)) drawRowWaits(panel, pen, row);
}

/* Stretches of one cause with less than a pixel or two between them are drawn as one: the tasks in
 * between are drawn above it. */
function drawRowWaits(panel, pen, row) {
  const {run, layout} = panel, [from, until] = span(), top = 2 + row * layout.height;
  const start = run.all['waits/start'], end = run.all['waits/end'], cause = run.all['waits/cause'];
  const last = run.waitsOf[row + 1], near = 1.5 * (until - from) / (view.width - LEFT - RIGHT);
  for (let i = firstAbove(end, from, run.waitsOf[row], last); i < last && start[i] < until;) {
    const first = i;
    for (i++; i < last && cause[i] === cause[first] && start[i] - end[i - 1] < near;) i++;
    const left = Math.max(LEFT, view.x(start[first]));
    const right = Math.min(view.width, view.x(end[i - 1]));
    if (right - left < 0.8) continue;
    pen.fillStyle = hatchPattern(pen, run, cause[first]);
    pen.fillRect(left, top, right - left, layout.compute);
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
  if (height > 16 && pen.measureText(text).width + 14 < view.width - RIGHT - x)
    pen.fillText(text, x + 7, height / 2);
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

/* Words beside a line, on a ground of their own: to the right of it where there is room. */
function drawFlag(pen, text, x, middle) {
  const wide = pen.measureText(text).width + 10;
  const left = x + wide < view.width - RIGHT ? x : x - wide;
  pen.fillStyle = ink.bad;
  pen.fillRect(left, middle - 8, wide, 16);
  pen.fillStyle = ink.panel;
  pen.textAlign = 'left';
  pen.fillText(text, left + 5, middle + 0.5);
}

function pathPoints(panel) {
  const {run, layout} = panel, [from, until] = span(), points = [];
  const start = run.all['critical_path/start'], end = run.all['critical_path/end'],
        task = run.all['critical_path/task'];
  const y = t => {
    const row = run.device[t];
    return 2 + row * layout.height +
        (run.peer[t] === NONE ? layout.compute - 1.5 : layout.sendsAt + layout.sends / 2);
  };
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
      if (i === 0)
        pen.moveTo(from, y);
      else
        pen.lineTo(from, y);
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

/* What the memory of one device, or the mean device, holds over time, by category, below the timeline.
 */

const MEMORY_HEIGHT = 168, MEAN = -1; /* as run.chosen */

function memoryPanel(run, canvas) {
  const panel = {run, canvas, height: MEMORY_HEIGHT, kind: 'memory'};
  panel.draw = pen => drawMemory(panel, pen);
  return panel;
}

function fullestRow(run) {
  return run.rows.reduce((best, row, r) => row.peak > run.rows[best].peak ? r : best, 0);
}

/* The row's memory after each instant at which it changed: times[i], and levels[i * n + category];
 * sums[i] over all categories. */
function readMemory(run, row) {
  const n = run.categories.length, times = [], sums = [], levels = [], live = new Float64Array(n);
  const time = run.all['memory/time'], bytes = run.all['memory/bytes'],
        category = run.all['memory/category'];
  let sum = 0;
  for (let i = run.memoryOf[row]; i < run.memoryOf[row + 1]; i++) {
    sum += bytes[i] - live[category[i]];
    live[category[i]] = bytes[i];
    if (i + 1 < run.memoryOf[row + 1] && time[i + 1] === time[i]) continue;
    times.push(time[i]);
    sums.push(sum);
    for (let c = 0; c < n; c++) levels.push(live[c]);
  }
  const used = run.categories.map((_, c) => c)
                   .filter(c => levels.some((level, at) => at % n === c && level > 0));
  return {
    row,
    n,
    times: Float64Array.from(times),
    sums: Float64Array.from(sums),
    levels: Float64Array.from(levels),
    used
  };
}

/* The same of the mean over all devices; fullest[i] is the most that any of them holds. Bytes are
 * summed up as whole numbers, so that nothing is lost on the way. */
function readMean(run) {
  const n = run.categories.length, {rows} = run, time = run.all['memory/time'],
        bytes = run.all['memory/bytes'], category = run.all['memory/category'],
        device = run.all['memory/device'];
  const order = Uint32Array.from(time.keys()).sort((a, b) => time[a] - time[b] || a - b);
  const live = new Float64Array(rows.length * n), held = new Float64Array(rows.length),
        sum = new Float64Array(n), times = [], sums = [], levels = [], most = [];
  const devices = rows.reduce((all, row) => all + row.devices, 0);
  let fullest = 0, lower = false; /* the fullest row; whether it was, and now holds less */
  order.forEach((i, at) => {
    const row = device[i], place = row * n + category[i], more = bytes[i] - live[place];
    live[place] = bytes[i];
    sum[category[i]] += more * rows[row].devices;
    held[row] += more;
    if (held[row] > held[fullest]) fullest = row;
    lower ||= row === fullest && more < 0;
    if (at + 1 < order.length && time[order[at + 1]] === time[i]) return;
    if (lower) fullest = held.reduce((best, value, r) => value > held[best] ? r : best, 0);
    lower = false;
    times.push(time[i]);
    for (const all of sum) levels.push(all / devices);
    sums.push(sum.reduce((a, b) => a + b, 0) / devices);
    most.push(held[fullest]);
  });
  const used = run.categories.map((_, c) => c)
                   .filter(c => levels.some((level, at) => level > 0 && at % n === c));
  return {
    row: MEAN,
    n,
    times: Float64Array.from(times),
    sums: Float64Array.from(sums),
    levels: Float64Array.from(levels),
    fullest: Float64Array.from(most),
    used
  };
}

function memoryOf(run) {
  if (!run.memory || run.memory.row !== run.chosen)
    run.memory = run.chosen === MEAN ? readMean(run) : readMemory(run, run.chosen);
  return run.memory;
}

/* What is said of the device that is chosen, or of the mean. */
function chosenRow(run) {
  if (run.chosen !== MEAN) return run.rows[run.chosen];
  const memory = memoryOf(run), {sums, times, levels, n} = memory;
  const at = sums.reduce((best, sum, i) => sum > sums[best] ? i : best, 0),
        capacities = new Set(run.rows.map(row => row.capacity));
  memory.mean ||= {
    capacity: capacities.size === 1 ? run.rows[0].capacity : null,
    peak: sums[at] || 0,
    peak_time: times[at] || 0,
    highest: memory.fullest.reduce((a, b) => Math.max(a, b), 0),
    at_peak: Object.fromEntries(run.categories.map((c, i) => [c.word, levels[at * n + i]]))
  };
  return memory.mean;
}

const chosenName = run =>
    run.chosen === MEAN ? 'the mean over the devices' : rowName(run, run.chosen);

/* [{x, peak, last}]: from point x on the state `last` holds; in the first pixel the highest one is
 * drawn. */
function memorySteps(memory) {
  const [from, until] = span(), steps = [], {times, sums} = memory;
  for (let i = Math.max(0, firstAbove(times, from, 0, times.length) - 1);
       i < times.length && times[i] <= until; i++) {
    const x = Math.floor(Math.max(LEFT, view.x(times[i])) * view.scale) / view.scale,
          before = steps[steps.length - 1];
    if (!before || before.x !== x)
      steps.push({x, peak: i, last: i});
    else {
      before.last = i;
      if (sums[i] > sums[before.peak]) before.peak = i;
    }
  }
  return steps;
}

function memoryScale(run, height) {
  const row = chosenRow(run), {capacity} = row, peak = row.highest || row.peak;
  const most = capacity !== null && capacity < 2.5 * peak ? Math.max(capacity * 1.06, peak * 1.05) :
                                                            peak * 1.08;
  return d3.scaleLinear().domain([0, most || 1]).range([height - 5, 16]);
}

function drawMemory(panel, pen) {
  const {run, height} = panel, memory = memoryOf(run), y = memoryScale(run, height);
  drawBytesAxis(pen, y);
  clipped(pen, height, () => {
    drawGrid(pen, height);
    drawStack(pen, run, memory, y);
    if (memory.fullest) drawFullest(pen, run, memory, y);
    drawCapacity(pen, run, y);
    drawPeak(pen, run, y);
    drawEnd(panel, pen);
  });
  if (memory.times.length > 0) return;
  pen.fillStyle = ink.soft;
  pen.textAlign = 'left';
  pen.fillText(
      chosenRow(run).peak > 0 ? 'the run did not record memory over time' :
                                'no memory in use: weights and activations have no size',
      LEFT + 10, height / 2);
}

function drawBytesAxis(pen, y) {
  const [size, name] = unitOf(BYTE_UNITS, y.domain()[1]);
  const scale = d3.scaleLinear().domain([0, y.domain()[1] / size]), text = scale.tickFormat(4);
  pen.textAlign = 'right';
  pen.strokeStyle = ink.faint;
  pen.fillStyle = ink.soft;
  pen.beginPath();
  for (const tick of scale.ticks(4)) {
    const at = Math.round(y(tick * size)) + 0.5;
    pen.fillText(tick === 0 ? `0 ${name}` : text(tick), LEFT - 12, at);
    pen.moveTo(LEFT, at);
    pen.lineTo(view.width - RIGHT, at);
  }
  pen.stroke();
}

function drawStack(pen, run, memory, y) {
  const steps = memorySteps(memory), colours = palette(run.categories),
        right = view.x(run.makespan);
  const below = new Float64Array(memory.times.length);
  for (const category of memory.used) {
    const level = i => memory.levels[i * memory.n + category];
    const box = (i, x, wide) => {
      const top = y(below[i] + level(i));
      pen.fillRect(x, top, wide, y(below[i]) - top);
    };
    pen.fillStyle = colours[category].fill;
    steps.forEach(({x, peak, last}, s) => {
      const next = s + 1 < steps.length ? steps[s + 1].x : right,
            first = Math.min(next - x, 1 / view.scale);
      if (peak !== last) box(peak, x, first);
      box(last, peak !== last ? x + first : x, next - x - (peak !== last ? first : 0));
    });
    for (const {peak, last} of steps) {
      below[last] += level(last);
      if (peak !== last) below[peak] += level(peak);
    }
  }
}

/* A thin line: what the fullest device holds. */
function drawFullest(pen, run, memory, y) {
  const steps = memorySteps(memory);
  pen.strokeStyle = ink.text;
  pen.beginPath();
  steps.forEach(({x, peak, last}, s) => {
    const next = s + 1 < steps.length ? steps[s + 1].x : view.x(run.makespan);
    pen.lineTo(x, y(Math.max(memory.fullest[peak], memory.fullest[last])));
    pen.lineTo(next, y(memory.fullest[last]));
  });
  pen.stroke();
}

function drawCapacity(pen, run, y) {
  const {capacity} = chosenRow(run);
  if (capacity === null || capacity > y.domain()[1]) return;
  const at = Math.round(y(capacity)) + 0.5;
  pen.strokeStyle = pen.fillStyle = ink.bad;
  pen.setLineDash([6, 4]);
  pen.beginPath();
  pen.moveTo(LEFT, at);
  pen.lineTo(view.width - RIGHT, at);
  pen.stroke();
  pen.setLineDash([]);
  /* on the side on which the peak is not */
  const toLeft = view.x(chosenRow(run).peak_time) > (LEFT + view.width - RIGHT) / 2;
  pen.textAlign = toLeft ? 'left' : 'right';
  const x = toLeft ? LEFT + 6 : view.width - RIGHT - 6;
  haloText(pen, `capacity ${formatBytes(capacity)}`, x, at - 8);
}

function haloText(pen, text, x, y) {
  const colour = pen.fillStyle;
  pen.lineWidth = 3;
  pen.strokeStyle = ink.panel;
  pen.strokeText(text, x, y);
  pen.fillStyle = colour;
  pen.fillText(text, x, y);
  pen.lineWidth = 1;
}

function drawPeak(pen, run, y) {
  const {peak, peak_time: time} = chosenRow(run), x = view.x(time);
  if (peak <= 0) return;
  pen.fillStyle = ink.text;
  pen.beginPath();
  pen.moveTo(x, y(peak) - 1);
  pen.lineTo(x - 4, y(peak) - 7);
  pen.lineTo(x + 4, y(peak) - 7);
  pen.fill();
  const room = view.width - RIGHT - x > 150;
  pen.textAlign = room ? 'left' : 'right';
  haloText(pen, `peak ${formatBytes(peak)}`, x + (room ? 8 : -8), y(peak) - 6);
}

/* ---- in words ---- */

function hoverMemory(panel, event, x) {
  const {run} = panel, memory = memoryOf(run), time = view.x.invert(x);
  const i = firstAbove(memory.times, time, 0, memory.times.length) - 1;
  if (x < LEFT || x > view.width - RIGHT || i < 0 || time > run.makespan) {
    tip.hidden = true;
    return;
  }
  const rows =
      memory.used
          .map(
              c => [words(run.categories[c].word), formatBytes(memory.levels[i * memory.n + c], 5)])
          .reverse();
  fillTip(
      {fill: ink.soft}, `${sentence(chosenName(run))}: ${formatBytes(memory.sums[i], 5)}`,
      [
        ...rows,
        ...(memory.fullest ? [['fullest device', formatBytes(memory.fullest[i], 5)]] : []),
        ['since', exactTime(memory.times[i])]
      ]);
  delete tip.dataset.task;
  tip.dataset.bytes = memory.sums[i];
  placeTip(event.clientX, event.clientY);
}

/* "GPU 0 holds 1.745 GB at its peak, at 32.63 ms: 5.08 % of its capacity." */
function peakWords(run) {
  const {peak, peak_time: time, capacity} = chosenRow(run), r = run.chosen;
  if (r === MEAN)
    return `On average a device holds ${formatBytes(peak)} at the peak of the mean, at ${formatTime(time)}.`;
  const who = isSeveral(run, r) ? `Each of ${rowName(run, r)}` : rowName(run, r);
  if (peak === 0) return `${who} holds nothing: weights and activations have no size.`;
  const share = capacity === null ? '' :
      peak > capacity             ? `: more than its capacity of ${formatBytes(capacity)}` :
                                    `: ${formatPercent(peak / capacity)} of its capacity`;
  return `${who} holds ${formatBytes(peak)} at its peak, at ${formatTime(time)}${share}.`;
}

/* What the peak of the chosen device is made of. */
function peakTable(run) {
  const row = chosenRow(run), colours = palette(run.categories);
  const parts = run.categories
                    .map((category, c) => ({
                           word: category.word,
                           colour: colours[c].fill,
                           bytes: (row.at_peak || {})[category.word] || 0
                         }))
                    .filter(part => part.bytes > 0)
                    .sort((a, b) => b.bytes - a.bytes);
  const bar = element(
      'div', {
        class: 'bar',
        role: 'img',
        'aria-label':
            parts.map(p => `${words(p.word)} ${formatPercent(p.bytes / row.peak)}`).join(', ')
      },
      parts.map(part => barPart(part.bytes / row.peak, part.colour, words(part.word))));
  const lead = element('p', {class: 'lead'}, peakWords(run));
  if (parts.length === 0) return element('div', {class: 'peak'}, lead);
  return element(
      'div', {class: 'peak'}, lead, bar,
      table(
          `Memory of ${chosenName(run)} at its peak`,
          [{title: 'category'}, {title: 'bytes', number: true}, {title: 'share', number: true}],
          parts.map(
              part => [
                  [swatch(part.colour), words(part.word)], formatBytes(part.bytes),
                  formatPercent(part.bytes / row.peak)])));
}

function barPart(share, background, title) {
  const part = element('span', {title: `${title}: ${formatPercent(share)}`});
  part.style.flexGrow = share;
  part.style.background = background;
  return part;
}

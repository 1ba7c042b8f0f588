/* What the memory of one device holds over time, by category, below the timeline. */

const MEMORY_HEIGHT = 168;

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

function memoryOf(run) {
  if (!run.memory || run.memory.row !== run.chosen) run.memory = readMemory(run, run.chosen);
  return run.memory;
}

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
  const row = run.rows[run.chosen], {capacity, peak} = row;
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
    drawCapacity(pen, run, y);
    drawPeak(pen, run, y);
    drawEnd(panel, pen);
  });
  if (memory.times.length > 0) return;
  pen.fillStyle = ink.soft;
  pen.textAlign = 'left';
  pen.fillText('the run did not record memory', LEFT + 10, height / 2);
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

function drawCapacity(pen, run, y) {
  const {capacity} = run.rows[run.chosen];
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
  const toLeft = view.x(run.rows[run.chosen].peak_time) > (LEFT + view.width - RIGHT) / 2;
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
  const {peak, peak_time: time} = run.rows[run.chosen], x = view.x(time);
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
      {fill: ink.soft}, `${rowName(run, run.chosen)}: ${formatBytes(memory.sums[i], 5)}`,
      [...rows, ['since', exactTime(memory.times[i])]]);
  delete tip.dataset.task;
  tip.dataset.bytes = memory.sums[i];
  placeTip(event.clientX, event.clientY);
}

/* "GPU 0 holds 1.745 GB at its peak, at 32.63 ms: 5.08 % of its capacity." */
function peakWords(run, r) {
  const {peak, peak_time: time, capacity} = run.rows[r];
  const who = isSeveral(run, r) ? `Each of ${rowName(run, r)}` : rowName(run, r);
  const share = capacity === null ? '' :
      peak > capacity             ? `: more than its capacity of ${formatBytes(capacity)}` :
                                    `: ${formatPercent(peak / capacity)} of its capacity`;
  return `${who} holds ${formatBytes(peak)} at its peak, at ${formatTime(time)}${share}.`;
}

/* What the peak of the chosen device is made of. */
function peakTable(run) {
  const row = run.rows[run.chosen], colours = palette(run.categories);
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
  return element(
      'div', {class: 'peak'}, element('p', {class: 'lead'}, peakWords(run, run.chosen)),
      bar,
      table(
          `Memory of ${rowName(run, run.chosen)} at its peak`,
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

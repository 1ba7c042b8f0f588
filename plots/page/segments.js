/* PyTorch's allocator: what a device reserved and allocated over the two rounds that were played, and
 * what its segments held at the peak, or when an allocation failed. */

const SEGMENTS = {
  row: 16,
  gap: 4,
  most: 16,
  panel: 150
};

const ofDevice = device => /[-(,]/.test(device.name) ? `GPUs ${device.name.replace('-', '–')}` :
                                                       `GPU ${device.name}`;

const MOMENTS = ['at the peak of reserved memory', 'when an allocation failed'];

/* The blocks of a device at a moment, with `from`, the bytes that stand before each: the segments of
 * the large pool first, the largest first; [{at, segment: {bytes, blocks, first}}]. */
function readHeld(run, device, moment) {
  const all = name => run.all[`blocks/${name}`], segments = new Map();
  for (let i = 0; i < all('device').length; i++) {
    if (all('device')[i] !== device || all('moment')[i] !== moment) continue;
    const address = all('segment_address')[i];
    const segment = segments.get(address) ||
        {address, bytes: 0, free: 0, small: all('pool')[i], stream: all('stream')[i], blocks: []};
    segment.bytes += all('bytes')[i];
    if (all('state')[i] === 0) segment.free += all('bytes')[i];
    segment.blocks.push(i);
    segments.set(address, segment);
  }
  const ordered = [...segments.values()].sort(
      (a, b) => a.small - b.small || b.bytes - a.bytes || a.address - b.address);
  let bytes = 0;
  const blocks = ordered.flatMap(segment => segment.blocks.map((at, i) => {
    const block = {at, segment, begins: i === 0, from: bytes};
    bytes += all('bytes')[at];
    return block;
  }));
  return {blocks, bytes, segments: ordered.length};
}

/* 1, 2, 5, 10, ... bytes in a row, so that there are not too many rows. */
function rowBytes(bytes) {
  const least = Math.max(1, bytes / SEGMENTS.most), power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find(digit => digit * power >= least);
}

/* ---- drawing ---- */

function holdColours(run) {
  return [...palette(run.holds.slice(0, -1)).map(look => look.fill), null];
}

function rowsPanel(of, canvas) {
  const panel = {canvas, fixed: true};
  panel.layOut = () => {
    panel.inRow = rowBytes(of.held.bytes);
    panel.rows = Math.max(1, Math.ceil(of.held.bytes / panel.inRow));
    panel.height = panel.rows * (SEGMENTS.row + SEGMENTS.gap) + 6;
  };
  panel.layOut();
  panel.draw = pen => drawHeld(of, panel, pen);
  return panel;
}

const rowTop = row => 3 + row * (SEGMENTS.row + SEGMENTS.gap);

function drawHeld(of, panel, pen) {
  const {run, held} = of, colours = holdColours(run), {inRow} = panel;
  const scale = (view.width - LEFT - RIGHT) / inRow;
  const hole = pen.createPattern(hatchTile('dependency', 1), 'repeat');
  pen.fillStyle = ink.soft;
  pen.textAlign = 'right';
  for (let row = 0; row < panel.rows; row++)
    pen.fillText(
        row === 0 ? '0 B' : formatBytes(row * inRow), LEFT - 12, rowTop(row) + SEGMENTS.row / 2);
  for (const {at, from} of held.blocks) {
    pen.fillStyle = colours[run.all['blocks/category'][at]] || hole;
    fillBytes(pen, from, from + run.all['blocks/bytes'][at], inRow, scale);
  }
  let before = -Infinity;
  pen.fillStyle = ink.text;
  for (const {begins, from} of held.blocks) {
    if (!begins || (from - before) * scale < 3) continue;
    const row = Math.floor(from / inRow);
    pen.fillRect(LEFT + (from - row * inRow) * scale - 0.5, rowTop(row) - 2, 1, SEGMENTS.row + 4);
    before = from;
  }
}

/* From a byte to another one, over as many rows as they take. */
function fillBytes(pen, from, until, inRow, scale) {
  for (let row = Math.floor(from / inRow); row * inRow < until; row++) {
    const left = Math.max(from - row * inRow, 0), right = Math.min(until - row * inRow, inRow);
    pen.fillRect(LEFT + left * scale, rowTop(row), (right - left) * scale, SEGMENTS.row);
  }
}

/* [first, end) of the samples of a device. */
function samplesOf(run, device) {
  const of = run.all['reserved/device'], first = of.indexOf(device), last = of.lastIndexOf(device);
  return [first, last + 1];
}

function timePanel(of, canvas) {
  const panel = {canvas, fixed: true, height: SEGMENTS.panel};
  panel.draw = pen => drawReserved(of, panel, pen);
  return panel;
}

function reservedScales({run, device}) {
  const most = device.peak_reserved, {capacity} = device;
  const top = capacity !== null && capacity < 2 * most ? Math.max(capacity, most) * 1.08 : most * 1.12;
  const x = d3.scaleLinear().domain([0, 2 * run.makespan || 1]).range([LEFT, view.width - RIGHT]);
  const y = d3.scaleLinear().domain([0, top || 1]).range([SEGMENTS.panel - 24, 8]);
  return {x, y};
}

function drawReserved(of, panel, pen) {
  const {run, device} = of, {x, y} = reservedScales(of), [first, end] = samplesOf(run, device.device);
  const right = view.width - RIGHT, column = name => run.all[`reserved/${name}`];
  drawBytesAxis(pen, y);
  drawRounds(run, pen, x);
  const area = (most, then) => {
    pen.beginPath();
    let last = 0;
    pen.moveTo(LEFT, y(0));
    for (let i = first; i < end; i++) {
      const at = x(column('time')[i]);
      pen.lineTo(at, y(last));
      pen.lineTo(at, y(column(most)[i]));
      last = column(then)[i];
      pen.lineTo(at, y(last));
    }
    pen.lineTo(right, y(last));
  };
  area('most_allocated', 'allocated');
  pen.lineTo(right, y(0));
  pen.fillStyle = shown('#56b4e9');
  pen.globalAlpha = 0.55;
  pen.fill();
  pen.globalAlpha = 1;
  area('most_reserved', 'reserved');
  pen.strokeStyle = ink.text;
  pen.lineWidth = 1.5;
  pen.stroke();
  pen.lineWidth = 1;
  markReserved(of, pen, x, y);
}

/* The axis of time, and where the second round begins. */
function drawRounds(run, pen, x) {
  const {unit, ticks} = ticksOf(x, view.width - LEFT - RIGHT);
  pen.textAlign = 'center';
  pen.fillStyle = ink.soft;
  for (const {at, text} of ticks) pen.fillText(text, x(at), SEGMENTS.panel - 10);
  pen.textAlign = 'right';
  pen.fillText(`time (${unit})`, LEFT - 34, SEGMENTS.panel - 10);
  pen.strokeStyle = ink.line;
  pen.setLineDash([2, 3]);
  pen.beginPath();
  pen.moveTo(Math.round(x(run.makespan)) + 0.5, 8);
  pen.lineTo(Math.round(x(run.makespan)) + 0.5, SEGMENTS.panel - 24);
  pen.stroke();
  pen.setLineDash([]);
}

function markReserved({device}, pen, x, y) {
  const {capacity} = device;
  if (capacity !== null && capacity < y.domain()[1]) {
    pen.strokeStyle = ink.bad;
    pen.setLineDash([6, 4]);
    pen.beginPath();
    pen.moveTo(LEFT, y(capacity));
    pen.lineTo(view.width - RIGHT, y(capacity));
    pen.stroke();
    pen.setLineDash([]);
  }
  const failed = device.failures > 0, at = failed ? device.failed_time : device.peak_time;
  const near = x(at) > view.width - RIGHT - 190;
  pen.fillStyle = failed ? ink.bad : ink.text;
  pen.textAlign = near ? 'right' : 'left';
  haloText(
      pen,
      failed ? `✕ ${formatBytes(device.failed_bytes)} failed` :
               `◆ peak ${formatBytes(device.peak_reserved)}`,
      x(at) + (near ? 4 : -4), y(device.peak_reserved) + 14);
}

/* ---- in words ---- */

function blockTip(of, {at, segment}) {
  const {run} = of, all = name => run.all[`blocks/${name}`][at], free = all('state') === 0;
  const task = all('task'), category = run.holds[all('category')];
  const rows = [['block', formatBytes(all('bytes'), 6)]];
  if (!free) {
    rows.push(['asked for', formatBytes(all('requested'), 6)]);
    rows.push(['by', task === NONE ? 'what is there from the start' : taskName(run, task)]);
  }
  if (task !== NONE && run.stage[task] !== NONE) rows.push(['stage', run.stage[task]]);
  rows.push(
      ['segment', formatBytes(segment.bytes, 6)], ['free in it', formatBytes(segment.free, 6)],
      ['pool', `${segment.small ? 'small' : 'large'}${segment.stream ? ', gathered weights' : ''}`]);
  fillTip(
      {fill: free ? ink.lane : holdColours(run)[all('category')]},
      free                 ? 'free' :
          all('state') === 2 ? `${words(category.word)}, freed, still in use by another stream` :
                             words(category.word),
      rows);
  tip.dataset.bytes = all('bytes');
  delete tip.dataset.task;
}

function hoverHeld(of, panel, event) {
  const box = panel.canvas.getBoundingClientRect(), x = event.clientX - box.left,
        y = event.clientY - box.top, row = Math.floor((y - 3) / (SEGMENTS.row + SEGMENTS.gap));
  const at = (row + (x - LEFT) / (view.width - LEFT - RIGHT)) * panel.inRow;
  const inside = x >= LEFT && x < view.width - RIGHT && row >= 0 && at < of.held.bytes;
  tip.hidden = true;
  if (!inside || event.buttons) return;
  const {blocks} = of.held, next = firstAbove(blocks.map(block => block.from), at, 0, blocks.length);
  blockTip(of, blocks[next - 1]);
  placeTip(event.clientX, event.clientY);
}

function hoverReserved(of, panel, event) {
  const {run, device} = of, {x} = reservedScales(of), box = panel.canvas.getBoundingClientRect();
  const time = x.invert(event.clientX - box.left), [first, end] = samplesOf(run, device.device);
  const i = firstAbove(run.all['reserved/time'], time, first, end) - 1;
  tip.hidden = true;
  if (i < first || time > 2 * run.makespan || time < 0) return;
  const bytes = name => run.all[`reserved/${name}`][i], since = run.all['reserved/time'][i];
  fillTip({fill: shown('#56b4e9')}, `allocated ${formatBytes(bytes('allocated'), 5)}`, [
    ['reserved', formatBytes(bytes('reserved'), 5)],
    ['at most', `${formatBytes(bytes('most_allocated'), 5)} allocated, ${
                    formatBytes(bytes('most_reserved'), 5)} reserved`],
    ['since', exactTime(since % run.makespan)], ['round', since < run.makespan ? 'first' : 'second']
  ]);
  tip.dataset.bytes = bytes('allocated');
  delete tip.dataset.task;
  placeTip(event.clientX, event.clientY);
}

/* "GPU 0 reserves 64.54 GB at its peak, in the second round; 63.48 GB are allocated at most." */
function segmentWords({run, device, held, moment}) {
  const each = /[-(,]/.test(device.name) ? `Each of ${ofDevice(device)}` : ofDevice(device);
  const round = device.peak_time < run.makespan ? 'first' : 'second';
  const task = device.failed_task === null ? 'what is there from the start' :
                                             taskName(run, device.failed_task);
  const failure = device.failures === 0 ?
      '' :
      ` An allocation of ${formatBytes(device.failed_bytes)} for ${task} failed: of the ${
          formatBytes(device.failed_free)} that were free in blocks of its pool, the largest had ${
          formatBytes(device.failed_largest)}.`;
  return `${each} reserves ${formatBytes(device.peak_reserved)} at its peak, in the ${
      round} round; ${formatBytes(device.peak_allocated)} are allocated at most.${failure} ${formatCount(held.segments)} segments ${MOMENTS[moment]}:`;
}

/* What the blocks hold, by category; last what is free. */
function heldTable({run, device, held, moment}) {
  const colours = holdColours(run), parts = run.holds.map(() => ({bytes: 0, n: 0, most: 0}));
  for (const {at} of held.blocks) {
    const part = parts[run.all['blocks/category'][at]], bytes = run.all['blocks/bytes'][at];
    part.bytes += bytes;
    part.n++;
    part.most = Math.max(part.most, bytes);
  }
  const name = c => c + 1 === parts.length ? 'free' : words(run.holds[c].word);
  const mark = c => swatch(colours[c], c + 1 === parts.length ? hatchImage('dependency') : null);
  return table(
      `Segments of ${ofDevice(device)} ${MOMENTS[moment]}`,
      [
        {title: 'held for'}, {title: 'bytes', number: true}, {title: 'share', number: true},
        {title: 'blocks', number: true}, {title: 'largest', number: true}
      ],
      parts.map((part, c) => ({...part, c})).filter(part => part.n > 0).map(
          ({bytes, n, most, c}) => [
              [mark(c), name(c)], formatBytes(bytes), formatPercent(bytes / held.bytes),
              formatCount(n), formatBytes(most)]));
}

/* ---- the section ---- */

/* The device on which an allocation failed first, or else the fullest. */
function firstShown(run) {
  const devices = run.allocator, failed = devices.find(device => device.failures > 0);
  return failed || devices.reduce((a, b) => b.peak_reserved > a.peak_reserved ? b : a);
}

function chooseHeld(of, device, moment) {
  of.device = device;
  of.moment = device.failures > 0 ? moment : 0;
  of.held = readHeld(of.run, device.device, of.moment);
}

function segmentControls(of, changed) {
  const {run} = of, moment = element('select', {
    'aria-label': 'Moment at which segments are shown',
    change: () => changed(of.device, Number(moment.value))
  }, MOMENTS.map((text, m) => element('option', {value: m, selected: m === of.moment}, text)));
  const devices = element(
      'select', {
        'aria-label': 'Device whose segments are shown',
        change: () => changed(run.allocator[devices.value], 1)
      },
      run.allocator.map(
          (device, d) => element(
              'option', {value: d, selected: device === of.device},
              `${ofDevice(device)} · reserved ${formatBytes(device.peak_reserved)}`)));
  of.moments = moment;
  of.who = element('span', {class: 'on-paper'});
  return element(
      'div', {class: 'panel-head'}, element('h3', null, 'Segments of'), devices, of.who, moment);
}

function segmentParts(run) {
  if (!run.allocator || run.allocator.length === 0)
    return element(
        'p', {class: 'quiet'}, 'This run was made without the allocator (--allocator pytorch).');
  const of = {run}, said = element('p', {class: 'lead'}), parts = element('div', {class: 'held'});
  chooseHeld(of, firstShown(run), 1);
  const canvas = label => element('canvas', {role: 'img', class: 'fixed', 'aria-label': label});
  const panels = [
    timePanel(of, canvas('Reserved and allocated memory over two rounds; the text says the peaks')),
    rowsPanel(of, canvas('What each segment holds; the table below has the sums'))
  ];
  const fill = () => {
    said.textContent = segmentWords(of);
    of.moments.hidden = of.device.failures === 0;
    of.moments.value = of.moment;
    of.who.textContent = ofDevice(of.device);
    parts.replaceChildren(heldTable(of));
  };
  const controls = segmentControls(of, (device, moment) => {
    chooseHeld(of, device, moment);
    panels[1].layOut();
    fill();
    for (const panel of panels) panel.draw(penOf(panel));
  });
  view.panels.push(...panels);
  run.segments = {of, panels};
  themeListeners.push(fill);
  fill();
  panels[0].canvas.addEventListener('mousemove', event => hoverReserved(of, panels[0], event));
  panels[1].canvas.addEventListener('mousemove', event => hoverHeld(of, panels[1], event));
  for (const panel of panels) panel.canvas.addEventListener('mouseleave', hideTip);
  return [controls, panels[0].canvas, said, panels[1].canvas, parts];
}

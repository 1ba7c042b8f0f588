/* Which weights were used: how many versions each stage keeps, and how old those are that backwards
 * read. The gradient delay is made - 1 - backward_oldest updates. */

function readStaleness(run) {
  const column = name => run.all[`staleness/${name}`], slots = run.all['weights/stage'].length;
  const made = column('made'), backward = column('backward_oldest'), batch = column('mini_batch'),
        slot = column('slot');
  const delays = [];
  for (let i = 0; i < made.length; i++)
    if (made[i] !== NONE && backward[i] !== NONE)
      delays.push({batch: batch[i], slot: slot[i], delay: made[i] - 1 - backward[i]});
  return {slots, delays, most: Math.max(0, ...delays.map(d => d.delay)), batches: run.mini_batches};
}

/* The largest delay of each slot, a row each. */
function versionTable(run, staleness) {
  const largest = new Array(staleness.slots).fill(null);
  for (const {slot, delay} of staleness.delays) largest[slot] = Math.max(largest[slot] ?? 0, delay);
  const column = name => run.all[`weights/${name}`];
  const rows = [...largest.keys()].slice(0, 256).map(
      slot =>
          [`${column('stage')[slot]}`, rowName(run, column('device')[slot]),
           formatCount(column('versions_made')[slot]), formatCount(column('peak_versions')[slot]),
           largest[slot] === null ? '–' : `${largest[slot]}`]);
  return table(
      `Versions of weights of ${run.name}`,
      [
        {title: 'stage'}, {title: 'device'}, {title: 'versions made', number: true},
        {title: 'most alive at once', number: true}, {title: 'largest gradient delay', number: true}
      ],
      rows);
}

/* A grid, a column per mini-batch and a row per slot, with the delay as colour and as number. */
function stalenessGrid(run, staleness) {
  const {batches, slots, most, delays} = staleness,
                               cell = Math.max(4, Math.min(26, Math.floor(900 / batches)));
  const left = 78, canvas = element('canvas', {
                     role: 'img',
                     'aria-label': `Gradient delay by stage and mini-batch, at most ${most} updates`
                   });
  const draw = () => {
    const scale = Math.max(2, window.devicePixelRatio || 1), width = left + batches * cell + 4,
          height = slots * cell + 26;
    Object.assign(canvas, {width: width * scale, height: height * scale});
    canvas.style.width = `${width}px`;
    const pen = canvas.getContext('2d');
    pen.scale(scale, scale);
    pen.font = `11px ${FONT}`;
    pen.textBaseline = 'middle';
    for (const d of delays)
      drawDelay(pen, left + d.batch * cell, d.slot * cell, cell, d.delay, most);
    labelGrid(pen, run, {left, cell, slots, batches, height});
  };
  themeListeners.push(draw);
  draw();
  return element(
      'div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Gradient delays'},
      canvas);
}

function drawDelay(pen, x, y, cell, delay, most) {
  const fill = between(ink.lane, ink.accent, most > 0 ? delay / most : 0);
  pen.fillStyle = fill;
  pen.fillRect(x, y, cell - 1, cell - 1);
  if (cell < 14) return;
  pen.fillStyle = inkOn(fill);
  pen.textAlign = 'center';
  pen.fillText(`${delay}`, x + cell / 2, y + cell / 2);
}

function labelGrid(pen, run, {left, cell, slots, batches, height}) {
  pen.fillStyle = ink.soft;
  pen.textAlign = 'right';
  for (let slot = 0; slot < slots; slot += Math.ceil(12 / cell))
    pen.fillText(`stage ${run.all['weights/stage'][slot]}`, left - 8, (slot + 0.5) * cell);
  pen.textAlign = 'center';
  for (let batch = 0; batch < batches; batch += Math.ceil(24 / cell))
    pen.fillText(`${batch}`, left + (batch + 0.5) * cell, height - 16);
  pen.textAlign = 'right';
  pen.fillText('mini-batch', left - 8, height - 16);
}

function versionParts(run) {
  if (run.all['weights/stage'].length === 0)
    return [element('p', {class: 'quiet'}, 'The run did not record versions of weights.')];
  const staleness = readStaleness(run);
  const stale = staleness.most > 0;
  return [
    element(
        'p', {class: 'quiet'},
        stale ?
            `Backwards read weights that are up to ${
                staleness.most} updates older than those that their own update changes.` :
            'Synchronous: every backward reads the weights that its update changes ' +
                '(gradient delay 0).'),
    stale && staleness.batches <= 400 && staleness.slots <= 64 ? stalenessGrid(run, staleness) :
                                                                 null,
    versionTable(run, staleness)
  ];
}

/* What sim packed: JSON in script elements, and columns of numbers (packed.h). */

const NONE = 0xFFFFFFFF; /* no id */

function readJson(id) {
  const found = document.getElementById(id);
  return found ? JSON.parse(found.textContent) : null;
}

function decodeBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* The bytes of equal weight stand beside each other; puts each cell together again. */
function unshuffle(bytes, at, cell, rows) {
  const cells = new Uint8Array(cell * rows);
  for (let b = 0; b < cell; b++)
    for (let i = 0, to = b; i < rows; i++, to += cell) cells[to] = bytes[at++];
  return cells.buffer;
}

const CELLS = {
  1: Uint8Array,
  4: Uint32Array,
  8: Float64Array
};

/* {'tasks/start': Float64Array, ...} */
async function readColumns(id, described) {
  const bytes = await inflate(decodeBase64(document.getElementById(id).textContent));
  const columns = {};
  let at = 0;
  for (const {name, bytes: cell, rows} of described) {
    columns[name] = cell === 1 ? bytes.subarray(at, at + rows) :
                                 new CELLS[cell](unshuffle(bytes, at, cell, rows));
    at += cell * rows;
  }
  return columns;
}

/* [first, end) of the rows of each device in a column that is ordered by device. */
function rangesOf(devices, nRows) {
  const first = new Uint32Array(nRows + 1);
  for (let i = 0; i < devices.length; i++) first[devices[i] + 1]++;
  for (let r = 0; r < nRows; r++) first[r + 1] += first[r];
  return first;
}

/* The first place in the ordered numbers values[from .. to - 1] that is above `limit`; `to` if none
 * is. */
function firstAbove(values, limit, from, to) {
  while (from < to) {
    const middle = from + to >>> 1;
    if (values[middle] > limit)
      to = middle;
    else
      from = middle + 1;
  }
  return from;
}

/* Of tasks in the order of their lane: starts, ends, and the latest end so far, by which a search
 * for what is in view ends though tasks of a lane may overlap. */
function prepareLane(run, lane) {
  const {order, start, end} = run;
  lane.order = order.subarray(lane.first, lane.first + lane.n);
  lane.start = Float64Array.from(lane.order, task => start[task]);
  lane.end = Float64Array.from(lane.order, task => end[task]);
  lane.reach = new Float64Array(lane.n);
  for (let i = 0, latest = 0; i < lane.n; i++)
    lane.reach[i] = latest = Math.max(latest, lane.end[i]);
  lane.levelAt = [];
  for (let level = 0, at = lane.bin; level < lane.levels; level++) {
    const bins = run.lane_bins * run.lane_finer ** level;
    lane.levelAt.push({at, bins});
    at += bins;
  }
}

/* The kinds that occur, in all and in each lane, and the place of each among its lane's. */
function findKinds(run) {
  for (const lane of run.lanes) {
    const seen = new Uint8Array(run.kinds.length);
    for (let i = 0; i < lane.n; i++) seen[run.origin[lane.order[i]]] = 1;
    lane.used = run.kinds.map((_, kind) => kind).filter(kind => seen[kind]);
    lane.place = run.kinds.map((_, kind) => lane.used.indexOf(kind));
  }
  run.used = [...new Set(run.lanes.flatMap(lane => lane.used))].sort((a, b) => a - b);
}

/* A stage's place among those of its row, to shade interleaved chunks. */
function findChunks(run) {
  const stages = run.rows.map(() => new Set());
  for (let i = 0; i < run.device.length; i++)
    if (run.stage[i] !== NONE && run.peer[i] === NONE) stages[run.device[i]].add(run.stage[i]);
  run.chunks =
      stages.map(set => new Map([...set].sort((a, b) => a - b).map((stage, i) => [stage, i])));
  run.nChunks = Math.max(1, ...stages.map(set => set.size));
}

function prepareVersions(run, columns) {
  run.version = new Map();
  columns['versions/task'].forEach(
      (task, i) => run.version.set(task, columns['versions/version'][i]));
}

async function readRun(i) {
  const run = readJson(`run-${i}`);
  if (!run) return null;
  const columns = await readColumns(`columns-${i}`, run.columns);
  for (const name
           of ['start', 'end', 'bytes', 'device', 'peer', 'stage', 'mini_batch', 'micro_batch',
               'origin'])
    run[name] = columns[`tasks/${name}`];
  Object.assign(run, {
    index: i,
    all: columns,
    order: columns['lanes/order'],
    binKind: columns['lanes/kind'],
    binShare: columns['lanes/share'],
    memoryOf: rangesOf(columns['memory/device'], run.rows.length)
  });
  if (columns['waits/device']) run.waitsOf = rangesOf(columns['waits/device'], run.rows.length);
  run.lanes.forEach(lane => prepareLane(run, lane));
  run.rows.forEach((row, r) => {
    row.computes = run.lanes.find(l => l.row === r && !l.sends);
    row.sends = run.lanes.find(l => l.row === r && l.sends);
  });
  findKinds(run);
  prepareVersions(run, columns);
  findChunks(run);
  return run;
}

/* Links: how much each carried, and how busy it was, over time on the axis of the timeline. */

const LINK_HEIGHT = 14, MOST_LINKS = 16;

/* [{link, rows}] of the busiest links: rows [first, end) of /link_use, which stand by link and by
 * time. */
function readLinkUse(run) {
  const link = run.all['link_use/link'], found = [];
  for (let i = 0; link && i < link.length; i++) {
    if (i === 0 || link[i] !== link[i - 1]) found.push({link: link[i], first: i, end: i});
    found[found.length - 1].end = i + 1;
  }
  return found.slice(0, MOST_LINKS);
}

function linkPanel(run, canvas) {
  const panel = {run, canvas, kind: 'links', lanes: readLinkUse(run)};
  panel.height = panel.lanes.length * LINK_HEIGHT + 6;
  panel.draw = pen => drawLinks(panel, pen);
  return panel;
}

/* As bars, so that they are told by more than shade: full height is all of the bandwidth. */
function drawLinks(panel, pen) {
  pen.font = `10px ${FONT}`;
  const {run, lanes, height} = panel;
  pen.textAlign = 'right';
  lanes.forEach(({link}, i) => {
    pen.fillStyle = ink.lane;
    pen.fillRect(LEFT, 3 + i * LINK_HEIGHT, view.width - LEFT - RIGHT, LINK_HEIGHT - 2);
    pen.fillStyle = ink.soft;
    pen.fillText(
        shortened(pen, arrowName(run.links[link].name), LEFT - 16), LEFT - 12,
        3 + (i + 0.5) * LINK_HEIGHT - 1);
  });
  clipped(pen, height, () => {
    drawGrid(pen, height);
    lanes.forEach((lane, i) => drawLink(run, lane, pen, 3 + i * LINK_HEIGHT));
    drawEnd(panel, pen);
  });
}

function drawLink(run, {first, end}, pen, top) {
  const start = run.all['link_use/start'], until = run.all['link_use/end'],
        use = run.all['link_use/utilisation'], high = LINK_HEIGHT - 2;
  for (let i = first; i < end; i++) {
    const left = Math.round(view.x(start[i])),
          right = Math.max(left + 1, Math.round(view.x(until[i])));
    if (right < LEFT || left > view.width) continue;
    const tall = Math.max(1, Math.min(1, use[i]) * high);
    pen.fillStyle = ink.accent;
    pen.fillRect(left, top + high - tall, right - left, tall);
  }
}

/* "node0/gpu0 to node0/plx0" as "node0/gpu0 → plx0". */
function arrowName(name) {
  const [from, to] = name.split(' to ');
  if (!to) return name;
  const folder = from.slice(0, from.lastIndexOf('/') + 1);
  return `${from} → ${folder && to.startsWith(folder) ? to.slice(folder.length) : to}`;
}

/* A text that fits into `room` points; what is left out is in its middle. */
function shortened(pen, text, room) {
  let short = text;
  for (let keep = text.length - 1; keep > 4 && pen.measureText(short).width > room; keep--)
    short = `${text.slice(0, Math.ceil(keep / 2))}…${text.slice(-Math.floor(keep / 2))}`;
  return short;
}

function hoverLinks(panel, event, x, y) {
  const {run, lanes} = panel, lane = lanes[Math.floor((y - 3) / LINK_HEIGHT)],
              time = view.x.invert(x);
  tip.hidden = true;
  if (!lane || x < LEFT || time > run.makespan) return;
  const i = firstAbove(run.all['link_use/end'], time, lane.first, lane.end),
        link = run.links[lane.link];
  const busy = i < lane.end && run.all['link_use/start'][i] <= time;
  const rows = busy ?
      [
        ['used', formatPercent(run.all['link_use/utilisation'][i])],
        ['carried', formatBytes(run.all['link_use/bytes'][i])],
        ['from', formatTime(run.all['link_use/start'][i], 5)],
        ['until', formatTime(run.all['link_use/end'][i], 5)]
      ] :
      [['used', '0 %']];
  fillTip({fill: ink.accent}, link.name, [
    ...rows, ['bandwidth', formatRate(link.bandwidth)],
    ['used over all', formatPercent(link.utilisation)]
  ]);
  delete tip.dataset.task;
  placeTip(event.clientX, event.clientY);
}

/* Where collectives are delays, whose messages use no links: that, and what counts them. */
function delayWords(run) {
  if (!run.fidelity || run.fidelity === 'flow') return '';
  return ` Collectives are not counted: each is simulated as one delay (fidelity ${run.fidelity}). ` +
      'Set /collectives/fidelity to "flow" to simulate their messages.';
}

function linkTable(run) {
  const rows =
      [...run.links].sort((a, b) => b.utilisation - a.utilisation || b.bytes - a.bytes);
  const shown = rows.filter(link => link.bytes > 0), most = 256;
  if (shown.length === 0) return element('p', {class: 'quiet'}, 'No link carried anything.' + delayWords(run));
  const full = Math.max(1, ...shown.map(link => link.utilisation));
  const meter = link => element(
      'span', {class: 'meter', 'aria-hidden': 'true'}, meterFill(link.utilisation / full));
  const cells = link =>
      [link.name, formatRate(link.bandwidth), formatBytes(link.bytes),
       link.utilisation === null ? '–' : formatPercent(link.utilisation), meter(link)];
  const columns = [
    {title: 'link'}, {title: 'bandwidth', number: true}, {title: 'carried', number: true},
    {title: 'utilisation', number: true}, {title: '', class: 'wide'}
  ];
  const counts = `${formatCount(shown.length)} of ${formatCount(run.links.length)} links`;
  const rest = formatCount(shown.length - most);
  return [
    element(
        'p', {class: 'quiet'},
        `${counts} carried bytes. Utilisation is bytes over bandwidth times makespan.` +
            delayWords(run)),
    table(`Links of ${run.name}`, columns, shown.slice(0, most).map(cells)),
    shown.length > most ?
        element('p', {class: 'quiet'}, `${rest} links that carried less are left out.`) :
        null
  ];
}

function meterFill(share) {
  const fill = element('span');
  fill.style.width = `${100 * Math.min(1, share)}%`;
  return fill;
}

/* Puts the page together. */

const HELP = [
  ['wheel', 'zoom where the pointer is; with Shift sideways'],
  ['drag', 'move along the time'],
  ['double-click', 'zoom in; with Shift out'],
  ['click', 'keep a task marked, and show the memory of its device'],
  ['+  −', 'zoom'],
  ['0', 'everything'],
  ['A  D', 'to earlier and later times'],
  ['←  →', 'to the task before and after on the device'],
  ['↑  ↓', 'to what the device above or below does meanwhile'],
  ['/', 'search'],
  ['N  P', 'next and previous task found'],
  ['C', 'critical path'],
  ['W', 'waiting, by cause'],
  ['M', 'arrows of messages'],
  ['T', 'light or dark'],
  ['?', 'this help'],
  ['Esc', 'let go of the marked task'],
];

function makeHelp() {
  const rows = HELP.map(
      ([keys, what]) =>
          [element('dt', null, keys.split('  ').map(key => element('kbd', null, key))),
           element('dd', null, what)]);
  const dialog = element(
      'dialog', {id: 'help', 'aria-labelledby': 'help-title'},
      element('h2', {id: 'help-title'}, 'Keys and mouse'), element('dl', {class: 'keys'}, rows),
      element(
          'p', {class: 'quiet'},
          'Search takes kinds and numbers, divided by commas: “forward 3, stage 2”, ' +
              '“all reduce”, “device 1”, “mini-batch 4”, “#17”.'),
      element('form', {method: 'dialog'}, element('button', null, 'Close')));
  return dialog;
}

function header(runs) {
  const [first] = runs;
  return element(
      'header', null,
      element(
          'div', null,
          element(
              'p', {class: 'over'},
              runs.length > 1 ? `${runs.length} runs compared` :
                  first.came_from === 'measured' ? 'measured run' :
                                                   'simulated run'),
          element('h1', null, titleOf(runs)),
          ...(runs.length > 1 ? [] : [element('p', {class: 'words'}, runWords(first))])),
      element(
          'div', {class: 'tools'},
          button('Light / dark', 'Switch between light and dark (T)', switchTheme),
          button('Print', 'Print, or save as PDF', () => window.print()),
          button('?', 'Keys and mouse', openHelp, {'aria-label': 'Help'})));
}

const openHelp = () => document.getElementById('help').showModal();

/* ---- the panels ---- */

function searchBox(runs) {
  const input = element('input', {
    type: 'search',
    id: 'search',
    placeholder: 'Search: forward 3, stage 2',
    'aria-label': 'Search for a task',
    autocomplete: 'off',
    spellcheck: 'false',
    input: () => searchFor(runs, input.value),
    keydown: event => {
      if (event.key === 'Enter') {
        event.preventDefault();
        stepSearch(event.shiftKey ? -1 : 1);
      }
    }
  });
  return element(
      'div', {class: 'search'}, input, element('output', { id: 'found', for: 'search' }));
}

const switches = {};

function toolbar(runs) {
  switches.c = toggle('Critical path', 'Show the critical path (C)', options, 'path', invalidate);
  switches.w = toggle('Waiting', 'Show waiting, by cause (W)', options, 'waits', invalidate);
  switches.m =
      toggle('Messages', 'Arrows of the messages of a task (M)', options, 'messages', invalidate);
  return element(
      'div', {class: 'toolbar', role: 'toolbar', 'aria-label': 'Timeline'}, searchBox(runs),
      element('div', {class: 'group'}, switches.c, switches.w, switches.m),
      element(
          'div', {class: 'group'},
          button('−', 'Zoom out (−)', () => zoomBy(1 / 2), {'aria-label': 'Zoom out'}),
          button('+', 'Zoom in (+)', () => zoomBy(2), {'aria-label': 'Zoom in'}),
          button('All', 'Show everything (0)', () => show(0, view.until))),
      element('output', {id: 'range'}));
}

function timelineWords(run) {
  const bubble = run.figures.find(figure => figure.key === 'bubble_fraction');
  return `Timeline of ${run.name}: ${run.rows.length} devices, ${run.start.length} tasks in ${
             formatTime(run.makespan)}` +
      (bubble ? `, bubble fraction ${bubble.text}` : '') +
      '. The tables below say the same; arrow keys go from task to task.';
}

const memoryLabel = (run, row) => row === MEAN ?
    'the mean over the devices; line: the fullest one' :
    `${rowName(run, row)} · peak ${formatBytes(run.rows[row].peak)}`;

function chooseRow(run, row) {
  if (run.chosen === row) return;
  run.chosen = row;
  run.parts.select.value = row;
  run.parts.who.textContent = memoryLabel(run, row);
  run.parts.legend.refill();
  run.parts.peak.replaceChildren(peakTable(run));
  invalidate();
}

function memoryHead(run) {
  const select = element(
      'select', {
        'aria-label': 'Device whose memory is shown',
        change: () => chooseRow(run, Number(select.value))
      },
      run.rows.map(
          (_, r) => element(
              'option', {value: r, selected: r === run.chosen}, memoryLabel(run, r))),
      run.rows.length > 1 ? element('option', {value: MEAN}, memoryLabel(run, MEAN)) : []);
  run.parts.select = select;
  run.parts.legend = memoryLegend(run);
  return element(
      'div', {class: 'panel-head'}, element('h3', null, 'Memory of'), select,
      run.parts.who = element('span', {class: 'on-paper'}, memoryLabel(run, run.chosen)), run.parts.legend);
}

function runPanels(run, several) {
  run.chosen = fullestRow(run);
  run.parts = {peak: element('div')};
  const timeline =
      element('canvas', {role: 'img', class: 'timeline', 'aria-label': timelineWords(run)});
  const memory = element('canvas', {
    role: 'img',
    class: 'memory',
    'aria-label': `Memory over time; the table “Memory at the peak” has the largest`
  });
  view.panels.push(timelinePanel(run, timeline), memoryPanel(run, memory));
  const links = linkCanvas(run);
  themeListeners.push(() => {
    run.palette = null;
    run.hatches = null;
    run.parts.peak.replaceChildren(peakTable(run));
  });
  run.parts.peak.replaceChildren(peakTable(run));
  return [
    several ? element(
                  'div', {class: 'panel-head run'}, element('h3', null, run.label),
                  element('p', {class: 'words'}, runWords(run))) :
              null,
    timeline, memoryHead(run), memory, links
  ];
}

function linkCanvas(run) {
  const canvas = element('canvas', {
    role: 'img',
    class: 'links',
    'aria-label': 'How busy the busiest links are over time; the table “Links” has all'
  });
  const panel = linkPanel(run, canvas);
  if (panel.lanes.length === 0) return [];
  view.panels.push(panel);
  return [
    element(
        'div', {class: 'panel-head'}, element('h3', null, 'Links in use'),
        element(
            'span', {class: 'words'},
            `the ${panel.lanes.length} that carried most; full height is all of the bandwidth`)),
    canvas
  ];
}

function makePanels(runs) {
  const axis = element('canvas', {class: 'axis', 'aria-hidden': 'true'});
  view.panels.push({canvas: axis, height: 27, draw: drawAxis});
  const home = element(
      'div', {
        id: 'panels',
        tabindex: '0',
        role: 'group',
        'aria-label': 'Timeline and memory; press ? for the keys'
      },
      axis, runs.flatMap(run => runPanels(run, runs.length > 1)));
  view.until = Math.max(1, ...runs.map(run => run.makespan));
  home.addEventListener('mousemove', hover);
  home.addEventListener('mouseleave', hideTip);
  home.addEventListener('click', keep);
  return home;
}

function panelAt(event) {
  const panel = view.panels.find(({canvas}) => canvas === event.target);
  if (!panel || !panel.run) return null;
  const box = panel.canvas.getBoundingClientRect();
  return {panel, x: event.clientX - box.left, y: event.clientY - box.top};
}

function hover(event) {
  const at = panelAt(event);
  if (!at || event.buttons) return hideTip();
  for (const {run} of view.panels)
    if (run && run !== at.panel.run) run.hovered = null;
  if (at.panel.kind === 'timeline')
    hoverTimeline(at.panel, event, at.x, at.y);
  else if (at.panel.kind === 'links')
    hoverLinks(at.panel, event, at.x, at.y);
  else
    hoverMemory(at.panel, event, at.x);
}

function keep(event) {
  const at = panelAt(event),
        hit = at && at.panel.kind === 'timeline' ? hitTimeline(at.panel, at.x, at.y) : null;
  if (!hit) return;
  at.panel.run.marked = hit.task !== undefined ? hit.task : null;
  chooseRow(at.panel.run, hit.row);
  if (at.panel.run.marked !== null) mark(at.panel.run, at.panel.run.marked);
  invalidate();
}

/* ---- keys ---- */

const KEYS = {
  '+': () => zoomBy(2),
  '=': () => zoomBy(2),
  '-': () => zoomBy(1 / 2),
  '0': () => show(0, view.until),
  'Home': () => show(0, view.until),
  'a': () => pan(-0.25),
  'd': () => pan(0.25),
  'ArrowLeft': () => walk(-1, 0),
  'ArrowRight': () => walk(1, 0),
  'ArrowUp': () => walk(0, -1),
  'ArrowDown': () => walk(0, 1),
  '/': () => document.getElementById('search').focus(),
  'n': () => stepSearch(1),
  'p': () => stepSearch(-1),
  'c': () => switches.c.click(),
  'w': () => switches.w.click(),
  'm': () => switches.m.click(),
  't': switchTheme,
  '?': openHelp,
  'Escape': () => {
    for (const {run} of view.panels)
      if (run) run.marked = null;
    hideTip();
    invalidate();
  },
};

/* Arrows move the page unless the timeline has the focus. */
function pressed(event) {
  const {target, key} = event, home = view.home && view.home.node();
  if (!home && key !== 't') return;
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest('input, select, dialog')) {
    if (key === 'Escape' && target.id === 'search') target.blur();
    return;
  }
  const act = KEYS[key.length === 1 ? key.toLowerCase() : key];
  if (!act || (key.startsWith('Arrow') || key === 'Home') && target !== home) return;
  event.preventDefault();
  act();
}

/* ---- all of it ---- */

function perRun(runs, make) {
  return runs.map(run => [runs.length > 1 ? element('h3', null, run.label) : null, make(run)]);
}

/* Runs of one name are told apart by their schedules, or by their files. */
function labelRuns(runs) {
  const differ = of => new Set(runs.map(of)).size === runs.length;
  const label = [
    run => run.name, run => `${run.name}, ${run.schedule}`, run => `${run.name}, ${run.file}`
  ].find((of, i) => differ(of) || i === 2);
  for (const run of runs) run.label = label(run);
}

const sameName = runs => runs.every(run => run.name === runs[0].name);

function titleOf(runs) {
  if (runs.length === 1) return runs[0].name;
  const labels = runs.map(
      run => sameName(runs) ? run.label.slice(run.name.length + 2) || run.file : run.label);
  return sameName(runs) ? `${runs[0].name}: ${labels.join(' / ')}` : labels.join(' / ');
}

/* What has to be known before any figure is believed. */
function warnings(runs) {
  return runs.flatMap(run => {
    const over = run.rows.flatMap((row, r) => row.oom_time === null ? [] : [rowName(run, r)]);
    if (over.length === 0) return [];
    const who = over.length > 6 ? `${over.length} of ${run.rows.length} rows of devices go` :
                                  `${over.join(', ')} ${over.length > 1 ? 'go' : 'goes'}`;
    return [element(
        'p', {class: 'warning', role: 'note'},
        `✕ ${runs.length > 1 ? `${run.label}: ` : ''}out of memory: ${who} over the capacity${
            run.stopped ? ', where the run was stopped' :
                          '; the figures are those of a run that no device could do'}.`)];
  });
}

function footer(runs) {
  const notices = document.getElementById('notices').textContent;
  return element(
      'footer', null,
      ...runs.map(
          run => element(
              'p', null,
              `${run.file}: written by sim ${run.program || '?'}${
                  run.hash ? `, results ${run.hash}` : ''}`)),
      element(
          'details', null, element('summary', null, 'Drawn with D3; its licences'),
          element('pre', {tabindex: '0'}, notices)));
}

function runPage(runs) {
  labelRuns(runs);
  const panels = makePanels(runs);
  return [
    header(runs),
    element(
        'main', null, warnings(runs),
        ...(runs.length > 1 ? [section('figures', 'Figures', figureTable(runs))] :
                              [tiles(runs[0])]),
        section(
            'timeline', 'Timeline and memory', toolbar(runs), legend(runs), panels,
            element('p', {id: 'said', class: 'said', role: 'status'})),
        element(
            'div', {class: 'columns'},
            section('peak', 'Memory at the peak', perRun(runs, run => run.parts.peak)),
            section('path', 'Critical path', perRun(runs, pathParts))),
        runs.some(run => run.allocator) ?
            section('segments', 'Segments of PyTorch’s allocator', perRun(runs, segmentParts)) :
            [],
        section('uses', 'Where the time went', perRun(runs, useParts)),
        section('links', 'Links', perRun(runs, linkTable)),
        section('versions', 'Versions of weights', perRun(runs, versionParts)),
        ...(runs.length > 1 ? [] : [section('figures', 'All figures', figureTable(runs))]),
        section('scenario', 'Scenario', runs.flatMap(scenarioParts))),
    footer(runs), makeHelp(), tip
  ];
}

const resized = new ResizeObserver(() => {
  if (view.home && widthOf(view.home.node()) !== view.width) {
    measure();
    drawAll(true);
  }
});

function listen() {
  document.addEventListener('keydown', pressed);
  window.addEventListener('scroll', invalidate, {passive: true});
  dark.addEventListener('change', themeChanged);
  window.addEventListener('resize', () => {
    if (fitCharts()) themeChanged();
  });
  window.addEventListener('beforeprint', () => print(true));
  window.addEventListener('afterprint', () => print(false));
}

/* On paper everything is light, and finer than on the screen. */
function print(begins) {
  view.printing = begins;
  const root = document.documentElement.dataset;
  if (begins) {
    view.themeBefore = root.theme;
    root.theme = 'light';
  } else if (view.themeBefore)
    root.theme = view.themeBefore;
  else
    delete root.theme;
  themeChanged();
  if (!view.home) return;
  measure();
  drawAll(true);
}

/* ---- which page ---- */

const page = element('div', {id: 'page'});

/* In place of what is shown. */
function showPage(parts) {
  resized.disconnect();
  page.replaceChildren(...parts);
}

/* Nothing of an earlier page is drawn any more. */
function forget() {
  themeListeners.length = 0;
  Object.assign(view, {panels: [], home: null, x: null});
  hideTip();
}

function showRuns(runs, back) {
  showPage([...(back ? [back] : []), ...runPage(runs)]);
  makeZoom(document.getElementById('panels'));
  measure();
  resized.observe(view.home.node());
  themeListeners.push(() => drawAll(true));
  drawAll(true);
}

/* A link to another page of the report. In a frame of a notebook, where the address is that of the
 * notebook, it is shown without. */
function pageLink(hash, text) {
  const follow = event => {
    if (location.protocol !== 'about:') return;
    event.preventDefault();
    showChosen(view.points, hash);
  };
  return element('a', {href: hash, click: follow}, text);
}

/* The run that the address names, "#run-1", or all points. */
async function showChosen(points, hash = location.hash) {
  const [, i] = hash.match(/^#run-(\d+)$/) || [];
  const run = points.runs.find(({index}) => `${index}` === i);
  forget();
  if (!run) return showPoints(points);
  const name = points.what === 'sweep' ? 'sweep' : 'search';
  showRuns(
      [await readRun(run.index)],
      element('nav', {class: 'back'}, pageLink('#all', `← all points of the ${name}`)));
  window.scrollTo(0, 0);
}

async function start() {
  readInk();
  fitCharts();
  document.body.append(page);
  listen();
  const points = await readPoints(), runs = [];
  view.points = points;
  if (points) {
    window.addEventListener('hashchange', () => showChosen(points));
    await showChosen(points);
  } else {
    for (let i = 0; document.getElementById(`run-${i}`); i++) runs.push(await readRun(i));
    showRuns(runs);
  }
  document.documentElement.dataset.ready = 'yes';
}

start().catch(
    error => document.body.append(element(
        'p', {role: 'alert', class: 'failed'},
        `This report cannot be shown: ${error.message}. It needs a browser of 2023 or later.`)));

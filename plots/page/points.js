/* A sweep's points, or the plans of a search: a picture, and a table to sort. */

const stateWords = (points, row) =>
    ['fits', '✕ out of memory',
     points.what === 'sweep' ? 'failed' : 'not simulated'][points.state[row]];

async function readPoints() {
  const points = readJson('points-0');
  if (!points) return null;
  const columns = await readColumns('columns-0', points.columns);
  points.state = columns.state;
  points.n = points.state.length;
  for (const field of points.fields) {
    field.values = columns[field.name];
    if (field.words)
      field.texts = Array.from(field.values, value => words(field.words[value] ?? ''));
    field.title = field.key ? field.title : words(field.title);
  }
  points.fields = points.fields.filter(field => field.texts || field.values);
  points.chosen = null;
  readRunsOf(points);
  return points;
}

/* ---- runs of points ---- */

/* A value of a scenario by its JSON pointer; undefined: it is not there. */
function valueAt(document, pointer) {
  const names = pointer.split('/').slice(1).map(
      name => name.replace(/~1/g, '/').replace(/~0/g, '~'));
  return names.reduce((value, name) => value?.[name], document);
}

/* Whether a run has the point's settings, as far as its scenario shows them in the same form, and
 * its results, bit for bit. */
function isRunOf(points, row, run) {
  const scenario = JSON.parse(run.scenario || '{}');
  const figure = key => run.figures.find(of => of.key === key)?.value;
  const same = points.fields.filter(field => field.key).every(field => {
    const value = valueAt(scenario, field.title),
          wanted = field.texts ? field.texts[row] : field.values[row];
    return typeof value !== typeof wanted || value === wanted;
  });
  const results = [
    ['makespan_s', 'makespan_s'], ['step_time', 'makespan_s'],
    ['peak_memory_bytes', 'peak_memory_bytes'], ['peak_memory', 'peak_memory_bytes']
  ].filter(([name]) => fieldOf(points, name));
  return same && results.length > 0 &&
      results.every(([name, key]) => fieldOf(points, name).values[row] === figure(key));
}

/* Runs that stand beside the points: points.runs, [{index, file, row}]; row null: of no point. */
function readRunsOf(points) {
  points.runs = [];
  for (let i = 1; document.getElementById(`run-${i}`); i++) {
    const run = readJson(`run-${i}`), row = allRows(points).find(r => isRunOf(points, r, run));
    points.runs.push({index: i, file: run.file, row: row === undefined ? null : row});
  }
}

const runsAt = (points, row) => points.runs.filter(run => run.row === row);

const runLink = run => pageLink(`#run-${run.index}`, `open ${run.file}`);

/* Those that are of none of the points, so that nobody looks for them in vain. */
function strangers(points) {
  return points.runs.filter(run => run.row === null)
      .map(
          run => element(
              'p', {class: 'warning', role: 'note'},
              `${run.file} has the settings and the results of none of the points. `, runLink(run)));
}

const fieldOf = (points, name) => points.fields.find(field => field.name === name);

/* A value for people. */
function fieldText(field, value) {
  if (field.texts) return value;
  if (!Number.isFinite(value)) return '–';
  if (field.unit === '1' && field.name.endsWith('_fraction')) return formatPercent(value);
  const unit = unitOfField(field.unit, value);
  return `${digits(value / unit.size, 4)}${unit.name ? ` ${unit.name}` : ''}`;
}

const valueText = (field, row) =>
    fieldText(field, field.texts ? field.texts[row] : field.values[row]);

function pointWords(points, row, fields) {
  const plan = fieldOf(points, 'plan'),
        keys = points.fields.filter(field => field.key && !fields.includes(field));
  const parts = [
    ...(plan ? [plan.texts[row]] : []),
    ...[...fields, ...keys].map(field => `${field.title} ${valueText(field, row)}`)
  ];
  return parts.join(', ') + (points.state[row] ? `, ${stateWords(points, row)}` : '');
}

/* ---- what is chosen ---- */

/* Of several values a field has more than one. */
const varies = (field, rows) =>
    rows.some(row => (field.texts || field.values)[row] !== (field.texts || field.values)[rows[0]]);

const allRows = points => Array.from({length: points.n}, (_, i) => i);

/* How to run the point by itself; "" of a plan that was not simulated. */
function commandOf(points, row) {
  if (points.what === 'plans') return fieldOf(points, 'command')?.texts[row] || '';
  const keys = points.fields.filter(field => field.key);
  const scenario = (points.command || '').split(' ')[2] || 'SCENARIO.json';
  const quoted = text => /^[\w./=-]+$/.test(text) ? text : `'${text.replace(/'/g, "'\\''")}'`;
  return `sim run ${scenario} ` +
      keys.map(
              field => `--set ${
                  quoted(`${field.title}=${field.texts ? field.texts[row] : field.values[row]}`)}`)
          .join(' ') +
      ' -o run.h5';
}

function choosePoint(points, row) {
  points.chosen = row;
  const figures = points.fields.filter(
      field => !field.key && valueText(field, row) !== '–' &&
          !['number', 'command'].includes(field.name));
  const command = commandOf(points, row);
  points.detail.replaceChildren(
      element(
          'h3', null,
          points.fields.filter(field => field.key)
                  .map(field => `${field.title} = ${valueText(field, row)}`)
                  .join(', ') ||
              fieldOf(points, 'plan').texts[row]),
      ...runsAt(points, row).map(run => element('p', {class: 'lead'}, runLink(run))),
      ...(command ? [element('pre', {tabindex: '0'}, command)] : []),
      table(
          'Figures of the point',
          [{title: 'figure'}, {title: 'value', number: true}, {title: 'meaning', class: 'meaning'}],
          figures.map(
              field =>
                  [field.title, valueText(field, row),
                   field.meaning === field.title ? '' : field.meaning || ''])));
  for (const line of points.body.querySelectorAll('tr'))
    line.setAttribute('aria-selected', `${Number(line.dataset.row) === row}`);
}

/* ---- pictures ---- */

function select(label, fields, chosen, changed) {
  const made = element(
      'select', {change: () => changed(fields[made.value])},
      fields.map(
          (field, i) => element(
              'option', {value: i, selected: field === chosen}, field ? field.title : 'nothing')));
  return element('label', null, `${label} `, made);
}

function seriesLegend(series) {
  return element(
      'ul', {class: 'legend'},
      series.slice(0, SERIES.length)
          .map(
              ({name, tone}) => legendEntry(
                  svg('svg', {width: 16, height: 12, viewBox: '-8 -6 16 12', 'aria-hidden': 'true'},
                      svg('path', {d: shapePath(SHAPES[tone], 4), fill: shown(SERIES[tone])})),
                  name)),
      legendEntry(
          svg('svg', {width: 16, height: 12, viewBox: '-8 -6 16 12', 'aria-hidden': 'true'},
              svg('path', {
                d: shapePath('circle', 4),
                fill: 'none',
                stroke: 'currentColor',
                'stroke-width': 2
              })),
          'hollow: out of memory'));
}

/* Rows by the value of a field; of more than there are colours the last holds the rest. A value has
 * the same colour and shape in every picture: its `tone` is its place among the values of all
 * points, whichever of them `rows` are. */
function seriesOf(points, field, rows) {
  if (!field) return [{name: 'all points', rows, tone: 0}];
  const names = [...new Set(allRows(points).map(row => valueText(field, row)))];
  const many = names.length > SERIES.length, last = SERIES.length - 1;
  const all = (many ? names.slice(0, last) : names)
                  .map((name, tone) => ({
                         name: field.texts ? name : `${field.title} ${name}`,
                         rows: rows.filter(row => valueText(field, row) === name),
                         tone
                       }));
  const others = rows.filter(row => names.indexOf(valueText(field, row)) >= last);
  if (many) all.push({name: 'others', rows: others, tone: last});
  return all.filter(({rows: of}) => of.length > 0);
}

/* The picture's controls and the picture; `state` has what is chosen. */
function picturePanel(points, title, controls, draw) {
  const holder = element('div'), redraw = () => holder.replaceChildren(...[draw()].flat());
  themeListeners.push(redraw);
  redraw();
  return section(
      title.toLowerCase().replace(/\W+/g, '-'), title,
      element('div', {class: 'toolbar'}, controls(redraw)), holder);
}

function linesPanel(points, keys, figures) {
  const x = keys.find(key => !key.texts) || keys[0];
  const by = keys.find(key => key !== x) || null;
  const state = {x, y: figures.find(field => field.main) || figures[0], by};
  return picturePanel(
      points, 'Lines',
      redraw => [select('Figure', figures, state.y, field => {
                   state.y = field;
                   redraw();
                 }), select('against', keys, state.x, field => {
                   state.x = field;
                   redraw();
                 }), select('a line for each', [null, ...keys], state.by, field => {
                   state.by = field;
                   redraw();
                 })], () => {
        const rows = allRows(points).filter(row => Number.isFinite(state.y.values[row])),
              series = seriesOf(points, state.by === state.x ? null : state.by, rows);
        return [
          seriesLegend(series), plotSeries(points, {
            ...state,
            series,
            joined: keys.length <= 2 && !state.x.texts,
            label: `${state.y.title} against ${state.x.title}`
          })
        ];
      });
}

function heatPanel(points, keys, figures) {
  const x = keys.find(key => !key.texts) || keys[0];
  const value = figures.find(field => field.main) || figures[0];
  const state = {value, x, y: keys.find(key => key !== x)};
  return picturePanel(
      points, 'Heat map', redraw => [select('Figure', figures, state.value, field => {
                                       state.value = field;
                                       redraw();
                                     }), select('across', keys, state.x, field => {
                                       state.x = field;
                                       redraw();
                                     }), select('up', keys, state.y, field => {
                                       state.y = field;
                                       redraw();
                                     })], () => {
        const fixed = keys.filter(key => key !== state.x && key !== state.y),
              first = row => fixed.every(key => valueText(key, row) === valueText(key, 0));
        const rows = allRows(points).filter(first);
        return [
          element(
              'p', {class: 'quiet'},
              `${sentence(state.value.title)}${
                  unitOfField(
                      state.value.unit,
                      Math.max(...rows.map(row => state.value.values[row]).filter(Number.isFinite)))
                          .name ?
                      `, ${
                          unitOfField(
                              state.value.unit,
                              Math.max(...rows.map(row => state.value.values[row])
                                           .filter(Number.isFinite)))
                              .name}` :
                      ''}: dark is low, bright is high; a stroke and ✕ mark points that ran out of memory.${
                  fixed.length ?
                      ` At ${fixed.map(key => `${key.title} ${valueText(key, 0)}`).join(', ')}.` :
                      ''}`),
          plotHeat(points, {
            ...state,
            rows,
            label: `${state.value.title} by ${state.x.title} and ${state.y.title}`
          })
        ];
      });
}

/* Points that fit and that no other beats in both time and memory. Plans say so themselves. */
function frontOf(points, time, memory, rows) {
  const front = fieldOf(points, 'front');
  if (front)
    return rows.filter(row => front.values[row] === 1)
        .sort((a, b) => memory.values[a] - memory.values[b]);
  const sorted =
      rows.filter(row => points.state[row] === 0)
          .sort((a, b) => time.values[a] - time.values[b] || memory.values[a] - memory.values[b]);
  let least = Infinity;
  return sorted.filter(row => memory.values[row] < least && (least = memory.values[row], true));
}

function frontPanel(points, time, memory) {
  const by =
      fieldOf(points, 'strategy') || points.fields.find(field => field.key && field.texts) || null;
  return picturePanel(
      points, 'Time against memory',
      () => [element(
          'p', {class: 'quiet'},
          'The dashed line joins the Pareto front: the points that fit and that no other point beats ' +
              'in both time and memory. Points slower than four times the fastest are left out.')],
      () => {
        const known = allRows(points).filter(
            row => Number.isFinite(time.values[row]) && Number.isFinite(memory.values[row]));
        const least = Math.min(
            ...known.filter(row => points.state[row] === 0).map(row => time.values[row]), Infinity);
        const rows = known.filter(row => !(time.values[row] > 4 * least)),
              series = seriesOf(points, by, rows);
        const picture = plotSeries(
            points, {x: memory, y: time, series, joined: false, label: 'Time against memory'});
        const front = frontOf(points, time, memory, rows),
              {width, height, left, right, top, bottom} = CHART;
        const across = makeAxis(memory, rows, left, width - right),
              up = makeAxis(time, rows, height - bottom, top);
        picture.querySelector('g').after(svg('polyline', {
          points: front.map(row => [across.place(row), up.place(row)]).join(' '),
          class: 'front'
        }));
        return [seriesLegend(series), picture];
      });
}

/* ---- the table ---- */

const TABLE_STEP = 200;

function sortedRows(points, field, down) {
  const value = row =>
      field ? (field.texts ? field.texts[row] : field.values[row]) : points.state[row];
  const missing = v => v === undefined || v === null || Number.isNaN(v);
  return allRows(points).sort((a, b) => {
    const x = value(a), y = value(b);
    if (missing(x) || missing(y)) return missing(x) - missing(y) || a - b;
    const order = typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y;
    return (down ? -order : order) || a - b;
  });
}

function pointRow(points, fields, row) {
  const cells = fields.map(
      (field, i) => element(
          i === 0 ? 'th' : 'td',
          {scope: i === 0 ? 'row' : null, class: field.texts ? null : 'number'},
          valueText(field, row)));
  const choose = () => choosePoint(points, row);
  return element(
      'tr', {
        'data-row': row,
        tabindex: '0',
        'aria-selected': `${points.chosen === row}`,
        click: choose,
        keydown: event => {
          if (event.key === 'Enter') choose();
        }
      },
      cells,
      element(
          'td', null, stateWords(points, row),
          runsAt(points, row).map(run => element('span', null, ', ', runLink(run)))));
}

function pointTable(points, fields) {
  const state = {field: null, down: false, most: TABLE_STEP};
  const body = points.body = element('tbody'), more = button('', 'Show more rows', () => {
                                                 state.most += 5 * TABLE_STEP;
                                                 fill();
                                               });
  const heads = [...fields, null].map(
      field => element(
          'th', {
            scope: 'col',
            'aria-sort': 'none',
            class: field && !field.texts ? 'number' : null,
            title: field ? field.meaning : 'what became of it'
          },
          element(
              'button', {type: 'button', class: 'sort', click: () => sortBy(field)},
              field ? field.title : 'state')));
  const sortBy = field => {
    state.down = state.sorted && state.field === field ? !state.down : false;
    Object.assign(state, {field, sorted: true});
    [...fields, null].forEach(
        (other, i) => heads[i].setAttribute(
            'aria-sort', other === field ? (state.down ? 'descending' : 'ascending') : 'none'));
    fill();
  };
  const fill = () => {
    const rows = state.sorted ? sortedRows(points, state.field, state.down) : allRows(points);
    body.replaceChildren(...rows.slice(0, state.most).map(row => pointRow(points, fields, row)));
    more.hidden = rows.length <= state.most;
    more.textContent = `${formatCount(rows.length - state.most)} more`;
  };
  fill();
  points.sortBy = sortBy;
  return [
    element(
        'div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'All points'},
        element(
            'table', {class: 'points'},
            element('caption', {class: 'unseen'}, 'All points, to be sorted by their headings'),
            element('thead', null, element('tr', null, heads)), body)),
    more
  ];
}

/* ---- all of it ---- */

function pointHeader(points) {
  const counts = [0, 0, 0];
  points.state.forEach(state => counts[state]++);
  const said = [
    `${formatCount(points.n)} ${points.what === 'sweep' ? 'points' : 'plans'}`,
    `${formatCount(counts[0])} fit`
  ];
  if (counts[1]) said.push(`${formatCount(counts[1])} out of memory`);
  if (counts[2])
    said.push(`${formatCount(counts[2])} ${points.what === 'sweep' ? 'failed' : 'not simulated'}`);
  return element(
      'header', null,
      element(
          'div', null,
          element('p', {class: 'over'}, points.what === 'sweep' ? 'sweep' : 'search for plans'),
          element('h1', null, points.name), element('p', {class: 'words'}, said.join(' · ')),
          points.command ? element('p', {class: 'words'}, element('code', null, points.command)) :
                           null),
      element(
          'div', {class: 'tools'},
          button('Light / dark', 'Switch between light and dark (T)', switchTheme),
          button('Print', 'Print, or save as PDF', () => window.print())));
}

/* What the table shows: keys, and figures that matter; of plans their words and the figures. */
function tableFields(points, keys, figures) {
  if (points.what === 'plans')
    return [
      'plan', 'strategy', 'devices', 'step_time', 'throughput', 'peak_memory', 'over_capacity'
    ].map(name => fieldOf(points, name))
        .filter(Boolean);
  const main = figures.filter(field => field.main);
  return [...keys, ...(main.length ? main : figures.slice(0, 5))];
}

function pointPage(points) {
  const keys = points.fields.filter(field => field.key && varies(field, allRows(points)));
  const figures = points.fields.filter(
      field => !field.key && !field.texts && field.values.some(Number.isFinite) &&
          !/^(applies|promised|difference)\d*_/.test(field.name));
  figures.sort((a, b) => b.main - a.main);
  const time = fieldOf(points, 'iteration_time_s') || fieldOf(points, 'step_time'),
        memory = fieldOf(points, 'peak_memory_bytes') || fieldOf(points, 'peak_memory');
  points.detail = element(
      'div', {role: 'status'},
      element('p', {class: 'quiet'}, 'Click a point in a picture or in the table.'));
  const chosen = section('chosen', 'The chosen point', points.detail);
  const all = section(
      'all', points.what === 'sweep' ? 'All points' : 'All plans',
      pointTable(points, tableFields(points, keys, figures)));
  if (points.what === 'plans') points.sortBy(time);
  return [
    pointHeader(points),
    element(
        'main', null, strangers(points),
        keys.length > 0 && figures.length > 0 ? linesPanel(points, keys, figures) : null,
        keys.length > 1 && figures.length > 0 ? heatPanel(points, keys, figures) : null,
        time && memory ? frontPanel(points, time, memory) : null, all, chosen,
        points.scenario ?
            section('scenario', 'Scenario', scenarioParts({...points, label: points.name})) :
            null),
    footer([points])
  ];
}

function showPoints(points) {
  showPage(pointPage(points));
  if (points.chosen !== null) choosePoint(points, points.chosen);
}

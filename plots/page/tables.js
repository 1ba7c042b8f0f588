/* What is said in figures, tables and bars. */

const TILES = [
  'iteration_time_s', 'throughput_samples_per_s', 'bubble_fraction', 'pipeline_bubble_fraction',
  'peak_memory_bytes', 'model_flop_utilisation_fraction', 'exposed_messages_s',
  'exposed_collectives_s', 'makespan_s'
];

/* The figures that most runs are about; not what is 0 or said already. */
function tileFigures(run) {
  const of = key => run.figures.find(figure => figure.key === key);
  const says = figure => figure &&
      (figure.value > 0 || !/^(exposed|pipeline_bubble)/.test(figure.key)) &&
      (figure.key !== 'makespan_s' || figure.value !== of('iteration_time_s')?.value) &&
      (figure.key !== 'pipeline_bubble_fraction' || figure.value !== of('bubble_fraction')?.value);
  return TILES.map(of).filter(says).slice(0, 6);
}

function tiles(run) {
  const figures = tileFigures(run);
  return element('dl', {class: 'tiles'}, figures.map(figure => {
    const [, number, unit] = figure.text.match(/^(\S+)\s*(.*)$/) || [null, figure.text, ''];
    return element(
        'div', {title: figure.meaning}, element('dt', null, figure.label),
        element('dd', null, `${number} `, unit ? element('small', null, unit) : null));
  }));
}

const sentence = text => text.charAt(0).toUpperCase() + text.slice(1);

/* ---- legends ---- */

function legendEntry(mark, text) { return element('li', null, mark, text); }

/* Kinds of tasks, causes of waiting and categories of memory that occur in the runs, each once. */
function legend(runs) {
  const list = element('ul', {class: 'legend', 'aria-label': 'Colours'});
  const fill = () => {
    const entries = new Map();
    for (const run of runs) {
      const looks = palette(run.kinds);
      run.used.forEach(k => {
        const kind = run.kinds[k];
        entries.set(
            kind.word,
            legendEntry(
                swatch(looks[k].fill),
                `${LETTERS[kind.word] ? `${LETTERS[kind.word]}  ` : ''}${words(kind.word)}`));
      });
    }
    for (const run of runs) {
      const used = new Set(run.all['waits/cause'] || []);
      (run.causes || [])
          .forEach(
              (cause, c) => used.has(c) &&
                  entries.set(
                      cause.word,
                      legendEntry(swatch('', hatchImage(cause.word)), causeName(cause.word))));
    }
    list.replaceChildren(...entries.values());
  };
  themeListeners.push(fill);
  fill();
  return list;
}

function memoryLegend(run) {
  const list = element('ul', {class: 'legend', 'aria-label': 'Colours of memory'});
  list.refill = () => {
    const looks = palette(run.categories);
    list.replaceChildren(
        ...memoryOf(run)
            .used.map(c => legendEntry(swatch(looks[c].fill), words(run.categories[c].word)))
            .reverse());
  };
  themeListeners.push(list.refill);
  list.refill();
  return list;
}

/* ---- where the time went ---- */

/* [{name, share, background}] of a row, in the order in which a bar shows them. */
function usesOf(run, row) {
  const looks = palette(run.kinds), uses = [];
  const add = (name, time, background) => {
    if (time > 0) uses.push({name, share: time / run.makespan, background});
  };
  for (const [word, time] of Object.entries(row.compute || {}))
    add(words(word), time, looks[run.kinds.findIndex(kind => kind.word === word)].fill);
  for (const cause of ['messages', 'collectives', 'dependency', 'flush'])
    add(causeName(cause), row[cause], hatchImage(cause));
  return uses;
}

function useBar(run, r) {
  const uses = usesOf(run, run.rows[r]);
  const said = uses.map(use => `${use.name} ${formatPercent(use.share)}`).join(', ');
  return element(
      'div', {class: 'use'}, element('span', {class: 'who'}, rowName(run, r)),
      element(
          'div', {class: 'bar', role: 'img', 'aria-label': `${rowName(run, r)}: ${said}`},
          uses.map(use => barPart(use.share, use.background, use.name))));
}

function useTable(run) {
  const all =
      run.rows.map((_, r) => new Map(usesOf(run, run.rows[r]).map(use => [use.name, use.share])));
  const names = [...new Set(all.flatMap(uses => [...uses.keys()]))];
  return table(
      `Where the time of each device of ${run.name} went`,
      [{title: 'device'}, ...names.map(title => ({title, number: true}))],
      all.map(
          (uses, r) =>
              [rowName(run, r),
               ...names.map(name => uses.has(name) ? formatPercent(uses.get(name)) : '–')]));
}

function useParts(run) {
  const bars = element('div', {class: 'uses'});
  const fill = () => bars.replaceChildren(...run.rows.slice(0, 512).map((_, r) => useBar(run, r)));
  themeListeners.push(fill);
  fill();
  return [bars, element('details', null, element('summary', null, 'As a table'), useTable(run))];
}

/* ---- the critical path ---- */

function pathShares(run) {
  const start = run.all['critical_path/start'], end = run.all['critical_path/end'],
        task = run.all['critical_path/task'];
  const sums = new Map();
  for (let i = 0; i < start.length; i++) {
    const name = task[i] === NONE ? 'waiting that no task explains' :
                                    words(run.kinds[run.origin[task[i]]].word);
    const sum =
        sums.get(name) || {time: 0, n: 0, kind: task[i] === NONE ? null : run.origin[task[i]]};
    sums.set(name, {...sum, time: sum.time + end[i] - start[i], n: sum.n + 1});
  }
  return [...sums.entries()]
      .filter(([, sum]) => sum.time > 0)
      .sort((a, b) => b[1].time - a[1].time);
}

function pathParts(run) {
  const shares = pathShares(run), bar = element('div', {class: 'bar'}),
        looks = () => palette(run.kinds);
  const colour = sum => sum.kind === null ? ink.faint : looks()[sum.kind].fill;
  const holder = element('div');
  const fill = () => {
    bar.replaceChildren(
        ...shares.map(([name, sum]) => barPart(sum.time / run.makespan, colour(sum), name)));
    holder.replaceChildren(table(
        `Critical path of ${run.name}`,
        [
          {title: 'kind'}, {title: 'steps', number: true}, {title: 'time', number: true},
          {title: 'share', number: true}
        ],
        shares.map(
            ([name, sum]) => [
                [swatch(colour(sum)), name], formatCount(sum.n), formatTime(sum.time),
                formatPercent(sum.time / run.makespan)])));
  };
  themeListeners.push(fill);
  fill();
  return [
    element(
        'p', {class: 'quiet'},
        'The chain of tasks that leads from the start to the end of the run, each beginning when ' +
            'the one before it ended. Making anything else faster does not make the run shorter.'),
    bar, holder
  ];
}

/* ---- figures, several runs beside each other ---- */

/* How a run's figure differs from the first run's: "+3.2 %", of fractions "+1.5 points". */
function difference(figure, first) {
  if (!figure || !first || figure.value === first.value) return figure && first ? '=' : '–';
  const sign = figure.value > first.value ? '+' : '−', by = Math.abs(figure.value - first.value);
  if (figure.key.endsWith('_fraction') || figure.key.startsWith('bubble_fraction'))
    return `${sign}${digits(100 * by, 3)} points`;
  return first.value ? `${sign}${digits(100 * by / Math.abs(first.value), 3)} %` :
                       `${sign}${digits(by)}`;
}

function figureTable(runs) {
  const keys = [...new Set(runs.flatMap(run => run.figures.map(figure => figure.key)))];
  const of = (run, key) => run.figures.find(figure => figure.key === key);
  const columns = [
    {title: 'figure'},
    ...runs.flatMap(
        (run, i) => i === 0 ?
            [{title: runs.length > 1 ? runLabel(run) : 'value', number: true}] :
            [{title: runLabel(run), number: true}, {title: 'difference', number: true}]),
    {title: 'meaning', class: 'meaning'}
  ];
  const rows = keys.map(key => {
    const any = runs.map(run => of(run, key)).find(Boolean);
    return [
      any.label, ...runs.flatMap((run, i) => {
        const figure = of(run, key), text = figure ? figure.text : '–';
        return i === 0 ? [text] : [text, difference(figure, of(runs[0], key))];
      }),
      any.meaning
    ];
  });
  return table('All figures', columns, rows);
}

const runLabel = run => run.label;

/* ---- the scenario ---- */

function scenarioParts(run) {
  if (!run.scenario)
    return [element('p', {class: 'quiet'}, 'The file does not have its scenario.')];
  let text = run.scenario;
  try {
    text = JSON.stringify(JSON.parse(run.scenario), null, 2);
  } catch { /* shown as it is */
  }
  return [element(
      'details', null,
      element(
          'summary', null,
          `${runLabel(run)}, with all defaults (${formatCount(text.split('\n').length)} lines)`),
      element('pre', {tabindex: '0'}, text))];
}

/* What produced the run, for its line below the title. */
function runWords(run) {
  const parts = [
    run.schedule,
    `${run.rows.length === 1 ? '1 device' : `${rowCount(run)} devices`} (${run.topology})`,
    `${run.mini_batches} mini-batch${run.mini_batches === 1 ? '' : 'es'}`,
    `${run.micro_batches} micro-batch${run.micro_batches === 1 ? '' : 'es'} each`
  ];
  if (run.sharing) parts.push(`links shared by ${run.sharing}`);
  if (run.algorithms) parts.push(`collectives: ${run.algorithms}`);
  if (run.came_from === 'measured') parts.push('measured');
  return parts.join(' · ');
}

const rowCount = run => run.devices || run.rows.length;

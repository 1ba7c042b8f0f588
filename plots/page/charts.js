/* Pictures of points, as SVG: lines, a heat map, points in a plane. Each mark can be focused, says
 * what it stands for, and chooses its point when clicked. */

const CHART = {
  width: 960,
  height: 400,
  left: 84,
  right: 24,
  top: 14,
  bottom: 58
};

/* Narrow windows have narrow charts, whose text stays as large. Whether that changed anything. */
function fitCharts() {
  const width = Math.max(320, Math.min(960, document.documentElement.clientWidth - 56));
  const changed = CHART.width !== width;
  CHART.width = width;
  return changed;
}

function svg(tag, attributes, ...children) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function')
      made.addEventListener(name, value);
    else if (value !== null && value !== undefined)
      made.setAttribute(name, value);
  }
  made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return made;
}

/* Okabe and Ito's colours, and shapes, so that series are told apart without them. */
const SERIES =
    ['#0072b2', '#e69f00', '#009e73', '#d55e00', '#56b4e9', '#cc79a7', '#606060', '#b8a800'];
const SHAPES = ['circle', 'square', 'diamond', 'triangle', 'cross', 'circle', 'square', 'diamond'];

function shapePath(shape, r) {
  switch (shape) {
    case 'square':
      return `M${- r} ${- r}H${r}V${r}H${- r}Z`;
    case 'diamond':
      return `M0 ${- 1.3 * r}L${1.3 * r} 0L0 ${1.3 * r}L${- 1.3 * r} 0Z`;
    case 'triangle':
      return `M0 ${- 1.2 * r}L${1.2 * r} ${r}H${- 1.2 * r}Z`;
    case 'cross':
      return `M${- r} ${- 0.4 * r}H${- 0.4 * r}V${- r}H${0.4 * r}V${- 0.4 * r}H${r}V${0.4 * r}H${
          0.4 * r}V${r}H${- 0.4 * r}V${0.4 * r}H${- r}Z`;
    default:
      return `M${- r} 0A${r} ${r} 0 1 1 ${r} 0A${r} ${r} 0 1 1 ${- r} 0Z`;
  }
}

/* A point: filled where it fits, a ring where it runs out of memory. */
function mark2d(x, y, series, open, title, choose) {
  const colour = shown(SERIES[series]);
  return svg(
      'path', {
        d: shapePath(SHAPES[series], 4.5),
        transform: `translate(${x} ${y})`,
        class: 'mark',
        tabindex: 0,
        role: 'button',
        'aria-label': title,
        fill: open ? 'var(--panel)' : colour,
        stroke: colour,
        'stroke-width': open ? 2 : 1,
        click: choose,
        keydown: event => {
          if (event.key === 'Enter' || event.key === ' ') {
            event.preventDefault();
            choose();
          }
        }
      },
      svg('title', null, title));
}

/* ---- axes ---- */

/* Numbers as they are shown: divided by `size`, with `name` beside the axis. */
function unitOfField(unit, largest) {
  const table = {
    s: [[1, 's'], [1e-3, 'ms'], [1e-6, 'µs'], [1e-9, 'ns'], [1e-12, 'ps']],
    bytes: BYTE_UNITS
  }[unit];
  if (table) {
    const [size, name] = unitOf(table, largest);
    return {size, name};
  }
  if (unit === 'bytes/s' || unit === 'flop/s') {
    const found = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']].find(
                      ([size]) => Math.abs(largest) >= size) ||
        [1, ''];
    return {size: found[0], name: found[1] + (unit === 'bytes/s' ? 'B/s' : unit)};
  }
  return {size: 1, name: unit === '1' ? '' : unit};
}

const axisTitle = (field, unit) => unit.name ? `${field.title} (${unit.name})` : field.title;

/* More alike in their ratios than in their distances. */
function isGeometric(values) {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  if (sorted.length < 3 || sorted[0] <= 0) return false;
  const spread = steps => Math.max(...steps) / Math.min(...steps);
  const pairs = sorted.slice(1).map((value, i) => [value / sorted[i], value - sorted[i]]);
  return spread(pairs.map(([ratio]) => ratio)) < spread(pairs.map(([, step]) => step));
}

/* {place, ticks: [{at, text}]} of values of a field along points [from, to] of the picture. */
function makeAxis(field, rows, from, to) {
  if (field.texts) return nameAxis(field, rows, from, to);
  const values = rows.map(row => field.values[row]).filter(Number.isFinite);
  const largest = Math.max(...values.map(Math.abs)), unit = unitOfField(field.unit, largest);
  const logarithmic = field.key && isGeometric(values);
  const [low, high] = [Math.min(...values), Math.max(...values)],
              pad = (high - low || Math.abs(high) || 1) * 0.05;
  const scale =
      (logarithmic ? d3.scaleLog() : d3.scaleLinear())
          .range([from, to])
          .domain(logarithmic ? [low / 1.1 / unit.size, high * 1.1 / unit.size] : [
            (low >= 0 && low < 0.5 * high ? 0 : low - pad) / unit.size, (high + pad) / unit.size
          ]);
  const ticks = field.key && new Set(values).size <= 10 ?
      [...new Set(values)].sort((a, b) => a - b).map(value => value / unit.size) :
      scale.ticks(6);
  const text = d3.scaleLinear().domain(scale.domain()).tickFormat(8);
  return {
    title: axisTitle(field, unit),
    place: row => scale(field.values[row] / unit.size),
    ticks: ticks.map(
        tick =>
            ({at: scale(tick), text: field.key ? `${Number(tick.toPrecision(6))}` : text(tick)}))
  };
}

function nameAxis(field, rows, from, to) {
  const names = [...new Set(rows.map(row => field.texts[row]))], step = (to - from) / names.length;
  const at = name => from + (names.indexOf(name) + 0.5) * step;
  const short = name => name.length > 18 ? `${name.slice(0, 8)}…${name.slice(-9)}` : name;
  return {
    title: field.title,
    place: row => at(field.texts[row]),
    names: true,
    ticks: names.map(name => ({at: at(name), text: short(name)}))
  };
}

function drawAxes(x, y) {
  const {width, height, left, right, top, bottom} = CHART, foot = height - bottom;
  return svg(
      'g', {'aria-hidden': 'true'},
      y.ticks.map(
          ({at, text}) =>
              [svg('line', {x1: left, x2: width - right, y1: at, y2: at, class: 'grid'}),
               svg('text',
                   {x: left - 10, y: at, 'text-anchor': 'end', 'dominant-baseline': 'middle'},
                   text)]),
      x.ticks.map(
          ({at, text}) =>
              [svg('line', {x1: at, x2: at, y1: foot, y2: foot + 5, class: 'tick'}),
               svg('text', {x: at, y: foot + 20, 'text-anchor': 'middle'}, text)]),
      svg('line', {x1: left, x2: width - right, y1: foot, y2: foot, class: 'tick'}),
      svg('text',
          {x: (left + width - right) / 2, y: height - 10, 'text-anchor': 'middle', class: 'title'},
          x.title),
      svg('text', {
        transform: `translate(18 ${(top + foot) / 2}) rotate(-90)`,
        'text-anchor': 'middle',
        class: 'title'
      },
          y.title));
}

function chart(label, ...children) {
  return svg(
      'svg', {
        viewBox: `0 0 ${CHART.width} ${CHART.height}`,
        role: 'group',
        'aria-label': label,
        class: 'chart'
      },
      ...children);
}

/* ---- the pictures ---- */

/* Series of rows: [{name, rows, tone}]; lines join the points of a series where `joined`. */
function plotSeries(points, {x, y, series, joined, label}) {
  const rows = series.flatMap(({rows: of}) => of),
        {width, height, left, right, top, bottom} = CHART;
  const across = makeAxis(x, rows, left, width - right),
        up = makeAxis(y, rows, height - bottom, top);
  const place = row => [across.place(row), up.place(row)];
  const lines = series.map(
      ({rows: of, tone}) => joined && of.length > 1 ? svg('polyline', {
        points: [...of].sort((a, b) => across.place(a) - across.place(b)).map(place).join(' '),
        fill: 'none',
        stroke: shown(SERIES[tone]),
        'stroke-width': 1.8,
        'stroke-opacity': 0.7
      }) :
                                                   null);
  const marks = series.map(
      ({rows: of, tone}) => of.map(
          row => mark2d(
              ...place(row), tone, points.state[row] === 1, pointWords(points, row, [y, x]),
              () => choosePoint(points, row))));
  return chart(label, drawAxes(across, up), lines, marks);
}

/* From dark to light through hues that people with any kind of colour blindness tell apart. */
const VIRIDIS = ['#440154', '#3b528b', '#21918c', '#5ec962', '#fde725'];

function viridis(at) {
  const place = Math.max(0, Math.min(0.9999, at)) * (VIRIDIS.length - 1), i = Math.floor(place);
  return between(VIRIDIS[i], VIRIDIS[i + 1], place - i);
}

function plotHeat(points, {x, y, value, rows, label}) {
  const {width, height, left, right, top, bottom} = CHART,
                                          ranks = [rankOf(x, rows), rankOf(y, rows)];
  const step = [
    (width - right - left) / ranks[0].names.length, (height - bottom - top) / ranks[1].names.length
  ];
  const values = rows.map(row => value.values[row]).filter(Number.isFinite),
        low = Math.min(...values), high = Math.max(...values);
  const unit = unitOfField(value.unit, high);
  const ticks = (axis, from, size) =>
      ranks[axis].names.map((text, i) => ({at: from + (i + 0.5) * size, text}));
  const cells = rows.map(row => heatCell(points, row, {
                           value,
                           unit,
                           low,
                           high,
                           fields: [value, x, y],
                           left: left + ranks[0].of(row) * step[0],
                           top: height - bottom - (ranks[1].of(row) + 1) * step[1],
                           wide: step[0],
                           tall: step[1]
                         }));
  return chart(
      label,
      drawAxes(
          {title: x.title, ticks: ticks(0, left, step[0])},
          {title: y.title, ticks: ticks(1, height - bottom, -step[1])}),
      cells);
}

function rankOf(field, rows) {
  const values = [...new Set(rows.map(row => field.texts ? field.texts[row] : field.values[row]))];
  if (!field.texts) values.sort((a, b) => a - b);
  return {
    names: values.map(value => fieldText(field, value)),
    of: row => values.indexOf(field.texts ? field.texts[row] : field.values[row])
  };
}

function heatCell(points, row, {value, unit, low, high, left, top, wide, tall, fields}) {
  const number = value.values[row], known = Number.isFinite(number), over = points.state[row] === 1;
  const fill = known ? viridis(high > low ? (number - low) / (high - low) : 0.5) : ink.faint;
  const choose = () => choosePoint(points, row), title = pointWords(points, row, fields),
        text = known ? digits(number / unit.size, 3) : '–';
  return svg(
      'g', {
        class: 'mark',
        tabindex: 0,
        role: 'button',
        'aria-label': title,
        click: choose,
        keydown: event => {
          if (event.key === 'Enter') choose();
        }
      },
      svg('title', null, title), svg('rect', {
        x: left + 1,
        y: top + 1,
        width: Math.max(1, wide - 2),
        height: Math.max(1, tall - 2),
        fill,
        rx: 2
      }),
      over ? svg('path', {
        d: `M${left + 1} ${top + tall - 1}L${left + wide - 1} ${top + 1}`,
        stroke: inkOn(fill),
        'stroke-width': 1.5
      }) :
             null,
      wide > 34 && tall > 15 ? svg('text', {
        x: left + wide / 2,
        y: top + tall / 2 + 0.5,
        'text-anchor': 'middle',
        'dominant-baseline': 'middle',
        style: `fill: ${inkOn(fill)}`,
        class: 'inside'
      },
                                   over ? `✕ ${text}` : text) :
                                          null);
}

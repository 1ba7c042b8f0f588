/* Colours: those of every picture of sim, made visible on a dark page as well. */

const dark = window.matchMedia('(prefers-color-scheme: dark)');

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : dark.matches;
}

function rgb(colour) {
  const n = parseInt(colour.slice(1), 16);
  return [n >> 16, n >> 8 & 255, n & 255];
}

const hex = parts => '#' + parts.map(p => Math.round(p).toString(16).padStart(2, '0')).join('');

/* Between two colours, the first (0) and the second (1). */
function between(first, second, at) {
  const a = rgb(first), b = rgb(second);
  return hex(a.map((part, i) => part + (b[i] - part) * at));
}

/* ITU-R BT.601, as sheet.c has it */
function luminance(colour) {
  const [r, g, b] = rgb(colour);
  return (299 * r + 587 * g + 114 * b) / 1000;
}

/* A colour as it is shown: what is near black would not be seen on a dark page. */
function shown(colour) {
  if (!isDark()) return colour;
  const light = luminance(colour);
  return light < 40 ? '#e8e8ea' :
      light < 110   ? between(colour, '#ffffff', 0.1) :
                      between(colour, '#101216', 0.08);
}

const inkOn = colour => luminance(colour) > 115 ? '#101010' : '#ffffff';

/* The page's own colours, from its style. */
let ink = {};

function readInk() {
  const style = getComputedStyle(document.documentElement);
  for (const name
           of ['page', 'panel', 'text', 'soft', 'faint', 'line', 'lane', 'accent', 'path', 'bad'])
    ink[name] = style.getPropertyValue(`--${name}`).trim();
}

/* Of each word of a coded column its colour, with the ink on it and a shade for every second chunk.
 */
function palette(list) {
  return list.map(({colour}) => {
    const fill = shown(colour);
    return {
      fill,
      ink: inkOn(fill),
      shade: [fill, between(fill, isDark() ? '#000000' : '#ffffff', 0.38)],
      edge: between(fill, isDark() ? '#ffffff' : '#000000', 0.35)
    };
  });
}

/* Waiting is hatched, each cause in a way of its own: [colour, how]. */
const HATCHES = {
  dependency: ['#8a8f98', 'rising'],
  flush: ['#a9adb5', 'dots'],
  messages: ['#0072b2', 'falling'],
  collectives: ['#5a4a9c', 'across'],
};

const STROKES = {
  rising: [[0, 6, 6, 0], [-1, 1, 1, -1], [5, 7, 7, 5]],
  falling: [[0, 0, 6, 6], [-1, 5, 1, 7], [5, -1, 7, 1]],
  across: [[0, 1.5, 6, 1.5], [0, 4.5, 6, 4.5]],
  dots: [[1, 1.5, 2.2, 1.5], [4, 4.5, 5.2, 4.5]],
};

function hatchOf(cause) { return HATCHES[cause] || ['#808080', 'rising']; }

/* A tile of 6 by 6 points as a canvas. */
function hatchTile(cause, scale = 1) {
  const [colour, how] = hatchOf(cause), tile = document.createElement('canvas');
  tile.width = tile.height = 6 * scale;
  const pen = tile.getContext('2d');
  pen.scale(scale, scale);
  pen.fillStyle = between(shown(colour), ink.panel, 0.82);
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = shown(colour);
  pen.lineWidth = 1.1;
  pen.beginPath();
  for (const [x0, y0, x1, y1] of STROKES[how]) {
    pen.moveTo(x0, y0);
    pen.lineTo(x1, y1);
  }
  pen.stroke();
  return tile;
}

const hatchImages = new Map();

/* The same as a background of elements. */
function hatchImage(cause) {
  if (!hatchImages.has(cause))
    hatchImages.set(cause, `url(${hatchTile(cause, 2).toDataURL()}) 0 0 / 6px 6px`);
  return hatchImages.get(cause);
}

function switchTheme() {
  document.documentElement.dataset.theme = isDark() ? 'light' : 'dark';
  themeChanged();
}

const themeListeners = [];

function themeChanged() {
  readInk();
  hatchImages.clear();
  themeListeners.forEach(listen => listen());
}

/* The axis of time that all panels share, and how one moves along it. */

const LEFT = 124, RIGHT = 16; /* points beside the drawing area */

const view = {
  until: 1,        /* ps, the end of the axis when nothing is zoomed */
  width: 0,        /* points, of all panels */
  x: null,         /* ps to points */
  panels: [],      /* {canvas, height, draw(pen), fixed: not on the axis of time} */
  behaviour: null, /* D3's zoom */
  home: null,      /* the element that listens */
  points: null,    /* of a sweep or search: what readPoints made */
  waiting: false,  /* a frame is asked for */
  frames: 0,
};

function span() { return view.x.domain(); }

function invalidate() {
  if (view.waiting) return;
  view.waiting = true;
  requestAnimationFrame(() => {
    view.waiting = false;
    drawAll();
  });
}

/* Sizes a canvas for the screen, cleared, in points. */
function penOf(panel) {
  const {canvas, height} = panel, scale = view.scale;
  const width = Math.round(view.width * scale), high = Math.round(height * scale);
  if (canvas.width !== width || canvas.height !== high) {
    canvas.width = width;
    canvas.height = high;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, view.width, height);
  pen.font = `11px ${FONT}`;
  pen.textBaseline = 'middle';
  return pen;
}

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

/* Panels far outside of the window wait until they are scrolled to. */
function inWindow(canvas) {
  const box = canvas.getBoundingClientRect();
  return box.bottom > -200 && box.top < window.innerHeight + 200;
}

/* The part of a panel that is in the window, from and until; points from its top. */
function shownPart(panel) {
  if (view.everything) return [0, panel.height];
  const {top} = panel.canvas.getBoundingClientRect();
  return [-top - 50, window.innerHeight - top + 50];
}

function drawAll(everything) {
  view.frames++;
  view.everything = everything;
  for (const panel of view.panels)
    if (everything || (!panel.fixed && inWindow(panel.canvas))) panel.draw(penOf(panel));
}

/* ---- moving ---- */

function applyTransform(transform) {
  view.x = transform.rescaleX(view.base);
  invalidate();
  document.getElementById('range').textContent = rangeText();
}

function rangeText() {
  const [from, until] = span();
  return until - from >= view.until * 0.9999 ?
      `all ${formatTime(view.until)}` :
      `${formatTime(from)} to ${formatTime(until)} (${formatTime(until - from, 3)})`;
}

/* Outwards from the whole the wheel moves the page. */
function takes(event) {
  if (event.type === 'wheel' && !event.ctrlKey && event.deltaY > 0 &&
      d3.zoomTransform(view.home.node()).k <= 1)
    return false;
  if (event.type === 'wheel' && (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)))
    return false;
  return !event.button &&
      !(event.target.closest && event.target.closest('select, button, input, a'));
}

function makeZoom(home) {
  view.home = d3.select(home);
  view.behaviour =
      d3.zoom()
          .filter(event => takes(event || d3.event))
          .clickDistance(4)
          .on('zoom', event => applyTransform((event && event.transform) || d3.event.transform));
  view.home.call(view.behaviour);
  home.addEventListener('wheel', event => {
    const along = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
    if (!along || (!event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY))) return;
    event.preventDefault();
    pan(along / (view.width - LEFT - RIGHT));
  }, {passive: false});
}

/* In points, as wide as it is shown: what is drawn is never squeezed. */
const widthOf = home => Math.max(300, home.clientWidth);

/* Measures the page; what is in view stays. */
function measure() {
  const home = view.home.node(), before = view.x && span();
  view.width = widthOf(home);
  view.scale = Math.min(3, Math.max(view.printing ? 2.5 : 1, window.devicePixelRatio || 1));
  const extent = [[LEFT, 0], [view.width - RIGHT, 1]];
  view.base = d3.scaleLinear().domain([0, view.until]).range([LEFT, view.width - RIGHT]);
  view.behaviour.extent(extent).translateExtent(extent).scaleExtent(
      [1, Math.max(1, view.until / 1e3)]);
  if (before)
    show(before[0], before[1]);
  else
    applyTransform(d3.zoomIdentity);
}

/* Brings [from, until) into view. */
function show(from, until) {
  const [left, right] = view.base.range(), least = view.until / view.behaviour.scaleExtent()[1];
  const wide = Math.min(view.until, Math.max(least, until - from));
  const at = Math.max(0, Math.min(view.until - wide, (from + until - wide) / 2));
  const k = view.until / wide;
  const transform =
      d3.zoomIdentity.translate(left - k * (left + at / view.until * (right - left)), 0).scale(k);
  view.home.call(view.behaviour.transform, transform);
}

/* By a share of what is in view. */
function pan(share) {
  const [from, until] = span(),
               by = Math.max(-from, Math.min(view.until - until, share * (until - from)));
  show(from + by, until + by);
}

function zoomBy(factor) {
  const [from, until] = span(), middle = (from + until) / 2, half = (until - from) / 2 / factor;
  show(middle - half, middle + half);
}

/* ---- the axis ---- */

/* Where numbers stand, in a unit in which they are short. */
function ticksOf(scale, room) {
  const [from, until] = scale.domain(), [size, name] = unitOf(TIME_UNITS, until);
  const inUnit = d3.scaleLinear().domain([from / size, until / size]);
  const n = Math.max(2, Math.floor(room / 90));
  const text = inUnit.tickFormat(n);
  return {unit: name, ticks: inUnit.ticks(n).map(value => ({at: value * size, text: text(value)}))};
}

function drawAxis(pen) {
  const {unit, ticks} = ticksOf(view.x, view.width - LEFT - RIGHT);
  pen.fillStyle = ink.soft;
  pen.strokeStyle = ink.line;
  pen.textAlign = 'right';
  pen.fillText(`time (${unit})`, LEFT - 34, 13);
  pen.textAlign = 'center';
  pen.beginPath();
  for (const {at, text} of ticks) {
    const x = Math.round(view.x(at)) + 0.5;
    pen.moveTo(x, 21);
    pen.lineTo(x, 26);
    pen.fillText(text, x, 13);
  }
  pen.stroke();
}

function drawGrid(pen, height) {
  pen.strokeStyle = ink.faint;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const {at} of ticksOf(view.x, view.width - LEFT - RIGHT).ticks) {
    const x = Math.round(view.x(at)) + 0.5;
    pen.moveTo(x, 0);
    pen.lineTo(x, height);
  }
  pen.stroke();
}

/* Restricts drawing to the area of time. */
function clipped(pen, height, draw) {
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, view.width - LEFT - RIGHT, height);
  pen.clip();
  draw();
  pen.restore();
}

/* Numbers for people: SI prefixes, four significant digits, as sim prints them. */

const TIME_UNITS = [[1e12, 's'], [1e9, 'ms'], [1e6, 'µs'], [1e3, 'ns'], [1, 'ps']];
const BYTE_UNITS = [[1e15, 'PB'], [1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB'], [1, 'B']];

function unitOf(units, value) {
  return units.find(([size]) => Math.abs(value) >= size) || units[units.length - 1];
}

function digits(value, n = 4) {
  if (value === 0) return '0';
  const places = Math.max(0, n - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 12)).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
}

function inUnits(units, value, n) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (value === 0) return `0 ${units[units.length - 1][1] === 'ps' ? 's' : 'B'}`;
  const [size, name] = unitOf(units, value);
  return `${digits(value / size, n)} ${name}`;
}

const formatTime = (ps, n) => inUnits(TIME_UNITS, ps, n);
const formatBytes = (bytes, n) => inUnits(BYTE_UNITS, bytes, n);
const formatRate = rate => rate === null ? 'unlimited' : `${formatBytes(rate)}/s`;
const formatPercent = share =>
    share > 0 && share < 1e-4 ? '< 0.01 %' : `${digits(100 * share, 3)} %`;
const formatCount = n => n.toLocaleString('en').replace(/,/g, '\u202f');

/* To the picosecond: "12.345678901 ms". */
function exactTime(ps) {
  const [size, name] = unitOf(TIME_UNITS, ps);
  const places = Math.round(Math.log10(size));
  return `${(ps / size).toFixed(places).replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '')} ${
      ps === 0 ? 's' : name}`;
}

/* "backward_input" as "backward input". */
const words = name => name.replace(/_/g, ' ');

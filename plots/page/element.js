'use strict';

/* Elements of the page. All texts become text nodes: nothing that a user wrote is read as HTML. */

/* element('td', {class: 'number'}, 'text', child, ...); attributes that are null or false are left
 * out, functions listen to the event of their name. */
function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (typeof value === 'function')
      made.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false)
      made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined));
  return made;
}

function section(id, title, ...children) {
  return element(
      'section', {id, 'aria-labelledby': `${id}-title`}, element('h2', {id: `${id}-title`}, title),
      ...children);
}

/* A table. `columns`: [{title, number, class}]; cells are texts or elements; the first cell of a
 * row is its heading. */
function table(caption, columns, rows, attributes) {
  const heads = columns.map(
      c => element('th', {scope: 'col', class: c.number ? 'number' : c.class}, c.title));
  const cell = (content, {number, class: name}, first) => element(
      first ? 'th' : 'td', {scope: first ? 'row' : null, class: number ? 'number' : name}, content);
  const bodies = rows.map(
      cells => element('tr', null, cells.map((content, i) => cell(content, columns[i], i === 0))));
  return element(
      'div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
      element(
          'table', attributes, element('caption', {class: 'unseen'}, caption),
          element('thead', null, element('tr', null, heads)), element('tbody', null, bodies)));
}

function swatch(colour, pattern) {
  const made = element('span', {class: 'swatch', 'aria-hidden': 'true'});
  made.style.background = pattern || colour;
  return made;
}

function button(text, title, act, attributes) {
  return element('button', {type: 'button', title, click: act, ...attributes}, text);
}

/* A button that stays pressed: `state` is an object whose member `key` it switches. */
function toggle(text, title, state, key, changed) {
  const made = button(text, title, () => {
    state[key] = !state[key];
    made.setAttribute('aria-pressed', `${state[key]}`);
    changed();
  }, {'aria-pressed': `${state[key]}`});
  return made;
}

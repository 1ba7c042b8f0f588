/* Links: how much each carried, and how busy it was. */

function linkTable(run) {
  const rows = [...run.links].sort((a, b) => b.utilisation - a.utilisation || b.bytes - a.bytes);
  const shown = rows.filter(link => link.bytes > 0), most = Math.max(0.01, ...shown.map(link => link.utilisation));
  if (shown.length === 0) return element('p', {class: 'quiet'}, 'No link carried anything.');
  const meter = link => element('span', {class: 'meter', 'aria-hidden': 'true'}, meterFill(link.utilisation / Math.max(1, most)));
  return [element('p', {class: 'quiet'}, `${formatCount(shown.length)} of ${formatCount(run.links.length)} links carried bytes. Utilisation is bytes over bandwidth times makespan.`),
    table(`Links of ${run.name}`, [{title: 'link'}, {title: 'bandwidth', number: true}, {title: 'carried', number: true},
                                   {title: 'utilisation', number: true}, {title: '', class: 'wide'}],
          shown.slice(0, 256).map(link => [link.name, formatRate(link.bandwidth), formatBytes(link.bytes),
                                           link.utilisation === null ? '–' : formatPercent(link.utilisation), meter(link)])),
    shown.length > 256 ? element('p', {class: 'quiet'}, `${shown.length - 256} links that carried less are left out.`) : null];
}

function meterFill(share) {
  const fill = element('span');
  fill.style.width = `${100 * Math.min(1, share)}%`;
  return fill;
}

#!/usr/bin/env python3
"""The tables of scenarios/madpipe/README.md, and the data of its figures, from the sweeps' files.

    tables.py literal.h5 [full.h5] [--data FOLDER]

Prints Markdown; needs h5py. A period is missing where a planner found no plan that fits. Means are
geometric, over the points where both of what is compared have a plan.
"""
import argparse
import json
import os

import h5py
import numpy

NETWORK, DEVICES, MEMORY, BANDWIDTH, PLANNER = range(5)
RULES = ['depth', 'all', 'original']
SCARCE = 10  # GB: the claim is about less


def text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def planner_name(value):
    asked = text(value)
    asked = json.loads(asked) if asked.startswith('{') else {'planner': asked}
    choice = asked.get('memory_rule', asked.get('special'))
    return asked['planner'] + (' ' + choice if choice else '')


class Study:
    """Periods by planner, as arrays over network, devices, memory and bandwidth; in seconds."""

    def __init__(self, path):
        with h5py.File(path) as file:
            axes = [file[axis][...] for axis in text(file.attrs['axes']).split()]
            self.networks = [text(value) for value in axes[NETWORK]]
            self.devices = [int(value) for value in axes[DEVICES]]
            self.memories = [round(value / 1e9) for value in axes[MEMORY]]
            self.bandwidths = [round(value / 1e9) for value in axes[BANDWIDTH]]
            self.planners = [planner_name(value) for value in axes[PLANNER]]
            self.valid = self.by_planner(file, 'plan_period_s')
            self.promised = self.by_planner(file, 'plan_promised_period_s')
            # the same for all planners, but recorded only where one has a plan
            self.bound = numpy.nanmin(self.all_of(file, 'plan_lower_bound_s', numpy.inf), axis=-1)
            self.load = self.one_device(file)
            self.runs = int(numpy.isfinite(file['plan_period_s'][...]).sum())
            self.confirmed = self.count_confirmed(file)

    @staticmethod
    def all_of(file, figure, missing):
        values = file[figure][...]
        return numpy.where(numpy.isnan(values), missing, values)

    def by_planner(self, file, figure):
        values = file[figure][...]
        return {name: values[..., i] for i, name in enumerate(self.planners)}

    def one_device(self, file):
        """U of each network: 1 - N U / (P makespan) is the bubble."""
        devices = numpy.array(self.devices)[None, :, None, None, None]
        micro_batches = file['micro_batches'][...] * file['iterations'][...]
        busy = (1 - file['bubble_fraction'][...]) * devices * file['makespan_s'][...]
        return numpy.nanmedian(busy / micro_batches, axis=(1, 2, 3, 4))

    @staticmethod
    def count_confirmed(file):
        """Runs whose simulated period, peak memory and makespan are the pattern's."""
        same = numpy.isfinite(file['plan_period_s'][...])
        for figure in ('iteration_time_s', 'peak_memory_bytes', 'makespan_s'):
            same &= abs(file['difference_' + figure][...]) < 0.5e-12  # of whole ps and bytes
        period = file['iteration_time_s'][...] / file['micro_batches'][...]
        same &= numpy.isclose(period, file['plan_period_s'][...], rtol=1e-14, atol=0)
        return int(same.sum())


def mean(ratios):
    ratios = ratios[numpy.isfinite(ratios)]
    return numpy.exp(numpy.log(ratios).mean()) if ratios.size else numpy.nan


def number(value, digits=3):
    return f'{value:.{digits}f}' if numpy.isfinite(value) else '-'


def share(part, whole):
    return f'{part} of {whole}'


def table(title, head, rows):
    print(f'\n**{title}**\n')
    print('| ' + ' | '.join(head) + ' |')
    print('|' + '---|' * len(head))
    for row in rows:
        print('| ' + ' | '.join(str(cell) for cell in row) + ' |')


def compare(other, own):
    """How other's periods are to own's: mean, largest, how often over 1.2, and who stands alone."""
    both = numpy.isfinite(other) & numpy.isfinite(own)
    ratios = other[both] / own[both]
    return [number(mean(ratios)), number(ratios.min()) if ratios.size else '-',
            number(ratios.max()) if ratios.size else '-', share((ratios > 1.2).sum(), ratios.size),
            (numpy.isfinite(own) & ~both).sum(), (numpy.isfinite(other) & ~both).sum()]


COMPARED = ['mean', 'least', 'largest', 'over 1.2', 'only the latter has a plan',
            'only the former']


def rules_table(study, special, least, most):
    chosen = [i for i, m in enumerate(study.memories) if least <= m <= most]
    own = study.valid['madpipe ' + special][:, :, chosen]
    rows = [[name, *compare(study.valid[name][:, :, chosen], own)] for name in
            ['pipedream ' + rule for rule in RULES] + ['contiguous_optimal']]
    table(f'Period over that of `madpipe` ({special}), {least} to {most} GB',
          ['planner', *COMPARED], rows)


def means_table(study, title, pairs):
    """A row per memory; of each pair (name, periods, periods) the mean ratio."""
    rows = [[m, *[number(mean(a[:, :, i] / b[:, :, i])) for _, a, b in pairs]]
            for i, m in enumerate(study.memories)]
    table(title, ['GB', *[name for name, _, _ in pairs]], rows)


def phases_table(study):
    rows = []
    for name in study.planners:
        valid, promised = study.valid[name], study.promised[name]
        kept = numpy.isfinite(valid) & numpy.isfinite(promised)
        if not kept.any():
            continue
        ratio = valid[kept] / promised[kept]
        rows.append([name, number(mean(ratio)), number(ratio.max()),
                     share((ratio > 1.000001).sum(), ratio.size),
                     share(numpy.isfinite(valid).sum(), valid.size)])
    table('Valid period over the promised one',
          ['planner', 'mean', 'largest', 'longer than promised', 'plans'], rows)


def winners_table(study):
    """madpipe against the best contiguous plan."""
    rows = []
    contiguous = study.valid['contiguous_optimal']
    for name in ['madpipe optimistic', 'madpipe safe']:
        own = study.valid[name]
        both = numpy.isfinite(own) & numpy.isfinite(contiguous)
        ratio = contiguous[both] / own[both]
        rows.append([name, number(mean(ratio)), number(ratio.max()), (ratio > 1.000001).sum(),
                     (ratio < 0.999999).sum(), number(ratio.min()), ratio.size,
                     (numpy.isfinite(own) & ~both).sum(),
                     (numpy.isfinite(contiguous) & ~both).sum()])
    table('Period of `contiguous_optimal` over that of',
          ['planner', 'mean', 'largest', 'shorter at', 'longer at', 'least', 'points',
           'has a plan alone', 'has none alone'], rows)


def networks_table(study):
    rows = []
    for n, network in enumerate(study.networks):
        rows.append([network, number(1e3 * study.load[n], 1)] +
                    [number(mean(study.valid[name][n] / study.valid['madpipe safe'][n]))
                     for name in study.planners if name != 'madpipe safe'] +
                    [number(mean(study.valid['madpipe safe'][n] / study.bound[n]))])
    names = [name for name in study.planners if name != 'madpipe safe']
    table('Mean period over that of `madpipe` (safe), and of that over the bound, by network',
          ['network', 'U, ms', *names, 'safe / bound'], rows)


def main_tables(study):
    print(f'{study.runs} plans; the simulation gives the period, the makespan and the peak memory '
          f'of the pattern at {study.confirmed}')
    for special in ('optimistic', 'safe'):
        rules_table(study, special, study.memories[0], SCARCE - 1)
        rules_table(study, special, SCARCE, study.memories[-1])
    winners_table(study)
    phases_table(study)
    # as far as all have a plan, so that means are over the same points
    everyone = sum(study.valid[name] for name in study.planners if name != 'pipedream all')
    means_table(study, 'Mean period over the lower bound where all planners but `pipedream` '
                '(all) have a plan',
                [(name, study.valid[name] + 0 * everyone, study.bound)
                 for name in study.planners if name != 'pipedream all'])
    networks_table(study)


def full_table(study, full):
    """Both conventions at the points of the second sweep."""
    pick = [study.bandwidths.index(b) for b in full.bandwidths]
    rows = []
    for name in full.planners:
        literal, kept = study.valid[name][..., pick], full.valid[name]
        contiguous = full.valid['contiguous_optimal']
        rows.append([name, share(numpy.isfinite(literal).sum(), literal.size),
                     share(numpy.isfinite(kept).sum(), kept.size), number(mean(kept / literal)),
                     number(mean(literal / study.valid['contiguous_optimal'][..., pick])),
                     number(mean(kept / contiguous))])
    table('`literal` and `full`', ['planner', 'plans, literal', 'plans, full', 'full / literal',
                                   'over contiguous_optimal, literal', 'the same, full'], rows)


# ---- data of the figures ----

SHOWN = ['pipedream depth', 'pipedream original', 'contiguous_optimal', 'madpipe optimistic',
         'madpipe safe']


def write(folder, name, blocks):
    """gnuplot's blocks, two empty lines between them; NaN where there is nothing."""
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
        for block in blocks:
            for row in block:
                file.write(' '.join(f'{value:.6g}' for value in row) + '\n')
            file.write('\n\n')


def write_data(study, folder):
    os.makedirs(folder, exist_ok=True)
    slow = study.bandwidths.index(12)
    periods = [[[m, *[1e3 * study.valid[name][n, p, i, slow] for name in SHOWN],
                 *[1e3 * study.promised[name][n, p, i, slow] for name in SHOWN]]
                for i, m in enumerate(study.memories)]
               for n in range(len(study.networks)) for p in map(study.devices.index, (2, 4, 8))]
    write(folder, 'periods.dat', periods)
    own = study.valid['madpipe safe']
    others = ['pipedream ' + rule for rule in RULES] + ['contiguous_optimal']
    ratios = [[[m, *[mean(study.valid[name][:, p, i] / own[:, p, i])
                     for p in range(len(study.devices))]]
               for i, m in enumerate(study.memories)] for name in others]
    write(folder, 'ratios.dat', ratios)
    speedups = [[[p, *[study.load[n] / study.valid[name][n, i, m, slow] for name in SHOWN]]
                 for i, p in enumerate(study.devices)]
                for n in range(len(study.networks)) for m in map(study.memories.index, (6, 8, 16))]
    write(folder, 'speedups.dat', speedups)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('literal', help='results of study.json')
    parser.add_argument('full', nargs='?', help='of the same with other memory rules')
    parser.add_argument('--data', metavar='FOLDER', help='write data for figures.gp')
    asked = parser.parse_args()
    study = Study(asked.literal)
    main_tables(study)
    if asked.full:
        full_table(study, Study(asked.full))
    if asked.data:
        write_data(study, asked.data)


if __name__ == '__main__':
    main()

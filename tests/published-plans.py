#!/usr/bin/env python3
"""Published plans next to the best plans of `sim advise`: published-plans.py SIM [ROW ...]
[--update PAGE]

Llama 3 405B (Grattafiori et al., 2024, section 3.3.2): one row of its own, from the repository's
scenario.

Megatron-LM of 2021 (Narayanan et al., SC 2021, arXiv 2104.04473, table 1). Candidates are what that
program could do: its runtime's conventions, fp16, tensor sizes up to a node, pipelines of a quarter
to four times the table's ranks, data inside pipeline, all layers recomputed, no ZeRO, no sequence
parallelism; 1F1B plain, or interleaved where layers divide by the stages and micro-batches by the
pipeline ranks. Each rail of the network is one switch, as a full fat tree with adaptive routing is
in effect, so that alike devices are simulated once. Prints a row of a table in Markdown per model:
the fastest plan with the table's tensor and pipeline sizes, its throughput, and the best plan of
all. For those more than 10 % above the best, a second table says by how much each part of the step
is longer. `--update PAGE` puts the tables between the page's markers. All rows take about five
minutes on two cores.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

# billions of parameters: heads, hidden, layers, tensor, pipeline, devices, batch, Tflop/s of a
# device
ROWS = {'1.7': (24, 2304, 24, 1, 1, 32, 512, 137),
        '3.6': (32, 3072, 30, 2, 1, 64, 512, 138),
        '7.5': (32, 4096, 36, 4, 1, 128, 512, 142),
        '18.4': (48, 6144, 40, 8, 1, 256, 1024, 135),
        '39.1': (64, 8192, 48, 8, 2, 512, 1536, 138),
        '76.1': (80, 10240, 60, 8, 4, 1024, 1792, 140),
        '145.6': (96, 12288, 80, 8, 8, 1536, 2304, 148),
        '310.1': (128, 16384, 96, 8, 16, 1920, 2160, 155),
        '529.6': (128, 20480, 105, 8, 35, 2520, 2520, 163),
        '1008': (160, 25600, 128, 8, 64, 3072, 3072, 163)}
# dgx-a100, except one switch per rail
PLATFORM = {'topology': 'cluster', 'gpus_per_node': 8, 'reserve': '4 GB',
            'node': {'topology': 'nvswitch', 'model': 'dgx-a100', 'latency': '0.6 us',
                     'pcie': {'sockets': 2, 'switches_per_socket': 2, 'gpus_per_switch': 2,
                              'nics': 8,
                              'bandwidth': '24 GB/s', 'uplink_bandwidth': '24 GB/s',
                              'socket_bandwidth': '16 GB/s',
                              'latency': '0.5 us'}},
            'network': {'topology': 'leaf_spine', 'rails': 8, 'hosts_per_leaf': 512, 'spines': 1,
                        'bandwidth': '25 GB/s', 'latency': '0.1 us'}}
SEQUENCE, VOCABULARY = 2048, 51200
SHOWN = 24  # plans of a search; some may be impossible (is_possible)
WITHIN = 10  # per cent above the best: a published plan is as good
PARTS = (('redundancy', ('redundancy',)), ('collectives in layers', ('layer-wise collectives',)),
         ('gradient exchange', ('gradient exchange',)), ('stage messages', ('stage messages',)),
         ('bubbles', ('bubbles',)))
LLAMA = {'tensor': [4, 8], 'context': [1, 2], 'pipeline': [4, 8, 16], 'zero': [1, 3],
         'micro_batch': [1, 2],
         'schedules': ['1f1b', 'interleaved_1f1b'], 'stages_per_device': [4, 8], 'inner': 'data'}


def scenario(row, limits):
    """With the table's plan in it, of micro-batches of one sample."""
    heads, hidden, layers, tensor, pipeline, devices, batch, _ = row
    samples = batch * tensor * pipeline // devices
    return {'schema_version': 1, 'runtime': 'megatron-lm-2021',
            'model': {'name': 'gpt', 'parameters': {'layers': layers, 'hidden': hidden,
                                                    'heads': heads,
                                                    'sequence': SEQUENCE, 'vocabulary': VOCABULARY},
                      'device': 'a100', 'precision': 'fp16', 'granularity': 'block',
                      'optimizer': 'adam',
                      'batch_size': batch},
            'platform': {**PLATFORM, 'devices': devices},
            'parallel': {'tensor': tensor, 'pipeline': pipeline},
            'schedule': {'kind': '1f1b' if pipeline > 1 else 'sequential',
                         'micro_batches': samples},
            'advise': {'zero': 0, 'sequence_parallel': False, 'context': 1, 'recompute': 'full',
                       'inner': 'data',
                       'micro_batch': [1, 2, 4, 8], **limits}}


def is_possible(plan):
    """Interleaving takes as many micro-batches as a multiple of the pipeline ranks."""
    changes = plan['changes']
    return changes['/schedule']['kind'] != 'interleaved_1f1b' or \
        changes['/schedule']['micro_batches'] % changes['/parallel']['pipeline'] == 0


def advise(sim, path, limits=None):
    """The best plans within the scenario's limits, or within these."""
    given = ['-s', '/advise=' + json.dumps(limits)] if limits else []
    done = subprocess.run([sim, 'advise', path, '--json', '--all', '--top', str(SHOWN), *given],
                          capture_output=True, text=True,
                          check=False)
    return json.loads(done.stdout)['best'] if done.returncode == 0 else []


def search(sim, folder, row, tensor, pipeline):
    """The fastest plans with this number of pipeline ranks."""
    layers = row[2]
    chunks = [v for v in range(2, 9) if layers % (pipeline * v) == 0]
    schedules = ['sequential'] if pipeline == 1 else ['1f1b'] + (['interleaved_1f1b'] if chunks
                                                                 else [])
    limits = {'tensor': tensor, 'pipeline': pipeline, 'schedules': schedules}
    if chunks and pipeline > 1:
        limits['stages_per_device'] = chunks
    path = os.path.join(folder, 'scenario.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(scenario(row, limits), file)
    return [plan for plan in advise(sim, path) if is_possible(plan)]


def rate(row, plan):
    """Tflop/s of a device by the paper's formula (equation 3), which counts the recomputation."""
    _, hidden, layers, _, _, devices, batch, _ = row
    flops = 96 * batch * SEQUENCE * layers * hidden ** 2 * (
        1 + SEQUENCE / (6 * hidden) + VOCABULARY / (16 * layers * hidden))
    return flops / plan['step_time_s'] / devices / 1e12


def best(plans):
    return min(plans, key=lambda plan: plan['step_time_s'], default=None)


def describe(plan):
    return (f"{plan['step_time_s']:.4g} s: {plan['plan'].replace(', recomputing', '')} "
            f"({plan['limited_by']})")


def parts(name, theirs, found):
    """By how many seconds each part is longer than in the best plan."""
    longer = [sum(theirs['limits_s'][key] - found['limits_s'][key] for key in keys)
              for _, keys in PARTS]
    total = theirs['step_time_s'] - found['step_time_s']
    return f'| {name}B | {total:.2f} | ' + ' | '.join(f'{seconds:.2f}' for seconds in longer) + ' |'


def megatron(sim, folder, names):
    """Lines of both tables, without their heads."""
    rows, longer = [], []
    for name in names:
        row = ROWS[name]
        _, _, layers, tensor, pipeline, devices, batch, measured = row
        sizes = [p for p in range(1, layers + 1)
                 if layers % p == 0 and devices % p == 0 and p <= 4 * pipeline <= 16 * p]
        theirs = best(search(sim, folder, row, tensor, pipeline))
        found = best([plan for p in sizes for plan in search(sim, folder, row, [1, 2, 4, 8], p)])
        head = f'| {name}B, {devices}, {batch} | '
        if not theirs or not found:
            rows.append(head + 'does not fit | | | |')
            continue
        above = 100 * (theirs['step_time_s'] / found['step_time_s'] - 1)
        rows.append(head + f'{describe(theirs)} | {rate(row, theirs):.0f}, {measured} | '
                    f'{describe(found) if above > 0 else "the same"} | {above:.1f} % |')
        if above > WITHIN:
            longer.append(parts(name, theirs, found))
        print(rows[-1], file=sys.stderr, flush=True)
    return rows, longer


def llama(sim):
    """The line of Llama 3 405B: its plan, and the best of all."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'scenarios',
                        'llama3-405b-16384.json')
    theirs = best(
        advise(sim, path, {**LLAMA, 'tensor': 8, 'context': 1, 'pipeline': 16, 'zero': 1}))
    found = best(advise(sim, path, LLAMA))
    above = 100 * (theirs['step_time_s'] / found['step_time_s'] - 1)
    return (
        f"| {theirs['step_time_s']:.4g} s: {theirs['plan']} | {describe(found)} | {above:.1f} % |")


def tables(sim, names, whole):
    """{name of a table: its Markdown}"""
    made = {}
    if whole:
        made['llama'] = '| published | best found | above it |\n|---|---|---|\n' + llama(sim)
    with tempfile.TemporaryDirectory(prefix='published-plans-') as folder:
        rows, longer = megatron(sim, folder, names)
    made['megatron'] = '\n'.join(['| model, devices, batch | sizes of table 1 | Tflop/s: '
                                  'simulated, measured | '
                                  'best found | above it |', '|---|---|---|---|---|', *rows])
    head = '| model | above the best | ' + ' | '.join(name for name, _ in PARTS) + ' |'
    made['parts'] = '\n'.join([head, '|---' * (len(PARTS) + 2) + '|', *longer])
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('sim')
    parser.add_argument('rows', nargs='*', metavar='ROW', help='of ' + ', '.join(ROWS))
    parser.add_argument('--update', metavar='PAGE')
    given = parser.parse_args()
    if not set(given.rows) <= set(ROWS):
        parser.error('rows are ' + ', '.join(ROWS))
    if given.update and given.rows:
        parser.error('a page takes all rows')
    made = tables(os.path.abspath(given.sim), given.rows or ROWS, not given.rows)
    for name, table in made.items():
        print(f'{name}\n\n{table}\n')
    if given.update:
        with open(given.update, encoding='utf-8') as file:
            page = file.read()
        for name, table in made.items():
            page = re.sub(f'(<!-- published plans: {name} -->\n).*?(<!-- end -->)',
                          lambda found, table=table: found[1] + table + '\n' + found[2], page,
                          flags=re.S)
        with open(given.update, 'w', encoding='utf-8') as file:
            file.write(page)


if __name__ == '__main__':
    main()

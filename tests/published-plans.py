#!/usr/bin/env python3
"""Published plans beside the best that `sim advise` finds: published-plans.py SIM [ROW ...]

Megatron-LM of 2021 (Narayanan et al., SC 2021, arXiv 2104.04473, table 1). Candidates are what that program
could do: its runtime's conventions, fp16, tensor sizes up to a node, pipelines of a quarter to four times the
table's ranks, data inside pipeline, all layers recomputed, no ZeRO, no sequence parallelism; 1F1B plain, or
interleaved where layers divide by the stages and micro-batches by the pipeline ranks. Each rail of the network
is one switch, as a full fat tree with adaptive routing is in effect, so that alike devices are simulated once.
Prints a row of a table in Markdown per model: the fastest plan with the table's tensor and pipeline sizes, its
throughput, and the best plan of all.
"""
import json
import os
import subprocess
import sys
import tempfile

# billions of parameters: heads, hidden, layers, tensor, pipeline, devices, batch, Tflop/s of a device
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
# dgx-a100, but for one switch a rail
PLATFORM = {'topology': 'cluster', 'gpus_per_node': 8, 'reserve': '4 GB',
            'node': {'topology': 'nvswitch', 'model': 'dgx-a100', 'latency': '0.6 us',
                     'pcie': {'sockets': 2, 'switches_per_socket': 2, 'gpus_per_switch': 2, 'nics': 8,
                              'bandwidth': '24 GB/s', 'uplink_bandwidth': '24 GB/s', 'socket_bandwidth': '16 GB/s',
                              'latency': '0.5 us'}},
            'network': {'topology': 'leaf_spine', 'rails': 8, 'hosts_per_leaf': 512, 'spines': 1,
                        'bandwidth': '25 GB/s', 'latency': '0.1 us'}}
SEQUENCE, VOCABULARY = 2048, 51200
SHOWN = 2


def scenario(row, advise):
    """With the table's plan in it, of micro-batches of one sample."""
    heads, hidden, layers, tensor, pipeline, devices, batch, _ = row
    samples = batch * tensor * pipeline // devices
    return {'schema_version': 1, 'runtime': 'megatron-lm-2021',
            'model': {'name': 'gpt', 'parameters': {'layers': layers, 'hidden': hidden, 'heads': heads,
                                                    'sequence': SEQUENCE, 'vocabulary': VOCABULARY},
                      'device': 'a100', 'precision': 'fp16', 'granularity': 'block', 'optimizer': 'adam',
                      'batch_size': batch},
            'platform': {**PLATFORM, 'devices': devices},
            'parallel': {'tensor': tensor, 'pipeline': pipeline},
            'schedule': {'kind': '1f1b' if pipeline > 1 else 'sequential', 'micro_batches': samples},
            'advise': {'zero': 0, 'sequence_parallel': False, 'context': 1, 'recompute': 'full', 'inner': 'data',
                       'micro_batch': [1, 2, 4, 8], **advise}}


def is_possible(plan):
    """Interleaving takes as many micro-batches as a multiple of the pipeline ranks."""
    changes = plan['changes']
    return changes['/schedule']['kind'] != 'interleaved_1f1b' or \
        changes['/schedule']['micro_batches'] % changes['/parallel']['pipeline'] == 0


def search(sim, folder, row, tensor, pipeline):
    """The fastest plans on so many pipeline ranks."""
    layers = row[2]
    chunks = [v for v in range(2, 9) if layers % (pipeline * v) == 0]
    schedules = ['sequential'] if pipeline == 1 else ['1f1b'] + (['interleaved_1f1b'] if chunks else [])
    advise = {'tensor': tensor, 'pipeline': pipeline, 'schedules': schedules}
    if chunks and pipeline > 1:
        advise['stages_per_device'] = chunks
    path = os.path.join(folder, 'scenario.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(scenario(row, advise), file)
    done = subprocess.run([sim, 'advise', path, '--json', '--top', str(SHOWN)], capture_output=True, text=True,
                          check=False)
    return [plan for plan in json.loads(done.stdout)['best'] if is_possible(plan)] if done.returncode == 0 else []


def rate(row, plan):
    """Tflop/s of a device by the paper's formula (equation 3), which counts the recomputation."""
    _, hidden, layers, _, _, devices, batch, _ = row
    flops = 96 * batch * SEQUENCE * layers * hidden ** 2 * (
        1 + SEQUENCE / (6 * hidden) + VOCABULARY / (16 * layers * hidden))
    return flops / plan['step_time_s'] / devices / 1e12


def best(plans):
    return min(plans, key=lambda plan: plan['step_time_s'], default=None)


def describe(plan):
    return f"{plan['step_time_s']:.4g} s: {plan['plan'].replace(', recomputing', '')} ({plan['limited_by']})"


def print_row(sim, folder, name, row):
    _, _, layers, tensor, pipeline, devices, batch, measured = row
    sizes = [p for p in range(1, layers + 1) if layers % p == 0 and devices % p == 0 and p <= 4 * pipeline <= 16 * p]
    theirs = best(search(sim, folder, row, tensor, pipeline))
    found = best([plan for p in sizes for plan in search(sim, folder, row, [1, 2, 4, 8], p)])
    if not theirs or not found:
        print(f'| {name}B, {devices}, {batch} | does not fit | | | |', flush=True)
        return
    above = 100 * (theirs['step_time_s'] / found['step_time_s'] - 1)
    print(f'| {name}B, {devices}, {batch} | {describe(theirs)} | {rate(row, theirs):.0f}, {measured} | '
          f'{describe(found) if above > 0 else "the same"} | {above:.1f} % |', flush=True)


def main():
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(ROWS):
        sys.exit(f'usage: published-plans.py SIM [ROW...], rows: {", ".join(ROWS)}')
    sim = os.path.abspath(sys.argv[1])
    print('| model, devices, batch | sizes of table 1 | Tflop/s: simulated, measured | best found | above it |')
    print('|---|---|---|---|---|')
    with tempfile.TemporaryDirectory(prefix='published-plans-') as folder:
        for name in sys.argv[2:] or ROWS:
            print_row(sim, folder, name, ROWS[name])


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""Doubles one size at a time, and prints how the time grows: growth.py SIM [--seconds S] [NAME ...]

A case is a schedule, planner, allocator, topology or kind of output, and one size of it (layers,
micro-batches, devices, stages, chunks, experts, mini-batches). The size doubles until a command
takes S seconds of processor time or the program refuses it. Printed are the last two sizes, their
times, and the exponent: 1 if twice the size takes twice the time. For a run, also the exponent of
its number of tasks; the time should grow like the tasks. NAME selects the cases whose names hold
the text. The test `growth` checks the sizes that once grew faster.
"""
import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile

SHORTEST = 0.15  # s: exponents of shorter times say how long the program takes to start
GROWS = 1.2  # exponents above it are marked


def uniform(layers, **more):
    return {'uniform': {'layers': layers, 'forward': '1 ms', 'backward': '2 ms',
                        'weights': '1 MB', 'activation': '1 MB', **more}}


def switch(devices, **more):
    return {'topology': 'nvlink_switch', 'devices': devices, 'bandwidth': '10 GB/s', **more}


def scenario(model, platform, schedule, **more):
    return {'schema_version': 1, 'model': model, 'platform': platform, 'schedule': schedule, **more}


def gpt(layers, devices, batch, schedule, parallel, **more):
    return {'schema_version': 1, 'runtime': 'ideal',
            'platform': {'topology': 'dgx-a100', 'devices': devices},
            'model': {'name': 'gpt', 'device': 'a100', 'precision': 'bf16', 'batch_size': batch,
                      'parameters': {'layers': layers, 'hidden': 256, 'heads': 4,
                                     'sequence': 256}},
            'parallel': parallel, 'schedule': schedule, **more}


def run(document, *options):
    return [(document, ['run', '{in}', '--no-output', '--json', *options])]


def after_run(document, *arguments):
    """Returns a run whose time does not count, and the command after it."""
    return [(document, ['run', '{in}', '-o', '{results}']), (None, list(arguments))]


PIPELINES = {
    'gpipe': {}, '1f1b': {}, 'interleaved_1f1b': {}, 'zb_h1': {}, 'zb_h2': {}, 'zb_v': {},
    'dualpipe_v': {}, 'nf1b': {}, 'pipedream_2bw': {}, 'periodic': {}, 'pipedream': {}}
TWO_STAGES = ('interleaved_1f1b', 'zb_v', 'dualpipe_v')


def schedule_cases():
    def kind(name, micro_batches):
        counts = {} if name == 'pipedream' else {'micro_batches': micro_batches}
        return {'kind': name, **counts}

    for name in PIPELINES:
        per = 2 if name in TWO_STAGES else 1
        iterations = 64 if name in ('pipedream', 'pipedream_2bw') else 1
        yield (f'{name}: layers', 64, lambda n, name=name, i=iterations: run(
            scenario(uniform(n), switch(4), kind(name, 8), iterations=i)))
        if name != 'pipedream':
            yield (f'{name}: micro-batches', 64, lambda n, name=name, per=per: run(
                scenario(uniform(4 * per), switch(4), kind(name, n))))
        yield (f'{name}: mini-batches', 64, lambda n, name=name, per=per: run(
            scenario(uniform(4 * per), switch(4), kind(name, 8), iterations=n)))
        yield (f'{name}: stages', 8, lambda n, name=name, per=per, i=iterations: run(
            scenario(uniform(n * per), switch(n), kind(name, 4 if name == 'nf1b' else 2 * n),
                     iterations=i)))
    yield ('interleaved_1f1b: chunks', 4, lambda n: run(scenario(
        uniform(4 * n), switch(4),
        {'kind': 'interleaved_1f1b', 'micro_batches': 8, 'stages_per_device': n})))
    yield ('custom: micro-batches', 64, lambda n: run(scenario(
        uniform(1), switch(1), {'kind': 'custom', 'micro_batches': n, 'device_tasks': [
            ' '.join(f'F{i}' for i in range(n)) + ' ' + ' '.join(f'B{i}' for i in range(n))]})))
    yield ('nf1b, slow worker: mini-batches', 256, lambda n: run(scenario(
        uniform(4), switch(4, speed=[1, 1, 0.5, 1]), {'kind': 'nf1b', 'micro_batches': 4},
        iterations=n)))
    yield ('nf1b, slow worker: micro-batches', 64, lambda n: run(scenario(
        uniform(4), switch(4, speed=[1, 1, 0.5, 1]), {'kind': 'nf1b', 'micro_batches': n},
        iterations=32)))
    yield ('nf1b, slow last worker: workers', 8, lambda n: run(scenario(
        uniform(n), switch(n, speed=[1] * (n - 1) + [0.5]), {'kind': 'nf1b', 'micro_batches': 4},
        iterations=64)))
    yield ('pipedream: stages and mini-batches', 8, lambda n: run(scenario(
        uniform(n), switch(n), {'kind': 'pipedream'}, iterations=4 * n)))
    for name in ('cdp_dp', 'cdp_v1', 'cdp_v2', 'cdp_freshest'):
        for setting in ('single_gpu', 'multi_gpu', 'model_parallel', 'pipeline', 'zero'):
            devices = {'single_gpu': lambda n: 1, 'multi_gpu': lambda n: n,
                       'model_parallel': lambda n, name=name: n * n if name == 'cdp_dp'
                       else n * (n + 1) // 2}.get(setting, lambda n: n)
            yield (f'{name}, {setting}: micro-batches', 4,
                   lambda n, name=name, s=setting, d=devices: run(scenario(
                       uniform(n), switch(d(n)),
                       {'kind': name, 'micro_batches': n, 'setting': s}, iterations=4)))
        yield (f'{name}: layers', 64, lambda n, name=name: run(scenario(
            uniform(n), switch(4), {'kind': name, 'micro_batches': 4}, iterations=4)))
        yield (f'{name}: mini-batches', 64, lambda n, name=name: run(scenario(
            uniform(4), switch(4), {'kind': name, 'micro_batches': 4}, iterations=n)))
    for name, devices in (('sequential', 1), ('dp', 4)):
        yield (f'{name}: layers', 1024, lambda n, name=name, d=devices: run(scenario(
            uniform(n), switch(d), {'kind': name})))
        yield (f'{name}: micro-batches', 1024, lambda n, name=name, d=devices: run(scenario(
            uniform(4), switch(d), {'kind': name, 'micro_batches': n})))
        yield (f'{name}: mini-batches', 1024, lambda n, name=name, d=devices: run(scenario(
            uniform(4), switch(d), {'kind': name}, iterations=n)))
    yield ('dp, buckets: layers', 64, lambda n: run(scenario(
        uniform(n), switch(4), {'kind': 'dp', 'bucket': '2 MB'})))
    yield ('dp: devices', 8, lambda n: run(scenario(uniform(4), switch(n), {'kind': 'dp'})))


def mesh_cases():
    one = {'kind': 'sequential', 'micro_batches': 4}
    pipe = {'kind': '1f1b', 'micro_batches': 8}
    for zero in range(4):
        yield (f'gpt, ZeRO {zero}: layers', 16, lambda n, zero=zero: run(
            gpt(n, 8, 32, one, {'zero': zero})))
        yield (f'gpt, ZeRO {zero}: data', 8, lambda n, zero=zero: run(
            gpt(8, n, 4 * n, one, {'zero': zero})))
        yield (f'gpt, ZeRO {zero}: micro-batches', 16, lambda n, zero=zero: run(
            gpt(4, 8, 8 * n, {'kind': 'sequential', 'micro_batches': n}, {'zero': zero})))
    yield ('gpt, 1f1b and ZeRO 1: micro-batches', 16, lambda n: run(
        gpt(8, 16, 4 * n, {'kind': '1f1b', 'micro_batches': n}, {'pipeline': 4, 'zero': 1})))
    yield ('gpt, 1f1b: layers', 16, lambda n: run(gpt(n, 16, 32, pipe, {'pipeline': 4})))
    yield ('gpt: pipeline', 4, lambda n: run(
        gpt(n, n, 4 * n, {'kind': '1f1b', 'micro_batches': 2 * n}, {'pipeline': n})))
    yield ('gpt: mini-batches', 16, lambda n: run(
        gpt(4, 8, 32, one, {'zero': 1}, iterations=n)))
    yield ('gpt, not folded: data', 8, lambda n: run(
        gpt(4, n, 4 * n, one, {'zero': 1, 'fold': 'no'}, collectives={'fidelity': 'analytic'})))
    for zero in (0, 3):
        yield (f'gpt, ZeRO {zero}, allocator: layers', 16, lambda n, zero=zero: run(
            gpt(n, 8, 32, one, {'zero': zero}), '--allocator', 'pytorch'))
    yield ('gpt, allocator: micro-batches', 16, lambda n: run(
        gpt(4, 8, 8 * n, {'kind': 'sequential', 'micro_batches': n}, {'zero': 0}),
        '--allocator', 'pytorch'))

    def mixture(experts):
        document = gpt(4, 8, 32, one, {})
        document['model']['name'] = 'mixtral-8x7b'
        document['model']['parameters'] = {'experts': experts, 'layers': 4}
        return document
    yield ('mixtral: experts', 8, lambda n: run(mixture(n)))
    for name in ('t5-base', 'resnet50', 'vit-b16', 'mamba2-2.7b'):
        yield (f'{name}: batch', 8, lambda n, name=name: run(
            {'schema_version': 1, 'runtime': 'ideal', 'platform': {'topology': 'dgx-a100'},
             'model': {'name': name, 'device': 'a100', 'batch_size': 8 * n},
             'schedule': {'kind': 'dp', 'micro_batches': n}}))
    yield ('t5: layers', 16, lambda n: [
        (None, ['model', 't5-base', '-p', f'layers={n}', '-d', 'a100', '--json'])])
    yield ('gpt: layers of a model', 16, lambda n: [
        (None, ['model', 'gpt', '-p', f'layers={n}', '-d', 'a100', '--json'])])
    yield ('llama: layers of a model', 16, lambda n: [
        (None, ['model', 'llama3-8b', '-p', f'layers={n}', '-d', 'a100', '--json'])])


def allocator_cases():
    for kind in ('gpipe', '1f1b', 'interleaved_1f1b', 'zb_v', 'dualpipe_v', 'zb_h2', 'nf1b',
                 'pipedream_2bw'):
        per = 2 if kind in TWO_STAGES else 1
        yield (f'allocator, {kind}: micro-batches', 256, lambda n, kind=kind, per=per: run(
            scenario(uniform(4 * per), switch(4), {'kind': kind, 'micro_batches': n}),
            '--allocator', 'pytorch'))
    yield ('allocator, gpipe: layers', 256, lambda n: run(
        scenario(uniform(n), switch(4), {'kind': 'gpipe', 'micro_batches': 16}),
        '--allocator', 'pytorch'))
    yield ('allocator, sequential: mini-batches', 256, lambda n: run(
        scenario(uniform(4), switch(1), {'kind': 'sequential'}, iterations=n),
        '--allocator', 'pytorch'))
    yield ('allocator, pipedream: mini-batches', 256, lambda n: run(
        scenario(uniform(4), switch(4), {'kind': 'pipedream'}, iterations=n),
        '--allocator', 'pytorch'))


PLATFORMS = {
    'ideal': lambda n: {'topology': 'ideal', 'devices': n},
    'ring': lambda n: {'topology': 'ring', 'devices': n, 'bandwidth': '10 GB/s'},
    'nvlink_switch': switch,
    'pcie': lambda n: {'topology': 'pcie', 'devices': n, 'bandwidth': '10 GB/s'},
    'pcie_tree': lambda n: {'topology': 'pcie_tree', 'devices': n},
    'nvlink_mesh': lambda n: {'topology': 'nvlink_mesh', 'devices': n, 'link_bandwidth': '25 GB/s'},
    'nvswitch': lambda n: {'topology': 'nvswitch', 'gpus': n, 'devices': n,
                           'link_bandwidth': '25 GB/s'},
    'torus': lambda n: {'topology': 'torus', 'devices': n, 'shape': [n // 4, 4],
                        'bandwidth': '10 GB/s'},
    'dragonfly': lambda n: {'topology': 'dragonfly', 'devices': n, 'routers': 32, 'hosts': 32,
                            'global_links': 4, 'bandwidth': '10 GB/s'},
    'leaf_spine': lambda n: {'topology': 'leaf_spine', 'devices': n, 'hosts_per_leaf': 16,
                             'spines': 8, 'bandwidth': '10 GB/s'},
    'fat_tree': lambda n: {'topology': 'fat_tree', 'devices': n, 'bandwidth': '10 GB/s'},
    'dgx-h100': lambda n: {'topology': 'dgx-h100', 'devices': n},
    'abci': lambda n: {'topology': 'abci', 'devices': n},
    'mi300x-8': lambda n: {'topology': 'mi300x-8', 'devices': n},
}


def topology_cases():
    for name, platform in PLATFORMS.items():
        for kind in ('dp', 'gpipe'):
            yield (f'{name}, {kind}: devices', 8, lambda n, p=platform, kind=kind: run(scenario(
                uniform(n if kind == 'gpipe' else 4), p(n), {'kind': kind, 'micro_batches': 4},
                collectives={'fidelity': 'analytic'})))
        yield (f'{name}: flows of an all-reduce', 8, lambda n, p=platform: run(scenario(
            uniform(4), p(n), {'kind': 'dp'}, collectives={'fidelity': 'flow'})))
        yield (f'{name}: export', 8, lambda n, p=platform: [
            (scenario(uniform(n), p(n), {'kind': 'dp'}), ['export', 'topology', '{in}'])])
    for algorithm in ('ring', 'halving', 'tree', 'hierarchical', 'segmented'):
        yield (f'{algorithm}: devices', 8, lambda n, a=algorithm: run(scenario(
            uniform(4), {'topology': 'dgx-h100', 'devices': n}, {'kind': 'dp'},
            collectives={'algorithm': a})))


def planner_cases():
    def plan(planner, layers, devices):
        return [(scenario(uniform(layers), switch(devices, memory='1 TB'),
                          {'kind': '1f1b', 'micro_batches': 8}),
                 ['plan', '{in}', '--json', '-P', planner])]
    for planner in ('balanced', 'pipedream', 'pipedream_replicated', 'contiguous_optimal',
                    'madpipe', 'best'):
        yield f'{planner}: layers', 16, lambda n, p=planner: plan(p, n, 4)
        yield f'{planner}: devices', 4, lambda n, p=planner: plan(p, 2 * n, n)
    yield ('partition balanced: layers', 64, lambda n: run(scenario(
        uniform(n), switch(8), {'kind': 'gpipe', 'micro_batches': 1})))
    yield ('partition balanced: stages', 64, lambda n: run(scenario(
        uniform(2 * n), switch(n), {'kind': 'gpipe', 'micro_batches': 1})))


def output_cases():
    pipe = {'kind': '1f1b', 'micro_batches': 16}

    def small(n):
        return scenario(uniform(4), switch(4), {'kind': '1f1b', 'micro_batches': n})

    def deep(n):
        return scenario(uniform(n), switch(4), pipe)

    def wide(n):
        return scenario(uniform(n), switch(n), pipe)

    for size, made in (('micro-batches', small), ('layers', deep), ('stages', wide)):
        def after(*arguments, made=made):
            return lambda n: after_run(made(n), *arguments)
        yield (f'results file: {size}', 16, lambda n, made=made: [
            (made(n), ['run', '{in}', '-o', '{results}'])])
        yield (f'report of a run: {size}', 16, lambda n, made=made: [
            (made(n), ['run', '{in}', '--no-output'])])
        yield (f'low memory: {size}', 16, lambda n, made=made: [
            (made(n), ['run', '{in}', '--low-memory', '--no-output'])])
        yield (f'every event: {size}', 16, lambda n, made=made: [
            (made(n), ['run', '{in}', '--every-event', '--no-output'])])
        yield (f'snapshot: {size}', 16, lambda n, made=made: [
            (made(n), ['run', '{in}', '--no-output', '--allocator', 'pytorch', '--snapshot',
                       '{folder}/s.pickle'])])
        yield f'check: {size}', 16, lambda n, made=made: [(made(n), ['check', '{in}'])]
        yield (f'check --resolved: {size}', 16, lambda n, made=made: [
            (made(n), ['check', '{in}', '--resolved'])])
        yield (f'check --graph: {size}', 16, lambda n, made=made: [
            (made(n), ['check', '{in}', '--graph'])])
        yield f'plan: {size}', 16, lambda n, made=made: [(made(n), ['plan', '{in}'])]
        for picture in ('timeline', 'boxes', 'memory', 'mean-memory', 'utilisation'):
            yield (f'plot {picture}: {size}', 16,
                   after('plot', '{results}', '-k', picture, '-o', '{folder}/p.svg'))
        yield f'page: {size}', 16, after('report', '{results}', '-o', '{folder}/p.html')
        for suffix in ('json', 'pftrace'):
            yield (f'trace {suffix}: {size}', 16,
                   after('export', 'trace', '{results}', '-o', '{folder}/t.' + suffix))
        yield f'compare: {size}', 16, after('compare', '{results}', '{results}')
    yield ('sweep: points', 8, lambda n: [
        (small(4), ['sweep', '{in}', '-v', f'/schedule/micro_batches=1..{n}:1', '-o',
                    '{folder}/sweep.h5', '-j', '1'])])
    yield ('runs: number', 8, lambda n: [
        ({**small(4), 'platform': switch(4, jitter={'mean': 0.1})},
         ['run', '{in}', '--runs', str(n), '--no-output', '-j', '1'])])


CASES = (schedule_cases, mesh_cases, allocator_cases, topology_cases, planner_cases, output_cases)


def measure(sim, commands, limit):
    """Runs commands; returns the last one's processor time in s, its tasks, and its error."""
    with tempfile.TemporaryDirectory() as folder:
        places = {'{in}': f'{folder}/s.json', '{results}': f'{folder}/r.h5', '{folder}': folder}
        for document, arguments in commands:
            if document:
                with open(places['{in}'], 'w', encoding='utf-8') as file:
                    json.dump(document, file)
            for name, text in places.items():
                arguments = [a.replace(name, text) for a in arguments]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            try:
                done = subprocess.run([sim, *arguments], capture_output=True, text=True,
                                      timeout=20 * limit + 10)
            except subprocess.TimeoutExpired:
                return math.inf, None, 'timeout'
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode not in (0, 1):
                return 0, None, (done.stderr.strip().splitlines() or ['?'])[-1].replace(folder, '')
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    tasks = None
    if '--json' in arguments and arguments[0] == 'run':
        tasks = json.loads(done.stdout)['tasks']
    return seconds, tasks, None


def exponent(a, b):
    return math.log2(b / a) if a and b and a > 0 else None


def grow(sim, name, size, made, limit):
    rows, error = [], None
    while True:
        seconds, tasks, error = measure(sim, made(size), limit)
        if error:
            break
        rows.append((size, seconds, tasks))
        if seconds > limit:
            break
        size *= 4 if seconds < limit / 64 else 2
    text = f'{name:40}'
    if len(rows) < 2:
        return text + f' {rows} {error}'
    (small, short, few), (large, long, many) = rows[-2:]
    factor = math.log2(large / small)
    of_time = exponent(short, long) / factor
    of_tasks = exponent(few, many)
    text += f' {small:8} {short:7.2f} s {large:8} {long:7.2f} s  exponent {of_time:5.2f}'
    if of_tasks is not None:
        of_tasks /= factor
        text += f'  of tasks {of_tasks:5.2f}  {1e6 * long / many:8.2f} us/task'
    if long > SHORTEST and of_time > GROWS and (of_tasks is None or of_time > of_tasks + 0.2):
        text += '  GROWS'
    return text + (f'  ({error[:90]})' if error else '')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim')
    parser.add_argument('names', nargs='*')
    parser.add_argument('--seconds', type=float, default=10)
    parser.add_argument('--list', action='store_true', help='only print the names of the cases')
    options = parser.parse_intermixed_args()
    for group in CASES:
        for name, size, made in group():
            if options.names and not any(text in name for text in options.names):
                continue
            print(name if options.list else
                  grow(os.path.abspath(options.sim), name, size, made, options.seconds), flush=True)


if __name__ == '__main__':
    sys.exit(main())

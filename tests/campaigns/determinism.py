#!/usr/bin/env python3
"""The same bytes everywhere: determinism.py SIM ROOT [--library LIBCLUSTERSIM.so] [--other SIM ...]
[-n RUNS]

What each command prints and writes is compared, byte by byte, between this environment and others:
other addresses in memory, the same ones each time, a locale with decimal commas, other time zones,
a large environment, other numbers of threads. With --library, a program that has chosen the locale
with decimal commas calls the library. With --other, programs built for another processor or by
another compiler run what has random distributions, RUNS times.
"""
import argparse
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

MODEL = {'uniform': {'layers': 6, 'forward': '1.3 ms', 'backward': '2.7 ms', 'weights': '10 MB',
                     'activation': '3.3 MB'}}
NOISE = {'jitter': {'distribution': 'beta', 'mean': 0.2, 'deviation': 0.15},
         'stragglers': {'devices': {'distribution': 'uniform', 'mean': 0.5, 'probability': 0.3},
                        'tasks': {'distribution': 'lognormal', 'mean': 0.05, 'deviation': 0.1}},
         'background': {'flows': 3, 'bytes': '5 MB', 'gap': '1 ms'}}
LINKS = {'devices': 6, 'bandwidth': '1.7 GB/s', 'latency': '3 us'}
PLATFORMS = [{'topology': 'ring'}, {'topology': 'nvlink_switch'},
             {'topology': 'fat_tree', 'down': [2, 3], 'up': [1]},
             {'topology': 'pcie_tree', 'devices': 4, 'host_bandwidth': '2.3 GB/s',
              'socket_bandwidth': '1.1 GB/s'}]
SCHEDULES = [{'kind': '1f1b', 'micro_batches': 8}, {'kind': 'gpipe', 'micro_batches': 6},
             {'kind': 'zb_h1', 'micro_batches': 8}]
SHARINGS = [{'sharing': 'max_min'}, {'sharing': 'fifo'}, {'sharing': 'phi', 'phi': 'count'}]
SMALL = {'schema_version': 1, 'model': {'name': 'vgg16', 'batch_size': 24, 'device': 'v100'},
         'platform': {'topology': 'ring', 'devices': 3, 'bandwidth': '1.7 GB/s'},
         'schedule': {'kind': '1f1b', 'micro_batches': 4}}
COMMANDS = (
    'run noisy.json --runs 6 -j JOBS -o out.h5', 'run noisy.json --json --no-output',
    'plan small.json -o out.json',
    'sweep noisy.json -v /seed=1,2,3,4 -j JOBS -o out.h5',
    'sweep noisy.json -v /seed=1,2,3 -j JOBS -o out.csv',
    'plot run.h5 -o out.svg', 'report run.h5 -o out.html', 'export trace run.h5 -o out.json.gz',
    'export trace run.h5 -o out.pftrace', 'export topology noisy.json -o out.json',
    'compare run.h5 other.h5 -o out.svg', 'advise small.json --top 3 -j JOBS -o out.h5',
    'model resnet18 --device v100 -o out.json', 'list schedules')
# a program that has chosen a locale, and then calls the library
CALLER = '''
import locale, sys
locale.setlocale(locale.LC_ALL, sys.argv[1])
import clustersim
run = clustersim.run("noisy.json", {"/seed": 3})
sweep = clustersim.sweep("noisy.json", {"/platform/jitter/mean": "0.1..0.3..0.1"})
for result in run, sweep, clustersim.advise("small.json", top=2):
    print(result.summary(), repr(result))
    result.save("out.h5")
    with open("out.h5", "rb") as file:
        print(hash(file.read()))
print(run.scenario)
try:
    clustersim.run("noisy.json", {"/platform/bandwidth": -0.5})
except clustersim.Error as error:
    print(error)
'''


def noisy(i):
    """Scenario i of those that have random distributions."""
    combinations = list(itertools.product(SCHEDULES, PLATFORMS, SHARINGS))
    schedule, platform, sharing = combinations[i % len(combinations)]
    return {'schema_version': 1, 'seed': i, 'model': MODEL, 'schedule': schedule,
            'platform': {**LINKS, **sharing, **NOISE, **platform}}


def write(name, scenario):
    with open(name, 'w', encoding='utf-8') as file:
        json.dump(scenario, file)


def outcome(words, environment=None, before=()):
    """Exit code, standard output and error, and the file that a command writes."""
    if os.path.exists(output := next((w for w in words if w.startswith('out.')), 'out.h5')):
        os.remove(output)
    made = subprocess.run([*before, *words], capture_output=True, check=False,
                          env={**os.environ, **(environment or {})})
    written = b''
    if os.path.exists(output):
        with open(output, 'rb') as file:
            written = file.read()
    return made.returncode, made.stdout, made.stderr, written


def decimal_commas():
    """What chooses a locale with decimal commas; None where it cannot be made."""
    made = subprocess.run(['localedef', '-i', 'de_DE', '-f', 'UTF-8', '--no-archive',
                           './de_DE.UTF-8'],
                          capture_output=True, check=False) if shutil.which('localedef') else None
    if not made or made.returncode != 0:
        print('locales are not installed: none with decimal commas')
        return None
    return {'LOCPATH': os.getcwd(), 'LC_ALL': 'de_DE.UTF-8', 'LANG': 'de_DE.UTF-8',
            'LANGUAGE': 'de'}


def environments(commas):
    """Name: (threads, environment, words before the command)."""
    rows = {'once more': (2, {}, ()), 'Kiribati': (1, {'TZ': 'Pacific/Kiritimati'}, ()),
            'time zone that does not exist': (2, {'TZ': ':/nonexistent'}, ()),
            'large environment': (5, {'SIM_CAMPAIGN': 'x' * 100000, 'MALLOC_PERTURB_': '165'}, ()),
            'Turkish': (3, {'LC_ALL': 'tr_TR.UTF-8', 'TERM': 'dumb', 'COLUMNS': '40'}, ())}
    if shutil.which('setarch') and subprocess.run(['setarch', '-R', 'true'],
                                                  check=False).returncode == 0:
        rows['fixed addresses'] = (2, {}, ('setarch', '-R'))
    if commas:
        rows['decimal commas'] = (2, commas, ())
    return rows


def compare_environments(sim, commas):
    wrong = []
    rows = environments(commas)
    for command in COMMANDS:
        first = outcome([sim, *shlex.split(command.replace('JOBS', '2'))])
        if first[0] != 0:
            wrong.append(f'{command}: {first[2].decode()}')
        for name, (jobs, environment, before) in rows.items():
            words = [sim, *shlex.split(command.replace('JOBS', str(jobs)))]
            parts = zip(('exit code', 'output', 'messages', 'file'), first,
                        outcome(words, environment, before))
            wrong += [f'{command}: {name}: another {part}' for part, a, b in parts if a != b]
    return wrong, len(COMMANDS) * len(rows)


def call_library(root, library, commas):
    """Its answers do not depend on the locale that its caller has chosen."""
    environment = {'PYTHONPATH': os.path.join(root, 'python'), 'CLUSTERSIM_LIBRARY': library,
                   'PYTHONHASHSEED': '1',
                   'PYTHONIOENCODING': 'utf-8'}
    said = [outcome([sys.executable, '-c', CALLER, locale], {**environment, **more})
            for locale, more in (('C', {}), ('de_DE.UTF-8', commas))]
    if said[0][0] != 0:
        return [f'library: {said[0][2].decode()}']
    lines = (part.decode(errors='replace').splitlines() for one in said
             for part in [one[1] + one[2]])
    wrong = [f'{a} | {b}' for a, b in itertools.zip_longest(*lines) if a != b]
    return [f'library: where the caller has decimal commas: {line}' for line in wrong]


def compare_builds(sims, runs):
    wrong = []
    for i in range(runs):
        write('drawn.json', noisy(i))
        words = ['run', 'drawn.json', '--rates', '-o', 'out.h5']
        said = [outcome([sim, *words]) for sim in sims]
        if said[0][0] != 0:
            sys.exit(said[0][2].decode())
        wrong += [f'seed {i}: {sim}: other results' for sim, other in zip(sims, said)
                  if other != said[0]]
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('sim', type=os.path.abspath)
    parser.add_argument('root', type=os.path.abspath)
    parser.add_argument('--library', type=os.path.abspath)
    parser.add_argument('--other', type=os.path.abspath, nargs='+', default=[])
    parser.add_argument('-n', type=int, default=1000, help='runs of each of the others')
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix='sim-campaign-') as folder:
        os.chdir(folder)
        commas = decimal_commas()
        write('noisy.json', noisy(0))
        write('small.json', SMALL)
        for name, seed in (('run', 0), ('other', 1)):
            subprocess.run([asked.sim, 'run', 'noisy.json', '-s', f'/seed={seed}', '-o',
                            f'{name}.h5'], check=True,
                           capture_output=True)
        wrong, tries = compare_environments(asked.sim, commas)
        print(f'{tries} commands in other environments')
        if asked.library and commas:
            wrong += call_library(asked.root, asked.library, commas)
        if asked.other:
            wrong += compare_builds([asked.sim, *asked.other], asked.n)
            print(f'{asked.n} runs of {len(asked.other)} other builds')
    print('\n'.join(wrong) or 'the same bytes')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())

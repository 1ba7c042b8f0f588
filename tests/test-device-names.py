#!/usr/bin/env python3
"""A device's name changes no prediction: test-device-names.py SIM SOURCE_ROOT.

Each file of facts/devices is copied under another name. The scenarios of all measured runs that
come with the program have to be resolved to the same text on the copy of their device: the times of
layers, sizes, memory and links, and all decisions of runtimes. On devices without measured runs,
scenarios of several runtimes have to give the same results, to the last bit. No C file may
compare a device's name: a search over the sources.
"""
import concurrent.futures
import csv
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import descriptions
import predictions

SIM, ROOT = [os.path.abspath(word) for word in sys.argv[1:3]]
# Papers name the devices of their figures.
FOLDERS = ['sim', 'topologies', 'schedules', 'plots', 'calib']
ASIDE = 'papers/'
# What a command takes if it is not told, as its paper has it; and a topology of two generations.
KNOWN = ['sim/cli/cmd-strategies.c', 'topologies/dgx1.c']

PARAMETERS = {'layers': 2, 'hidden': 512, 'heads': 8, 'kv_heads': 8, 'intermediate': 1024,
              'sequence': 512}


def scenario(runtime, parallel, topology='nvlink_switch', **model):
    return {'schema_version': 1,
            'model': {'name': 'llama', 'batch_size': 16, 'optimizer': 'adam',
                      'parameters': PARAMETERS, **model},
            'platform': {'topology': topology, 'devices': 4,
                         **({'bandwidth': '100 GB/s'} if topology == 'nvlink_switch' else {})},
            'schedule': {'kind': 'sequential', 'micro_batches': 2},
            'parallel': parallel, 'runtime': runtime}


# Together these reach all conventions with a condition on the device.
SCENARIOS = [
    scenario('megatron-core', {'tensor': 2, 'zero': 1}),
    scenario({'name': 'megatron-core', 'deterministic': True}, {'zero': 1}),
    scenario('pytorch-fsdp', {'zero': 3}),
    scenario({'name': 'torchtitan', 'compile': True}, {'zero': 3}, recompute=True),
    scenario('deepspeed', {'zero': 2}),
    scenario('llm-foundry', {'zero': 3}, topology='nvlink_mesh'),
]


def precisions(device):
    """The first of bf16, fp16, fp32 that the device supports, and fp8 if it has bf16 and fp8."""
    peaks = device['peaks']
    wide = [name for name in ('bf16', 'fp16', 'fp32') if name in peaks][0]
    return [wide] + (['fp8'] if 'fp8' in peaks and wide == 'bf16' else [])


def run(folder, made, device):
    """Results of a scenario on a device; of a failure the message."""
    path = os.path.join(folder, 's.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({**made, 'model': {**made['model'], 'device': device}}, file)
    done = subprocess.run([SIM, 'run', path, '--no-output', '--json'], capture_output=True,
                          text=True, check=False)
    return json.loads(done.stdout) if done.returncode in (0, 4) else done.stderr


def without(value, names):
    """Results with another text in place of each of the names."""
    if isinstance(value, dict):
        return {key: without(member, names) for key, member in value.items()}
    if isinstance(value, list):
        return [without(item, names) for item in value]
    return 'DEVICE' if value in names else value


def renamed(number):
    return f'renamed-{number:03}'


def copy_of(folder, name, number):
    """The path of a copy of a device's file, with another name."""
    with open(os.path.join(ROOT, 'facts/devices', name + '.json'), encoding='utf-8') as file:
        device = json.load(file)
    device['name'] = renamed(number)
    path = os.path.join(folder, device['name'] + '.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(device, file)
    return path


def scenario_of(point):
    """The scenario of a measured run, or None if it has none."""
    done = subprocess.run([SIM, 'validate', '--scenario', point, *predictions.files_of(point)],
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def resolved(folder, number, made, device):
    path = os.path.join(folder, f'{number}.json')
    with open(path, 'w', encoding='utf-8') as file:
        json.dump({**made, 'model': {**made['model'], 'device': device}}, file)
    done = subprocess.run([SIM, 'check', path, '--resolved'], capture_output=True, text=True,
                          check=False)
    return done.stdout if done.returncode == 0 else path + done.stderr


class Names(unittest.TestCase):
    def test_measured_runs(self):
        with open(os.path.join(ROOT, 'tests/data/predictions.csv'), encoding='utf-8') as file:
            points = [row['id'] for row in csv.DictReader(file)]
        with tempfile.TemporaryDirectory() as folder, \
                concurrent.futures.ThreadPoolExecutor(2) as pool:
            scenarios = {}
            for made in pool.map(scenario_of, points):
                if made and 'device' in made['model']:
                    made['name'] = 'run'
                    scenarios[json.dumps(made, sort_keys=True)] = made
            devices = sorted({made['model']['device'] for made in scenarios.values()})
            self.assertGreater(len(scenarios), 250)
            self.assertGreater(len(devices), 10)
            copies = {name: copy_of(folder, name, i) for i, name in enumerate(devices)}

            def both(item):
                number, made = item
                name = made['model']['device']
                second = resolved(folder, f'{number}-second', made, copies[name])
                own = os.path.basename(copies[name])[:-len('.json')]
                return made, resolved(folder, f'{number}-first', made, name), \
                    second.replace(own, name)

            for made, first, second in pool.map(both, enumerate(scenarios.values())):
                with self.subTest(model=made['model'], platform=made['platform']):
                    self.assertTrue(first.startswith('{'), first)
                    self.assertEqual(first, second)
            type(self).covered = devices

    def test_other_devices(self):
        covered = getattr(self, 'covered', [])
        names = [name for name in descriptions.names(ROOT, 'devices') if name not in covered]
        self.assertGreater(len(names), 20)
        with tempfile.TemporaryDirectory() as folder:
            for number, name in enumerate(names):
                copy = copy_of(folder, name, number)
                for made in SCENARIOS:
                    for precision in precisions(descriptions.load(ROOT, 'devices', name)):
                        asked = {**made, 'model': {**made['model'], 'precision': precision}}
                        with self.subTest(device=name, runtime=made['runtime'],
                                          precision=precision):
                            same = (name, renamed(number), copy)
                            first, second = (run(folder, asked, at) for at in (name, copy))
                            self.assertIn('makespan_s', first)
                            self.assertEqual(without(first, same), without(second, same))

    def test_sources(self):
        names = descriptions.names(ROOT, 'devices')
        names += sorted({name.split('-')[0] for name in names} - {'titan', 'rtx'})
        quoted = re.compile(r'"[^"\n]*(?<![\w.-])(' + '|'.join(sorted(names, key=len, reverse=True))
                            + r')\*?"')
        compared = re.compile(r'device[!=]?=(' + '|'.join(names) + r')')
        found = []
        for folder in FOLDERS:
            for path in sorted(glob.glob(os.path.join(ROOT, folder, '**', '*.[ch]'),
                                         recursive=True)):
                name = os.path.relpath(path, ROOT)
                if name.startswith(ASIDE) or name in KNOWN:
                    continue
                with open(path, encoding='utf-8') as file:
                    for number, line in enumerate(file, 1):
                        code = not line.lstrip().startswith(('/*', '*'))
                        if code and (quoted.search(line) or compared.search(line)):
                            found.append(f'{name}:{number}: {line.strip()}')
        self.assertEqual(found, [], 'names of devices: state a fact of the device in their place')


if __name__ == '__main__':
    sys.argv[1:] = []
    unittest.main()

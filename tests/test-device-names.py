#!/usr/bin/env python3
"""A device's name changes no prediction: test-device-names.py SIM SOURCE_ROOT.

Each file of facts/devices is copied under another name. Scenarios of several runtimes, with the
options whose conventions depend on facts of the device, have to give the same results on the copy,
to the last bit. No C file that predicts may compare a device's name: a search over the sources.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import descriptions

SIM, ROOT = [os.path.abspath(word) for word in sys.argv[1:3]]
DEVICES = sorted(glob.glob(os.path.join(ROOT, 'facts/devices', '*.json')))
FOLDERS = ['sim/workload', 'sim/scenario', 'sim/run', 'sim/advise']

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


class Names(unittest.TestCase):
    def test_copies(self):
        self.assertGreater(len(DEVICES), 40)
        with tempfile.TemporaryDirectory() as folder:
            for number, path in enumerate(DEVICES):
                with open(path, encoding='utf-8') as file:
                    device = json.load(file)
                name = device['name']
                device['name'] = f'renamed-{number}'
                copy = os.path.join(folder, 'mine.json')
                with open(copy, 'w', encoding='utf-8') as file:
                    json.dump(device, file)
                for made in SCENARIOS:
                    for precision in precisions(descriptions.load(ROOT, 'devices', name)):
                        asked = {**made, 'model': {**made['model'], 'precision': precision}}
                        with self.subTest(device=name, runtime=made['runtime'],
                                          precision=precision):
                            names = (name, device['name'], copy)
                            first, second = (run(folder, asked, at) for at in (name, copy))
                            self.assertIn('makespan_s', first)
                            self.assertEqual(without(first, names), without(second, names))

    def test_sources(self):
        names = [os.path.basename(path)[:-len('.json')] for path in DEVICES]
        names += sorted({name.split('-')[0] for name in names} - {'titan', 'rtx'})
        quoted = re.compile(r'"[^"\n]*(?<![\w.-])(' + '|'.join(sorted(names, key=len, reverse=True))
                            + r')\*?"')
        compared = re.compile(r'device[!=]?=(' + '|'.join(names) + r')|/model/device[!=]')
        found = []
        for folder in FOLDERS:
            for path in sorted(glob.glob(os.path.join(ROOT, folder, '**', '*.[ch]'),
                                         recursive=True)):
                with open(path, encoding='utf-8') as file:
                    for number, line in enumerate(file, 1):
                        if quoted.search(line) or compared.search(line):
                            found.append(f'{os.path.relpath(path, ROOT)}:{number}: {line.strip()}')
        self.assertEqual(found, [], 'names of devices: state a fact of the device in their place')


if __name__ == '__main__':
    sys.argv[1:] = []
    unittest.main()

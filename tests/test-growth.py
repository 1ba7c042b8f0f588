#!/usr/bin/env python3
"""The time of a run grows with its size, not with the square of it: test-growth.py SIM

Each row scales one size by FACTOR. A run may then take SLACK times as long as if its time were
proportional; with a quadratic step it takes FACTOR times as long. Times
are of the processor, the least of TRIES; those below FLOOR, where starting the program counts, are
taken as FLOOR. What grows faster for a reason is listed in docs/how-to/large-meshes.md.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import unittest

SIM = os.path.abspath(sys.argv.pop(1))
FACTOR, SLACK, FLOOR, TRIES = 16, 3, 0.02, 3


def uniform(layers, **more):
    return {'uniform': {'layers': layers, 'forward': '1 ms', 'backward': '2 ms',
                        'weights': '1 MB', 'activation': '1 MB', **more}}


def switch(devices, **more):
    return {'topology': 'nvlink_switch', 'devices': devices, 'bandwidth': '10 GB/s', **more}


def scenario(model, platform, schedule, **more):
    return {'schema_version': 1, 'model': model, 'platform': platform, 'schedule': schedule, **more}


def layers(kind, **schedule):
    devices = 1 if kind == 'sequential' else 4
    return lambda n: scenario(uniform(n), switch(devices), {'kind': kind, **schedule})


def gpt(zero):
    return lambda n: {
        'schema_version': 1, 'runtime': 'ideal', 'platform': {'topology': 'dgx-a100', 'devices': 8},
        'model': {'name': 'gpt', 'device': 'a100', 'precision': 'bf16', 'batch_size': 8,
                  'parameters': {'layers': n, 'hidden': 256, 'heads': 4, 'sequence': 256}},
        'parallel': {'zero': zero}, 'schedule': {'kind': 'sequential', 'micro_batches': 1}}


# size, smallest, scenario for it, options. Tasks grow no faster than the size.
ROWS = (
    ('layers, sequential', 4000, layers('sequential'), ()),
    ('layers, dp', 4000, layers('dp'), ()),
    ('layers, 1f1b', 4000, layers('1f1b', micro_batches=8), ()),
    ('layers, zb_v', 4000, layers('zb_v', micro_batches=8), ()),
    ('stages, gpipe', 64, lambda n: scenario(uniform(2 * n), switch(n),
                                             {'kind': 'gpipe', 'micro_batches': 4}), ()),
    ('micro-batches with an allocator, gpipe', 6000,
     lambda n: scenario(uniform(4), switch(4), {'kind': 'gpipe', 'micro_batches': n}),
     ('--allocator', 'pytorch')),
    ('micro-batches with an allocator, 1f1b', 6000,
     lambda n: scenario(uniform(4), switch(4), {'kind': '1f1b', 'micro_batches': n}),
     ('--allocator', 'pytorch')),
    ('blocks with an allocator, ZeRO 0', 100, gpt(0), ('--allocator', 'pytorch')),
    ('stages times mini-batches, pipedream', 64,
     lambda n: scenario(uniform(int(n ** 0.5 * 8)), switch(int(n ** 0.5 * 8)),
                        {'kind': 'pipedream'}, iterations=int(n ** 0.5 * 32)), ()),
    ('mini-batches, nf1b with a slow worker', 2000,
     lambda n: scenario(uniform(4), switch(4, speed=[1, 1, 0.5, 1]),
                        {'kind': 'nf1b', 'micro_batches': 4}, iterations=n), ()),
)


class Growth(unittest.TestCase):
    def time(self, document, options):
        """Returns the processor time of a run in s."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 's.json')
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(document, file)
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([SIM, 'run', path, '--no-output', *options], check=True,
                           capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return max(FLOOR, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def test_rows(self):
        for name, smallest, made, options in ROWS:
            with self.subTest(name):
                small = min(self.time(made(smallest), options) for _ in range(TRIES))
                most = small * FACTOR * SLACK
                for _ in range(TRIES):
                    large = self.time(made(FACTOR * smallest), options)
                    if large <= most:
                        break
                print(f'{name:42} {smallest:6} {small:6.2f} s  x {FACTOR} {large:6.2f} s')
                self.assertLessEqual(large, most)


if __name__ == '__main__':
    unittest.main(verbosity=1)

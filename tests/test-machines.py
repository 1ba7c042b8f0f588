#!/usr/bin/env python3
"""The files of facts/machines, and users' own: test-machines.py SIM SOURCE_ROOT.

Every value of a machine has a source. A machine that is copied into a user's file gives the same
links and the same run. A file that is like a machine differs from it where it says so. Wrong files
are refused with the file and the place.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

SIM, ROOT = [os.path.abspath(word) for word in sys.argv[1:3]]
FILES = sorted(glob.glob(os.path.join(ROOT, 'facts/machines', '*.json')))


def load(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def merged(own, base):
    """What a file takes over, written a second time: objects are merged, null removes."""
    if not isinstance(own, dict) or not isinstance(base, dict):
        return own
    both = {**base, **{key: merged(value, base.get(key)) for key, value in own.items()}}
    return {key: value for key, value in both.items() if value is not None}


def whole(path):
    root = load(path)
    if 'like' not in root:
        return root
    return merged(root, whole(os.path.join(os.path.dirname(path), root['like'] + '.json')))


def pointers(value, at=''):
    if not isinstance(value, dict):
        yield at
        return
    for key, inner in value.items():
        if key not in ('topology', 'routing'):
            yield from pointers(inner, f'{at}/{key}')


class Machines(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, value):
        path = os.path.join(self.folder.name, name)
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(value, file)
        return path

    def run_on(self, topology, devices=16, command=('run', '--no-output', '--json')):
        path = self.write('s.json', {
            'schema_version': 1, 'schedule': {'kind': 'dp'},
            'model': {'uniform': {'layers': 2, 'forward': '1 ms', 'backward': '2 ms',
                                  'weights': '64 MB'}},
            'platform': {'topology': topology, 'devices': devices}})
        return subprocess.run([SIM, command[0], *command[1:], path], capture_output=True,
                              text=True, check=False)

    def test_every_value_has_a_source(self):
        for path in FILES:
            machine = whole(path)
            self.assertEqual(machine['name'] + '.json', os.path.basename(path))
            self.assertTrue(machine['source'] and machine['summary'], path)
            sources = machine['sources']
            for pointer in pointers(machine['platform']):
                near = [at for at in sources
                        if at in ('/', pointer) or pointer.startswith(at + '/')]
                self.assertTrue(near, f'{path}: /platform{pointer} has no source')
            known = set(pointers(machine['platform'])) | {'/'}
            for at in sources:
                self.assertTrue(any(each == at or each.startswith(at + '/') for each in known),
                                f'{path}: /sources{at} is the source of no value')

    def test_a_copy_gives_the_same(self):
        for path in FILES:
            name, machine = os.path.basename(path)[:-len('.json')], load(path)
            self.write('copy.json', {**machine, 'name': 'a copy', 'aliases': []})
            devices = 8 if 'pcie' in name else 16
            links, hashes = [], []
            for topology in (name, 'copy.json'):
                done = self.run_on(topology, devices, ('export', 'topology'))
                self.assertEqual(done.returncode, 0, done.stderr)
                platform = json.loads(done.stdout)
                links.append((platform['vertices'], platform['links']))
                hashes.append(json.loads(self.run_on(topology, devices).stdout)['hash'])
            self.assertEqual(links[0], links[1], name)
            self.assertEqual(hashes[0], hashes[1], name)

    def test_like(self):
        """Half of the NVLinks: the all-reduce in a node, which they limit, takes twice as long.
        Of the bandwidth of 9 and 18 links of 25 GB/s: 2 * 7/8 of 128 MB, without latency."""
        self.write('half.json', {'name': 'half', 'like': 'dgx-h100',
                                 'platform': {'node': {'links': 9, 'latency': 0}}})
        self.write('full.json', {'name': 'full', 'like': 'half.json',
                                 'platform': {'node': {'links': 18}}})
        times = []
        for topology, rate in (('half.json', 9 * 25e9), ('full.json', 18 * 25e9)):
            result = json.loads(self.run_on(topology, 8).stdout)
            times.append(result['makespan_s'] - 3e-3 * 2)
            self.assertAlmostEqual(times[-1], 2 * 7 / 8 * 128e6 / rate, delta=1e-9)

    def test_reported_and_resolved(self):
        """A report has the name; a resolved scenario the whole path, so that it can be moved."""
        path = self.write('mine.json', {'name': 'mine', 'like': 'dgx-h100'})
        report = self.run_on('mine.json', 16, ('run', '--no-output')).stdout
        self.assertIn('16 devices (mine)', report)
        resolved = json.loads(self.run_on('mine.json', 16, ('check', '--resolved')).stdout)
        self.assertEqual(resolved['platform']['topology'], os.path.realpath(path))

    def test_aliases(self):
        done = self.run_on('NVIDIA DGX H100')
        self.assertEqual(json.loads(done.stdout)['hash'],
                         json.loads(self.run_on('dgx-h100').stdout)['hash'])

    def test_wrong_files(self):
        self.write('m.json', {'name': 'm', 'platform': 'ring'})
        rows = [
            ({'platform': {'topology': 'ring'}}, 'm.json: missing key "name"'),
            ({'name': 'm'}, 'm.json: missing key "platform"'),
            ({'name': 'm', 'platform': 'ring'}, 'm.json: /platform: must be an object'),
            ({'name': 'm', 'like': 'dgx-h10'}, '/like: unknown machine "dgx-h10"; did you mean '
             '"dgx-h100"?'),
            ({'name': 'm', 'platform': {'topology': 'm.json'}},
             'm.json: /platform/topology: unknown topology "m.json"'),
            ({'name': 'm', 'platform': {'topology': 'cluster', 'node': 'dgx-h100'}},
             'm.json: /platform/node: unknown topology "dgx-h100"'),
            ({'name': 'm', 'like': 'dgx-h100', 'platform': {'node': {'links': -1}}},
             'm.json: /platform/node/links: must be from 0 to 1024 (got -1)'),
            ({'name': 'm', 'like': 'dgx-h100', 'platform': {'node': {'nics': 8}}},
             'm.json: /platform/node: unknown key "nics"'),
            ({'name': 'm', 'like': 'dgx-h100', 'platform': {'node': {'model': 'abci'}}},
             'm.json: /platform/node/model: must be a machine with NVSwitches (got "abci")'),
            ({'name': 'm', 'like': 'dgx2', 'platform': {'node': {'gpus': 15}}},
             'm.json: /platform/node/gpus: must be divisible by the boards, 2 (got 15)'),
            ({'name': 'm', 'like': 'dgx-h100', 'platforms': {}},
             'm.json: unknown key "platforms"; did you mean "platform"?'),
            ({'layers': []}, 'm.json: is a model file; must be a machine'),
        ]
        for machine, message in rows:
            self.write('m.json', machine)
            done = self.run_on('m.json')
            self.assertEqual(done.returncode, 3, machine)
            self.assertIn(message, done.stderr)
        done = self.run_on('none.json')
        self.assertEqual(done.returncode, 3)
        self.assertIn('/platform/topology: ', done.stderr)
        self.assertIn('none.json', done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

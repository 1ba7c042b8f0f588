#!/usr/bin/env python3
"""sim export trace as viewers see it: test-viewer.py SIM

One run that is worked out by hand, and larger ones that are held against their results files, where
h5py is there.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from decimal import Decimal

SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'
US = Decimal(1000000)  # picoseconds


def scenario(**schedule):
    return {
        'schema_version': 1, 'name': 'two "stages"',
        'model': {'uniform': {'layers': 4, 'forward': '1000001 ps', 'backward': '2 us',
                              'weights': '1 kB', 'activation': '1 kB'}},
        'platform': {'topology': 'ring', 'devices': 2, 'bandwidth': '1 GB/s', 'memory': '1 GB'},
        'schedule': schedule,
    }


class Viewer(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='test-viewer-')
        self.addCleanup(self.folder.cleanup)

    def sim(self, *words, status=0):
        done = subprocess.run([SIM, *words], capture_output=True, text=True, cwd=self.folder.name,
                              check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def trace(self, document, *words):
        with open(self.path('s.json'), 'w', encoding='utf-8') as file:
            json.dump(document, file)
        self.sim('run', 's.json', '-o', 's.h5', *words)
        text = self.sim('export', 'trace', 's.h5').stdout
        self.sim('export', 'trace', 's.h5', '-o', 's.trace.json')
        with open(self.path('s.trace.json'), encoding='utf-8') as file:
            self.assertEqual(file.read(), text)
        self.assertEqual(self.sim('export', 'trace', 's.h5', '-o', '-').stdout, text)
        return json.loads(text, parse_float=Decimal)

    def test_by_hand(self):
        """Two stages of a forward of f = 1.000001 us and a backward of 2 us, messages of 1 us, two
        micro-batches: the second stage ends its forwards at 1 us + 3 f and does backwards of
        2, 2; the first waits 1 us for each."""
        document = scenario(kind='gpipe', micro_batches=2)
        document['model']['uniform']['layers'] = 2
        trace = self.trace(document)
        self.assertEqual(trace['otherData'], {'name': 'two "stages"', 'topology': 'ring',
                                              'schedule': 'gpipe'})
        f, back = Decimal('1.000001'), Decimal('4.000003')
        expected = [  # device, thread, name, start, time
            (0, 0, 'forward 0', 0, f), (0, 0, 'forward 1', f, f),
            (0, 1, 'transfer 0', f, 1), (0, 1, 'transfer 1', 2 * f, 1),
            (1, 0, 'forward 0', 1 + f, f), (1, 0, 'forward 1', 1 + 2 * f, f),
            (1, 0, 'backward 1', back, 2), (1, 0, 'backward 0', back + 2, 2),
            (1, 1, 'transfer 1', back + 2, 1), (1, 1, 'transfer 0', back + 4, 1),
            (1, 0, 'update 0', back + 4, 0),
            (0, 0, 'backward 1', back + 3, 2), (0, 0, 'backward 0', back + 5, 2),
            (0, 0, 'update 0', back + 7, 0),
        ]
        found = [(e['pid'], e['tid'], e['name'], e['ts'], e['dur'])
                 for e in trace['traceEvents'] if e['ph'] == 'X']
        self.assertEqual(sorted(found), sorted(expected))
        names = {(e['name'], e['pid'], e['tid']): e['args']['name'] for e in trace['traceEvents']
                 if e['ph'] == 'M' and e['name'].endswith('_name')}
        self.assertEqual(names, {
            ('process_name', 0, 0): 'device 0', ('process_name', 1, 0): 'device 1',
            ('thread_name', 0, 0): 'compute', ('thread_name', 1, 0): 'compute',
            ('thread_name', 0, 1): 'messages', ('thread_name', 1, 1): 'messages'})
        activations = [(e['ts'], e['args']['activations']) for e in trace['traceEvents']
                       if e['ph'] == 'C' and e['pid'] == 1]
        changes = [activations[0]] + [b for a, b in zip(activations, activations[1:])
                                      if a[1] != b[1]]
        self.assertEqual(changes, [(0, 0), (1 + f, 1000), (1 + 2 * f, 2000), (back + 2, 1000),
                                   (back + 4, 0)])

    def compare(self, h5py, document, *words):
        """With the columns of the file: each task that ran is one event with its times and
        arguments, and memory at each change what the samples say so far."""
        events = self.trace(document, *words)['traceEvents']
        slices = {e['args']['task']: e for e in events if e['ph'] == 'X'}
        with h5py.File(self.path('s.h5')) as file:
            tasks = {name: file['tasks'][name][:].tolist() for name in file['tasks']}
            kinds = file['tasks/kind'].attrs['flag_meanings'].split()
            versions = dict(zip(file['versions/task'][:].tolist(),
                                file['versions/version'][:].tolist()))
            memory = {name: file['memory'][name][:].tolist() for name in file['memory']}
            categories = file['memory/category'].attrs['flag_meanings'].split()
        ran = [t for t in tasks['task'] if tasks['start'][t] >= 0]
        self.assertEqual(sorted(slices), ran)
        self.assertEqual(len([e for e in events if e['ph'] == 'X']), len(ran))
        for t in ran:
            e, arguments = slices[t], slices[t]['args']
            moves = kinds[tasks['kind'][t]] == 'transfer'
            self.assertEqual((e['ts'] * US, (e['ts'] + e['dur']) * US, e['pid']),
                             (tasks['start'][t], tasks['end'][t], tasks['device'][t]))
            self.assertEqual((e['cat'], e['tid'] > 0), (kinds[tasks['origin'][t]], moves))
            for key in ('mini_batch', 'micro_batch'):
                self.assertEqual(arguments[key], tasks[key][t])
            self.assertEqual(arguments.get('stage', 2**32 - 1), tasks['stage'][t])
            read = arguments.get('version_read', arguments.get('version_made'))
            self.assertEqual(read, None if versions.get(t) == 2**32 - 1 else versions.get(t))
            self.assertEqual((arguments.get('to_device'), arguments.get('bytes')),
                             (tasks['peer'][t], tasks['bytes'][t]) if moves else (None, None))
        threads = {}
        for e in events:
            if e['ph'] == 'X':
                thread = threads.setdefault((e['pid'], e['tid']), [])
                if thread and e['dur'] > 0:  # nothing overlaps, all is in order
                    self.assertLessEqual(thread[-1], e['ts'])
                thread.append(e['ts'] + e['dur'])
        live, i = {}, 0
        for e in (e for e in events if e['ph'] == 'C'):
            while i < len(memory['time']) and (memory['time'][i], memory['device'][i]) == \
                    (e['ts'] * US, e['pid']):
                live[e['pid'], categories[memory['category'][i]]] = memory['bytes'][i]
                i += 1
            self.assertEqual({c: b for c, b in e['args'].items() if b},
                             {c: b for (d, c), b in live.items() if d == e['pid'] and b})
        self.assertEqual(i, len(memory['time']))
        return events

    def test_files(self):
        try:
            import h5py
        except ImportError:
            self.skipTest('no h5py')
        self.compare(h5py, dict(scenario(kind='pipedream'), iterations=6))
        self.compare(h5py, scenario(kind='dp'))
        self.compare(h5py, scenario(kind='gpipe', micro_batches=4), '-s', '/platform/memory=6 kB',
                     '--stop-on-oom')
        # activations of 1 MB take 1 ms each: all wait at once, each in a thread of its own
        events = self.compare(h5py, scenario(kind='gpipe', micro_batches=5), '-s',
                              '/model/uniform/activation=1 MB', '-s', '/platform/sharing=max_min')
        self.assertEqual({e['tid'] for e in events if e['pid'] == 0}, set(range(6)))

    def test_refused(self):
        self.assertIn('none.h5: cannot read',
                      self.sim('export', 'trace', 'none.h5', '-o', 'x.json', status=3).stderr)
        self.assertIn('no option --devices',
                      self.sim('export', 'trace', 's.h5', '-n', '2', status=2).stderr)
        self.assertIn('known: topology, trace', self.sim('export', 'tarce', 's', status=2).stderr)
        self.trace(scenario(kind='dp'))
        self.sim('export', 'trace', 's.h5', '-o', 'no/x.json', status=1)
        if os.path.exists('/dev/full'):
            self.sim('export', 'trace', 's.h5', '-o', '/dev/full', status=1)
        with open(self.path('plain.h5'), 'w', encoding='utf-8') as file:
            file.write('no HDF5')
        self.sim('export', 'trace', 'plain.h5', '-o', 'x.json', status=3)
        self.assertFalse(os.path.exists(self.path('x.json')))


if __name__ == '__main__':
    unittest.main()

#!/usr/bin/env python3
"""sim export trace as viewers see it: test-viewer.py SIM

One run that is worked out by hand, and larger ones that are held against their results files, where
h5py is there.
"""
import gzip
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


def fields(data):
    """The fields of a protobuf message, by number: lists of whole numbers or bytes.
    https://protobuf.dev/programming-guides/encoding"""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 1:
            value = int.from_bytes(data[at:at + 8], 'little')
            at += 8
        elif key & 7 == 2:
            size = varint()
            value = data[at:at + size]
            assert len(value) == size
            at += size
        else:
            raise ValueError(f'wire type {key & 7}')
        found.setdefault(key >> 3, []).append(value)
    return found


class PerfettoTrace:
    """Slices, arrows and counters of a trace in Perfetto's form. Numbers of fields follow
    trace_packet.proto, trace_packet_defaults.proto, clock_snapshot.proto, track_event.proto,
    track_descriptor.proto, process_descriptor.proto, counter_descriptor.proto,
    debug_annotation.proto and interned_data.proto. Each sequence of packets has a state of its own:
    what is interned, the defaults of its packets, and its clocks (64 to 127)."""

    BOOT = 6  # the clock of traces

    def __init__(self, data):
        self.slices, self.flows, self.counters = [], {}, {}
        self.tracks, self.open = {}, {}
        self.sequences = {}
        top = fields(data)
        assert list(top) == [1]
        for packet in (fields(p) for p in top[1]):
            sequence = packet[10][0]
            assert sequence > 0
            flags = packet.get(13, [0])[0]
            # the state of a sequence begins with its first packet
            assert bool(flags & 1) == (sequence not in self.sequences)
            state = self.sequences.setdefault(
                sequence, {'words': {1: {}, 2: {}, 3: {}}, 'clocks': {}, 'clock': self.BOOT,
                           'track': None})
            if 6 in packet:
                self.clocks(state, fields(packet[6][0]))
            if 59 in packet:
                defaults = fields(packet[59][0])
                state['clock'] = defaults.get(58, [self.BOOT])[0]
                state['track'] = fields(defaults[11][0]).get(11, [None])[0]
            if 60 in packet:
                self.descriptor(fields(packet[60][0]))
            for interned in packet.get(12, []):
                assert flags & 2
                for kind, entries in fields(interned).items():
                    for entry in map(fields, entries):
                        assert entry[1][0] not in state['words'][kind]
                        state['words'][kind][entry[1][0]] = entry[2][0].decode()
            if 11 in packet:
                assert flags & 2  # it needs the defaults of its sequence
                self.event(state, self.time(state, packet), fields(packet[11][0]))
        assert not any(self.open.values())

    def clocks(self, state, snapshot):
        """At one instant the clocks say these numbers."""
        clocks = {c[1][0]: c for c in map(fields, snapshot[1])}
        boot = clocks[self.BOOT][2][0]
        for number, clock in clocks.items():
            if 64 <= number < 128:
                assert clock.get(4, [1]) == [1]  # ns
                state['clocks'][number] = {'now': clock[2][0], 'ahead': boot - clock[2][0],
                                           'incremental': clock.get(3, [0])[0]}

    def time(self, state, packet):
        """ns of the clock of traces."""
        number, stamp = packet.get(58, [state['clock']])[0], packet[8][0]
        if number == self.BOOT:
            return stamp
        clock = state['clocks'][number]
        clock['now'] = clock['now'] + stamp if clock['incremental'] else stamp
        return clock['now'] + clock['ahead']

    def descriptor(self, track):
        uuid = track[1][0]
        assert uuid not in self.tracks and uuid != 0
        if 3 in track:
            process = fields(track[3][0])
            assert process[1][0] > 0
            self.tracks[uuid] = (process[6][0].decode(), None, None)
        else:
            parent = self.tracks[track[5][0]]
            counter = fields(track[8][0]) if 8 in track else None
            assert counter in (None, {3: [3]})  # bytes
            self.tracks[uuid] = (parent[0], track[2][0].decode(), counter is not None)

    def event(self, state, time, event):
        uuid = event.get(11, [state['track']])[0]
        process, track, counts = self.tracks[uuid]
        kind = event[9][0]
        if kind == 4:
            assert counts
            self.counters.setdefault((process, track), []).append((time, event[30][0]))
            return
        assert counts is False
        stack = self.open.setdefault(uuid, [])
        if kind == 2:
            start, name, category, arguments = stack.pop()
            self.slices.append((process, track, name, category, start, time, arguments))
            return
        assert kind == 1 and not stack  # slices of a track do not overlap
        words = state['words']
        arguments = [(words[3][a[1][0]], a[3][0]) for a in map(fields, event.get(4, []))]
        stack.append((time, words[2][event[10][0]], words[1][event[3][0]], sorted(arguments)))
        for flow in event.get(47, []) + event.get(48, []):
            self.flows.setdefault(flow, []).append((process, 48 in event))


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
            (1, 2, 'transfer 0', f, 1), (1, 2, 'transfer 1', 2 * f, 1),
            (1, 0, 'forward 0', 1 + f, f), (1, 0, 'forward 1', 1 + 2 * f, f),
            (1, 0, 'backward 1', back, 2), (1, 0, 'backward 0', back + 2, 2),
            (1, 1, 'transfer 1', back + 2, 1), (1, 1, 'transfer 0', back + 4, 1),
            (0, 2, 'transfer 1', back + 2, 1), (0, 2, 'transfer 0', back + 4, 1),
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
            ('thread_name', 0, 1): 'sends', ('thread_name', 1, 1): 'sends',
            ('thread_name', 0, 2): 'receives', ('thread_name', 1, 2): 'receives'})
        capacities = [(e['pid'], e['ts'], e['args']['capacity']) for e in trace['traceEvents']
                      if e['ph'] == 'C' and e['name'] == 'memory capacity (bytes)']
        self.assertEqual(capacities, [(d, ts, 10**9) for d in (0, 1) for ts in (0, back + 7)])
        arrows = sorted((e['ts'], e['ph'], e['pid'], e['tid']) for e in trace['traceEvents']
                        if e['ph'] in 'sf')
        self.assertEqual(arrows, [  # from the sends of one device to the receives of the other
            (ts, ph, d if ph == 's' else 1 - d, 1 if ph == 's' else 2)
            for ts, d in ((f, 0), (2 * f, 0), (back + 2, 1), (back + 4, 1)) for ph in 'fs'])
        activations = [(e['ts'], e['args']['activations']) for e in trace['traceEvents']
                       if e['ph'] == 'C' and e['pid'] == 1 and e['name'] == 'memory (bytes)']
        changes = [activations[0]] + [b for a, b in zip(activations, activations[1:])
                                      if a[1] != b[1]]
        self.assertEqual(changes, [(0, 0), (1 + f, 1000), (1 + 2 * f, 2000), (back + 2, 1000),
                                   (back + 4, 0)])

    def compare(self, h5py, document, *words):
        """With the columns of the file: each task that ran is one event with its times and
        arguments, and memory at each change what the samples say so far."""
        events = self.trace(document, *words)['traceEvents']
        slices = {e['args']['task']: e for e in events
                  if e['ph'] == 'X' and 'from_device' not in e['args']}
        received = {e['args']['task']: e for e in events
                    if e['ph'] == 'X' and 'from_device' in e['args']}
        with h5py.File(self.path('s.h5')) as file:
            tasks = {name: file['tasks'][name][:].tolist() for name in file['tasks']}
            kinds = file['tasks/kind'].attrs['flag_meanings'].split()
            versions = dict(zip(file['versions/task'][:].tolist(),
                                file['versions/version'][:].tolist()))
            memory = {name: file['memory'][name][:].tolist() for name in file['memory']}
            categories = file['memory/category'].attrs['flag_meanings'].split()
        ran = [t for t in tasks['task'] if tasks['start'][t] >= 0]
        self.assertEqual(sorted(slices), ran)
        moved = [t for t in ran if kinds[tasks['kind'][t]] == 'transfer']
        self.assertEqual(sorted(received), moved)
        self.assertEqual(len([e for e in events if e['ph'] == 'X']), len(ran) + len(moved))
        for t in moved:  # the other end: at the same times, on the other device
            e = received[t]
            self.assertEqual((e['ts'] * US, e['dur'], e['pid'], e['args']['from_device']),
                             (tasks['start'][t], slices[t]['dur'], tasks['peer'][t],
                              tasks['device'][t]))
        for phase, ends in (('s', slices), ('f', received)):  # an arrow from end to end
            flows = {e['id']: e for e in events if e['ph'] == phase}
            self.assertEqual(sorted(flows), moved)
            for t in moved:
                self.assertEqual([flows[t][key] for key in ('pid', 'tid', 'ts')],
                                 [ends[t][key] for key in ('pid', 'tid', 'ts')])
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
        for e in (e for e in events if e['ph'] == 'C' and e['name'] == 'memory (bytes)'):
            while i < len(memory['time']) and (memory['time'][i], memory['device'][i]) == \
                    (e['ts'] * US, e['pid']):
                live[e['pid'], categories[memory['category'][i]]] = memory['bytes'][i]
                i += 1
            self.assertEqual({c: b for c, b in e['args'].items() if b},
                             {c: b for (d, c), b in live.items() if d == e['pid'] and b})
        self.assertEqual(i, len(memory['time']))
        self.compare_forms(events, tasks, kinds, memory, categories)
        return events

    def compare_forms(self, events, tasks, kinds, memory, categories):
        """Compressed JSON is the same. Perfetto's form, read by the reader below, which knows
        nothing of how it was written, has the same slices, arrows and counters, in nanoseconds."""
        self.sim('export', 'trace', 's.h5', '-o', 's.json.gz')
        with gzip.open(self.path('s.json.gz'), 'rt', encoding='utf-8') as file:
            self.assertEqual(json.load(file, parse_float=Decimal)['traceEvents'], events)
        self.sim('export', 'trace', 's.h5', '-o', 's.pftrace')
        self.sim('export', 'trace', 's.h5', '-o', 's.pftrace.gz')
        with open(self.path('s.pftrace'), 'rb') as file:
            plain = file.read()
        with gzip.open(self.path('s.pftrace.gz')) as file:
            self.assertEqual(file.read(), plain)
        trace = PerfettoTrace(plain)
        ns = lambda ps: (ps + 500) // 1000
        tracks = {}
        for e in events:
            if e['ph'] == 'M' and e['name'] == 'thread_name':
                tracks[e['pid'], e['tid']] = e['args']['name']
        expected, flows = [], {}
        for e in (e for e in events if e['ph'] == 'X'):
            task = e['args']['task']
            arguments = dict(e['args'])
            if 'from_device' in arguments:
                arguments = {key: arguments[key] for key in ('from_device', 'bytes')}
            expected.append((f"device {e['pid']}", tracks[e['pid'], e['tid']], e['name'], e['cat'],
                             ns(tasks['start'][task]), ns(tasks['end'][task]),
                             sorted(arguments.items())))
            if kinds[tasks['kind'][task]] == 'transfer':
                flows.setdefault(task + 1, []).append(
                    (f"device {e['pid']}", 'from_device' in e['args']))
        self.assertEqual(sorted(trace.slices), sorted(expected))
        self.assertEqual({flow: sorted(ends) for flow, ends in trace.flows.items()},
                         {flow: sorted(ends) for flow, ends in flows.items()})
        samples = {}
        held = {(d, c) for d, c, b in zip(memory['device'], memory['category'], memory['bytes'])
                if b}
        for d, c, t, b in zip(*(memory[k] for k in ('device', 'category', 'time', 'bytes'))):
            if (d, c) in held:
                samples.setdefault((f'device {d}', f'memory: {categories[c]}'),
                                   []).append((ns(t), b))
        capacities = {}
        for e in events:
            if e['ph'] == 'C' and e['name'] == 'memory capacity (bytes)':
                capacities.setdefault((f"device {e['pid']}", 'memory: capacity'), []).append(
                    (ns(int(e['ts'] * US)), e['args']['capacity']))
        self.assertEqual(trace.counters, {**samples, **capacities})

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
        self.assertEqual({e['tid'] for e in events if e['ph'] == 'X' and e['pid'] == 0
                          and 'from_device' not in e['args']}, set(range(6)))

    def test_folded(self):
        """Two stages on four data-parallel devices each, of which one is simulated: a process for
        each stage, which does what each of its devices does if all are simulated."""
        document = scenario(kind='gpipe', micro_batches=2)
        document['platform'] = 'ideal'

        def events(fold, devices):
            document['parallel'] = {'pipeline': 2, 'data': 4, 'fold': fold}
            made = self.trace(document)['traceEvents']
            self.assertEqual([e['args']['name'] for e in made if e['name'] == 'process_name'],
                             devices)
            return [sorted((e['ts'], e['dur'], e['name'], e['args'].get('to_device'),
                            e['args'].get('from_device')) for e in made
                           if e['ph'] == 'X' and e['pid'] == device and e['cat'] != 'all_reduce')
                    for device in (0, 4)]

        folded = events('yes', ['devices 0-3', 'devices 4-7'])
        self.assertEqual(folded, events('no', [f'device {d}' for d in range(8)]))
        # two of each pass, two messages each way, an update
        self.assertEqual([len(of) for of in folded], [9, 9])

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

#!/usr/bin/env python3
"""What sim plot hands to gnuplot, held against results files and values worked out by hand:
test-pictures.py SIM

In place of plots/KIND.gp stands a program that copies one data file of the job to the output.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'
PLOTS = os.environ.get('SIM_PLOTS_DIR')
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def scenario(devices=2, topology='ideal', **schedule):
    return {
        'schema_version': 1, 'name': 'hand',
        'model': {'uniform': {'layers': devices, 'forward': '1 s', 'backward': '2 s',
                              'weights': '1 kB',
                              'activation': '1 kB'}},
        'platform': {'topology': topology, 'devices': devices},
        'schedule': schedule,
    }


@unittest.skipUnless(shutil.which('gnuplot'), 'no gnuplot')
class Pictures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='test-pictures-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def sim(self, *words, status=0, plots=PLOTS):
        environment = dict(os.environ, SIM_PLOTS_DIR=plots) if plots else None
        done = subprocess.run([SIM, *words], capture_output=True, text=True, cwd=self.folder,
                              env=environment, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr + done.stdout

    def run_of(self, name, document, *words):
        with open(self.path('s.json'), 'w', encoding='utf-8') as file:
            json.dump(document, file)
        self.sim('run', 's.json', '-o', name, *words)

    def data(self, program, file, *words):
        """The rows of a data file, fields divided by blanks outside quotes."""
        with open(self.path(program), 'w', encoding='utf-8') as out:
            out.write(f'''system(sprintf("cat '%s/{file}' > '%s'", folder, output))\n''')
        self.sim('plot', *words, '-o', 'data.svg', plots=self.folder)
        with open(self.path('data.svg'), encoding='utf-8') as copied:
            return [[part[1:-1] if part[0] == '"' else part
                     for part in re.findall(r'"[^"]*"|\S+', line)]
                    for line in copied.read().splitlines() if line]

    def numbers(self, *arguments):
        return [[float(x) for x in row] for row in self.data(*arguments) if 'NaN' not in row]

    def names(self, *words):
        return [row[1] for row in self.data('timeline.gp', 'rows.dat', *words)]

    def test_equal_devices_share_a_row(self):
        """Four replicas do the same, and of a pipeline with two replicas of each stage two. Chosen
        devices are not folded."""
        self.run_of('dp.h5', scenario(4, kind='dp'))
        self.assertEqual(self.names('dp.h5'), ['0-3'])
        self.assertEqual(self.names('dp.h5', '--all-devices'), ['0', '1', '2', '3'])
        self.assertEqual(self.names('dp.h5', '--first-device', '2'), ['2', '3'])
        self.assertEqual(self.names('dp.h5', '-k', 'boxes'), ['0', '1', '2', '3'])
        document = scenario(4, kind='gpipe', micro_batches=2)
        document['parallel'] = {'pipeline': 2, 'data': 2}
        self.run_of('mesh.h5', document)
        self.assertEqual(self.names('mesh.h5'), ['0-1', '2-3'])
        document['parallel'] = {'order': ['pipeline', 'data'], 'pipeline': 2, 'data': 2}
        self.run_of('mesh.h5', document)
        self.assertEqual(self.names('mesh.h5'), ['0(x2)', '1(x2)'])
        self.run_of('mesh.h5', document, '-s', '/platform/speed=[1, 1, 1, 0.5]')
        self.assertEqual(self.names('mesh.h5'), ['0', '1', '2', '3'])
        self.run_of('pipeline.h5', scenario(3, kind='gpipe', micro_batches=2))
        self.assertEqual(self.names('pipeline.h5'), ['0', '1', '2'])

    def test_waits_and_critical_path(self):
        """Two stages, two micro-batches, forwards of 1 s and backwards of 2 s, free messages: the
        first does F0 F1 in 0 to 2 and B0 B1 in 5 to 9 (reversed order), the second waits for 1 s,
        does F0 F1 in 1 to 3 and backwards in 3 to 7; then it waits for the flush. From 2 to 5 the
        first waits for the output of the second. Rows begin at 0 and 1; boxes, as
        transfers take no time, end at 0.92 of them."""
        self.run_of('s.h5', scenario(kind='gpipe', micro_batches=2))
        waits = self.numbers('timeline.gp', 'waits.dat', 's.h5')
        grey, light = 0xB8B8B8, 0xE6E6E6
        self.assertEqual(waits, [[2, 5, .05, .92, grey, 0], [0, 1, 1.05, 1.92, grey, 0],
                                 [7, 9, 1.05, 1.92, light, 0]])
        path = self.numbers('timeline.gp', 'path.dat', 's.h5')
        # F0 and F1, on the second stage F1, B1 and B0, whose gradient the last B0 waits for
        corners = [path[0]] + [b for a, b in zip(path, path[1:]) if a != b]
        self.assertEqual([c for c in corners if c[0] in (0, 2, 7, 9)],
                         [[0, .92], [2, .92], [2, 1.92], [7, 1.92], [7, .92], [9, .92]])
        self.assertEqual(self.numbers('timeline.gp', 'waits.dat', 's.h5', '--plain'), [])
        self.assertEqual(self.numbers('timeline.gp', 'path.dat', 's.h5', '--plain'), [])

    def test_waits_for_messages_have_a_pattern(self):
        """A message of 1 kB at 1 kB/s takes 1 s: after its forward of 1 s the second stage waits
        for the first one from 0 to 1 (dependency), then for the message."""
        document = scenario(topology='ring', kind='gpipe', micro_batches=1)
        document['platform'].update(bandwidth='1 kB/s')
        self.run_of('s.h5', document)
        waits = self.numbers('timeline.gp', 'waits.dat', 's.h5')
        second = [[w[0], w[1], w[5]] for w in waits if w[2] > 1]
        self.assertEqual(second[:2], [[0, 1, 0], [1, 2, 4]])

    def test_several_runs(self):
        """Below each other, with headings; they may have different numbers of devices."""
        self.run_of('two.h5', scenario(kind='gpipe', micro_batches=2))
        self.run_of('three.h5', scenario(3, kind='1f1b', micro_batches=2))
        files = ('two.h5', 'three.h5')
        rows = self.data('timeline.gp', 'rows.dat', *files)
        self.assertEqual([row[1] for row in rows], ['0', '1', '0', '1', '2'])
        steps = [float(b[0]) - float(a[0]) for a, b in zip(rows, rows[1:])]
        self.assertGreater(steps[1], 1)  # a heading is between
        self.assertEqual([round(step, 6) for step in steps[:1] + steps[2:]], [1, 1, 1])
        texts = [row[-2] for row in self.data('timeline.gp', 'texts.dat', *files)]
        # (2 + 1) x 3 s, and (2 + 2) x 3 s
        self.assertIn('gpipe: iteration time 9 s', texts)
        self.assertIn('1f1b: iteration time 12 s (+33.3 %)', texts)
        self.sim('plot', *files, '-k', 'segments', '-o', 'x.svg', status=2)
        self.sim('plot', *files, '-o', 'x.svg')

    def test_memory_of_several_runs(self):
        """A panel of the fullest device of each, on one scale. gpipe keeps both micro-batches on
        each of two devices, whose runs end at 9 s; 1f1b of three stages ends at 12 s."""
        try:
            import h5py
        except ImportError:
            self.skipTest('no h5py')
        self.run_of('two.h5', scenario(kind='gpipe', micro_batches=2))
        self.run_of('three.h5', scenario(3, kind='1f1b', micro_batches=2))
        words = ('two.h5', 'three.h5', '-k', 'memory')
        for i, (name, end) in enumerate((('two.h5', 9), ('three.h5', 12))):
            with h5py.File(self.path(name)) as file:
                peaks = file['devices/peak'][:].tolist()
                device = peaks.index(max(peaks))
                samples = [row for row in zip(*(file['memory'][c][:].tolist() for c in (
                    'device', 'time', 'category', 'bytes'))) if row[0] == device]
            text = f'{("gpipe", "1f1b")[i]}, device {device}: peak {max(peaks) / 1e3:g} kB'
            texts = [row[2] for row in self.data('memory.gp', 'texts.dat', *words)]
            self.assertTrue(any(line.startswith(text) for line in texts), texts)
            layers = next(int(row[2]) for row in self.data('memory.gp', 'parameters.gp', *words)
                          if row[0] == 'n_layers')
            drawn = self.numbers('memory.gp', f'panel-{i}-{layers}.dat', *words)
            self.assertEqual(drawn[-1][0], end)
            for seconds in (0.5, 2.5, 4.5, 6.5, 8.5):
                live = {c: b for _, time, c, b in samples if time <= seconds * 1e12}
                at = [y for x, y in drawn if x <= seconds][-1]
                self.assertAlmostEqual(at * 1e3, sum(live.values()), places=4)

    def test_utilisation_of_several_runs(self):
        """Of gpipe with two micro-batches both devices compute 6 s of 9 s, of one 3 s of 6 s: a row
        each, below the run's name."""
        self.run_of('two.h5', scenario(kind='gpipe', micro_batches=2))
        self.run_of('one.h5', scenario(kind='gpipe', micro_batches=1))
        words = ('two.h5', 'one.h5', '-k', 'utilisation')
        bars = self.numbers('utilisation.gp', 'bars.dat', *words)
        rows = sorted({row[2] for row in bars})
        self.assertEqual(len(rows), 4)
        computing = [sum(right - left for left, right, top, _, colour in bars
                         if top == row and colour in (0x56B4E9, 0xE69F00)) for row in rows]
        for share, expected in zip(computing, (100 * 6 / 9, 100 * 6 / 9, 50, 50)):
            self.assertAlmostEqual(share, expected, places=5)
        names = self.data('utilisation.gp', 'names.dat', *words)
        self.assertEqual([row[1] for row in names], ['0', '1', '0', '1'])
        texts = [row[2] for row in self.data('utilisation.gp', 'texts.dat', *words)]
        self.assertTrue({'two', 'one'} <= set(texts), texts)

    def test_utilisation_without_collectives(self):
        """Links carry messages of collectives only if these are simulated. If each collective is
        one delay, no link that only collectives use is drawn as idle, and the picture says what to
        set. In the pipeline of two stages of two replicas each, the messages from stage to stage
        are there in any case."""
        words = ('-k', 'utilisation')
        said = 'links: without collectives, each of which is one delay (fidelity analytic)'
        replicas = scenario(4, 'ring', kind='dp')
        replicas['platform']['bandwidth'] = '1 GB/s'
        stages = scenario(4, 'ring', kind='gpipe', micro_batches=2)
        stages['platform']['bandwidth'] = '1 GB/s'
        stages['parallel'] = {'pipeline': 2, 'data': 2}
        for document, uses_links in ((replicas, False), (stages, True)):
            for fidelity in ('flow', 'analytic'):
                document['collectives'] = {'fidelity': fidelity}
                self.run_of('r.h5', document)
                texts = [row[2] for row in self.data('utilisation.gp', 'texts.dat', 'r.h5', *words)]
                delays = fidelity == 'analytic'
                for line in (said, '/collectives/fidelity=flow simulates their messages'):
                    self.assertEqual(any(line in text for text in texts), delays, texts)
                drawn = any(text.startswith('links,') for text in texts)
                self.assertEqual(drawn, uses_links or not delays, texts)
                rows = self.data('utilisation.gp', 'links.dat', 'r.h5', *words) if drawn else []
                self.assertEqual(all(float(row[0]) > 0 for row in rows), delays)

    def test_utilisation_with_long_names(self):
        """Rows like 15360-16383 have their names right of the axis's name, 22 points from the
        edge: at 11 points a digit is 6 points wide at least. Bars of devices and links do not share
        what is left: links go below."""
        scenarios = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'scenarios')
        self.sim('run', os.path.join(scenarios, 'llama3-405b-16384.json'), '-o', 'l.h5')
        self.sim('plot', 'l.h5', '-k', 'utilisation', '-o', 'x.svg')
        with open(self.path('x.svg'), encoding='utf-8') as file:
            text = file.read()
        ends = [(float(x), name) for x, name in re.findall(
            r'translate\(([\d.]+),[\d.]+\)"[^>]*text-anchor="end">\s*<text>(\d+-\d+)</text>', text)]
        self.assertEqual(len(ends), 16)
        for x, name in ends:
            self.assertGreaterEqual(x - 6 * len(name), 22, name)
        top = {word: float(y) for y, word in re.findall(
            r'translate\([\d.]+,([\d.]+)\)"[^>]*>\s*<text>(time of|links,)', text)}
        self.assertGreater(top['links,'], top['time of'] + 16 * 20)

    def test_mean_memory(self):
        """The mean of the memory of all devices, at every time, from the samples."""
        try:
            import h5py
        except ImportError:
            self.skipTest('no h5py')
        document = scenario(3, kind='gpipe', micro_batches=3)
        document['platform'].update(devices=6)
        document['parallel'] = {'pipeline': 3, 'data': 2}  # devices share rows
        self.run_of('s.h5', document)
        self.run_of('t.h5', scenario(3, kind='1f1b', micro_batches=3))
        with h5py.File(self.path('s.h5')) as file:
            samples = list(zip(*(file['memory'][c][:].tolist()
                                 for c in ('time', 'device', 'category', 'bytes'))))
        drawn = self.numbers('mean-memory.gp', 'mean-1.dat', 's.h5', 't.h5', '-k',
                             'mean-memory')
        fullest = self.numbers('mean-memory.gp', 'fullest-1.dat', 's.h5', 't.h5', '-k',
                               'mean-memory')
        for seconds in (0.5, 1.5, 3.5, 7.5, 10.5, 14.5):
            live = {}
            for time, device, category, bytes_ in samples:
                if time <= seconds * 1e12:
                    live[device, category] = bytes_
            per_device = [sum(b for (d, _), b in live.items() if d == device)
                          for device in range(6)]
            for rows, expected in ((drawn, sum(per_device) / 6), (fullest, max(per_device))):
                at = [row for row in rows if row[0] <= seconds][-1]
                self.assertAlmostEqual(at[1] * 1000, expected, places=4)

    LLAMA = {
        'schema_version': 1, 'runtime': 'ideal', 'name': 'llama',
        'model': {'name': 'llama', 'device': 'a100', 'precision': 'bf16', 'batch_size': 16,
                  'granularity': 'block',
                  'parameters': {'layers': 4, 'hidden': 512, 'heads': 8, 'kv_heads': 4, 'head': 64,
                                 'sequence': 2048, 'vocabulary': 8192, 'intermediate': 1536}},
        'platform': {'topology': 'dgx-a100', 'devices': 2}, 'parallel': {'pipeline': 2},
        'schedule': {'kind': '1f1b', 'micro_batches': 4},
    }

    def held(self, name, device, moment):
        """Bytes of each category in the blocks of a device, and the rows of /reserved about it."""
        import h5py
        with h5py.File(self.path(name)) as file:
            of = file['blocks']
            words = of['category'].attrs['flag_meanings'].split()
            held = dict.fromkeys(words, 0)
            for of_device, when, category, size in zip(*(of[c][:].tolist() for c in (
                    'device', 'moment', 'category', 'bytes'))):
                held[words[category]] += size if (of_device, when) == (device, moment) else 0
            columns = ('device', 'time', 'allocated', 'most_allocated', 'reserved', 'most_reserved')
            samples = [row[1:] for row in zip(*(file['reserved'][c][:].tolist() for c in columns))
                       if row[0] == device]
        return held, samples

    def check_rows(self, held, *words):
        """Boxes are together as wide as the bytes that they represent; 13 high, 566 in a row."""
        colours = {0x0072B2: 'weights', 0x009E73: 'gradients', 0xCC79A7: 'optimizer_states',
                   0xE69F00: 'activations', 0xD55E00: 'communication_buffers',
                   0xF0E442: 'workspace'}
        widths = {}
        ends = []
        for left, right, top, bottom, colour in self.numbers('segments.gp', 'swatches.dat', *words):
            if round(bottom - top) == 13:
                widths[colours[colour]] = widths.get(colours[colour], 0) + right - left
                ends.append((top, right))
        rows = round((max(ends)[0] - min(ends)[0]) / 16) + 1
        scale = held['activations'] / widths['activations']
        self.assertTrue((rows - 1) * 566 < sum(held.values()) / scale <= rows * 566)
        for category, width in widths.items():
            self.assertAlmostEqual(width * scale / held[category], 1, delta=0.02, msg=category)
        self.assertEqual(set(widths), {c for c, n in held.items() if n and c != 'none'})

    def test_segments(self):
        """What the allocator held at its peak, and where it failed, and how that grew."""
        try:
            import h5py  # noqa: F401
        except ImportError:
            self.skipTest('no h5py')
        self.run_of('a.h5', self.LLAMA, '--allocator', 'pytorch')
        words = ('a.h5', '-k', 'segments', '--first-device', '1')
        held, samples = self.held('a.h5', 1, 0)
        self.check_rows(held, *words)
        titles = [row[-1] for row in self.data('segments.gp', 'parameters.gp', *words)]
        unit = 1e9 if any('(GB)' in title for title in titles) else 1e6
        for name, then, most in (('allocated.dat', 1, 2), ('reserved.dat', 3, 4)):
            drawn = self.numbers('segments.gp', name, *words)
            self.assertAlmostEqual(max(y for _, y in drawn), max(s[most] for s in samples) / unit,
                                   places=6)
            for sample in samples[1::5]:
                at = [y for x, y in drawn if x <= sample[0] / 1e9 + 1e-12][-1]
                self.assertAlmostEqual(at, sample[then] / unit, places=6)
        self.run_of('b.h5', self.LLAMA, '--allocator', 'pytorch', '-s', '/platform/memory=700 MB')
        self.check_rows(self.held('b.h5', 0, 1)[0], 'b.h5', '-k', 'segments')
        texts = [row[2] for row in self.data('segments.gp', 'texts.dat', 'b.h5', '-k', 'segments')]
        self.assertTrue(any(text.startswith('OUT OF MEMORY: ') for text in texts), texts)
        self.run_of('c.h5', self.LLAMA)
        self.assertIn('--allocator pytorch', self.sim('plot', 'c.h5', '-k', 'segments', status=3))
        self.sim('plot', 'a.h5', '-k', 'segments', '--devices', '2', '-o', 'x.svg', status=2)

    def test_spread(self):
        """Percentiles of the runs that the file has: between neighbours by rank."""
        try:
            import h5py
        except ImportError:
            self.skipTest('no h5py')
        self.run_of('s.h5', scenario(kind='gpipe', micro_batches=2), '-s',
                    '/platform/jitter={"mean": 0.2}', '--runs', '9')
        with h5py.File(self.path('s.h5')) as file:
            values = sorted(file['runs/iteration_time_s'][:].tolist())
        box = self.data('spread.gp', 'boxes.dat', 's.h5', '-k', 'spread')[0]
        # of nine, ranks 0 to 8: the quartiles have rank 2, 4, 6; 5 % is 0.4 beyond the
        # first
        expected = [values[0] + .4 * (values[1] - values[0]), values[2], values[4], values[6],
                    values[7] + .6 * (values[8] - values[7])]
        for drawn, value in zip(box, expected):
            self.assertAlmostEqual(float(drawn), value, places=9)
        points = self.numbers('spread.gp', 'points.dat', 's.h5', '-k', 'spread')
        self.assertEqual(len(points), 9)
        for point, value in zip(points, values):
            self.assertAlmostEqual(point[0], value, places=9)
        self.run_of('one.h5', scenario(kind='dp'))
        self.assertIn('`sim run --runs N`', self.sim('plot', 'one.h5', '-k', 'spread', status=3))

    def sweep(self, *words):
        with open(self.path('s.json'), 'w', encoding='utf-8') as file:
            json.dump(scenario(kind='gpipe', micro_batches=2), file)
        self.sim('sweep', 's.json', '-o', 'sweep.h5', *words)

    def test_bars_and_capacity(self):
        """The first device holds 1 kB of weights, as much of gradients and of sent data, and 1
        kB of activations for each micro-batch in flight: of four all in gpipe, two in 1f1b, which
        then sends and receives at one instant: 1 + 1 + 2 + 1 + 1."""
        self.sweep('--vary', '/schedule/kind=gpipe,1f1b', '--vary', '/schedule/micro_batches=1,4',
                   '-s', '/platform/memory=4 kB')
        words = ('sweep.h5', '--value', 'peak_memory_bytes')
        bars = self.numbers('lines.gp', 'bars.dat', *words)
        self.assertEqual([(bar[3], bar[5]) for bar in bars], [(4, 0), (7, 1), (4, 0), (6, 1)])
        self.assertTrue(all(bar[2] == 0 for bar in bars))
        self.assertEqual([round(bar[0]) for bar in bars], [0, 0, 1, 1])
        capacity = self.numbers('lines.gp', 'capacity.dat', *words)
        self.assertEqual(capacity, [[-0.5, 4, 2]])

    def test_plans_that_do_not_fit(self):
        """Hollow points, whose numbers are one less than the full points' numbers, which are odd;
        the capacity is what a peak is over by less."""
        try:
            import h5py
        except ImportError:
            self.skipTest('no h5py')
        with open(os.path.join(ROOT, 'scenarios', 'abci-resnet50.json'), encoding='utf-8') as file:
            document = json.load(file)
        document['platform']['memory'] = '2.5 GB'
        with open(self.path('s.json'), 'w', encoding='utf-8') as file:
            json.dump(document, file)
        self.sim('advise', 's.json', '--exhaustive', '--most', '80', '-o', 'a.h5')
        with h5py.File(self.path('a.h5')) as file:
            plans = list(zip(*(file['plans'][name][:].tolist()
                               for name in ('step_time', 'peak_memory', 'over_capacity'))))
        best = min(time for time, _, over in plans if time == time and not over > 0)
        shown = [(round(peak / 1e9, 6), over > 0) for time, peak, over in plans if time <= 3 * best]
        drawn = [(round(row[0], 6), row[2] % 2 == 0)
                 for row in self.numbers('plans.gp', 'plans.dat', 'a.h5')]
        self.assertEqual(sorted(drawn), sorted(shown))
        self.assertTrue(any(hollow for _, hollow in drawn))
        parameters = {row[0]: row[2] for row in self.data('plans.gp', 'parameters.gp', 'a.h5')}
        self.assertAlmostEqual(float(parameters['capacity']), 2.5)

    def test_words(self):
        self.sweep('--vary', '/schedule/micro_batches=1,2,4')
        texts = self.data('lines.gp', 'parameters.gp', 'sweep.h5')
        text = '\n'.join(' '.join(row) for row in texts)
        self.assertIn("x_title = 'micro-batches'", text)
        self.assertIn("y_title = 'iteration time (s)'", text)
        text = '\n'.join(' '.join(row) for row in self.data(
            'lines.gp', 'parameters.gp', 'sweep.h5', '--x', 'M', '--y', '', '--title', 'Mine'))
        self.assertIn("x_title = 'M'", text)
        self.assertIn("y_title = ''", text)
        self.assertIn("heading = 'Mine'", text)

    def test_sizes(self):
        """8.5 cm are 241 points; a PNG has 300 pixels per inch; without a unit, pixels."""
        self.run_of('s.h5', scenario(kind='dp'))
        for width, pixels in (('8.5 cm', 1004), ('241', 241), ('85mm', 1004)):
            self.sim('plot', 's.h5', '--width', width, '-o', 'x.png')
            with open(self.path('x.png'), 'rb') as file:
                self.assertEqual(int.from_bytes(file.read()[16:20], 'big'), pixels)
        for wrong in ('8.5 km', 'wide', '-3', '8.5 cm x'):
            self.assertIn('--width: must be a number',
                          self.sim('plot', 's.h5', f'--width={wrong}', '-o', 'x.png', status=2))
        self.assertIn('from 3 to 100',
                      self.sim('plot', 's.h5', '--font-size', '1', '-o', 'x.png', status=2))
        self.sim('plot', 's.h5', '--width', '400', '--font-size', '22', '-o', 'x.svg')
        with open(self.path('x.svg'), encoding='utf-8') as file:
            self.assertRegex(file.read(), r'font-size="22\.\d*"')

    def test_kind_follows_from_the_file(self):
        self.run_of('s.h5', scenario(kind='gpipe', micro_batches=2))
        self.sim('plot', 's.h5')
        self.assertTrue(os.path.exists(self.path('s-timeline.svg')))
        self.sweep('--vary', '/schedule/micro_batches=1,2,4')
        self.sim('plot', 'sweep.h5')
        self.assertTrue(os.path.exists(self.path('sweep-lines.svg')))
        self.sweep('--vary', '/schedule/micro_batches=1,2,4', '--vary',
                   '/model/uniform/activation=1 kB,2 kB,3 kB,4 kB,5 kB,6 kB,7 kB,8 kB')
        self.sim('plot', 'sweep.h5')
        self.assertTrue(os.path.exists(self.path('sweep-heatmap.svg')))

    def test_validation(self):
        """Measured to the right, predicted upwards; memory in GB, reserved behind allocated."""
        measured = {'step_time_s': 1.6, 'peak_allocated_bytes': 21e9, 'peak_reserved_bytes': 23e9}
        points = {'schema': 'truth/1', 'dataset': 'mine', 'points': [{
            'id': 'mine/1', 'quality': 'A', 'precision': 'fp16', 'framework': 'PyTorch DDP',
            'model': {'name': 'g', 'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4,
                      'ffn': 1024, 'vocab': 1000, 'seq': 128, 'act': 'gelu', 'norm': 'layernorm',
                      'pos': 'learned', 'tied': True, 'bias': True},
            'hardware': {'gpu': 'A100-SXM4-80GB', 'gpus': 1, 'memory_gb': 80},
            'batch': {'global': 4, 'micro': 1}, 'measured': measured}]}
        with open(self.path('points.json'), 'w', encoding='utf-8') as file:
            json.dump(points, file)
        self.sim('validate', 'points.json', '-o', 'v.h5')
        told = json.loads(self.sim('validate', 'points.json', '--json'))['points'][0]
        times = self.numbers('validation.gp', 'times.dat', 'v.h5')
        memory = self.numbers('validation.gp', 'memory.dat', 'v.h5')
        expected = [[1.6, told['predicted_step_time_s']],
                    [21, told['predicted_allocated_bytes'] / 1e9],
                    [23, told['predicted_reserved_bytes'] / 1e9]]
        self.assertEqual(len(times), 1)
        self.assertEqual(len(memory), 2)
        for row, values in zip(times + memory, expected):
            self.assertEqual(row[0], values[0])
            self.assertAlmostEqual(row[1] / values[1], 1, places=8)
        self.assertEqual(times[0][2:], memory[0][2:])  # one symbol and colour


if __name__ == '__main__':
    unittest.main()

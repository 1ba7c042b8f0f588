#!/usr/bin/env python3
"""sim report in a real browser: test-report.py SIM SOURCE_ROOT

Each report is opened in a headless Chromium; its contents are compared with the results file as
h5py reads it.
"""
import html
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import unittest

SKIPPED = 77
SIM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
UNITS = {'s': 12, 'ms': 9, 'µs': 6, 'ns': 3, 'ps': 0}
NONE = 0xFFFFFFFF

try:
    import h5py
except ImportError:
    if sys.executable != '/usr/bin/python3' and os.path.exists('/usr/bin/python3'):
        # Debian's, which has its packages
        os.execv('/usr/bin/python3', ['/usr/bin/python3', *sys.argv])
    print('skipped: no h5py')
    sys.exit(SKIPPED)

import browser

# two stages on each of 64 GPUs: 2 x 64 x 4 x 128 forwards and as many backwards, and their messages
LARGE = {
    'schema_version': 1, 'name': 'interleaved-64',
    'model': {'uniform': {'layers': 256, 'forward': '1 ms', 'backward': '2 ms', 'weights': '20 MB',
                          'activation': '10 MB'}, 'batch_size': 512},
    'platform': {'topology': 'nvlink_switch', 'devices': 64, 'memory': '80 GiB',
                 'bandwidth': '150 GB/s', 'latency': '3 us'},
    'schedule': {'kind': 'interleaved_1f1b', 'micro_batches': 128, 'stages_per_device': 4},
    'iterations': 2,
}


def picoseconds(text):
    """Of "12.345678901 ms", exactly."""
    number, unit = text.split(' ')
    whole, _, part = number.partition('.')
    return int(whole + part.ljust(UNITS[unit], '0')) if UNITS[unit] else int(whole)


def plain(column):
    return [value.decode() if isinstance(value, bytes) else value for value in column.tolist()]


class Results:
    """A results file, column by column, and slow questions to it."""

    def __init__(self, path):
        with h5py.File(path) as file:
            self.attributes = dict(file.attrs)
            for group in file:
                setattr(
                    self, group, {name: plain(column[:]) for name, column in file[group].items()})
            self.words = {name: file[name].attrs['flag_meanings'].split()
                          for name in ('tasks/kind', 'tasks/origin', 'memory/category',
                                       'waits/cause')}

    def computing(self, device, time):
        """The task that a device computes then, or None."""
        tasks = self.tasks
        found = [t for t in tasks['task'] if tasks['device'][t] == device and tasks['peer'][t]
                 == NONE
                 and tasks['start'][t] <= time < tasks['end'][t]]
        assert len(found) <= 1
        return found[0] if found else None

    def live(self, device, time):
        """Bytes by category then."""
        held = {}
        columns = (self.memory[name] for name in ('time', 'device', 'category', 'bytes'))
        for at, where, category, size in zip(*columns):
            if where == device and at <= time:
                held[category] = size
        return held


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix='test-report-')
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def sim(self, *words, status=0):
        done = subprocess.run([SIM, *words], capture_output=True, text=True, cwd=self.folder.name,
                              check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def run_of(self, scenario, *words, name='r'):
        """Simulates a shipped scenario, or a document, into NAME.h5."""
        if isinstance(scenario, dict):
            with open(self.path(name + '.json'), 'w', encoding='utf-8') as file:
                json.dump(scenario, file)
            scenario = self.path(name + '.json')
        else:
            scenario = os.path.join(ROOT, 'scenarios', scenario + '.json')
        self.sim('run', scenario, '-o', name + '.h5', *words)
        return Results(self.path(name + '.h5'))

    def report(self, *names, **how):
        self.sim('report', *(name + '.h5' for name in names), '-o', 'r.html')
        page = self.browser.open(self.path('r.html'), **how)
        self.addCleanup(page.close)
        return page

    def cells(self, page, table):
        """The texts of a table's rows."""
        return page.run(f'[...document.querySelectorAll("{table} tbody tr")]'
                        '.map(row => [...row.cells].map(cell => cell.textContent))')

    def text(self, page, element):
        return page.run(f'document.querySelector("{element}").textContent')

    def quiet(self, page):
        self.assertEqual(page.complaints(), [])


class Run(Case):
    """One run."""

    def setUp(self):
        self.results = self.run_of('heterogeneous')
        self.page = self.report('r')
        self.x0, self.x1, self.top, self.high = self.page.run(
            '(() => { const p = view.panels.find(p => p.kind === "timeline");'
            ' const b = p.canvas.getBoundingClientRect(), [from, until] = view.x.range();'
            ' return [b.left + from, b.left + until, b.top + 2, p.layout.height]; })()')
        self.shown = (0, self.results.attributes['makespan'])

    def hover(self, x, y):
        self.page.mouse('mouseMoved', x, y)
        return self.page.run(
            '(() => { const tip = document.getElementById("tip"), rows = {}; if (tip.hidden) '
            'return null;'
            ' for (const dt of tip.querySelectorAll("dt")) rows[dt.textContent] = '
            'dt.nextSibling.textContent;'
            ' return {title: tip.querySelector(".title").textContent, rows, ...tip.dataset}; })()')

    def time_at(self, x):
        """By our own arithmetic, for the visible part."""
        from_, until = self.shown
        return from_ + (x - self.x0) / (self.x1 - self.x0) * (until - from_)

    def columns(self, n):
        """Whole points, as pointers have them, n of them across."""
        return [round(self.x0 + step * (self.x1 - self.x0) / (n + 0.7)) for step in range(1, n)]

    def check_hover(self, device, x):
        """What is said at a point is what the file says of that device and time; whether a task is
        there."""
        task = self.results.computing(device, self.time_at(x))
        near = [self.results.computing(device, self.time_at(x + d)) for d in (-2.5, 2.5)]
        if near != [task, task]:
            return False  # too close to a border to be sure of
        tip = self.hover(x, self.top + device * self.high + 5)
        if task is None:
            self.assertTrue(tip is None or 'task' not in tip, tip)
            return False
        tasks = self.results.tasks
        self.assertEqual(int(tip['task']), task)
        kind = self.results.words['tasks/kind'][tasks['kind'][task]].replace('_', ' ')
        number = tasks['mini_batch' if kind == 'update' else 'micro_batch'][task]
        self.assertEqual(tip['title'], f'{kind} {number}')
        self.assertEqual(tip['rows']['device'], f'GPU {device}')
        self.assertEqual(tip['rows']['stage'], str(tasks['stage'][task]))
        self.assertEqual(tip['rows']['mini-batch'], str(tasks['mini_batch'][task]))
        for column in ('start', 'end'):
            self.assertEqual(picoseconds(tip['rows'][column]), tasks[column][task])
        self.assertEqual(picoseconds(tip['rows']['duration']),
                         tasks['end'][task] - tasks['start'][task])
        versions = dict(zip(self.results.versions['task'], self.results.versions['version']))
        self.assertEqual(tip['rows']['weights'], f'version {versions[task]}')
        return True

    def test_opens(self):
        self.quiet(self.page)
        self.assertEqual(self.page.run('document.title'), 'heterogeneous')
        figures = {row[0]: row[1] for row in self.cells(self.page, '#figures')}
        attributes = self.results.attributes
        self.assertAlmostEqual(picoseconds(figures['iteration time']) / 1e12,
                               attributes['iteration_time_s'], delta=5e-5)
        self.assertEqual(figures['bubble fraction'], f'{100 * attributes["bubble_fraction"]:.2f} %')
        self.assertEqual(figures['peak memory'],
                         f'{max(self.results.devices["peak"]) / 1e9:.3f} GB')

    def test_hover(self):
        hits = sum(self.check_hover(device, x) for device in range(4) for x in self.columns(23))
        self.assertGreater(hits, 30)
        self.quiet(self.page)

    def test_zoom(self):
        x = round(self.x0 + 0.37 * (self.x1 - self.x0))
        share, still = (x - self.x0) / (self.x1 - self.x0), self.time_at(x)
        self.page.mouse('mouseWheel', x, self.top + 5, deltaX=0, deltaY=-1500)
        self.page.run('new Promise(requestAnimationFrame)')
        from_, until = self.page.run('view.x.domain()')
        # D3 zooms by 2 to the power of -deltaY / 500, about the pointer
        self.assertAlmostEqual((until - from_) * 8 / self.results.attributes['makespan'], 1,
                               places=6)
        self.assertAlmostEqual((from_ + share * (until - from_)) / still, 1, places=6)
        self.shown = (from_, until)
        hits = sum(self.check_hover(device, x) for device in range(4) for x in self.columns(17))
        self.assertGreater(hits, 20)
        # drag to the right: earlier times
        wide = 100
        self.page.mouse('mousePressed', x, self.top + 5, button='left', buttons=1, clickCount=1)
        self.page.mouse('mouseMoved', x + wide, self.top + 5, button='left', buttons=1)
        self.page.mouse('mouseReleased', x + wide, self.top + 5, button='left', clickCount=1)
        moved, _ = self.page.run('view.x.domain()')
        self.assertAlmostEqual((from_ - moved) / (until - from_), wide / (self.x1 - self.x0),
                               places=6)
        self.page.run('document.getElementById("panels").focus()')
        self.page.key('0')
        self.assertEqual(self.page.run('view.x.domain()'), [0, self.results.attributes['makespan']])

    def test_memory(self):
        row = self.results.devices['peak'].index(max(self.results.devices['peak']))
        top = self.page.run(
            'view.panels.find(p => p.kind === "memory").canvas.getBoundingClientRect().top')
        for x in self.columns(40):
            held = [self.results.live(row, self.time_at(x + d)) for d in (-0.01, 0, 0.01)]
            if held[0] == held[1] == held[2]:
                tip = self.hover(x, top + 60)
                self.assertEqual(int(tip['bytes']), sum(held[1].values()))

    def test_mean_memory(self):
        """What all devices hold over their number, and the fullest of them."""
        self.page.run('(() => { const select = document.querySelector(".panel-head select");'
                      ' select.value = -1; select.dispatchEvent(new Event("change")); })()')
        self.page.run('new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))')
        top = self.page.run(
            'view.panels.find(p => p.kind === "memory").canvas.getBoundingClientRect().top')
        hits = 0
        for x in self.columns(40):
            held = [[sum(self.results.live(row, self.time_at(x + d)).values()) for row in range(4)]
                    for d in (-0.01, 0, 0.01)]
            if held[0] == held[1] == held[2]:
                tip = self.hover(x, top + 60)
                self.assertAlmostEqual(float(tip['bytes']), sum(held[1]) / 4, places=3)
                number, unit = tip['rows']['fullest device'].split(' ')
                self.assertAlmostEqual(float(number) * {'GB': 1e9, 'MB': 1e6}[unit] / max(held[1]),
                                       1,
                                       places=4)
                hits += 1
        self.assertGreater(hits, 10)
        times = sorted(set(self.results.memory['time']))
        highest = max(sum(sum(self.results.live(row, t).values()) for row in range(4)) / 4
                      for t in times)
        self.assertIn(f'On average a device holds {highest / 1e6:.1f} MB',
                      self.text(self.page, '#peak .lead'))
        self.quiet(self.page)

    def test_peak(self):
        """The table next to the picture agrees with the file, for a selected device."""
        for device in range(4):
            self.page.run('(() => { const select = document.querySelector(".panel-head select");'
                          f' select.value = {device}; select.dispatchEvent(new Event("change")); '
                          f'}})()')
            shown = [row[0] for row in self.cells(self.page, '#peak')]
            columns = self.results.devices
            expected = {name[len('at_peak_'):].replace('_', ' ') for name in columns
                        if name.startswith('at_peak_') and columns[name][device] > 0}
            self.assertEqual(set(shown), expected)
            self.assertIn(f'GPU {device}', self.text(self.page, '#peak .lead'))

    def test_search(self):
        tasks, words = self.results.tasks, self.results.words['tasks/origin']
        kinds = [words[origin] for origin in tasks['origin']]
        for text, wanted in (
                ('forward 3', lambda t: kinds[t] == 'forward' and tasks['micro_batch'][t] == 3),
                ('backward, stage 2', lambda t: kinds[t] == 'backward' and tasks['stage'][t] == 2),
                ('#17', lambda t: t == 17), ('update', lambda t: kinds[t] == 'update')):
            expected = sorted(t for t in tasks['task'] if wanted(t))
            self.page.run(f'searchFor([view.panels[1].run], {json.dumps(text)})')
            found = sorted(self.page.run('[...search.found]'))
            self.assertEqual(found, expected, text)
            self.assertEqual(self.text(self.page, '#found'), f'1 of {len(expected)}')
        self.page.run('searchFor([view.panels[1].run], "nonsense")')
        self.assertEqual(self.text(self.page, '#found'), 'no task found')

    def test_keys(self):
        picture = 'view.panels.find(p => p.kind === "timeline").canvas.toDataURL()'
        frame = 'new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))'
        before = self.page.run(picture)
        for key, title in (('c', 'Critical path'), ('w', 'Waiting')):
            self.page.key(key)
            self.page.run(frame)
            after = self.page.run(picture)
            self.assertNotEqual(after, before, title)
            before = after
            pressed = self.page.run('[...document.querySelectorAll("button")]'
                                    f'.find(b => b.textContent === '
                                    f'"{title}").getAttribute("aria-pressed")')
            self.assertEqual(pressed, 'true' if key == 'c' else 'false')
        self.page.key('?')
        self.assertTrue(self.page.run('document.getElementById("help").open'))
        self.page.run('document.getElementById("help").close()')
        self.page.run(frame)
        self.page.key('t')
        self.assertEqual(self.page.run('document.documentElement.dataset.theme'), 'dark')
        self.page.run('document.getElementById("panels").focus()')
        self.page.key('ArrowRight')
        self.assertIn('forward 0: device GPU 0, stage 0', self.text(self.page, '#said'))
        self.quiet(self.page)

    def test_messages(self):
        """A forward of the second device: the activations that came, and those that left."""
        tasks, words = self.results.tasks, self.results.words['tasks/kind']
        task = next(t for t in tasks['task'] if words[tasks['kind'][t]] == 'forward'
                    and tasks['device'][t] == 1 and tasks['micro_batch'][t] == 5)
        expected = {t for t in tasks['task'] if tasks['peer'][t] != NONE and tasks['micro_batch'][t]
                    == 5 and
                    (tasks['device'][t], tasks['peer'][t]) in ((0, 1), (1, 2))}
        self.assertEqual(len(expected), 2)
        self.assertEqual(set(self.page.run(f'messagesOf(view.panels[1].run, {task})')), expected)

    def test_words(self):
        """Every picture has a text, every control a name, every table a caption."""
        for elements, named in (
                ('canvas', 'e.getAttribute("aria-label") || e.getAttribute("aria-hidden")'),
                ('button, input, select', 'e.textContent.trim() || e.getAttribute("aria-label")'),
                ('table', 'e.caption')):
            nameless = (
                f'[...document.querySelectorAll("{elements}")].filter(e => !({named})).length')
            self.assertEqual(self.page.run(nameless), 0, elements)
        self.assertEqual(self.page.run('new Set([...document.querySelectorAll("[id]")].map(e => '
                                       'e.id)).size'),
                         self.page.run('document.querySelectorAll("[id]").length'))


class Links(Case):
    """How busy links are over time: a link's traffic over all intervals equals what the engine
    counted."""

    def test_bytes(self):
        for name in ('heterogeneous', 'interleaved-1f1b', 'pcie-contention', 'tensor-parallel',
                     'abci-resnet50'):
            with self.subTest(name):
                results = self.run_of(name)
                carried = {}
                for link, size in zip(results.link_use['link'], results.link_use['bytes']):
                    carried[link] = carried.get(link, 0) + size
                self.assertGreater(len(carried), 1)
                for link, size in carried.items():
                    self.assertAlmostEqual(size / results.links['bytes'][link], 1, places=9)
                self.assertEqual(len(carried),
                                 min(32, sum(size > 0 for size in results.links['bytes'])))

    def test_by_hand(self):
        """Activations of 1 MB over 1 GB/s take the second millisecond of four, their gradient, the
        other way, the last: of the 200 stretches, of 20 us each, 50 are full on one link, and 50
        others on the other."""
        layer = {'forward': '1 ms', 'backward': 0, 'weights': 0, 'output': 1000000}
        document = {'schema_version': 1, 'name': 'two',
                    'model': {'inline': {'schema_version': 1, 'name': 'two', 'batch_size': 1,
                                         'provenance': {'source': 'made up', 'hardware': 'none',
                                                        'date': '2026-11-22'},
                                         'layers': [{'name': 'a', **layer},
                                                    {'name': 'b', **layer}]}},
                    'platform': {'topology': 'ring', 'devices': 2, 'bandwidth': '1 GB/s',
                                 'latency': 0,
                                 'sharing': 'max_min'},
                    'schedule': {'kind': 'gpipe', 'micro_batches': 1}}
        results = self.run_of(document)
        use, ms = results.link_use, 10**9
        self.assertEqual(results.attributes['makespan'], 4 * ms)
        self.assertEqual(len(use['link']), 100)
        for link, start, end, part in zip(use['link'], use['start'], use['end'],
                                          use['utilisation']):
            from_ = ms if results.links['name'][link].startswith('gpu0') else 3 * ms
            self.assertGreaterEqual(start, from_)
            self.assertLessEqual(end, from_ + ms)
            self.assertEqual(end - start, ms // 50)
            self.assertAlmostEqual(part, 1, places=9)


class Segments(Case):
    """What PyTorch's allocator held, at a point of the picture: the bytes before it, in segments
    from the largest to the smallest, the small pool's last, of the file's blocks."""

    MODEL = {'name': 'llama', 'device': 'a100', 'precision': 'bf16', 'batch_size': 16,
             'granularity': 'block',
             'parameters': {'layers': 4, 'hidden': 512, 'heads': 8, 'kv_heads': 4, 'head': 64,
                            'sequence': 2048, 'vocabulary': 8192, 'intermediate': 1536}}
    SCENARIO = {'schema_version': 1, 'name': 'llama', 'runtime': 'ideal', 'model': MODEL,
                'platform': {'topology': 'dgx-a100', 'devices': 2}, 'parallel': {'pipeline': 2},
                'schedule': {'kind': '1f1b', 'micro_batches': 4}}

    def held(self, results, device, moment):
        """[(bytes before, bytes, category or None, bytes of the segment)]"""
        blocks, segments = results.blocks, {}
        for i, of in enumerate(blocks['device']):
            if (of, blocks['moment'][i]) == (device, moment):
                segments.setdefault(blocks['segment_address'][i], []).append(i)

        def size(segment):
            return sum(blocks['bytes'][i] for i in segment)

        def key(segment):
            return blocks['pool'][segment[0]], -size(segment), blocks['address'][segment[0]]

        found, before = [], 0
        for segment in sorted(segments.values(), key=key):
            for i in sorted(segment, key=lambda i: blocks['address'][i]):
                category = blocks['category'][i] if blocks['state'][i] else None
                found.append((before, blocks['bytes'][i], category, size(segment)))
                before += blocks['bytes'][i]
        return found

    def tip(self, page, canvas, x, y):
        box = page.run('(() => { const b = document.querySelectorAll("#segments canvas")'
                       f'[{canvas}].getBoundingClientRect(); return [b.left, b.top]; }})()')
        page.mouse('mouseMoved', box[0] + x, box[1] + y)
        return page.run(
            '(() => { const tip = document.getElementById("tip"), rows = {}; if (tip.hidden) '
            'return null;'
            ' for (const dt of tip.querySelectorAll("dt")) rows[dt.textContent] = '
            'dt.nextSibling.textContent;'
            ' return {title: tip.querySelector(".title").textContent, rows, ...tip.dataset}; })()')

    def check(self, page, results, device, moment):
        left, wide, in_row = page.run('(() => { const p = view.panels.find(p => p.kind === '
                                      '"timeline")'
                                      '.run.segments.panels[1];'
                                      ' return [LEFT, view.width - LEFT - RIGHT, p.inRow]; })()')
        with h5py.File(self.path('r.h5')) as file:
            words = file['blocks/category'].attrs['flag_meanings'].split()
        page.run(
            'document.querySelectorAll("#segments canvas")[1].scrollIntoView({block: "center"})')
        checked = set()
        for before, size, category, segment in self.held(results, device, moment):
            middle = before + size / 2
            row, rest = divmod(middle, in_row)
            if min(rest, in_row - rest) < 2 * in_row / wide or size < 3 * in_row / wide:
                continue  # too narrow to point at
            tip = self.tip(page, 1, left + rest / in_row * wide, 3 + row * 20 + 8)
            self.assertEqual(int(tip['bytes']), size)
            self.assertEqual(tip['title'], 'free' if category is None
                             else words[category].replace('_', ' '))
            number, unit = tip['rows']['segment'].split(' ')
            exact = segment / {'GB': 1e9, 'MB': 1e6, 'kB': 1e3}[unit]
            self.assertAlmostEqual(float(number), exact, delta=1e-5 * exact)
            checked.add(tip['title'])
        self.assertIn('free', checked)
        self.assertGreater(len(checked), 3)

    def test_peak(self):
        results = self.run_of(self.SCENARIO, '--allocator', 'pytorch')
        page = self.report('r')
        self.quiet(page)
        fullest = results.allocator['peak_reserved'].index(max(results.allocator['peak_reserved']))
        self.check(page, results, fullest, 0)
        self.assertIn(f'GPU {fullest} reserves', self.text(page, '#segments .lead'))
        other = 1 - fullest
        page.run('(() => { const select = document.querySelector("#segments select");'
                 f' select.value = {other}; select.dispatchEvent(new Event("change")); }})()')
        self.check(page, results, other, 0)
        # over time: the state after the last change before a point
        of = [row
              for row in zip(*(results.reserved[name] for name in ('device', 'time', 'allocated')))
              if row[0] == other]
        left, wide = page.run('[LEFT, view.width - LEFT - RIGHT]')
        page.run(
            'document.querySelectorAll("#segments canvas")[0].scrollIntoView({block: "center"})')
        for x in range(5, int(wide), 29):
            time = 2 * results.attributes['makespan'] * x / wide
            if min(abs(time - row[1]) for row in of) > results.attributes['makespan'] / wide:
                self.assertEqual(int(self.tip(page, 0, left + x, 60)['bytes']),
                                 [row[2] for row in of if row[1] <= time][-1])

    def test_failure(self):
        results = self.run_of(self.SCENARIO, '--allocator', 'pytorch', '-s',
                              '/platform/memory=700 MB')
        page = self.report('r')
        device = next(d for d, n in enumerate(results.allocator['failures']) if n > 0)
        self.check(page, results, device, 1)
        said = self.text(page, '#segments .lead')
        self.assertIn(f'{results.allocator["failed_bytes"][device] / 1e6:.3f} MB for forward', said)
        self.assertIn(f'{results.allocator["failed_largest"][device] / 1e6:.3f} MB', said)

    def test_without(self):
        self.run_of('uniform-1f1b')
        self.assertEqual(self.report('r').run('document.querySelectorAll("#segments").length'), 0)


class Narrow(Case):
    """A window of 400 points."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser.close()
        cls.browser = browser.Browser(width=400, height=800)

    def test_not_squeezed(self):
        """Pictures are drawn as wide as they are shown, text stays legible, and the page does not
        scroll sideways."""
        self.run_of('heterogeneous')
        page = self.report('r')
        self.quiet(page)
        self.assertEqual(page.run('view.width'),
                         page.run('document.querySelector("#panels").clientWidth'))
        self.assertLessEqual(page.run('document.documentElement.scrollWidth'), 400)
        self.sim('sweep', os.path.join(ROOT, 'scenarios/heterogeneous.json'), '-o', 's.h5',
                 '--vary', '/schedule/micro_batches=4,8')
        page = self.report('s')
        self.quiet(page)
        self.assertLessEqual(page.run('document.documentElement.scrollWidth'), 400)
        scale = page.run('(chart => chart.getBoundingClientRect().width / '
                         'chart.viewBox.baseVal.width)'
                         '(document.querySelector(".chart"))')
        self.assertGreater(scale, 0.9)  # of text of 12 points


class Empty(Case):
    """What has neither memory nor messages."""

    def test_one_device(self):
        self.run_of({'schema_version': 1, 'name': 'one', 'platform': 'ideal',
                     'schedule': {'kind': 'sequential'},
                     'model': {'uniform': {'layers': 1, 'forward': '1 s', 'backward': '2 s'}}})
        page = self.report('r')
        self.quiet(page)
        self.assertEqual(self.text(page, '#peak .lead'),
                         'GPU 0 holds nothing: weights and activations have no size.')
        self.assertEqual(page.run('document.querySelectorAll("#peak table").length'), 0)
        self.assertIn('No link carried anything', self.text(page, '#links'))


class Compare(Case):
    """Two runs on one axis of time."""

    def test_two(self):
        first = self.run_of('heterogeneous', '-s', '/schedule/kind=1f1b', name='a')
        second = self.run_of('heterogeneous', '-s', '/schedule/kind=gpipe', name='b')
        page = self.report('a', 'b')
        self.quiet(page)
        self.assertEqual(page.run('document.querySelector("h1").textContent'),
                         'heterogeneous: 1f1b / gpipe')
        self.assertEqual(page.run('view.until'),
                         max(r.attributes['makespan'] for r in (first, second)))
        self.assertEqual(page.run('view.panels.filter(p => p.kind === "timeline").length'), 2)
        cells = {row[0]: row[1:] for row in self.cells(page, '#figures')}
        times = [r.attributes['makespan_s'] for r in (first, second)]
        sign = '+' if times[1] > times[0] else '−'
        self.assertEqual(cells['makespan'][2], f'{sign}{100 * abs(times[1] / times[0] - 1):.2f} %')
        bubbles = [100 * r.attributes['bubble_fraction'] for r in (first, second)]
        self.assertEqual(cells['bubble fraction'][2], f'+{bubbles[1] - bubbles[0]:.2f} points')

    def test_too_many(self):
        self.run_of('uniform-1f1b')
        self.assertIn('report', self.sim('report', *['r.h5'] * 7, status=2).stderr)


class Points(Case):
    """The file of a sweep, and of a search for plans."""

    def test_sweep(self):
        self.sim('sweep', os.path.join(ROOT, 'scenarios/heterogeneous.json'), '-o', 's.h5',
                 '--vary', '/schedule/kind=gpipe,1f1b', '--vary', '/schedule/micro_batches=4,8,16',
                 '--vary', '/platform/memory=3 GB,16 GB')
        page = self.report('s')
        self.quiet(page)
        with h5py.File(self.path('s.h5')) as file:
            times, over = file['iteration_time_s'][:], file['out_of_memory'][:]
            kinds = [kind.decode() for kind in file['schedule.kind'][:]]
            expected = {(kind, str(int(m)), f'{memory / 1e9:g} GB'): (times[k, i, j], over[k, i, j])
                        for k, kind in enumerate(kinds)
                        for i, m in enumerate(file['schedule.micro_batches'][:])
                        for j, memory in enumerate(file['platform.memory'][:])}
        heads = page.run(
            '[...document.querySelectorAll("table.points thead th")].map(h => h.textContent)')
        self.assertEqual(heads[:4], ['/schedule/kind', '/schedule/micro_batches',
                                     '/platform/memory', 'iteration time'])

        def rows():
            return self.cells(page, 'table.points')

        shown = {tuple(row[:3]): (picoseconds(row[3]) / 1e12, row[-1]) for row in rows()}
        self.assertEqual(shown.keys(), expected.keys())
        for point, (time, is_over) in expected.items():
            self.assertAlmostEqual(shown[point][0], time, delta=5e-4 * time)
            self.assertEqual(shown[point][1], '✕ out of memory' if is_over else 'fits')
        self.assertGreater(sum(is_over for _, is_over in expected.values()), 0)
        page.run('document.querySelectorAll("table.points .sort")[3].click()')
        sorted_ = [picoseconds(row[3]) for row in rows()]
        self.assertEqual(sorted_, sorted(sorted_))
        page.run('document.querySelectorAll("table.points .sort")[3].click()')
        self.assertEqual([picoseconds(row[3]) for row in rows()], sorted_[::-1])
        # hollow are the points out of memory, here in the lines
        hollow = page.run(
            'document.querySelectorAll("#lines path.mark[fill=\\"var(--panel)\\"]").length')
        self.assertEqual(hollow, sum(is_over for _, is_over in expected.values()))
        # a point that is clicked can be run alone
        page.run('document.querySelector("table.points tbody tr").click()')
        command = page.run('document.querySelector("#chosen pre").textContent')
        self.assertIn('--set /schedule/micro_batches=4', command)

    def test_colours(self):
        """A schedule has the same colour and shape in all pictures, though 1F1B is the faster one
        and comes second."""
        self.sim('sweep', os.path.join(ROOT, 'scenarios/heterogeneous.json'), '-o', 's.h5',
                 '--vary', '/schedule/kind=gpipe,1f1b', '--vary', '/schedule/micro_batches=4,8')
        page = self.report('s')
        marks = page.run('["lines", "time-against-memory"].flatMap(id =>'
                         ' [...document.querySelectorAll(`#${id} path.mark`)].map(mark =>'
                         ' [mark.getAttribute("aria-label").includes("gpipe") ? "gpipe" : "1f1b",'
                         '  mark.getAttribute("stroke"), mark.getAttribute("d")]))')
        legends = page.run('["lines", "time-against-memory"].flatMap(id =>'
                           ' [...document.querySelectorAll(`#${id} .legend li`)].map(entry =>'
                           ' [entry.textContent.trim(), '
                           'entry.querySelector("path").getAttribute("fill")]))')
        self.assertEqual(len(marks), 2 * 4)
        self.assertEqual(len({kind for kind, _, _ in marks}), 2)
        self.assertEqual(len({tuple(mark) for mark in marks}), 2)
        for kind, colour, _ in marks:
            self.assertEqual({fill for name, fill in legends if name == kind}, {colour})

    def opens(self, page, run, point):
        """A point's link leads to its run, and back."""
        links = page.run('[...document.querySelectorAll("table.points a")]'
                         '.map(a => [a.closest("tr").cells[0].textContent, a.textContent])')
        self.assertEqual(links, [[point, f'open {run}.h5']])
        page.run('document.querySelector("table.points a").click()')
        wait = 'new Promise(r => setTimeout(r, 20))'
        while page.run('view.panels.length') == 0:
            page.run(wait)
        with h5py.File(self.path(run + '.h5')) as file:
            self.assertEqual(page.run('view.until'), file.attrs['makespan'])
        page.run('document.querySelector(".back a").click()')
        while page.run('document.querySelectorAll("table.points").length') == 0:
            page.run(wait)
        self.assertEqual(page.run('view.panels.length'), 0)
        self.quiet(page)

    def test_runs_of_points(self):
        """A run next to a sweep belongs to the point with its settings; a run with other settings
        to none."""
        scenario = os.path.join(ROOT, 'scenarios/heterogeneous.json')
        self.sim('sweep', scenario, '-o', 's.h5', '--vary', '/schedule/micro_batches=4,8,16')
        self.run_of('heterogeneous', '-s', '/schedule/micro_batches=8', name='eight')
        self.run_of('heterogeneous', '-s', '/schedule/micro_batches=32', name='other')
        page = self.report('s', 'eight', 'other')
        self.quiet(page)
        self.assertIn('other.h5 has the settings and the results of none',
                      self.text(page, '.warning'))
        self.opens(page, 'eight', '8')

    def test_in_a_frame(self):
        """As a notebook shows it: the page is the frame's text, the address another one's."""
        self.sim('sweep', os.path.join(ROOT, 'scenarios/heterogeneous.json'), '-o', 's.h5',
                 '--vary',
                 '/schedule/micro_batches=4,8')
        self.run_of('heterogeneous', '-s', '/schedule/micro_batches=8', name='eight')
        self.sim('report', 's.h5', 'eight.h5', '-o', 'r.html')
        with open(self.path('r.html'), encoding='utf-8') as file:
            text = file.read()
        with open(self.path('frame.html'), 'w', encoding='utf-8') as file:
            file.write(f'<!DOCTYPE html><iframe width=1200 height=800 '
                       f'srcdoc="{html.escape(text)}"></iframe>')
        page = self.browser.open(self.path('frame.html'), ready=(
            'document.querySelector("iframe")?.contentDocument?.documentElement?.dataset.ready'))
        self.addCleanup(page.close)
        inside = 'document.querySelector("iframe").contentDocument'
        page.run(f'{inside}.querySelector("table.points a").click()')
        for _ in range(200):
            if page.run(f'{inside}.querySelectorAll("canvas.timeline").length'):
                break
            page.run('new Promise(r => setTimeout(r, 20))')
        self.assertEqual(page.run(f'{inside}.querySelectorAll("canvas.timeline").length'), 1)
        self.assertEqual(page.run(f'{inside}.querySelectorAll(".back a").length'), 1)
        self.quiet(page)

    def test_run_of_plan(self):
        """The command that a plan shows makes a run that the page knows as the plan's."""
        self.sim('advise', os.path.join(ROOT, 'scenarios/heterogeneous.json'), '-o', 'p.h5')
        page = self.report('p')
        page.run('document.querySelector("table.points tbody tr").click()')
        plan = page.run('document.querySelector("table.points tbody tr").cells[0].textContent')
        words = shlex.split(self.text(page, '#chosen pre'))
        self.assertEqual(words[:2], ['sim', 'run'])
        self.sim(*words[1:], '-o', 'best.h5')
        self.opens(self.report('p', 'best'), 'best', plan)

    def test_plans(self):
        self.sim('advise', os.path.join(ROOT, 'scenarios/uniform-1f1b.json'), '-o', 'p.h5')
        page = self.report('p')
        self.quiet(page)
        with h5py.File(self.path('p.h5')) as file:
            times, front = file['plans/step_time'][:], file['plans/front'][:]
        self.assertEqual(len(self.cells(page, 'table.points')), min(200, len(times)))
        first = page.run('document.querySelector("table.points tbody tr").dataset.row')
        self.assertEqual(times[int(first)], min(t for t in times if t == t))
        joined = page.run('document.querySelector("polyline.front").points.numberOfItems')
        self.assertEqual(joined, int(front.sum()))


class Hostile(Case):
    NAME = ('</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = '
            '1"><!-- <b>&amp;')

    def test_name(self):
        document = {'schema_version': 1, 'name': self.NAME,
                    'model': {'uniform': {'layers': 4, 'forward': '1 s', 'backward': '2 s'}},
                    'platform': 'ideal', 'schedule': {'kind': 'gpipe', 'micro_batches': 4}}
        self.run_of(document)
        page = self.report('r')
        self.quiet(page)
        self.assertIsNone(page.run('window.hacked'))
        self.assertEqual(page.run('document.title'), self.NAME)
        self.assertEqual(page.run('document.querySelector("h1").textContent'), self.NAME)
        self.assertEqual(page.run('document.images.length'), 0)
        with open(self.path('r.html'), encoding='utf-8') as file:
            self.assertNotIn('<script>window', file.read())

    def test_policy(self):
        """A program that is not ours does not run, however it came into the page."""
        self.run_of('uniform-1f1b')
        self.sim('report', 'r.h5', '-o', 'r.html')
        with open(self.path('r.html'), encoding='utf-8') as file:
            text = file.read()
        with open(self.path('h.html'), 'w', encoding='utf-8') as file:
            file.write(text.replace('<noscript>', '<script>window.hacked = 1</script><noscript>'))
        page = self.browser.open(self.path('h.html'))
        self.addCleanup(page.close)
        self.assertIsNone(page.run('window.hacked'))
        self.assertIn('Content Security Policy', ' '.join(page.complaints()))

    def test_refused(self):
        self.assertIn('none.h5: cannot read', self.sim('report', 'none.h5', status=3).stderr)
        self.assertIn('.html', self.sim('report', 'r.h5', '-o', 'x.pdf', status=2).stderr)
        with open(self.path('bad.h5'), 'w', encoding='utf-8') as file:
            file.write('not HDF5')
        self.assertIn('not an HDF5 file', self.sim('report', 'bad.h5', status=3).stderr)
        self.assertFalse(os.path.exists(self.path('bad.html')))


class Large(Case):
    """64 GPUs, 262,144 tasks."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        case = cls()
        case.run_of(LARGE)
        case.sim('report', 'r.h5', '-o', 'r.html')

    def runTest(self):
        pass

    def frame(self, page):
        """ms, the median while it zooms in and out."""
        times = page.run(
            'new Promise(done => { const times = []; let last = performance.now(), i = 0;'
            ' const step = now => { times.push(now - last); last = now;'
            ' if (++i > 60) return done(times.slice(1).sort((a, b) => a - b));'
            ' zoomBy(i % 60 < 30 ? 1.2 : 1 / 1.2); requestAnimationFrame(step); };'
            ' requestAnimationFrame(step); })')
        return times[len(times) // 2]

    def computing(self, page):
        """Processor time of the page's thread, by the browser: s to open it, ms for a frame."""
        page.call('Performance.enable', timeDomain='threadTicks')

        def spent():
            return {m['name']: m['value'] for m in page.call('Performance.getMetrics')['metrics']}[
                'TaskDuration']

        before = spent()
        page.call('Page.reload')
        while not page.run('document.documentElement?.dataset.ready'):
            time.sleep(0.02)
        loaded = spent()
        self.frame(page)
        return loaded - before, 1e3 * (spent() - loaded) / 60

    def test_levels(self):
        """What is drawn of many tasks: the share of each bin that its tasks take, by the columns of
        the file."""
        results = Results(self.path('r.h5'))
        page = self.browser.open(self.path('r.html'))
        self.addCleanup(page.close)
        for device, sends in ((0, 0), (31, 0), (63, 1)):
            bins, shares, kinds = page.run(
                '(() => { const run = view.panels[1].run;'
                f' const lane = run.lanes.find(l => l.row === {device} && l.sends === {sends});'
                ' const {at, bins} = lane.levelAt[0], part = column => [...column.slice(at, at + '
                'bins)];'
                ' return [bins, part(run.binShare), part(run.binKind)]; })()')
            length = results.attributes['makespan'] / bins
            expected, parts = [0.0] * bins, [{} for _ in range(bins)]
            for t in results.tasks['task']:
                if results.tasks['device'][t] != device or (results.tasks['peer'][t]
                                                            != NONE) != bool(sends):
                    continue
                start, end = results.tasks['start'][t] / length, results.tasks['end'][t] / length
                for b in range(int(start), min(bins, int(end) + 1)):
                    part = max(0, min(end, b + 1) - max(start, b))
                    expected[b] += part
                    parts[b][results.tasks['origin'][t]] = parts[b].get(results.tasks['origin'][t],
                                                                        0) + part
            for b in range(bins):
                self.assertAlmostEqual(shares[b] / 255, min(1, expected[b]), delta=0.5 / 255 + 1e-4)
                if parts[b]:
                    self.assertGreaterEqual(parts[b].get(kinds[b], 0),
                                            max(parts[b].values()) - 1e-4)

    def test_size_and_speed(self):
        # mini-batches, devices, stages, micro-batches; two computations and two messages of each
        tasks = 2 * 64 * 4 * 128 * 4
        size = os.path.getsize(self.path('r.html'))
        self.assertLess(size, 10e6 * tasks / 1e5)
        opened = []
        for _ in range(5):
            page = self.browser.open(self.path('r.html'))
            opened.append(page.opened_in)
            if len(opened) < 5:
                page.close()
        self.quiet(page)
        self.assertGreater(page.run('view.panels[1].run.start.length'), 200000)
        frames = sorted(self.frame(page) for _ in range(5))
        print(f'{size / 1e6:.2f} MB; opens in {sorted(opened)[2]:.2f} s (median of 5, shortest'
              f' {min(opened):.2f} s); frames while zooming take {frames[2]:.1f} ms (median of 5'
              f' rounds, shortest {frames[0]:.1f} ms)')
        # what the page's thread computes does not depend on other work
        loading, drawing = self.computing(page)
        print(f'the page computes {loading:.2f} s to open, {drawing:.1f} ms for a frame')
        self.assertLess(loading, 2)
        self.assertLess(drawing, 1000 / 30)
        # other work makes openings and frames longer, none makes them shorter
        load, cores = os.getloadavg()[0], os.cpu_count()
        if (min(opened) >= 2 or frames[0] >= 1000 / 30) and load > 2 * cores:
            self.skipTest(f'too much other work to judge times: load {load:.0f} on {cores} cores')
        self.assertLess(min(opened), 2)
        self.assertLess(frames[0], 1000 / 30)
        page.close()


if __name__ == '__main__':
    if not browser.find():
        print('skipped: no Chromium')
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)

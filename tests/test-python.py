#!/usr/bin/env python3
"""The Python package over the library: test-python.py SIM ROOT

The package agrees with the command, bit for bit: metrics against `sim run --json`,
columns against the HDF5 file as h5py reads it, files byte by byte. What needs h5py, pandas, xarray
or gnuplot is skipped without them. The environment says where the library is (CLUSTERSIM_LIBRARY).
"""
import copy
import ctypes
import doctest
import gc
import html
import inspect
import json
import math
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest
import warnings

SIM, ROOT = (os.path.abspath(word) for word in sys.argv[1:3])
sys.path.insert(0, os.path.join(ROOT, 'python'))

import clustersim  # noqa: E402

MICRO = '/schedule/micro_batches'
DEVICES = '/platform/devices'
# gpipe of S stages and M micro-batches, messages that take no time: a mini-batch takes
# (M + S - 1) (F + B), F and B being the times of a stage and a micro-batch
TINY = {
    'schema_version': 1,
    'name': 'tiny',
    'model': {'batch_size': 8, 'uniform': {'layers': 8, 'forward': '1 ms', 'backward': '2 ms',
                                           'weights': '1 MB', 'activation': '1 MB'}},
    'platform': {'topology': 'ideal', 'devices': 4, 'memory': '16 GB'},
    'schedule': {'kind': 'gpipe', 'micro_batches': 4},
}
# 1.3 million tasks: some seconds
LARGE = {MICRO: 4096, DEVICES: 256, '/model/uniform/layers': 256, '/model/batch_size': 4096}
# whose planner would go on for hours
PLANNED = {
    'schema_version': 1, 'runtime': 'ideal',
    'model': {'name': 'resnet50', 'batch_size': 8, 'device': 'v100'},
    'platform': {'topology': 'nvlink_switch', 'devices': 6, 'memory': '1.2 GB',
                 'bandwidth': '12 GB/s'},
    'schedule': {'kind': 'periodic', 'micro_batches': 8,
                 'partition': {'planner': 'best', 'kicks': 1000000, 'tries': 2147483647}},
}
SCENARIOS = ['scenarios/resnet50-1f1b.json', 'scenarios/fsdp.json',
             'scenarios/interleaved-1f1b.json', 'scenarios/out-of-memory.json',
             'scenarios/timeprest.json']


def need(test, *names):
    """Modules, or the test is skipped."""
    made = []
    for name in names:
        try:
            made.append(__import__(name))
        except ImportError:
            test.skipTest('needs ' + name)
    return made if len(made) > 1 else made[0]


def command(*words, status=0):
    done = subprocess.run([SIM, *words], text=True, capture_output=True, check=False)
    if done.returncode != status:
        raise AssertionError(f'sim {" ".join(words)} ended with {done.returncode}: {done.stderr}')
    return done


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='test-python-')
        self.addCleanup(self.folder.cleanup)
        self.file = self.path('s.json')
        with open(self.file, 'w', encoding='utf-8') as file:
            json.dump(TINY, file)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def assert_same_file(self, first, second):
        with open(first, 'rb') as a, open(second, 'rb') as b:
            self.assertEqual(a.read(), b.read())


class Runs(Case):
    def test_worked_out_by_hand(self):
        """A stage has 2 of the 8 layers: F = 2 ms and B = 4 ms for a micro-batch. (M + S - 1) (F +
        B) = (4 + 4 - 1) 6 ms = 42 ms, and each device computes 4 * 6 = 24 ms: the bubble is
        3/7."""
        result = clustersim.run(self.file)
        self.assertAlmostEqual(result.figures['iteration_time_s'], 42e-3, delta=1e-15)
        self.assertAlmostEqual(result.figures['bubble_fraction'], 3 / 7, delta=1e-12)
        tasks = result.tasks
        spans = {kind: {int(end) - int(start) for start, end, one in
                        zip(tasks['start'], tasks['end'], tasks['kind']) if one == kind}
                 for kind in ('forward', 'backward')}
        self.assertEqual(spans, {'forward': {2 * 10**9}, 'backward': {4 * 10**9}}) # ps

    def test_figures_are_those_of_the_command(self):
        for name in SCENARIOS:
            path = os.path.join(ROOT, name)
            with self.subTest(name):
                said = json.loads(command('run', path, '--no-output', '--json').stdout)
                with warnings.catch_warnings():
                    warnings.simplefilter('ignore', clustersim.ScenarioWarning)
                    result = clustersim.run(path)
                self.assertGreater(len(result.figures), 15)
                for key, value in result.figures.items():
                    expected = said[key] if key in said else \
                        max(device[key] for device in said['devices'])
                    if expected is None:
                        self.assertTrue(math.isnan(value), key)
                    else:
                        self.assertEqual(value, expected, key)
                    self.assertTrue(result.figures.labels[key])
                    ending = {'s': '_s', 'bytes': '_bytes', 'samples/s': '_samples_per_s'}
                    self.assertTrue(key.endswith(ending.get(result.figures.units[key], '')), key)

    def test_columns_are_those_of_the_file(self):
        h5py, numpy = need(self, 'h5py', 'numpy')
        for name in SCENARIOS:
            path, saved, made = os.path.join(ROOT, name), self.path('a.h5'), self.path('b.h5')
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter('ignore', clustersim.ScenarioWarning)
                result = clustersim.run(path)
                result.save(saved)
                command('run', path, '-o', made)
                self.assert_same_file(saved, made)
                with h5py.File(made) as file:
                    self.assertEqual(set(file), set(result.tables))
                    self.assertEqual(dict(file.attrs).keys(), result.attributes.keys())
                    for key, value in file.attrs.items():
                        numpy.testing.assert_equal(result.attributes[key], value)
                    for group, table in result.tables.items():
                        self.assert_same_table(file[group], table)

    def assert_same_table(self, group, table):
        import numpy
        self.assertEqual(set(group), set(table))
        for key, column in group.items():
            about = table.columns[key]
            self.assertEqual(about.unit, column.attrs['units'])
            self.assertEqual(about.label, column.attrs['long_name'])
            self.assertEqual(about.words, column.attrs['flag_meanings'].split()
                             if 'flag_meanings' in column.attrs else None)
            self.assertEqual(about.optional, '_FillValue' in column.attrs)
            values = table.codes(key)
            if column.dtype.kind == 'O':
                self.assertEqual(list(values), list(column.asstr()[:]))
            else:
                self.assertEqual(values.dtype, column.dtype)
                numpy.testing.assert_array_equal(values, column[:])
                self.assertEqual(table.n_rows, len(column))

    def test_pandas(self):
        pandas = need(self, 'pandas')
        tasks = clustersim.run(self.file).tasks
        frame = tasks.to_pandas()
        self.assertEqual(len(frame), tasks.n_rows)
        self.assertEqual(frame.index.name, 'task')
        self.assertEqual(frame.attrs['units']['start'], 'ps')
        self.assertEqual(list(frame['kind'].cat.categories), tasks.columns['kind'].words)
        computed = frame[frame['kind'] != 'transfer']
        self.assertTrue(computed['peer'].isna().all())
        self.assertFalse(frame[frame['kind'] == 'transfer']['peer'].isna().any())
        self.assertEqual(frame['end'].dtype, 'int64')
        busy = (computed['end'] - computed['start']).groupby(computed['device']).sum()
        self.assertEqual(len(set(busy)), 1)
        self.assertEqual(pandas.isna(frame['stage']).sum(), 0)

    def test_scenario_as_path_text_and_dict(self):
        hashes = {clustersim.run(scenario).hash
                  for scenario in (self.file, json.dumps(TINY), TINY)}
        self.assertEqual(len(hashes), 1)
        other = clustersim.run(TINY, {MICRO: 8})
        with_it = dict(TINY, schedule={'kind': 'gpipe', 'micro_batches': 8})
        self.assertEqual(other.hash, clustersim.run(with_it).hash)
        self.assertNotIn(other.hash, hashes)

    def test_changes_of_all_types(self):
        changes = {'/schedule': {'kind': '1f1b', 'micro_batches': 2}, '/iterations': 2,
                   '/memory/record': True, '/name': 'a "name"'}
        try:
            import numpy
            changes['/iterations'] = numpy.int64(2)
        except ImportError:
            pass
        changes.pop('/memory/record')
        result = clustersim.run(TINY, changes)
        self.assertEqual(result.name, 'a "name"')
        self.assertEqual(result.attributes['schedule'], '1f1b')
        self.assertEqual(result.figures['iterations'], 2)
        with self.assertRaisesRegex(TypeError, 'cannot have a set'):
            clustersim.run(TINY, {MICRO: {1}})

    def test_files_that_a_dict_names(self):
        with open(os.path.join(ROOT, 'scenarios/resnet50-1f1b.json'), encoding='utf-8') as file:
            scenario = json.load(file)
        named = [value for value in scenario['model'].values()
                 if isinstance(value, str) and value.endswith('.json')]
        self.assertTrue(named, 'the scenario names a file')
        by_path = clustersim.run(os.path.join(ROOT, 'scenarios/resnet50-1f1b.json'))
        by_dict = clustersim.run(scenario, folder=os.path.join(ROOT, 'scenarios'))
        self.assertEqual(by_path.hash, by_dict.hash)
        with self.assertRaises(clustersim.InvalidScenario):
            clustersim.run(scenario, folder=self.folder.name)

    def test_arrays_outlive_their_result(self):
        need(self, 'numpy')
        result = clustersim.run(TINY)
        ends, expected = result.tasks['end'], list(result.tasks['end'])
        del result
        gc.collect()
        for _ in range(20):
            clustersim.run(TINY, {MICRO: 2})  # takes the memory, if it was freed
        self.assertEqual(list(ends), expected)
        with self.assertRaises(ValueError):
            ends[0] = 1

    def test_summary_and_notebook(self):
        result = clustersim.run(self.file)
        said = command('run', self.file, '--no-output').stdout
        self.assertEqual(result.summary(), said)
        shown = result._repr_html_()
        self.assertIn('iteration time', shown)
        self.assertIn(f'{result.figures["iteration_time_s"]:.6g} s', shown)
        self.assertIn('rows', result.tasks._repr_html_())
        self.assertIn('&lt;b&gt;',
                      clustersim.run(TINY, {'/name': '<b>'}).tables['tasks']._repr_html_()
                      + clustersim.columns.html_table(['<b>'], []))

    def test_warnings(self):
        scenario = os.path.join(ROOT, 'scenarios/tensor-parallel.json')
        order = ['data', 'tensor']
        changes = {'/parallel/order': order, '/platform/devices': 16, MICRO: 8}
        done = command('run', scenario, '--no-output', *(
            word for pointer, value in changes.items()
            for word in ('--set', f'{pointer}={json.dumps(value)}')))
        expected = re.findall(r'^sim: warning: (.*)$', done.stderr, re.MULTILINE)
        self.assertEqual(len(expected), 1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter('always')
            result = clustersim.run(scenario, changes)
        self.assertEqual([str(one.message) for one in caught], expected)
        self.assertEqual([(str(one), one.pointer) for one in result.warnings],
                         [(expected[0], '/parallel/order')])
        self.assertEqual(caught[0].category, clustersim.ScenarioWarning)
        self.assertEqual(os.path.abspath(caught[0].filename), os.path.abspath(__file__))

    def test_seeds(self):
        noisy = {'/platform/stragglers': {'tasks': {'distribution': 'exponential', 'mean': 0.1}}}
        first = clustersim.run(TINY, noisy)
        self.assertEqual(first.hash, clustersim.run(TINY, noisy).hash)
        self.assertNotEqual(first.hash, clustersim.run(TINY, noisy, seed_offset=1).hash)

    def test_pictures(self):
        if not shutil.which('gnuplot'):
            self.skipTest('needs gnuplot')
        result = clustersim.run(TINY)
        picture = result.plot('timeline', width=600)
        self.assertTrue('<svg' in picture._repr_svg_())
        result.save(self.path('r.h5'))
        command('plot', self.path('r.h5'), '--kind', 'timeline', '--width', '600', '-o',
                self.path('p.svg'))
        with open(self.path('p.svg'), encoding='utf-8') as file:
            self.assertTrue(picture._repr_svg_() == file.read())
        self.assertEqual(result.plot('memory', format='png')._repr_png_()[:4], b'\x89PNG')
        self.assertTrue(result.plot(width=600)._repr_svg_() == picture._repr_svg_())
        with self.assertRaisesRegex(clustersim.PlotFailed, 'pie'):
            result.plot('pie')
        with self.assertRaisesRegex(ValueError, 'format must be'):
            result.plot(format='gif')
        other = clustersim.run(TINY, {'/schedule/kind': '1f1b'})
        shown = clustersim.plot([result, other])._repr_svg_()
        self.assertTrue('gpipe:' in shown and '1f1b:' in shown)
        sweep = clustersim.sweep(TINY, {MICRO: [2, 4], DEVICES: [2, 4]})
        self.assertTrue('<svg' in sweep.plot(value='makespan_s', at={DEVICES: 2})._repr_svg_())

    def test_pages(self):
        result = clustersim.run(self.file)
        result.save(self.path('results.h5'))
        done = subprocess.run([SIM, 'report', self.path('results.h5'), '-o', self.path('p.html')],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            with self.assertRaises(clustersim.PlotFailed) as raised:
                result.report()
            self.assertEqual(done.stderr, 'sim: error: ' + str(raised.exception) + '\n')
            self.skipTest(done.stderr)
        page = result.report()
        with open(self.path('p.html'), encoding='utf-8') as file:
            self.assertTrue(page.html == file.read().replace(self.folder.name + '/', ''))
        self.assertIn('<iframe srcdoc="&lt;!doctype html', page._repr_html_()[:60].lower())
        self.assertTrue(html.unescape(page._repr_html_().split('"')[1]) == page.html)
        other = clustersim.run(TINY, {'/schedule/kind': '1f1b'})
        both = clustersim.report({'as GPipe': result, 'as 1F1B': other})
        self.assertTrue('as GPipe' in both.html and 'as 1F1B' in both.html)


class Sweeps(Case):
    VARY = {MICRO: [2, 4, 8], DEVICES: '2,4'}
    WORDS = ('--vary', MICRO + '=2,4,8', '--vary', DEVICES + '=2,4')

    def test_files_are_those_of_the_command(self):
        sweep = clustersim.sweep(self.file, self.VARY)
        sweep.save(self.path('a.h5'))
        command('sweep', self.file, *self.WORDS, '-o', self.path('b.h5'))
        self.assert_same_file(self.path('a.h5'), self.path('b.h5'))
        self.assertEqual(sweep.summary() + '\nresults: x\n',
                         command('sweep', self.file, *self.WORDS, '-o', self.path('c.h5')).stdout
                         .replace(self.path('c.h5'), 'x'))
        together = clustersim.sweep(self.file, {MICRO: [2, 4], DEVICES: [4, 2]}, {'/iterations': 2},
                                    together=True)
        together.save(self.path('d.h5'))
        command('sweep', self.file, '--set', '/iterations=2', '--vary', MICRO + '=2,4', '--vary',
                DEVICES + '=4,2', '--zip', '-o', self.path('e.h5'))
        self.assert_same_file(self.path('d.h5'), self.path('e.h5'))

    def points(self):
        said = json.loads(command('sweep', self.file, *self.WORDS, '--no-output', '--json').stdout)
        return {(one['set'][MICRO], one['set'][DEVICES]): one['result'] for one in said['points']}

    def test_pandas(self):
        need(self, 'pandas')
        frame = clustersim.sweep(self.file, self.VARY).to_pandas()
        points = self.points()
        self.assertEqual(len(frame), 6)
        for _, row in frame.iterrows():
            result = points[row['schedule.micro_batches'], row['platform.devices']]
            self.assertEqual(row['makespan_s'], result['makespan_s'])
            self.assertEqual(row['error'], '')
        self.assertEqual(frame.attrs['units']['makespan_s'], 's')

    def test_xarray(self):
        h5py, numpy, _ = need(self, 'h5py', 'numpy', 'xarray')
        sweep = clustersim.sweep(self.file, self.VARY)
        data = sweep.to_xarray()
        for (micro, devices), result in self.points().items():
            at = {'schedule.micro_batches': micro, 'platform.devices': devices}
            self.assertEqual(float(data.makespan_s.sel(at)), result['makespan_s'])
        sweep.save(self.path('a.h5'))
        with h5py.File(self.path('a.h5')) as file:
            self.assertEqual(set(data.variables), set(file))
            for key, column in file.items():
                self.assertEqual(data[key].attrs['units'], column.attrs['units'])
                values = column.asstr()[()] if column.dtype.kind == 'O' else column[()]
                numpy.testing.assert_array_equal(data[key].values, values)
                self.assertEqual(data[key].shape, column.shape)
        points = clustersim.sweep(self.file, {MICRO: [2, 4], DEVICES: [4, 2]}, together=True)
        listed = points.to_xarray()
        self.assertEqual(listed.makespan_s.dims, ('point',))
        for i, at in enumerate(((2, 4), (4, 2))):
            self.assertEqual(float(listed.makespan_s[i]), self.points()[at]['makespan_s'])
        self.assertFalse(points.is_grid)

    def test_points_that_fail(self):
        sweep = clustersim.sweep(TINY, {MICRO: [3, 4]})
        self.assertEqual((sweep.n_points, sweep.n_failed), (2, 1))
        failed = list(sweep.tables['/']['error'])
        with self.assertRaises(clustersim.InvalidScenario) as raised:
            clustersim.run(TINY, {MICRO: 3})
        # points of sweeps have no remedy: what would be right is tried for single scenarios only
        self.assertEqual(failed, [str(raised.exception).partition('; use')[0], ''])
        with self.assertRaisesRegex(clustersim.SimulationFailed, 'all of 2 points failed'):
            clustersim.sweep(TINY, {MICRO: [3, 5]})
        with self.assertRaisesRegex(clustersim.InvalidScenario, 'did you mean "micro_batches"'):
            clustersim.sweep(TINY, {'/schedule/micro_batch': [2, 4]})

    def test_values(self):
        """As lists of texts, of objects, as ranges with units; of the scenario's own section."""
        kinds = clustersim.sweep(TINY, {'/schedule/kind': ['gpipe', '1f1b']})
        self.assertEqual(list(kinds.tables['/']['schedule.kind']), ['gpipe', '1f1b'])
        whole = clustersim.sweep(TINY, {'/schedule': [{'kind': 'gpipe', 'micro_batches': 2},
                                                      {'kind': '1f1b', 'micro_batches': 4}]})
        self.assertEqual(whole.n_failed, 0)
        memory = clustersim.sweep(TINY, {'/platform/memory': '1..4..x2 GB'})
        self.assertEqual(list(memory.tables['/']['platform.memory']), [1e9, 2e9, 4e9])
        self.assertEqual(memory.tables['/'].columns['platform.memory'].unit, 'bytes')
        own = clustersim.sweep(dict(TINY, sweep={'vary': {MICRO: [2, 4]}}))
        self.assertEqual(own.keys, {'schedule.micro_batches': MICRO})
        with open(self.path('points.csv'), 'w', encoding='utf-8') as file:
            file.write(MICRO + '\n2\n8\n')
        listed = clustersim.sweep(TINY, csv=self.path('points.csv'))
        self.assertEqual(list(listed.tables['/']['schedule.micro_batches']), [2, 8])

    def test_numbers_of_threads(self):
        files = []
        for jobs in (1, 3):
            files.append(self.path(f'{jobs}.h5'))
            clustersim.sweep(self.file, self.VARY, jobs=jobs).save(files[-1])
        self.assert_same_file(*files)


class Searches(Case):
    SCENARIO = os.path.join(ROOT, 'scenarios/llama3-8b-dgx.json')

    def test_plans_are_those_of_the_command(self):
        changes = {'/advise/schedules': ['1f1b'], '/advise/pipeline': [1, 2, 4]}
        words = [word for pointer, value in changes.items()
                 for word in ('--set', f'{pointer}={json.dumps(value)}')]
        advice = clustersim.advise(self.SCENARIO, changes, top=3)
        done = command('advise', self.SCENARIO, *words, '--top', '3', '--json', '-o',
                       self.path('b.h5'))
        said = json.loads(done.stdout)
        self.assertEqual([dict(one) for one in advice.best], said['best'])
        self.assertEqual([dict(one) for one in advice.front], said['front'])
        self.assertEqual(advice.counts, said['plans'])
        advice.save(self.path('a.h5'))
        self.assert_same_file(self.path('a.h5'), self.path('b.h5'))
        self.assertEqual(advice.summary(), command('advise', self.SCENARIO, *words, '--top',
                                                   '3').stdout)
        best = advice.best[0]
        result = clustersim.run(self.SCENARIO, best.changes)
        self.assertEqual(result.figures['peak_memory_bytes'], best['peak_memory_bytes'])
        self.assertAlmostEqual(result.figures['makespan_s'], best['step_time_s'], delta=1e-9)
        self.assertEqual(advice.plans.n_rows, advice.counts['all'])
        self.assertIn(best['plan'], advice._repr_html_())

    def test_what_cannot_be_searched(self):
        with self.assertRaisesRegex(clustersim.InvalidScenario, 'top: must be 1 to 1000'):
            clustersim.advise(self.SCENARIO, top=1001)
        with self.assertRaisesRegex(clustersim.InvalidScenario, 'budget: must not be negative'):
            clustersim.advise(self.SCENARIO, budget_s=-1)


class Failures(Case):
    def assert_as_command(self, expected, changes, words, status=3):
        done = command('run', self.file, '--no-output', *words, status=status)
        with self.assertRaises(expected) as raised:
            clustersim.run(self.file, changes)
        lines = [line.split(': error: ', 1)[1] for line in done.stderr.splitlines()
                 if ': error: ' in line]
        self.assertEqual(str(raised.exception).splitlines(), lines)
        return raised.exception

    def test_texts_are_those_of_the_command(self):
        error = self.assert_as_command(clustersim.InvalidScenario, {'/schedule/kind': 'gpip'},
                                       ['--set', '/schedule/kind=gpip'])
        self.assertEqual((error.file, error.pointer), (self.file, '/schedule/kind'))
        self.assertIsInstance(error, ValueError)
        several = self.assert_as_command(
            clustersim.InvalidScenario, {'/schedule/a': 1, '/platform/b': 2},
            ['--set', '/schedule/a=1', '--set', '/platform/b=2'])
        self.assertGreaterEqual(len(several.messages), 2)
        overflow = self.assert_as_command(
            clustersim.DoesNotFit64Bits, {'/model/uniform/forward': '9e6 s', '/iterations': 1000},
            ['--set', '/model/uniform/forward=9e6 s', '--set', '/iterations=1000'], status=1)
        self.assertIsInstance(overflow, OverflowError)

    def test_files(self):
        with self.assertRaises(clustersim.InvalidScenario) as raised:
            clustersim.run(self.path('none.json'))
        self.assertEqual(raised.exception.file, self.path('none.json'))
        result = clustersim.run(TINY)
        with self.assertRaises(clustersim.InputOutputFailed) as raised:
            result.save(self.path('none/r.h5'))
        self.assertIsInstance(raised.exception, OSError)
        self.assertIn(self.path('none'), str(raised.exception))
        with self.assertRaises(ValueError):
            clustersim.run('a\0b.json')

    def test_library_that_is_not_there(self):
        done = subprocess.run([sys.executable, '-c', 'import clustersim'], capture_output=True,
                              text=True, check=False,
                              env=dict(os.environ, CLUSTERSIM_LIBRARY='/no/library.so',
                                       PYTHONPATH=os.path.join(ROOT, 'python')))
        self.assertIn('ImportError: cannot load libclustersim', done.stderr)
        self.assertIn('/no/library.so', done.stderr)


class Threads(Case):
    def test_several_at_once(self):
        numbers = [1, 2, 4, 8] * 4
        expected = {n: clustersim.run(TINY, {MICRO: n}).hash for n in set(numbers)}
        hashes, failed = [], []

        def work(number):
            try:
                for i in range(5):
                    result = clustersim.run(TINY, {MICRO: number})
                    hashes.append((number, result.hash))
                    result.save(self.path(f'{threading.get_ident()}-{i}.h5'))
                    with_error = None
                    try:
                        clustersim.run(TINY, {MICRO: 3})
                    except clustersim.InvalidScenario as error:
                        with_error = error.pointer
                    if with_error != '/model/batch_size':
                        failed.append(with_error)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertEqual(len(hashes), 80)
        self.assertEqual({(n, expected[n]) for n in numbers}, set(hashes))

    def test_others_run_meanwhile(self):
        """A call of seconds stops other threads for moments only."""
        longest, running = 0, True

        def work():
            nonlocal running
            clustersim.run(TINY, LARGE)
            running = False

        thread = threading.Thread(target=work)
        start = last = time.monotonic()
        thread.start()
        while running:
            time.sleep(0.001)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        thread.join()
        self.assertGreater(last - start, 0.3)
        self.assertLess(longest, (last - start) / 2)

    def interrupted(self, code):
        """Seconds from SIGINT to the end of a program that runs `code`."""
        program = f'''
import json, sys, clustersim
TINY, LARGE = json.loads({json.dumps(TINY)!r}), json.loads({json.dumps(LARGE)!r})
print('go', flush=True)
try:
    {code}
except KeyboardInterrupt:
    clustersim.run(TINY) # goes on
    print('interrupted')
'''
        process = subprocess.Popen([sys.executable, '-c', program,
                                    ROOT + '/scenarios/llama3-405b-16384.json'],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, 'python')))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), 'go\n')
        time.sleep(0.5)
        self.assertIsNone(process.poll(), 'it ended before the signal')
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual((out, err, process.returncode), ('interrupted\n', '', 0))
        return time.monotonic() - start

    def test_ctrl_c(self):
        """Within half a second; the limit leaves room for a machine that does other things as
        well."""
        for code in ('for _ in range(1000): clustersim.run(TINY, LARGE)',
                     'clustersim.sweep(TINY, {"/seed": "1..1000"}, LARGE)',
                     'clustersim.sweep(TINY, {"/seed": "1..500000"})',
                     f'clustersim.run({PLANNED!r})',
                     'clustersim.advise(sys.argv[1])'):
            with self.subTest(code):
                self.assertLess(self.interrupted(code), 10)


def told(result, table, key):
    """For another process, which gets a pickled result."""
    return result.name, list(result.tables[table][key]), result.summary()


class Copies(Case):
    """Pickled and copied results equal the original, also after it was freed."""

    def assert_alike(self, first, second):
        self.assertIs(type(second), type(first))
        self.assertEqual(repr(second), repr(first))
        self.assertEqual(second.summary(), first.summary())
        self.assertEqual(repr(second.attributes), repr(first.attributes))  # NaN is not NaN
        self.assertEqual(list(second.tables), list(first.tables))
        for name, table in first.tables.items():
            self.assertEqual((second.tables[name].columns, second.tables[name].n_rows),
                             (table.columns, table.n_rows))
            for key in table:
                self.assertEqual(list(map(str, second.tables[name][key])),
                                 list(map(str, table[key])), (name, key))
                self.assertEqual(list(map(str, second.tables[name].codes(key))),
                                 list(map(str, table.codes(key))), (name, key))
        first.save(self.path('first.h5'))
        second.save(self.path('second.h5'))
        self.assert_same_file(self.path('first.h5'), self.path('second.h5'))

    def made(self):
        return [clustersim.run(TINY), clustersim.sweep(TINY, {MICRO: [2, 4]}),
                clustersim.sweep(TINY, {MICRO: [2, 4], '/seed': [1, 2]}, together=True),
                clustersim.advise(TINY, most=3)]

    def test_all_results(self):
        for make in range(4):
            for copied in (lambda r: pickle.loads(pickle.dumps(r)), copy.copy, copy.deepcopy,
                           lambda r: copy.deepcopy(pickle.loads(pickle.dumps(copy.copy(r), 2)))):
                first = self.made()[make]
                second = copied(first)
                self.assert_alike(first, second)
                text = repr(second.tables)
                del first
                gc.collect()
                self.assertEqual(repr(second.tables), text)
                self.assert_alike(second, self.made()[make])

    def test_figures_scenario_and_warnings(self):
        first = clustersim.run(TINY)
        for second in (pickle.loads(pickle.dumps(first)), copy.copy(first), copy.deepcopy(first)):
            self.assertEqual(repr(dict(second.figures)), repr(dict(first.figures)))  # has NaN
            self.assertEqual(second.figures.units, first.figures.units)
            self.assertEqual((second.scenario, second.warnings, second.hash),
                             (first.scenario, first.warnings, first.hash))

    def test_tables_plans_pictures(self):
        advice = clustersim.advise(TINY, most=3)
        table = clustersim.run(TINY).tasks
        things = [*advice.best, *advice.front, table, advice.plans,
                  clustersim.Picture(b'x', 'svg'), clustersim.Page('<p>'),
                  clustersim.Message('f', '/p', 't')]
        for thing in things:
            for second in (pickle.loads(pickle.dumps(thing)), copy.copy(thing),
                           copy.deepcopy(thing)):
                self.assertEqual((type(second), repr(second)), (type(thing), repr(thing)))

    def test_errors(self):
        with self.assertRaises(clustersim.InvalidScenario) as caught:
            clustersim.run(TINY, {MICRO: -1})
        messages = caught.exception.messages
        for kind in (clustersim.InvalidScenario, clustersim.SimulationFailed,
                     clustersim.NoPlanFits, clustersim.InputOutputFailed,
                     clustersim.DoesNotFit64Bits, clustersim.MemoryExhausted, clustersim.Stopped,
                     clustersim.PlotFailed, clustersim.Error):
            first = kind(messages)
            for second in (pickle.loads(pickle.dumps(first)), copy.copy(first),
                           copy.deepcopy(first)):
                self.assertIs(type(second), kind)
                self.assertEqual((second.messages, str(second)), (messages, str(first)))

    def test_other_processes(self):
        context = multiprocessing.get_context('spawn')
        first = clustersim.run(TINY)
        with context.Pool(2) as pool:
            second = pool.apply(clustersim.run, (TINY,))
            self.assertEqual(pool.apply(told, (first, 'tasks', 'start')),
                             told(first, 'tasks', 'start'))
            with self.assertRaises(clustersim.InvalidScenario):
                pool.apply(clustersim.run, (TINY, {MICRO: -1}))
        self.assert_alike(first, second)

    def test_saving(self):
        """A copy is written as the first one is."""
        result = pickle.loads(pickle.dumps(clustersim.run(TINY)))
        os.symlink('behind.h5', self.path('link.h5'))
        result.save(self.path('link.h5'))
        self.assertTrue(os.path.islink(self.path('link.h5')))
        clustersim.run(TINY).save(self.path('first.h5'))
        self.assert_same_file(self.path('behind.h5'), self.path('first.h5'))
        self.assertEqual(os.stat(self.path('behind.h5')).st_mode,
                         os.stat(self.path('first.h5')).st_mode)
        result.save('/dev/null')
        for wrong in ('none/x.h5', '.'):
            with self.assertRaises(clustersim.InputOutputFailed):
                result.save(self.path(wrong))
        self.assertEqual(sorted(os.listdir(self.folder.name)),
                         ['behind.h5', 'first.h5', 'link.h5', 's.json'])


class Package(Case):
    def test_without_numpy(self):
        program = '''
import sys
sys.modules['numpy'] = None
import clustersim
result = clustersim.run(sys.argv[1])
tasks = result.tasks
assert set(tasks['kind']) == {'forward', 'backward', 'transfer', 'update'}, set(tasks['kind'])
print(max(tasks['end']), result.figures['makespan_s'], tasks._repr_html_().count('<tr>'),
      result.links.n_rows, list(result.links['name']))
'''
        done = subprocess.run([sys.executable, '-c', program, self.file], capture_output=True,
                              text=True, check=False,
                              env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, 'python')))
        self.assertEqual(done.stderr, '')
        end, makespan, rows, *_ = done.stdout.split()
        self.assertEqual(int(end), round(float(makespan) * 1e12))
        self.assertEqual(rows, '11')

    def test_types_and_documentation(self):
        """Everything public has types and a text."""
        self.assertTrue(
            os.path.exists(os.path.join(os.path.dirname(clustersim.__file__), 'py.typed')))
        for name in clustersim.__all__:
            one = getattr(clustersim, name)
            if isinstance(one, int):
                continue
            self.assertTrue(inspect.getdoc(one), name)
            functions = [one] if inspect.isfunction(one) else [
                member for _, member in inspect.getmembers(one, inspect.isfunction)
                if member.__module__.startswith('clustersim')
                and member.__qualname__.startswith(name)]
            for function in functions:
                wanted = set(inspect.signature(function).parameters) - {'self'}
                given = set(function.__annotations__)
                self.assertEqual((wanted | {'return'}) - given, set(), function.__qualname__)
                typing.get_type_hints(function)

    def test_page(self):
        """What docs/how-to/python.md shows."""
        need(self, 'numpy', 'pandas', 'xarray')
        here = os.getcwd()
        os.chdir(ROOT)
        self.addCleanup(os.chdir, here)
        failed, tried = doctest.testfile(os.path.join(ROOT, 'docs/how-to/python.md'),
                                         module_relative=False)
        self.assertGreater(tried, 10)
        self.assertEqual(failed, 0)

    def test_structures(self):
        """The types of _library.py agree with clustersim.h."""
        compiler = shutil.which('cc') or shutil.which('gcc') or shutil.which('clang')
        if not compiler:
            self.skipTest('needs a C compiler')
        from clustersim import _library
        types = {'change': _library.Change, 'source': _library.Source, 'options': _library.Options,
                 'vary': _library.Vary, 'search': _library.Search, 'message': _library._Message,
                 'figure': _library.Figure, 'column': _library.Column,
                 'attribute': _library.Attribute}
        lines, expected = [], []
        for name, one in types.items():
            for member, *_ in one._fields_ + [(None,)]:
                place = f'offsetof(clustersim_{name}, {member})' if member else \
                    f'sizeof(clustersim_{name})'
                lines.append(f'printf("{name} {member} %zu\\n", {place});')
                value = getattr(one, member).offset if member else ctypes.sizeof(one)
                expected.append(f'{name} {member} {value}')
        for name in ('INT64', 'UINT32', 'UINT8', 'DOUBLE', 'TEXT', 'UINT64', 'NONE'):
            lines.append(f'printf("{name} %u\\n", (unsigned)CLUSTERSIM_{name});')
            expected.append(f'{name} {getattr(_library, name)}')
        for number, kind in _library._KINDS.items():
            names = {'SimulationFailed': 'FAILED', 'MemoryExhausted': 'NO_MEMORY',
                     'InputOutputFailed': 'IO', 'DoesNotFit64Bits': 'OVERFLOW',
                     'InvalidScenario': 'INVALID', 'NoPlanFits': 'LIMIT', 'Stopped': 'INTERRUPTED'}
            lines.append(f'printf("{kind.__name__} %d\\n", CLUSTERSIM_{names[kind.__name__]});')
            expected.append(f'{kind.__name__} {number}')
        with open(self.path('t.c'), 'w', encoding='utf-8') as file:
            file.write('#include "sim/library/clustersim.h"\n#include <stdio.h>\nint main(void) {\n'
                       + '\n'.join(lines) + '\nreturn 0; }\n')
        subprocess.run([compiler, '-I', ROOT, file.name, '-o', self.path('t')], check=True)
        said = subprocess.run([self.path('t')], check=True, capture_output=True, text=True).stdout
        self.assertEqual(said.splitlines(), expected)

    def test_version(self):
        self.assertEqual('sim ' + clustersim.__version__ + '\n', command('--version').stdout)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])

#!/usr/bin/env python3
"""sim validate as users see it: test-truth.py SIM FOLDER

A file of points made here: tables, JSON, the HDF5 file, one point's scenario run separately,
errors. The runs that come with the program. And, where FOLDER has files of measured points, that
each point is predicted or names what it misses.
"""
import glob
import importlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

import judging

FOLDER = sys.argv.pop(2) if len(sys.argv) > 2 else ''
SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'
POINTS_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                             'facts', 'points')
ALL = os.environ.get('SIM_TESTS') == 'long'
MOST_GPUS = 64  # unless all
EACH = 3  # points of a file, unless all

MODEL = {'name': 'gpt', 'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4, 'ffn': 1024,
         'vocab': 1000,
         'seq': 128, 'act': 'gelu', 'norm': 'layernorm', 'pos': 'learned', 'tied': True,
         'bias': True}


def point(name, measured, gpu='A100-SXM4-80GB', **other):
    made = {'id': 'made/' + name, 'model': MODEL,
            'hardware': {'gpu': gpu, 'gpus': 2, 'gpus_per_node': 8},
            'parallel': {'pp': 2}, 'batch': {'global': 8, 'micro': 1}, 'precision': 'fp16',
            'recompute': 'none',
            'schedule': '1f1b', 'framework': 'Megatron-LM', 'measured': measured,
            'features': ['pp']}
    made.update(other)
    return made


POINTS = [
    point('slow', {'step_time_s': 0.02, 'peak_allocated_bytes': 100000000}),
    point('fast', {'step_time_s': 0.001}, batch={'global': 16, 'micro': 2}),
    point('tensor', {'step_time_s': 0.01}, parallel={'tp': 2}, schedule='grad-accumulation',
          features=['tp']),
    point('abacus', {'step_time_s': 1}, gpu='abacus'),
    point('v', {'step_time_s': 1}, schedule='chimera', features=['pp', 'v']),
]


def sim(*arguments, status=0, cwd=None):
    done = subprocess.run([SIM, *arguments], capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode != status:
        raise AssertionError(f'{arguments}: status {done.returncode}\n{done.stderr}')
    return done


class InFolder(unittest.TestCase):
    points = []

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='test-truth-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.file = self.write({'schema': 'truth/1', 'dataset': 'made', 'points': self.points})

    def write(self, document, name='p.json'):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(document, file)
        return path


class Made(InFolder):
    points = POINTS

    def report(self, *arguments):
        return json.loads(sim('validate', self.file, '--json', *arguments).stdout)

    def test_set_changes_each_scenario(self):
        """What is printed, and what is predicted: as `sim run` of the changed scenario."""
        change = ['--set', '/model/device=h100', '--set', '/runtime/kernels=3']
        text = sim('validate', self.file, '--scenario', 'made/slow', *change).stdout
        self.assertEqual((json.loads(text)['model']['device'],
                          json.loads(text)['runtime']['kernels']), ('h100', 3))
        path = self.write(json.loads(text), 's.json')
        run = json.loads(sim('run', path, '--json', '--no-output').stdout)
        points = json.loads(sim('validate', self.file, '--json', *change).stdout)['points']
        plain = json.loads(sim('validate', self.file, '--json').stdout)['points']
        time = {p['id']: p.get('predicted_step_time_s') for p in points}
        self.assertEqual(time['made/slow'], run['makespan_s'])
        for before in plain:
            if before.get('predicted_step_time_s'):
                self.assertNotEqual(before['predicted_step_time_s'], time[before['id']])
        self.assertIn('--set must be', sim('validate', self.file, '--set', 'x', status=2).stderr)

    def test_sums_are_those_of_the_points(self):
        report = self.report()
        errors = [p['step_time_error'] for p in report['points'] if p['state'] == 'predicted']
        self.assertEqual(len(errors), 3)
        for p in report['points']:
            if p['state'] == 'predicted':
                self.assertAlmostEqual(p['step_time_error'],
                                       p['predicted_step_time_s'] / p['measured_step_time_s'] - 1,
                                       12)
        row = report['errors'][0]['step_time']
        self.assertEqual(report['errors'][0]['grouping'], 'all')
        self.assertEqual(row['points'], 3)
        self.assertAlmostEqual(row['mean'], statistics.fmean(map(abs, errors)), 12)
        self.assertAlmostEqual(row['median'], statistics.median(map(abs, errors)), 12)
        self.assertAlmostEqual(row['bias'], statistics.fmean(errors), 12)
        self.assertEqual(row['largest'], max(errors, key=abs))
        missing = {p['id']: p['missing'][0] for p in report['points'] if p['missing']}
        self.assertEqual(
            missing, {'made/abacus': 'the device abacus', 'made/v': 'the schedule chimera'})

    def test_threads_change_nothing(self):
        self.assertEqual(self.report('-j', '1'), self.report('-j', '3'))

    def test_scenario_runs_by_itself(self):
        for p in self.report()['points']:
            if p['state'] != 'predicted':
                continue
            text = sim('validate', self.file, '--scenario', p['id']).stdout
            path = os.path.join(self.folder, 's.json')
            with open(path, 'w', encoding='utf-8') as file:
                file.write(text)
            sim('check', path)
            run = json.loads(sim('run', path, '--no-output', '--json', cwd=self.folder).stdout)
            self.assertEqual(run['iteration_time_s'], p['predicted_step_time_s'], p['id'])
            self.assertEqual(max(d['peak_memory_bytes'] for d in run['devices']),
                             p['predicted_allocated_bytes'], p['id'])

    def test_selection(self):
        self.assertEqual([p['id'] for p in self.report('--select', 'feature=tp')['points']],
                         ['made/tensor'])
        done = sim('validate', self.file, '-s', 'gpu=none', status=2)
        self.assertRegex(done.stderr, 'none of 5 points has the gpu "none"; .*known: ')

    def test_tables(self):
        text = sim('validate', self.file, '--points').stdout
        self.assertIn('made/v  missing: the schedule chimera', text)
        self.assertIn('5 runs: 3 predicted, 2 unsupported, 0 failed', text)
        self.assertNotIn('assumed for runs', text)
        text = sim('validate', self.file, '--tables', '--by-group', '--trends').stdout
        self.assertIn('assumed for runs that are predicted\n       3  a dropout of 0.1', text)
        self.assertIn('no 4 runs of a dataset differ only in their layout', text)
        self.assertIn('step time, by dataset', text)
        self.assertIn('none: fewer than 8 runs', text)

    def test_tables_are_at_most_100_columns_wide(self):
        text = sim('validate', self.file, '--tables', '--by-group', '--trends').stdout
        self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])

    def test_missing_scenario(self):
        done = sim('validate', self.file, '--scenario', 'made/v', status=1)
        self.assertIn('made/v cannot be expressed; it needs: the schedule chimera', done.stderr)
        done = sim('validate', self.file, '--scenario', 'made/slo', status=2)
        self.assertIn('did you mean "made/slow"?', done.stderr)

    def test_scenario_excludes_what_is_about_predictions(self):
        for words in (['-o', os.path.join(self.folder, 'v.h5')], ['--points'], ['--decompose'],
                      ['--json'], ['--tables'], ['--by-group'], ['--trends'], ['--fit'],
                      ['--like', 'any.json']):
            done = sim('validate', self.file, '--scenario', 'made/v', *words, status=2)
            self.assertIn('validate: --scenario and --', done.stderr)
        self.assertEqual(os.listdir(self.folder), ['p.json'])

    def test_nothing_but_failures_is_one(self):
        done = sim('validate', self.file, '--select', 'id=made/slow', '--set', '/iterations=0',
                   status=1)
        self.assertIn('all of 1 points failed; the first, made/slow: ', done.stderr)
        self.assertIn('/iterations: must be from 1', done.stderr)
        self.assertIn('1 run: 0 predicted', done.stdout)

    def test_huge_errors_keep_their_power_of_ten(self):
        path = self.write({'schema': 'truth/1', 'dataset': 'made',
                           'points': [point('slow', {'step_time_s': 1e-300})]})
        predicted = json.loads(sim('validate', path, '--json').stdout)['points'][0][
            'predicted_step_time_s']
        share = 100 * (predicted / 1e-300 - 1)
        self.assertIn(f'{share:+.3g} %', sim('validate', path, '--points').stdout)

    def test_what_points_share(self):
        """A point has what `common` says, part by part, but what it says itself; null takes it
        away."""
        common = {key: POINTS[0][key] for key in ('model', 'hardware', 'precision', 'framework')}
        common['options'] = {'flash_attention': True}
        own = [{key: value for key, value in point.items() if key not in common}
               for point in POINTS[:3]]
        own[1]['hardware'] = {'gpu': 'H100-SXM5-80GB'}
        own[2]['options'] = None
        whole = [{**common, **point} for point in own]
        whole[1]['hardware'] = {**common['hardware'], **own[1]['hardware']}
        del whole[2]['options']
        head = {'schema': 'truth/1', 'dataset': 'made'}
        report = [json.loads(sim('validate', self.write({**head, **file}), '--json').stdout)
                  for file in ({'common': common, 'points': own}, {'points': whole})]
        self.assertEqual(*report)
        self.assertEqual([p['state'] for p in report[0]['points']], ['predicted'] * 3)
        self.assertEqual(len({p['predicted_step_time_s'] for p in report[0]['points']}), 3)
        refused = sim('validate', self.write({**head, 'common': [], 'points': own}), status=3)
        self.assertIn('/common: must be an object', refused.stderr)

    def test_results_file(self):
        path = os.path.join(self.folder, 'v.h5')
        sim('validate', self.file, '-o', path)
        try:
            import h5py  # pylint: disable=import-outside-toplevel
        except ImportError:
            self.skipTest('needs h5py')
        report = self.report()
        with h5py.File(path) as file:
            self.assertEqual(file.attrs['format'], b'sim-validation')
            self.assertEqual(list(file['points/predicted_step_time'][:3]),
                             [p['predicted_step_time_s'] for p in report['points'][:3]])
            self.assertEqual(list(file['points/state']), [0, 0, 0, 1, 1])
            self.assertEqual(file['errors/step_time_mean'][0],
                             report['errors'][0]['step_time']['mean'])


def runs_alike():
    """Twelve in fp16 and eleven in bf16 on A100, six with a pipeline, nine in bf16 on
    H100, one without a time."""
    kinds = [('a', 12, 'A100-SXM4-80GB', 'fp16', 2), ('b', 6, 'A100-SXM4-80GB', 'bf16', 2),
             ('c', 5, 'A100-SXM4-80GB', 'bf16', 1), ('h', 9, 'H100-SXM5-80GB', 'bf16', 2)]
    return [point(f'{kind}{i}', {'step_time_s': 0.001 * (i + 1)}, gpu, precision=precision,
                  parallel={'pp': pp, 'dp': 2 // pp},
                  schedule='1f1b' if pp > 1 else 'grad-accumulation')
            for kind, n, gpu, precision, pp in kinds
            for i in range(n)] + [point('untimed', {'peak_allocated_bytes': 1e9})]


class Like(InFolder):
    """Runs like a scenario: those that share its device, and of these those that share its
    precision, and so on, unless fewer than ten would be left."""
    points = runs_alike()

    def like(self, name):
        path = self.write(json.loads(sim('validate', self.file, '--scenario',
                                         'made/' + name).stdout), name + '.json')
        report = json.loads(sim('validate', self.file, '--json', '--like', path).stdout)
        shared = {trait['name'] for trait in report['like']['traits'] if trait['shared']}
        return {p['id'][len('made/'):][0]
                for p in report['points']}, len(report['points']), shared, path

    def changed(self, path, key, value):
        with open(path, encoding='utf-8') as file:
            document = json.load(file)
        document[key] = value
        return self.write(document, 'changed.json')

    def test_what_is_shared(self):
        always = {'times', 'network', 'device', 'runtime', 'sharded weights', 'tensor parallelism'}
        kinds, n, shared, path = self.like('a0')
        self.assertEqual((kinds, n, shared), ({'a'}, 12, always | {'precision', 'pipeline'}))
        # too few have a pipeline
        self.assertEqual(self.like('b0')[:3], ({'b', 'c'}, 11, always | {'precision'}))
        # too few are on H100
        self.assertEqual(self.like('h0')[:3],
                         ({'b', 'h'}, 15, always - {'device'} | {'precision', 'pipeline'}))
        text = sim('validate', self.file, '--like', path).stdout
        self.assertIn(f'\n12 measured runs are like {path}\n', text)
        self.assertEqual(len([line for line in text.splitlines() if line.startswith('made/a')]), 12)

    def test_nine_of_ten(self):
        """The interval, computed again from the model in facts/left-out.json by the formulas of
        sim/study/validate/interval.h."""
        facts = os.path.dirname(POINTS_FOLDER)
        with open(os.path.join(facts, 'left-out.json'), encoding='utf-8') as file:
            model = json.load(file)['interval']
        for name in ('a0', 'h0'):
            path = self.like(name)[3]
            like = json.loads(sim('validate', self.file, '--json', '--like', path).stdout)['like']
            run = json.loads(sim('run', path, '--json', '--no-output').stdout)
            self.assertAlmostEqual(like['predicted_step_time_s'], run['iteration_time_s'], 12)
            centre, spread, doubt = model['centre'], model['spread'], 1
            for trait in like['traits']:
                values = model['effects'].get(trait['name'])
                effect = (values or {}).get(trait['value'],
                                            {'sources': 0, 'centre': 0, 'spread': 0})
                centre, spread = centre + effect['centre'], spread + effect['spread']
                if values is not None:
                    doubt += 1 / (effect['sources'] + 1)
                    self.assertIn(trait['left_out_sources'], (effect['sources'], None), trait)
            half = model['factor'] * math.exp(spread) * math.sqrt(doubt)
            ends = [math.exp(centre - half), math.exp(centre + half)]
            found = like['left_out']
            for key, end in zip(('from', 'to'), ends):
                self.assertAlmostEqual(found[f'step_time_9_of_10_{key}_s'] /
                                       like['predicted_step_time_s'], end, 9)
            self.assertAlmostEqual(found['step_time_9_of_10_within'],
                                   max(abs(1 / end - 1) for end in ends), 9)
            text = sim('validate', self.file, '--like', path).stdout
            self.assertIn(f'({100 * (ends[0] - 1):+.2f} % to {100 * (ends[1] - 1):+.2f} %)', text)
            self.assertLess(text.index('predicted step time'), text.index('measured runs are like'))

    def test_times_that_are_given(self):
        """Of a chain of equal layers no network is known; runs with times of passes are like it,
        and here are none."""
        uniform = {'uniform': {'layers': 4, 'forward': '1 ms', 'backward': '2 ms',
                               'weights': '1 MB', 'activation': '1 MB'}, 'batch_size': 8}
        path = self.changed(self.like('a0')[3], 'model', uniform)
        with open(path, encoding='utf-8') as file:
            document = json.load(file)
        for key in ('runtime', 'memory', 'parallel'):
            document.pop(key, None)
        path = self.write(document, 'uniform.json')
        refused = sim('validate', self.file, '--like', path, status=2).stderr
        self.assertIn("no measured run shares the scenario's times (given) and network (any)",
                      refused)
        self.assertIn('\n12 measured runs are like', sim('validate', '--like', path).stdout)

    def test_what_a_scenario_leaves_to_others(self):
        """The precision of a config.json, ZeRO 3 of a section with a runtime's name alone, and no
        section "runtime"."""
        self.write({'model_type': 'llama', 'hidden_size': 256, 'intermediate_size': 512,
                    'num_hidden_layers': 2,
                    'num_attention_heads': 4, 'vocab_size': 1000, 'torch_dtype': 'bfloat16'},
                   'config.json')
        scenario = {'schema_version': 1, 'platform': {'topology': 'nvlink_switch', 'devices': 4,
                                                      'bandwidth': '300 GB/s'},
                    'model': {'name': 'config.json', 'parameters': {'sequence': 128},
                              'device': 'a100', 'batch_size': 4,
                              'optimizer': 'adam'},
                    'parallel': {'zero': 3}, 'schedule': {'kind': 'sequential', 'micro_batches': 1}}
        for given, runtime in (({'runtime': 'pytorch-fsdp'}, 'pytorch-fsdp'),
                               ({'runtime': {'name': 'pytorch-ddp'}}, 'pytorch-ddp'),
                               ({'runtime': 'ideal'}, 'ideal'),
                               ({}, 'pytorch-fsdp')):  # the usual one with ZeRO 3
            path = self.write({**scenario, **given}, 'own.json')
            like = json.loads(sim('validate', self.file, '--json', '--like', path).stdout)['like']
            values = {trait['name']: trait['value'] for trait in like['traits']}
            self.assertEqual((values['precision'], values['runtime'], values['sharded weights']),
                             ('bf16', runtime, 'yes'))

    def test_one_run_and_parts(self):
        path = self.like('a0')[3]
        text = sim('validate', self.file, '--like', path, '--select', 'id=made/a0',
                   '--decompose').stdout
        self.assertIn('\n1 measured run is like ', text)
        self.assertIn('parts of predicted steps', text)

    def test_wrong_scenario(self):
        self.assertIn('missing.json: cannot read',
                      sim('validate', '--like', 'missing.json', status=3).stderr)
        path = self.write({'schema_version': 1, 'model': {'nam': 'gpt'}}, 'typo.json')
        self.assertIn('typo.json', sim('validate', '--like', path, status=3).stderr)


def judged(test, report, points):
    """Compares a report with the results of judging.py for its points."""
    rows = [(points[r['id']], r) for r in report['points']]
    groups = judging.rank(rows)
    test.assertEqual(len(report['groups']), len(groups))
    for found, (key, runs, *expected) in zip(report['groups'], groups):
        test.assertEqual((found['dataset'], found['model'], found['gpu'], found['gpus'],
                          found['batch'], found['precision'], found['runs']),
                         (*key[:2], *key[5:], runs))
        rule = found['rule_of_thumb']
        for a, b in zip((found['tau'], found['loss'], rule['tau'], rule['loss']), expected):
            test.assertAlmostEqual(a, b, 9, found)
    for found in report['ranking']:
        chosen = [g for g in groups if found['dataset'] in ('', g[0][0])]
        got = [*(found[key] for key in ('groups', 'tau', 'loss', 'within_5_percent')),
               *(found['rule_of_thumb'][key] for key in ('tau', 'loss', 'within_5_percent'))]
        for a, b in zip(got, judging.ranking(chosen)):
            test.assertAlmostEqual(a, b, 9, found)
    trends = {(t['axis'], t['dataset']): t for t in report['trends']}
    for axis in judging.axes(rows[0][0]):
        for name in ('', *sorted({r['dataset'] for _, r in rows})):
            expected = judging.trend([row for row in rows if name in ('', row[1]['dataset'])], axis)
            found = trends.pop((axis, name), None)
            test.assertEqual(expected is None, found is None, (axis, name))
            if found:
                test.assertAlmostEqual(found['change_per_doubling'], expected[0], 9)
                test.assertAlmostEqual(found['standard_error'] or 0, expected[1] or 0, 9)
                test.assertEqual((found['runs'], found['groups']), expected[2:])
    test.assertEqual(trends, {})
    expected = judging.verdicts(rows)
    for key in ('caught', 'missed', 'false_alarms', 'fitted'):
        test.assertEqual(report['errors'][0]['out_of_memory'][key], expected[key], key)
    said = judging.peers(rows)
    test.assertEqual({(p['tool'], p['measure']): p['runs'] for p in report['peers']},
                     {key: len(errors) for key, errors in said.items()})
    for p in report['peers']:
        errors = said[p['tool'], p['measure']]
        test.assertAlmostEqual(p['mean'], statistics.fmean(e[0] for e in errors), 9)
        test.assertAlmostEqual(p['peer_mean'], statistics.fmean(e[1] for e in errors), 9)
    exact = [r['step_time_error'] for p, r in judging.timed(rows) if judging.is_exact(p)]
    test.assertEqual(report['errors'][0]['step_time']['points'], len(exact))
    test.assertAlmostEqual(report['errors'][0]['step_time']['mean'],
                           statistics.fmean(map(abs, exact)), 9)


class Judged(InFolder):
    """Drawn runs: printed rankings, trends, verdicts and other tools equal what an
    independent implementation finds."""

    def draw(self, name, seed):
        draw = random.Random(seed)
        points = []
        for gpus in (2, 4, 8, 16):
            for tp in (1, 2):
                for pp in (1, 2):
                    for micro in (1, 2):
                        if tp * pp > gpus:
                            continue
                        recompute = draw.choice(['none', 'full', 'unknown'])
                        made = point(
                            f'{name}{len(points)}', {'step_time_s': draw.uniform(0.001, 0.1)},
                            hardware={'gpu': 'A100-SXM4-80GB', 'gpus': gpus, 'gpus_per_node': 8},
                            parallel={'tp': tp, 'pp': pp, 'dp': gpus // tp // pp},
                            batch={'global': 16, 'micro': micro},
                            schedule='1f1b' if pp > 1 else 'grad-accumulation',
                            recompute=recompute if draw.random() < .15 else 'none',
                            quality=draw.choice(['A', 'B', 'B', 'B', 'B', 'C']),
                            options={'of_nobody': draw.choice([1, 2]) if draw.random() < .2 else 1,
                                     'network_gbps': draw.random()},
                            peers={'other': {'step_time_s': draw.uniform(0.001, 0.1)}})
                        if draw.random() < .1:
                            made['measured'] = {'oom': True}
                        points.append(made)
        return points

    def compare_page(self, report, files):
        """The tables of docs/reference/accuracy.md, made from the same predictions."""
        path = self.write(report, 'predictions.json')
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'error-tables.py')
        page = subprocess.run([sys.executable, script, path, '--points', *files], check=True,
                              capture_output=True, text=True).stdout
        for row in report['errors']:
            if row['grouping'] == 'dataset':
                time = row['step_time']
                cells = ' | '.join([f'{100 * time["mean"]:.1f}', f'{100 * time["median"]:.1f}',
                                    f'{100 * time["bias"]:+.1f}'])
                self.assertIn(f'| {row["name"]} | no | {time["points"]} | {cells} |', page)
        for row in report['ranking']:
            self.assertIn(f'| {row["dataset"] or "all"} | {row["groups"]} | {row["tau"]:.2f} | '
                          f'{100 * row["loss"]:.1f} | {100 * row["within_5_percent"]:.0f} |', page)
        self.assertIn(f'| other | step time | {report["peers"][0]["runs"]} |', page)

    def test_drawn_points(self):
        names = ('p', 'q')
        points = {name: self.draw(name, seed) for seed, name in enumerate(names)}
        files = [self.write({'schema': 'truth/1', 'dataset': name, 'points': points[name]},
                            name + '.json') for name in names]
        report = json.loads(sim('validate', *files, '--json').stdout)
        self.assertGreater(len(report['groups']), 3)
        self.assertEqual({t['axis'] for t in report['trends'] if not t['dataset']},
                         set(judging.axes(points['p'][0])))
        judged(self, report, {p['id']: p for name in names for p in points[name]})
        self.compare_page(report, files)
        text = sim('validate', *files, '--by-group', '--trends').stdout
        self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])
        self.assertIn('all of them left out', text)
        self.assertIn('2 datasets that they do not know are within', text)


class Verdicts(unittest.TestCase):
    """What others say runs, or runs out of memory: the sources are in the file. Pairs differ in one
    thing."""

    def report(self, *arguments):
        file = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'verdicts.json')
        with open(file, encoding='utf-8') as opened:
            self.said = {p['id']: p['measured']['oom'] for p in json.load(opened)['points']}
        points = json.loads(sim('validate', '--json', file, *arguments).stdout)['points']
        return {p['id']: p['out_of_memory'] for p in points}

    def test_are_what_sources_say(self):
        self.assertEqual(self.report(), self.said)
        self.assertEqual((sum(self.said.values()), len(self.said)), (7, 18))

    def test_depend_on_the_capacity(self):
        larger = self.report('--select', 'framework=torchtitan', '--set',
                             '/platform/memory="200 GiB"')
        self.assertEqual(len(larger), 8)
        self.assertFalse(any(larger.values()))


class Shipped(unittest.TestCase):
    """The runs that come with the program: without files it reads these."""

    @classmethod
    def setUpClass(cls):
        """Simulates them once: a second link keeps the journal, and the second command takes all
        results from it."""
        with tempfile.TemporaryDirectory(prefix='test-truth-') as folder:
            first, second = (os.path.join(folder, name + '.h5.journal') for name in 'ab')
            with subprocess.Popen([SIM, 'validate', '-o', 'a.h5'], cwd=folder, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                while process.poll() is None and not os.path.exists(first):
                    time.sleep(0.01)
                os.link(first, second)
                cls.text = process.communicate()[0]
            cls.report = json.loads(sim('validate', '--json', '-o', 'b.h5', '--resume',
                                        cwd=folder).stdout)
        cls.files = {os.path.basename(path)[:-len('.json')]: path
                     for path in glob.glob(os.path.join(POINTS_FOLDER, '*.json'))}
        cls.rows = {(row['grouping'], row['name']): row for row in cls.report['errors']}

    def test_all_are_read(self):
        expected, head = [], ('title', 'source', 'licence', 'notes')
        with open(os.path.join(POINTS_FOLDER, 'README.md'), encoding='utf-8') as file:
            page = file.read()
        for name, path in sorted(self.files.items()):
            with open(path, encoding='utf-8') as file:
                document = json.load(file)
            self.assertEqual(document['dataset'], name)
            self.assertTrue(all(document[key] for key in head), name)
            self.assertIn(f'| [{name}]({name}.json) | {len(document["points"])} |', page)
            expected += [p['id'] for p in document['points']]
        self.assertEqual([p['id'] for p in self.report['points']], expected)
        self.assertGreater(len(expected), 300)

    def test_page(self):
        """What docs/how-to/validate.md shows of `sim validate`."""
        pages = importlib.import_module('test-pages')
        path = os.path.join(os.path.dirname(POINTS_FOLDER), '..', 'docs', 'how-to', 'validate.md')
        shown = next(lines for _, command, lines in pages.commands_of(path)
                     if command == 'sim validate')
        self.assertTrue(pages.agree(shown[:-1] if not shown[-1] else shown,
                                    [line.rstrip() for line in self.text.splitlines()]), self.text)

    def test_predictions_are_as_they_were(self):
        guard = importlib.import_module('predictions')
        table = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data', 'predictions.csv')
        self.assertEqual(guard.compare(SIM, self.report['points'], table), [])

    def test_judgement_is_that_of_an_independent_implementation(self):
        kinds = importlib.import_module('error-tables')
        judged(self, self.report, {p['id']: p for path in self.files.values()
                                   for p in kinds.read_points(path)['points']})

    def test_errors_are_those_that_the_project_aims_at(self):
        """Mean errors, not left out, meet the targets in error-tables.py, per kind and source."""
        kinds = importlib.import_module('error-tables')
        errors = {row['id']: row['step_time_error'] for row in self.report['points']}
        points = [p for path in self.files.values() for p in kinds.read_points(path)['points']
                  if errors[p['id']] is not None]
        for name, target, belongs in kinds.TARGETS:
            chosen = [abs(errors[p['id']]) for p in points if belongs(p)]
            self.assertGreater(len(chosen), 5, name)
            self.assertLess(100 * statistics.mean(chosen), target, name)
        aims = [('all', '', 'step_time', 0.06), ('dataset', 'zero-bubble', 'step_time', 0.05),
                ('dataset', 'llm-foundry', 'step_time', 0.05),
                ('dataset', 'nemo-24', 'step_time', 0.07),
                ('dataset', 'simumax-b200', 'step_time', 0.03),
                ('dataset', 'simumax-b200', 'allocated', 0.015),
                ('dataset', 'simumax-b200', 'reserved', 0.02)]
        for grouping, group, figure, aim in aims:
            self.assertLess(self.rows[grouping, group][figure]['mean'], aim, (group, figure))


class Measured(InFolder):
    """Files that are not shipped, if present; points spread over each file, on few GPUs,
    unless SIM_TESTS=long."""
    def test_each_point_is_predicted_or_says_why_not(self):
        files = sorted(glob.glob(os.path.join(FOLDER, '*.json'))) if FOLDER else []
        if not files:
            self.skipTest(f'no measured points in {FOLDER or "any folder"}')
        expected = []
        for i, name in enumerate(files):
            with open(name, encoding='utf-8') as file:
                document = json.load(file)
            if not ALL:
                points = [p for p in document['points'] if p['hardware']['gpus'] <= MOST_GPUS]
                document['points'] = points[::1 + len(points) // EACH]
                files[i] = self.write(document, os.path.basename(name))
            expected += [p['id'] for p in document['points']]
        report = json.loads(sim('validate', '--json', *files).stdout)
        self.assertEqual([p['id'] for p in report['points']], expected)
        for p in report['points']:
            if p['state'] == 'predicted':
                self.assertGreater(p['predicted_step_time_s'], 0, p['id'])
            else:
                self.assertEqual(p['state'], 'missing', p)
                self.assertTrue(p['missing'][0], p['id'])


if __name__ == '__main__':
    unittest.main()

#!/usr/bin/env python3
"""A runtime that a user describes is as good as those that come with the program.

test-own-runtime.py SIM SOURCE_ROOT

Each built-in runtime is written out as a file under another name, once with everything that it
takes over and once only with "like". Shipped scenarios must then have the same results with the
file as with the name, and the same origins of their values. Also: messages about files that are
wrong.
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
import unittest

SIM, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# which scenario shows something of a runtime: a mesh, experts, fp8-like types, images
SCENARIOS = ['llama3-8b-dgx', 'fsdp', 'mixtral-8x7b-64', 'llama3-8b-nvfp4-b200', 'abci-resnet50']


def run(*arguments, status=0):
    done = subprocess.run([SIM, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == status, (arguments, done.returncode, done.stderr)
    return done


def without_names(report):
    """A report without the name of the runtime."""
    report['runtime'].pop('name')
    return report


class OwnRuntime(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, 'mine.json')

    def tearDown(self):
        self.folder.cleanup()

    def write(self, root):
        with open(self.path, 'w', encoding='utf-8') as file:
            json.dump(root, file)
        return self.path

    def report(self, scenario, runtime):
        path = os.path.join(ROOT, 'scenarios', scenario + '.json')
        return json.loads(run('run', path, '--no-output', '--json', '--set',
                              f'/runtime="{runtime}"').stdout)

    def test_same(self):
        names = sorted(name[:-len('.json')]
                       for name in os.listdir(os.path.join(ROOT, 'facts', 'runtimes')))
        self.assertGreater(len(names), 10)
        for i, name in enumerate(names):
            listed = json.loads(run('list', 'runtimes', name, '--json').stdout)['runtimes'][0]
            whole = {key: listed[key] for key in ('conventions', 'rules', 'roofline')}
            scenario = SCENARIOS[i % len(SCENARIOS)]
            expected = without_names(self.report(scenario, name))
            for root in (whole, {'like': name}):
                got = without_names(self.report(scenario, self.write(root)))
                self.assertEqual(got, expected, (name, scenario))

    def test_points(self):
        """Measured runs, too: a file of the runtime that a point has predicts the same."""
        first = {}
        with open(os.path.join(ROOT, 'tests/data/predictions.csv'), encoding='utf-8') as file:
            for row in csv.DictReader(file):
                if row['state'] == 'predicted':
                    first.setdefault(row['id'].split('/')[0], row['id'])
        points = [first[name] for name in ('torchtitan', 'llm-foundry', 'neusight', 'fms-fsdp')]
        points.append('megatron-papers/korthikanti/22b*')
        for selection in (f'id={name}' for name in points):
            asked = ('validate', '--json', '--select', selection)
            expected = json.loads(run(*asked).stdout)['points'][:1]
            made = json.loads(run('validate', '--scenario', expected[0]['id']).stdout)
            self.write({'like': made['runtime']['name']})
            got = json.loads(run('validate', '--json', '--select', 'id=' + expected[0]['id'],
                                 '--set', f'/runtime/name="{self.path}"').stdout)['points']
            for point in got + expected:
                for key in [k for k in point if not k.startswith('predicted')]:
                    del point[key]
            self.assertIn('predicted_step_time_s', expected[0])
            self.assertEqual(got, expected, selection)

    def test_changed(self):
        """The test above can fail: one convention more, and the step differs."""
        host = {'key': '/runtime/host', 'value': '1 ms', 'source': 'test'}
        self.write({'like': 'megatron-core', 'conventions': [host]})
        own = self.report('llama3-8b-dgx', self.path)
        built_in = self.report('llama3-8b-dgx', 'megatron-core')
        self.assertGreater(own['figures']['iteration_time_s'] if 'figures' in own else
                           own['iteration_time_s'],
                           built_in['figures']['iteration_time_s'] if 'figures' in built_in else
                           built_in['iteration_time_s'])
        row = next(r for r in own['runtime']['figures'] if r['key'] == '/runtime/host')
        self.assertEqual((row['is'], row['source']), ('assumed', 'test'))

    def test_rules(self):
        """A rule with the name of another one takes its place."""
        rule = {'name': 'schedules', 'needs': '/schedule/kind=gpipe', 'text': 'has gpipe only',
                'source': 'our code'}
        self.write({'like': 'megatron-core', 'rules': [rule]})
        path = os.path.join(ROOT, 'scenarios', 'llama3-8b-dgx.json')
        warned = run('check', path, '--set', f'/runtime="{self.path}"').stderr
        self.assertIn('cannot run this plan: it has gpipe only (our code)', warned)
        warned = run('check', path, '--set', f'/runtime="{self.path}"', '--set',
                     '/schedule/kind=gpipe').stderr
        self.assertNotIn('cannot run', warned)

    def test_messages(self):
        rows = [
            ({'conventions': [{'key': '/runtime/hots', 'value': 1, 'source': 's'}]},
             '/conventions/0/key: runtimes have no convention for "/runtime/hots"; did you mean '
             '"/runtime/host"?'),
            ({'conventions': [{'key': '/runtime/host', 'value': True, 'source': 's'}]},
             '/conventions/0/value: must be time'),
            ({'conventions': [{'key': '/runtime/fused', 'value': True, 'with': 'a b',
                               'source': 's'}]},
             '/conventions/0/with: "a" is not a condition'),
            ({'conventions': [{'key': '/runtime/fused', 'value': True, 'wiht': '/a',
                               'source': 's'}]},
             '/conventions/0: unknown key "wiht"; did you mean "with"?'),
            ({'conventions': [{'key': '/runtime/fused', 'value': True}]},
             '/conventions/0: missing key "source"'),
            ({'conventions': {}}, '/conventions: must be a list'),
            ({'rules': [{'needs': '/a<2', 'source': 's'}]}, '/rules/0/text: is missing'),
            ({'rules': [{'needs': '/a<>2', 'text': 't', 'source': 's'}]},
             '/rules/0/needs: "/a<>2" is not a condition'),
            ({'like': 'megatron-cor'}, '/like: unknown runtime "megatron-cor"; did you mean '
             '"megatron-core"?'),
            ({'conventoins': []}, 'unknown key "conventoins"; did you mean "conventions"?'),
        ]
        path = os.path.join(ROOT, 'scenarios', 'fsdp.json')
        for root, expected in rows:
            self.write(root)
            told = run('check', path, '--set', f'/runtime="{self.path}"', status=3).stderr
            self.assertIn('/runtime: ' + self.path + ': ', told)
            self.assertIn(expected, told)

    def test_likeness(self):
        """Measured runs of Megatron Core are like a run with a runtime that is like it."""
        self.write({'like': 'megatron-core'})
        with open(os.path.join(ROOT, 'scenarios', 'llama3-8b-dgx.json'), encoding='utf-8') as file:
            scenario = json.load(file)
        path, said = os.path.join(self.folder.name, 's.json'), []
        for name in ('megatron-core', 'mine.json'):
            with open(path, 'w', encoding='utf-8') as file:
                json.dump({**scenario, 'runtime': name}, file)
            said.append(run('validate', '--like', path).stdout)
        self.assertIn('runtime (megatron-core)', said[0])
        self.assertEqual(said[1], said[0])

    def test_listed(self):
        rule = {'name': 'schedules', 'needs': '/schedule/kind=gpipe', 'text': 'has gpipe only',
                'source': 'our code'}
        host = {'key': '/runtime/host', 'value': '1 ms', 'source': 'our profile'}
        self.write({'like': 'megatron-core', 'conventions': [host], 'rules': [rule]})
        listed = run('list', 'runtimes', self.path).stdout
        for text in ('/runtime/host: "1 ms"', 'our profile', 'has gpipe only (our code)',
                     '/memory/routed_weights: "features"'):
            self.assertIn(text, listed)
        self.assertNotIn('has the schedules 1f1b', listed)

    def test_relative(self):
        """The path is relative to the scenario, also in the long form and through "like"."""
        self.write({'like': 'other.json'})
        with open(os.path.join(self.folder.name, 'other.json'), 'w', encoding='utf-8') as file:
            json.dump({'like': 'pytorch-fsdp'}, file)
        with open(os.path.join(ROOT, 'scenarios', 'fsdp.json'), encoding='utf-8') as file:
            scenario = json.load(file)
        scenario['runtime'] = {'name': 'mine.json', 'release': '2.4'}
        path = os.path.join(self.folder.name, 's.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(scenario, file)
        printed = run('check', path).stdout
        self.assertIn('runtime mine.json:', printed)
        self.assertIn('given     /runtime/release: 2.4', printed)

    def test_assumed(self):
        """Without a name the usual runtime, and with it what that one predicts."""
        rows = [('fsdp', 'pytorch-fsdp'), ('llama3-8b-dgx', 'megatron-core'),
                ('abci-resnet50', 'pytorch-ddp'), ('context-parallel', 'megatron-core')]
        for name, runtime in rows:
            with open(os.path.join(ROOT, 'scenarios', name + '.json'), encoding='utf-8') as file:
                scenario = json.load(file)
            del scenario['runtime']
            path = os.path.join(self.folder.name, name + '.json')
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(scenario, file)
            first = run('run', path, '--no-output').stdout.splitlines()[0]
            self.assertTrue(first.endswith('; runtime assumed: ' + runtime), first)
            got = json.loads(run('run', path, '--no-output', '--json').stdout)
            self.assertTrue(got['runtime'].pop('assumed'))
            expected = self.report(name, runtime)
            self.assertFalse(expected['runtime'].pop('assumed'))
            self.assertEqual(got, expected)


unittest.main(argv=sys.argv[:1] + sys.argv[3:])

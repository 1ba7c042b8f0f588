#!/usr/bin/env python3
"""sim validate --fit: test-fit-runs.py SIM

Runs are made here: their measured times are those that the program predicts when all kernels take a
planted factor longer. The fit must find the factor, as far as its spring lets it; the files that it
writes must be accepted everywhere and give the predicted times.
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest

SIM = os.path.abspath(sys.argv.pop(1))
SPRING = 3  # runs
MODEL = {'name': 'llama', 'kind': 'decoder', 'hidden': 2048, 'heads': 16, 'ffn': 8192,
         'vocab': 32000, 'seq': 2048, 'act': 'swiglu', 'norm': 'rmsnorm', 'pos': 'rope'}


def sim(*arguments, status=0, cwd=None):
    done = subprocess.run([SIM, *arguments], capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode != status:
        raise AssertionError(f'{arguments}: status {done.returncode}\n{done.stderr}')
    return done


def run_of(name, layers, micro=4, tp=1, gpus=2, **other):
    return {'id': 'mine/' + name, 'model': {**MODEL, 'layers': layers},
            'hardware': {'gpu': 'H100-SXM5-80GB', 'gpus': gpus, 'gpus_per_node': 8},
            'parallel': {'tp': tp, 'dp': gpus // tp},
            'batch': {'global': 8 * micro, 'micro': micro}, 'precision': 'bf16',
            'recompute': 'none', 'schedule': 'grad-accumulation',
            'framework': 'Megatron-LM core', 'options': {'flash_attention': True}, 'quality': 'A',
            'measured': {'step_time_s': 1}, **other}


RUNS = [run_of('a', 2), run_of('b', 4), run_of('c', 4, micro=2), run_of('d', 4, tp=2),
        run_of('e', 6), run_of('f', 6, tp=2)]


class Fit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='test-fit-runs-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, runs, name='mine.json'):
        path = os.path.join(self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            json.dump({'schema': 'truth/1', 'dataset': 'mine', 'points': runs}, file)
        return path

    def predict(self, runs, *change):
        path = self.write(runs, 'predicted.json')
        report = json.loads(sim('validate', path, '--json', *change, cwd=self.folder).stdout)
        return {p['id']: p['predicted_step_time_s'] for p in report['points']}

    def planted(self, factor, runs=None, noise=lambda: 1):
        runs = json.loads(json.dumps(runs or RUNS))
        times = self.predict(runs, '--set', f'/runtime/kernels={factor}')
        for run in runs:
            run['measured'] = {'step_time_s': times[run['id']] * noise()}
        return runs

    def fit(self, runs, *words, status=0):
        done = sim('validate', self.write(runs), '--fit', *words, status=status, cwd=self.folder)
        return json.loads(done.stdout)['fit'] if '--json' in words else done

    def test_planted_factor(self):
        """If the times are t(F), the minimum of sum (log t(f) - log t(F))^2 + SPRING (log f)^2 with
        slopes s_i of log t has log f / log F = S / (S + SPRING), S = sum s_i^2, when slopes do not
        depend on f. They do: the share of kernels grows with f; so S is between its values at 1 and
        at F, and log f / log F between the two, within a hundredth for the third order."""
        for factor in (1.2, 0.85):
            runs = self.planted(factor)
            fit = self.fit(runs, '--json')
            bounds = []
            for at in (1, factor):
                low, high = (self.predict(runs, '--set', f'/runtime/kernels={at * f}')
                             for f in (1, 1.02))
                total = sum((math.log(high[i] / low[i]) / math.log(1.02)) ** 2 for i in low)
                self.assertGreater(total, 2)
                bounds.append(total / (total + SPRING))
            share = math.log(fit['factor']) / math.log(factor)
            self.assertGreater(share, min(bounds) - 0.01, factor)
            self.assertLess(share, max(bounds) + 0.01, factor)
            self.assertLess(fit['mean_after'], fit['mean_before'])
            self.assertLess(fit['mean_after'], fit['mean_left_out'])
            self.assertLess(fit['mean_left_out'], fit['mean_before'])

    def test_few_runs_move_it_little(self):
        three, six = (abs(math.log(self.fit(self.planted(1.3, RUNS[:n]), '--json')['factor']))
                      for n in (3, 6))
        self.assertLess(three, six)
        self.assertLess(six, math.log(1.3))
        same = self.fit(self.planted(1), '--json')
        self.assertAlmostEqual(same['factor'], 1, 9)
        self.assertAlmostEqual(same['mean_before'], 0, 9)

    def test_noise(self):
        """Noise of 5 % in the logarithms moves log f by a normal error of spread
        0.05 sqrt(S) / (S + SPRING) <= 0.05 / (2 sqrt(SPRING)); four of these spreads."""
        draw = random.Random(3)
        noisy = self.fit(self.planted(1.2, noise=lambda: math.exp(draw.gauss(0, 0.05))), '--json')
        exact = self.fit(self.planted(1.2), '--json')
        self.assertLess(abs(math.log(noisy['factor'] / exact['factor'])),
                        4 * 0.05 / (2 * math.sqrt(SPRING)))

    def test_left_out_is_a_fit_to_the_others(self):
        """To first order: against the fit without the run, whose factor is then predicted with."""
        draw = random.Random(4)
        runs = self.planted(1.15, noise=lambda: math.exp(draw.gauss(0, 0.05)))
        fit = self.fit(runs, '--json')
        for i in (0, 3):
            others = self.fit(runs[:i] + runs[i + 1:], '--json')['factor']
            expected = self.predict([runs[i]], '--set', f'/runtime/kernels={others}')
            self.assertAlmostEqual(fit['runs'][i]['left_out_s'] / expected[runs[i]['id']], 1, 3)

    def test_files_are_accepted_and_predict_the_same(self):
        runs = self.planted(1.2)
        for option, name, place, key in (
                ('--output', 'my-gpu.json', '/model/device', 'hardware'),
                ('--runtime-output', 'my-runtime.json', '/runtime', 'framework')):
            path = os.path.join(self.folder, name)
            fit = self.fit(runs, '--json', option, path)
            after = {run['id']: run['after_s'] for run in fit['runs']}
            # by --set
            for i, time in self.predict(runs, '--set', f'{place}={name}').items():
                self.assertAlmostEqual(time / after[i], 1, 6, option)
            # in points
            own = json.loads(json.dumps(runs))
            for run in own:
                if key == 'hardware':
                    run['hardware']['gpu'] = path
                else:
                    run['framework'] = path
            for i, time in self.predict(own).items():
                self.assertAlmostEqual(time / after[i], 1, 6, option)
            # in a scenario: run and advise
            scenario = json.loads(sim('validate', self.write(own), '--scenario', 'mine/b').stdout)
            self.assertIn(name, json.dumps(scenario))
            whole = os.path.join(self.folder, 's.json')
            with open(whole, 'w', encoding='utf-8') as file:
                json.dump(scenario, file)
            found = json.loads(sim('run', whole, '--json', '--no-output').stdout)
            self.assertAlmostEqual(found['iteration_time_s'] / after['mine/b'], 1, 6)
            plans = json.loads(sim('advise', whole, '--most', '3', '--json').stdout)
            self.assertGreater(plans['best'][0]['step_time_s'], 0)
            # in a description
            said = {'schema': 'run/1', 'name': 'b',
                    **{k: v for k, v in own[1].items() if k not in ('id', 'measured', 'quality')}}
            with open(os.path.join(self.folder, 'run.json'), 'w', encoding='utf-8') as file:
                json.dump(said, file)
            made = json.loads(sim('import', 'run', os.path.join(self.folder, 'run.json'), '-o',
                                  '-').stdout)
            self.assertEqual({**made, 'name': ''}, {**scenario, 'name': ''})
            # fitted again from the file: the only remaining difference is due to the spring
            again = self.fit(own, '--json')
            self.assertLess(abs(math.log(again['factor'])), abs(math.log(fit['factor'])))

    def test_text(self):
        text = self.fit(self.planted(1.2), '--output', 'my-gpu.json').stdout
        self.assertRegex(text, r'kernels take 1\.\d+ times as long as predicted: 6 runs on h100')
        self.assertIn('as strongly as 3 runs', text)
        self.assertEqual([line for line in text.splitlines() if len(line) > 100], [])
        with open(os.path.join(self.folder, 'my-gpu.json'), encoding='utf-8') as file:
            root = json.load(file)
        self.assertEqual((root['like'], root['name']), ('h100', 'my-gpu'))
        self.assertIn('fitted to 6 measured runs of', root['training']['in_step']['source'])

    def test_what_is_refused(self):
        untimed = run_of('x', 2, measured={'peak_allocated_bytes': 1e9})
        other = run_of('x', 3, hardware={'gpu': 'A100-SXM4-80GB', 'gpus': 2})
        frame = run_of('x', 3, framework='PyTorch FSDP')
        twice = {**RUNS[0], 'id': 'mine/again', 'measured': {'step_time_s': 1.3}}
        lacking = run_of('x', 4, schedule='chimera', parallel={'pp': 2})
        for runs, message in (
                (RUNS[:2], '--fit: needs 3 or more measured runs (got 2)'),
                ([*RUNS[:3], untimed], 'the run "mine/x" has no measured time'),
                ([*RUNS[:3], other], 'is on the device "a100", earlier runs on "h100"'),
                ([*RUNS[:3], frame], 'is on the runtime "pytorch-fsdp", earlier runs on'),
                ([*RUNS[:3], twice], 'the run "mine/again" contradicts "mine/a"'),
                ([*RUNS[:3], lacking], 'cannot be predicted; it needs: the schedule chimera')):
            with self.subTest(message):
                refused = self.fit(runs, status=2).stderr
                self.assertIn(message, refused)
                self.assertIn('mine.json' if 'got 2' not in message else '', refused)
        for words, message in (
                (['--points'], '--fit and --points exclude each other'),
                (['--like', 'x.json'], '--fit and --like exclude each other'),
                (['-o', 'x.h5'], '.json'),
                (['-o', 'x.json', '--runtime-output', 'y.json'], 'the factor would count twice')):
            self.assertIn(message, self.fit(RUNS, *words, status=2).stderr)
        self.assertIn('--runtime-output requires --fit',
                      sim('validate', '--runtime-output', 'x.json', status=2).stderr)
        self.assertIn('--fit needs files', sim('validate', '--fit', status=2).stderr)
        self.assertEqual(os.listdir(self.folder), ['mine.json'])


if __name__ == '__main__':
    unittest.main()

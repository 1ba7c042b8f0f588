#!/usr/bin/env python3
"""A corner of the study in scenarios/madpipe: test-study.py SIM SOURCE_ROOT

Two networks, three numbers of devices, memories from too little to plenty, every planner of the
study and best, with both rules of memory. Every plan is run by the engine, which has to give the
period, the makespan and the peaks of the plan's pattern exactly.
"""
import json
import os
import subprocess
import sys
import unittest

SIM, ROOT = [os.path.abspath(word) for word in sys.argv[1:3]]
sys.argv[1:] = sys.argv[3:]
STUDY = os.path.join(ROOT, 'scenarios', 'madpipe', 'study.json')
CONFIRMED = {'iteration_time_s', 'makespan_s', 'peak_memory_bytes', 'peak_activation_bytes'}
BEST = {'planner': 'best', 'tries': 100, 'programs': 0}
AXES = {'/model/name': 'resnet50,inception_v3', '/platform/devices': '1,3,6',
        '/platform/memory': '1 GB,4 GB,9 GB,64 GB', '/platform/link_bandwidth': '12 GB/s'}


def planners():
    with open(STUDY, encoding='utf-8') as file:
        return json.load(file)['sweep']['vary']['/schedule/partition'] + [BEST]


def sweep(*settings):
    words = [SIM, 'sweep', STUDY, '--no-output', '--json', *settings]
    for key, values in AXES.items():
        words += ['--vary', f'{key}={values}']
    words += ['--vary', '/schedule/partition=' + ','.join(json.dumps(p) for p in planners())]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)['points']


def kind(asked):
    return ' '.join(str(asked[key]) for key in ('planner', 'memory_rule', 'special')
                    if key in asked)


class Study(unittest.TestCase):
    def check_confirmed(self, result):
        """What the simulation gives is what the pattern promises, to the picosecond and the
        byte."""
        figures = set()
        for form in result['closed_forms']:
            if form['figure'] in CONFIRMED:
                figures.add(form['figure'])
                self.assertTrue(form['promised'])
                # times are whole picoseconds, bytes are whole
                self.assertLess(abs(form['simulated'] - form['closed_form']), 0.5e-12)
        self.assertEqual(figures, CONFIRMED)
        self.assertFalse(result['out_of_memory'])
        for device in result['devices']:
            self.assertLessEqual(device['peak_memory_bytes'], device['capacity_bytes'])
        # of M micro-batches each, in whole picoseconds: doubles hold them to 1e-15
        period = result['iteration_time_s'] / result['micro_batches']
        self.assertAlmostEqual(period / result['plan_period_s'], 1, delta=1e-14)
        self.assertLessEqual(result['plan_lower_bound_s'], result['plan_period_s'])

    def check_order(self, periods):
        """A plan that others have found too cannot be worse than theirs by construction; None is
        the worst."""
        worst = float('inf')
        contiguous, best = [periods[name] or worst for name in ('contiguous_optimal', 'best')]
        self.assertLessEqual(best, contiguous)
        for rule in ('depth', 'all', 'original'):
            self.assertLessEqual(contiguous, periods['pipedream ' + rule] or worst)

    def check_sweep(self, *settings):
        points, plans, groups = sweep(*settings), 0, {}
        for point in points:
            values = dict(point['set'])
            name = kind(values.pop('/schedule/partition'))
            with self.subTest(**values, planner=name):
                periods = groups.setdefault(json.dumps(values), {})
                if 'error' in point:  # says which memory does not suffice
                    self.assertRegex(point['error'], r'\d{9,} (bytes|for them)|memory is \d{9,}')
                    periods[name] = None
                    continue
                plans += 1
                self.check_confirmed(point['result'])
                periods[name] = point['result']['plan_period_s']
        for periods in groups.values():
            self.check_order(periods)
        # 64 GB is enough for everyone, 1 GB for no one
        n = len(planners())
        self.assertEqual(len(points), 24 * n)
        self.assertGreaterEqual(plans, 6 * n)
        self.assertLessEqual(plans, 18 * n)

    def test_literal(self):
        self.check_sweep()

    def test_full(self):
        self.check_sweep('--set', '/schedule/kept=full', '--set', '/schedule/count_workspace=true')


if __name__ == '__main__':
    unittest.main()

#!/usr/bin/env python3
"""The model of intervals that left-out-errors.py makes: on draws whose truth is known, on cases by
hand, and on the errors in facts/left-out.json."""
import importlib
import io
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, FOLDER)
MADE = importlib.import_module('left-out-errors')
FACTS = os.path.join(os.path.dirname(FOLDER), 'facts', 'left-out.json')


class ByHand(unittest.TestCase):
    def test_quantile(self):
        """Equal sources of one score: of 9 the largest, of 19 the 18th (0.9 x 20), of 99 the
        90th. Eight would have to have 8.1."""
        for n, expected in ((8, None), (9, 9), (19, 18), (99, 90)):
            self.assertEqual(MADE.quantile([[i + 1] for i in range(n)]), expected)

    def test_weights_of_runs(self):
        """18 sources of one run with score 1, and one with four runs of 2: it has the weight 2 of
        20. 0.9 x 20 x (1 + 1/19) = 18.9 are only reached with its first run, 18 + 0.5, and the
        second, 19."""
        scores = [[1]] * 18 + [[2, 3, 4, 5]]
        self.assertEqual(MADE.quantile(scores), 3)

    def test_effects(self):
        """Two sources of weight 1 with the value a, y = 1 and 3, two with b, y = 5 and 7: base 4.
        The sum of squares with its penalty, 2 (e + 2)^2 + e^2 + ..., is least at e = -4/3."""
        groups = [((('t', value),), 1) for value in 'aabb']
        base, effects = MADE.regress(groups, [1, 3, 5, 7])
        self.assertAlmostEqual(base, 4)
        self.assertAlmostEqual(effects['t', 'a'], -4 / 3)
        self.assertAlmostEqual(effects['t', 'b'], 4 / 3)

    def test_rare_values_widen(self):
        groups = {(('t', 'a'),): [0.1, -0.1]}
        model = MADE.Model({f's{i}': groups for i in range(9)})
        self.assertAlmostEqual(model.spread((('t', 'b'),)) / math.exp(model.log_spread),
                               math.sqrt(2))
        usual = math.exp(model.log_spread + model.spreads['t', 'a'])
        self.assertAlmostEqual(model.spread((('t', 'a'),)) / usual, math.sqrt(1.1))


def draw_source(draw, runs, bias, spread):
    """Runs of a source with a trait that decides how far off predictions are: `wide` five times as
    far as `narrow`. Each source has its own bias."""
    own = {'narrow': draw.gauss(0, bias), 'wide': draw.gauss(0, 5 * bias)}
    groups = {}
    for _ in range(runs):
        trait = draw.choice(('narrow', 'wide'))
        scale = spread if trait == 'narrow' else 5 * spread
        groups.setdefault((('host', trait),), []).append(own[trait] + draw.gauss(0, scale))
    return groups


class Drawn(unittest.TestCase):
    """Hundreds of sets of 24 sources, and a new source for each: 90 % of the new source's runs must
    be within, by source and by run."""
    SETS = 300

    def cover(self, sizes, bias=0.05, spread=0.03):
        draw = random.Random(5)
        held, widths = [], {'narrow': [], 'wide': []}
        for _ in range(self.SETS):
            sources = {f's{k}': draw_source(draw, sizes(draw), bias, spread) for k in range(24)}
            intervals = MADE.Intervals(sources)
            factor, model = intervals.factor(), intervals.without()
            scores = model.scores(draw_source(draw, sizes(draw), bias, spread))
            held.append((sum(s <= factor for s in scores), len(scores)))
            for trait, found in widths.items():
                found.append(factor * model.spread((('host', trait),)))
        by_source = statistics.fmean(a / b for a, b in held)
        by_run = sum(a for a, _ in held) / sum(b for _, b in held)
        return by_source, by_run, {k: statistics.median(v) for k, v in widths.items()}

    def test_equal_sources(self):
        """At least 90 % less three standard errors: a source's share has a spread of at most 0.3,
        so 0.3 / sqrt(300) = 1.7 %. At most 97 %, so that intervals are not simply wide. The factor
        covers both traits, so a narrow interval is less than a third of a wide one: truly a fifth,
        but FLOOR is added to both, and effects are shrunk."""
        by_source, by_run, widths = self.cover(lambda draw: 8)
        self.assertGreater(by_source, 0.90 - 3 * 0.017)
        self.assertLess(by_source, 0.97)
        self.assertAlmostEqual(by_run, by_source)  # as many runs each
        self.assertLess(widths['narrow'], widths['wide'] / 3)
        # a normal error of spread sqrt(0.05^2 + 0.03^2) is within 1.645 spreads in 9 of 10 cases
        true = 1.645 * math.hypot(0.05, 0.03)
        self.assertLess(widths['narrow'], 1.6 * true)

    def test_unequal_sources(self):
        """Sizes from 1 to 100: nine of ten of runs, and of sources."""
        by_source, by_run, _ = self.cover(lambda draw: int(10 ** draw.uniform(0, 2)))
        for share in (by_source, by_run):
            self.assertGreater(share, 0.90 - 3 * 0.02)
            self.assertLess(share, 0.97)


FIT = """
some figure              1.05 ->    1.11
dataset            points    before      bias   fitted      bias  by others      bias
s1                     3     6.4 %    -0.1 %     6.4 %    +10.0 %    13.2 %   -10.0 %
s2                     3     1.7 %    -0.5 %     1.7 %    -0.5 %     4.0 %    -0.5 %
kind of run, dataset                     points   target   fitted  by others      bias  limit
s3                     3     6.4 %    -0.1 %     6.4 %    +10.0 %    13.2 %   -10.0 %
"""


class Fit(unittest.TestCase):
    def test_shifts(self):
        found = MADE.shifts(FIT)
        self.assertEqual(sorted(found), ['s1', 's2'])
        self.assertAlmostEqual(found['s1'], math.log(0.9 / 1.1))
        self.assertEqual(found['s2'], 0)

    def test_the_page_has_a_fit(self):
        with open(MADE.PAGE, encoding='utf-8') as file:
            self.assertGreater(len(MADE.shifts(file.read())), 5)


class File(unittest.TestCase):
    """From predictions to the file, and what facts/left-out.json has."""

    def run_script(self, points, exact=None, fit=FIT):
        with tempfile.TemporaryDirectory() as folder:
            path, other, fitted = (os.path.join(folder, name)
                                   for name in ('p.json', 'l.json', 'fit.txt'))
            with open(fitted, 'w', encoding='utf-8') as file:
                file.write(fit)
            for name, document in ((path, {'points': points}), (other, exact or {})):
                with open(name, 'w', encoding='utf-8') as file:
                    json.dump(document, file)
            return subprocess.run([sys.executable, os.path.join(FOLDER, 'left-out-errors.py'), path,
                                   '--left-out', other, '--fit', fitted],
                                  capture_output=True, text=True, check=False)

    def points(self, n=11):
        draw = random.Random(1)
        return [{'id': f's{s}/{i}', 'dataset': f's{s}', 'quality': 'B', 'traits': ['x'] * 11,
                 'step_time_error': draw.gauss(0, 0.1)}
                for s in range(n) for i in range(3)]

    def test_what_counts(self):
        """s0 was refitted without its own runs; s1 and s2 were fitted: the errors of s1 are
        multiplied by 0.9 / 1.1. A run of quality C does not count."""
        points = self.points()
        points.append({**points[5], 'id': 's1/c', 'quality': 'C'})
        done = self.run_script(points, {f's0/{i}': 0.5 for i in range(3)})
        found = json.loads(done.stdout)
        sources = {s['source']: s for s in found['sources']}
        self.assertEqual(sources['s0']['groups'][0]['errors_percent'],
                         [round(100 * math.expm1(0.5), 1)] * 3)
        self.assertEqual([(s, sources[s]['fitted'], sources[s]['left_out'])
                          for s in ('s0', 's1', 's3')],
                         [('s0', True, 'refitted'), ('s1', True, 'shifted'),
                          ('s3', False, 'never fitted')])
        errors = [100 * ((1 + p['step_time_error']) * 0.9 / 1.1 - 1) for p in points[3:6]]
        for a, b in zip(sources['s1']['groups'][0]['errors_percent'], sorted(errors)):
            self.assertAlmostEqual(a, b, delta=0.051)
        self.assertEqual(found['interval']['sources'], 11)
        self.assertEqual(found['interval']['runs'], 33)
        self.assertIn('33 runs of 11 sources, each left out of the fit\n  never fitted: ',
                      done.stderr)
        self.assertIsNone(json.loads(self.run_script(self.points(8)).stdout)['interval']['factor'])

    def test_no_fit(self):
        done = self.run_script(self.points(), fit='nothing')
        self.assertIn('it must be the output of fit-figures.py', done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_another_version(self):
        points = self.points()
        points[0]['traits'] = ['x'] * 8
        done = self.run_script(points)
        self.assertEqual(done.returncode, 1)
        self.assertIn('s0/0 has 8 traits, not 11', done.stderr)

    def test_shipped_file_follows_from_its_errors(self):
        """The model, made again from the errors (one decimal of a percent), is the file's."""
        with open(FACTS, encoding='utf-8') as file:
            document = json.load(file)
        sources = {}
        for source in document['sources']:
            groups = sources.setdefault(source['source'], {})
            for group in source['groups']:
                groups.setdefault(MADE.values_of(group['traits']), []).extend(
                    -math.log1p(e / 100) for e in group['errors_percent'])
        intervals = MADE.Intervals(sources)
        model, stated = intervals.without(), document['interval']
        self.assertAlmostEqual(model.base, stated['centre'], 3)
        self.assertAlmostEqual(model.log_spread, stated['spread'], 1)
        self.assertAlmostEqual(intervals.factor() / stated['factor'], 1, 1)
        self.assertEqual(stated['sources'], len(sources))
        for (trait, value), n in model.counts.items():
            self.assertEqual(stated['effects'][trait][value]['sources'], n)

    def test_writer(self):
        document = {'a': [1, 2], 'b': [{'c': [], 'd': ['x', 'y']}, {'e': None}], 'f': {}}
        out = io.StringIO()
        MADE.write(document, out)
        self.assertEqual(json.loads(out.getvalue()), document)


if __name__ == '__main__':
    unittest.main()

#!/usr/bin/env python3
"""sim advise as users see it: test-advise.py SIM

The same output and file for any number of threads; searches that are limited, interrupted and
continued; wrong input.
"""
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from processes import stretched

SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'

SCENARIO = {
    'schema_version': 1, 'runtime': 'ideal',
    'name': 'gpt',
    'model': {'name': 'gpt', 'parameters': {'layers': 6, 'hidden': 512, 'heads': 8, 'sequence': 512,
                                            'vocabulary': 4096},
              'device': 'v100', 'precision': 'fp16', 'granularity': 'block', 'optimizer': 'adam',
              'batch_size': 32},
    'platform': {'topology': 'dgx1-v100', 'devices': 8, 'memory': '300 MB'},
    'parallel': {'data': 8},
    'schedule': {'kind': 'sequential'},
    'advise': {'context': 1, 'device_price': 3.6},
}


SECONDS = {'s': 1, 'ms': 1e-3, 'us': 1e-6}
BYTES = {'GB': 1e9, 'MB': 1e6, 'kB': 1e3}


class Advise(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix='test-advise-')
        self.addCleanup(self.folder.cleanup)
        with open(self.path('s.json'), 'w', encoding='utf-8') as file:
            json.dump(SCENARIO, file)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def read(self, name):
        with open(self.path(name), 'rb') as file:
            return file.read()

    def command(self, *arguments):
        return [SIM, 'advise', 's.json', *arguments]

    def sim(self, *arguments, status=0):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True,
                              cwd=self.folder.name,
                              check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def test_threads(self):
        first = None
        for jobs in '124':
            out = self.sim('-j', jobs, '-o', 'a.h5').stdout
            first = first or (out, self.read('a.h5'))
            self.assertEqual(first, (out, self.read('a.h5')), jobs)
        self.assertEqual(sorted(os.listdir(self.folder.name)), ['a.h5', 's.json'])

    def test_json(self):
        printed = json.loads(self.sim('--json', '--top', '3').stdout)
        best = printed['best']
        self.assertEqual(len(best), 3)
        self.assertEqual([row['step_time_s'] for row in best],
                         sorted(row['step_time_s'] for row in best))
        plans = printed['plans']
        self.assertEqual(plans['all'], sum(n for key, n in plans.items() if key != 'all'))
        for row in best:
            self.assertEqual(row['over_capacity_bytes'], 0)
            self.assertLessEqual(row['peak_memory_bytes'], 300e6)
            self.assertAlmostEqual(row['cost'], 8 * 3.6 / 3600 * row['step_time_s'], 15)
            self.assertEqual(set(row['if_wrong']),
                             {'links_slower', 'links_faster', 'devices_slower', 'devices_faster'})
        self.assertGreater(printed['own_plan']['step_time_s'], best[0]['step_time_s'])

    def test_strategies(self):
        """Of each strategy the fastest that fits, of all plans."""
        few = ('-s', '/advise/zero=[0, 1]', '-s', '/advise/micro_batch=[2, 4]', '-s',
               '/advise/recompute="full"')
        best = {}
        for row in json.loads(self.sim('--exhaustive', '--json', '--top', '1000',
                                       *few).stdout)['best']:
            best.setdefault(row['strategy'], row['step_time_s'])
        table = self.sim('--top', '1',
                         *few).stdout.split('fastest plan of each strategy')[1].split('\n\n')[0]
        # plans may go on
        lines = [line for line in table.splitlines()[1:] if not line.startswith(' ' * 8)]
        times = sorted(best.values())
        self.assertGreater(len(times), 3)
        self.assertEqual(len(lines), min(10, len(times)))
        for line, time in zip(lines, times):
            self.assertAlmostEqual(float(line.split()[2]), 100 * (time / times[0] - 1), delta=0.051)

    def test_front(self):
        """All points that its caption promises, of all plans, and no others."""
        few = ('-s', '/advise/zero=[0, 1]', '-s', '/advise/micro_batch=[2, 4]', '-s',
               '/advise/recompute="full"')
        plans = json.loads(self.sim('--exhaustive', '--json', '--all', '--top', '1000',
                                    *few).stdout)
        self.assertEqual(len(plans['best']), plans['plans']['simulated'])
        for most in (1.5, 3):
            expected, before = [], float('inf')
            for plan in sorted(plans['best'], key=lambda one: one['step_time_s']):
                late = plan['step_time_s'] > most * plans['best'][0]['step_time_s']
                if not late and plan['peak_memory_bytes'] <= 0.99 * before:
                    before = plan['peak_memory_bytes']
                    expected.append((plan['step_time_s'], before))
            out = self.sim('--top', '1', '-s', f'/advise/front={most}', *few).stdout
            caption = (r"\n\* Pareto front of step time and memory \(up to ([0-9.]+)x the best "
                       r"time; each saves at least 1 % of memory\)\n(.*?)\n\n")
            front = re.search(caption, out, re.DOTALL)
            self.assertEqual(float(front[1]), most)
            shown = [line.split() for line in front[2].splitlines()
                     if not line.startswith(' ' * 8)]
            self.assertGreater(len(expected), 3)
            self.assertEqual(len(shown), len(expected), front[2])
            for words, (time, memory) in zip(shown, expected):
                self.assertAlmostEqual(float(words[0]) * SECONDS[words[1]] / time, 1, 3)
                self.assertAlmostEqual(float(words[2]) * BYTES[words[3]] / memory, 1, 3)

    def test_command_of_the_best(self):
        """The line at the end runs the best plan."""
        out = self.sim('--top', '1').stdout
        command = out.strip().splitlines()[-1]
        self.assertTrue(command.startswith('sim run s.json --set '))
        best = json.loads(self.sim('--json', '--top', '1').stdout)['best'][0]
        done = subprocess.run(f"'{SIM}' {command[4:]} --no-output --json", shell=True,
                              capture_output=True, text=True,
                              cwd=self.folder.name, check=True)
        printed = json.loads(done.stdout)
        self.assertEqual(printed['makespan_s'], best['step_time_s'])
        self.assertEqual(max(d['peak_memory_bytes'] for d in printed['devices']),
                         best['peak_memory_bytes'])

    def test_limits(self):
        out = self.sim('--most', '5').stdout
        self.assertIn('5 simulated', out)
        self.assertRegex(out, r'Incomplete: \d+ plans not evaluated \(the plans of --most '
                              r'were simulated')
        self.assertIn('the budget ended before a plan that fits was found',
                      self.sim('--budget', '1 us', '-s', '/platform/memory=2 MB', status=4).stderr)

    def test_budget(self):
        """It is for all: pricing, search and examination."""
        start = time.monotonic()
        out = self.sim('--exhaustive', '--top', '1000', '--all', '--budget', '1 s', '-j1').stdout
        self.assertLess(time.monotonic() - start, stretched(1.5))
        self.assertIn('(time budget used up)', out)
        self.assertRegex(out, r'\n +1\*? ')

    def test_first_answer(self):
        """Of 27,000 plans on 512 GPUs some fit, and are found within seconds; the rest is
        counted."""
        large = {**SCENARIO, 'model': {
            'name': 'llama', 'parameters': {
                'layers': 80, 'hidden': 8192, 'heads': 64, 'kv_heads': 8, 'intermediate': 28672,
                'vocabulary': 128256, 'sequence': 8192},
            'device': 'h100', 'precision': 'bf16', 'granularity': 'block', 'optimizer': 'adam',
            'batch_size': 512}, 'platform': {'topology': 'dgx-h100', 'devices': 512},
            'parallel': {'data': 512}, 'advise': {}}
        with open(self.path('s.json'), 'w', encoding='utf-8') as file:
            json.dump(large, file)
        budget = stretched(3)
        start = time.monotonic()
        out = self.sim('--top', '1', '--budget', f'{budget} s', '-j2').stdout
        self.assertLess(time.monotonic() - start, 1.05 * budget + stretched(0.5))
        self.assertRegex(out, r'\nIncomplete: \d+ plans not evaluated \(time budget used up\)')
        self.assertRegex(out, r'\n +1\*? ')

    # What each runtime can combine, by its own checks of arguments (docs/reference/runtimes.md):
    # schedules, ZeRO stages without a pipeline and with one.
    RUNTIMES = {
        'megatron-core': ({'sequential', '1f1b', 'interleaved_1f1b'}, {0, 1, 2, 3}, {0, 1}),
        'megatron-lm-2021': ({'sequential', '1f1b', 'interleaved_1f1b'}, {0, 1}, {0, 1}),
        'pytorch-fsdp': ({'sequential'}, {0, 2, 3}, set()),
        'pytorch-ddp': ({'sequential'}, {0, 1}, set()),
        'deepspeed': ({'sequential', '1f1b'}, {0, 1, 2, 3}, {0, 1}),
        'torchtitan': ({'sequential', '1f1b', 'interleaved_1f1b', 'zb_v', 'dualpipe_v'},
                       {0, 2, 3}, {0, 2, 3}),
        'llm-foundry': ({'sequential'}, {0, 2, 3}, set()),
    }

    def test_runtimes(self):
        """No plan that the runtime cannot run is proposed; all excluded plans are counted."""
        few = ('-s', '/advise/osdp=false', '-s', '/advise/recompute="full"', '-s',
               '/platform/memory=16 GB')
        ideal = json.loads(self.sim('--json', *few).stdout)
        self.assertEqual(ideal['left_out'], [])
        for runtime, (schedules, alone, piped) in self.RUNTIMES.items():
            found = json.loads(self.sim('--json', '--all', '--top', '1000', '--exhaustive', *few,
                                        '-s', f'/runtime="{runtime}"').stdout)
            seen = {'alone': set(), 'piped': set(), 'schedules': set()}
            for row in found['best']:
                parallel, schedule = row['changes']['/parallel'], row['changes']['/schedule']
                is_piped = parallel['pipeline'] > 1
                seen['schedules'].add(schedule['kind'])
                if parallel['data'] > 1:
                    seen['piped' if is_piped else 'alone'].add(parallel['zero'])
                if schedule['kind'] == 'interleaved_1f1b' and 'megatron' in runtime:
                    self.assertEqual(schedule['micro_batches'] % parallel['pipeline'], 0)
            self.assertEqual(seen, {'alone': alone, 'piped': piped, 'schedules': schedules},
                             runtime)
            left_out = sum(each['plans'] for each in found['left_out'])
            self.assertGreater(left_out, 0)
            self.assertEqual(found['plans']['all'] + left_out, ideal['plans']['all'], runtime)
        out = self.sim(*few, '-s', '/runtime="megatron-core"').stdout
        self.assertRegex(out, r'\n\d+ more plans left out, which megatron-core cannot run:\n')

    def test_warns_of_what_the_runtime_cannot_run(self):
        """`sim check` does, of the scenario's own plan."""
        plans = {  # parallel, schedule: the runtimes that cannot run it
            '{"data": 2, "pipeline": 4, "zero": 2}': ('1f1b', {'megatron-core', 'deepspeed',
                                                               'megatron-lm-2021', 'pytorch-fsdp',
                                                               'pytorch-ddp', 'llm-foundry'}),
            '{"data": 4, "pipeline": 2, "zero": 1}': ('zb_h1', set(self.RUNTIMES)),
            '{"data": 4, "tensor": 2}': ('sequential', {'pytorch-ddp'}),
            '{"data": 8, "zero": 1}': ('sequential', {'pytorch-fsdp', 'torchtitan',
                                                      'llm-foundry'}),
        }
        for parallel, (kind, refusing) in plans.items():
            for runtime in ('ideal', *self.RUNTIMES):
                schedule = '{"kind": "%s"%s}' % (kind, '' if kind == 'sequential'
                                                 else ', "micro_batches": 8')
                done = subprocess.run(
                    [SIM, 'check', 's.json', '-s', f'/parallel={parallel}', '-s',
                     f'/schedule={schedule}', '-s', f'/runtime="{runtime}"', '-s',
                     '/platform/memory=16 GB'], capture_output=True, text=True,
                    cwd=self.folder.name, check=True)
                self.assertEqual(f'{runtime} cannot run this plan: it ' in done.stderr,
                                 runtime in refusing, (runtime, parallel, done.stderr))

    def test_alike(self):
        """A row is the best of the plans that differ from it in details; with --all each plan is a
        row."""
        def sizes(row):
            changes = row['changes']
            return json.dumps([changes['/model/recompute'],
                               changes.get('/model/recompute_operators'),
                               {key: changes['/parallel'][key] for key in
                               ('tensor', 'context', 'pipeline', 'data', 'expert', 'zero')}],
                              sort_keys=True)
        few = ('-s', '/advise/zero=[0, 1]', '--json')
        rows, seen = json.loads(self.sim('--exhaustive', '--all', '--top', '1000',
                                         *few).stdout)['best'], set()
        best = [row for row in rows if not (sizes(row) in seen or seen.add(sizes(row)))]
        self.assertLess(2 * len(best), len(rows))
        found = json.loads(self.sim('--top', '6', *few).stdout)['best']
        self.assertEqual([row['changes'] for row in found], [row['changes'] for row in best[:6]])

    def test_selective(self):
        """Norms, activations, products of elements; attention if it keeps its matrix; results of
        the scenario lists comes first."""
        def operators(*changes):
            given = ('-s', '/advise/recompute="selective"', '-s', '/platform/memory=16 GB')
            best = json.loads(self.sim('--top', '1', '--json', *given, *changes).stdout)['best'][0]
            return set(best['changes'].get('/model/recompute_operators', ()))
        gpt = {'ln_1', 'ln_2', 'ln_f', 'act'}
        self.assertEqual(operators(), gpt)
        self.assertEqual(operators('-s', '/model/parameters/attention=math'), gpt | {'attention'})
        llama = {'name': 'llama', 'parameters': {'layers': 6, 'hidden': 512, 'heads': 8,
                                                 'kv_heads': 8, 'intermediate': 1024,
                                                 'sequence': 512, 'vocabulary': 4096}}
        self.assertEqual(operators('-s', '/model=' + json.dumps({**SCENARIO['model'], **llama})),
                         {'input_layernorm', 'post_attention_layernorm', 'norm', 'act', 'mul'})
        # as the scenario has it
        self.assertEqual(operators('-s', '/model/recompute_operators=["mlp"]'), set())

    def test_columns(self):
        """Lines have 100 columns at most, except for the command at the end; values that rows share
        stands above them."""
        for few, head_of, common in (((), '', ''), (('-s', '/advise/recompute="full"'), 'recompute',
                                                    'recomputing: full'),
                                     (('-s', '/advise/pipeline=2', '--all', '--top', '40'), ' pp ',
                                      'pipeline 2')):
            lines = self.sim(*few).stdout.splitlines()
            self.assertTrue(lines[-1].startswith('sim run '))
            self.assertEqual(
                [line for line in lines[:-1] if len(line) > 100 or line != line.rstrip()], [])
            head = next(line for line in lines if line.startswith('rank   step'))
            if few:
                self.assertNotIn(head_of, head)
                self.assertIn(
                    common, next(line for line in lines if line.startswith('all of these: ')))

    def test_own_plan_impossible(self):
        """Others are tried all the same, with a file too; errors outside of the plan are an
        error."""
        whole = self.sim('--top', '2').stdout
        for wrong, message in (('/schedule/micro_batches=3',
                                '/model/batch_size: must be a multiple of 24'),
                               ('/parallel/data=3', '/parallel/data: needs 3 devices'),
                               ('/schedule/kind=1f1c', '/schedule/kind: unknown schedule "1f1c"')):
            for more in ((), ('-o', 'a.h5')):
                out = self.sim('--top', '2', '-s', wrong, *more).stdout
                self.assertIn(f"\nyour plan is impossible: s.json: {message}", out)
                self.assertEqual(out[:out.index('\nyour plan')], whole[:whole.index('\nyour plan')])
        err = self.sim('-s', '/schedule/micro_batches=3', '-s', '/model/hidden=4', status=3).stderr
        self.assertIn('/model: unknown key "hidden"', err)
        err = self.sim('-s', '/parallel/tensr=2', status=3).stderr  # in all plans
        self.assertIn('/parallel: unknown key "tensr"', err)

    def test_nothing_fits(self):
        done = self.sim('-s', '/platform/memory=2 MB', status=4)
        self.assertIn('no plan fits', done.stdout)
        self.assertIn(': no plan fits\n', done.stderr)
        out = self.sim('-s', '/platform/memory=2 MB', '--exhaustive', '--most', '40').stdout
        self.assertIn('no plan fits', out)
        self.assertRegex(out, r'fastest that does not fit: .*, .* over: ')

    def test_interrupted_and_resumed(self):
        whole = self.sim('--exhaustive', '-o', 'whole.h5').stdout
        with subprocess.Popen(self.command('--exhaustive', '-o', 'a.h5', '-j1'),
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.folder.name) as process:
            journal = self.path('a.h5.journal')
            until = time.monotonic() + 60
            while time.monotonic() < until and not (os.path.exists(journal)
                                                    and os.path.getsize(journal) > 5000):
                time.sleep(0.002)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            out, err = process.communicate(timeout=120)
            taken = time.monotonic() - start
        self.assertEqual(process.returncode, 130, err)
        self.assertLess(taken, stretched(1))
        self.assertRegex(out, r'Incomplete: \d+ plans not evaluated \(interrupted\)')
        self.assertRegex(out, r'\n +1\*? ')
        self.assertFalse(os.path.exists(self.path('a.h5')))
        self.assertIn('this search has already begun',
                      self.sim('--exhaustive', '-o', 'a.h5', status=2).stderr)
        again = self.sim('--exhaustive', '-o', 'a.h5', '--resume').stdout
        self.assertEqual(again, whole)
        self.assertEqual(self.read('a.h5'), self.read('whole.h5'))
        self.assertFalse(os.path.exists(self.path('a.h5.journal')))

    def test_brute_force(self):
        """The best plan is the best of all plans that a user would write down, each run
        separately."""
        gpt = {'name': 'gpt', 'parameters': {'layers': 6, 'hidden': 512, 'heads': 8,
                                             'sequence': 512,
                                             'vocabulary': 4096}}
        experts = {'name': 'mixtral', 'parameters': {'layers': 6, 'hidden': 256, 'heads': 4,
                                                     'kv_heads': 4,
                                                     'expert_intermediate': 512, 'sequence': 256,
                                                     'vocabulary': 1024,
                                                     'experts': 4}}
        best, over, left_out = set(), set(), 0
        for model, bandwidth, memory in ((gpt, '2 GB/s', '180 MB'), (gpt, '2 GB/s', '250 MB'),
                                         (experts, '50 GB/s', '16 GB')):
            scenario = {'schema_version': 1, 'runtime': 'ideal', 'name': 'small',
                        'model': {**model, 'device': 'v100', 'precision': 'fp16',
                                  'granularity': 'block',
                                  'optimizer': 'adam', 'batch_size': 16},
                        'platform': {'topology': 'nvlink_switch', 'devices': 4,
                                     'bandwidth': bandwidth,
                                     'latency': '5 us', 'memory': memory},
                        'parallel': {}, 'schedule': {'kind': 'sequential'},
                        'advise': {'tensor': [1, 2], 'context': 1, 'expert': 1, 'pipeline': [2, 4],
                                   'zero': [0, 1, 3],
                                   'micro_batch': [1, 2], 'inner': 'data', 'stages_per_device': 2,
                                   'recompute': ['none', 'full']}}
            with open(self.path('s.json'), 'w', encoding='utf-8') as file:
                json.dump(scenario, file)
            found = json.loads(self.sim('--json', '--top', '1').stdout)
            tried = {plan: self.run_plan(scenario, plan) for plan in self.all_plans(scenario)}
            times = {plan: time for plan, time in tried.items() if time is not None}
            fastest = min(times, key=times.get)
            self.assertEqual(found['best'][0]['step_time_s'], times[fastest],
                             (fastest, found['best'][0]['plan']))
            self.assertEqual(found['plans']['all'], len(tried), tried)
            left_out += found['plans']['slower'] + found['plans']['too large']
            best.add(fastest[0])
            over.add(len(tried) > len(times))
        self.assertIn('dualpipe_v', best)
        self.assertEqual(over, {True, False})
        self.assertGreater(left_out, 0)

    @staticmethod
    def all_plans(scenario):
        """(schedule, tensor, pipeline, data, zero, samples of a micro-batch, recompute) on four
        devices."""
        layers = scenario['model']['parameters']['layers'] + 2  # the embedding, and the head
        for kind, tensor, pipeline, zero, samples, recompute in itertools.product(
                ('1f1b', 'interleaved_1f1b', 'zb_h1', 'zb_v', 'dualpipe_v', 'hanayo'), (1, 2),
                (2, 4), (0, 1, 3), (1, 2), (False, True)):
            data = 4 // tensor // pipeline
            stages = pipeline * (1 if kind in ('1f1b', 'zb_h1') else 2)
            if data == 0 or (data == 1 and zero > 0) or stages > layers or \
                    (kind == 'dualpipe_v' and 16 // data // samples < stages):
                continue
            yield kind, tensor, pipeline, data, zero, samples, recompute

    def run_plan(self, scenario, plan):
        """Seconds of its step; None where it does not fit."""
        kind, tensor, pipeline, data, zero, samples, recompute = plan
        parallel = {'tensor': tensor, 'pipeline': pipeline, 'data': data, 'zero': zero,
                    'sequence_parallel': tensor > 1, 'bucket': '25 MiB',
                    'order': ['tensor', 'space', 'context', 'data', 'pipeline']}
        schedule = {'kind': kind, 'micro_batches': 16 // data // samples,
                    **({'stages_per_device': 2} if kind == 'interleaved_1f1b' else {}),
                    **({'waves': 1} if kind == 'hanayo' else {})}
        with open(self.path('plan.json'), 'w', encoding='utf-8') as file:
            json.dump({**scenario, 'iterations': 1, 'collectives': {'fidelity': 'analytic'},
                       'parallel': parallel,
                       'schedule': schedule,
                       'model': {**scenario['model'], 'recompute': recompute}}, file)
        done = subprocess.run([SIM, 'run', 'plan.json', '--no-output', '--json'],
                              capture_output=True, text=True,
                              cwd=self.folder.name, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = json.loads(done.stdout)
        return None if printed['out_of_memory'] else printed['makespan_s']

    def test_picture(self):
        self.sim('-o', 'a.h5', '--set', '/advise/devices=[2, 4, 8]')
        done = subprocess.run([SIM, 'plot', 'a.h5', '-k', 'plans', '-o', 'a.svg'],
                              capture_output=True, text=True,
                              cwd=self.folder.name, check=False)
        if 'cannot start gnuplot' in done.stderr:
            self.skipTest('gnuplot is not there')
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.read('a.svg').decode()
        for word in ('gpt: plans', 'samples/s', 'peak memory of a device'):
            self.assertIn(word, text)

    def test_wrong_input(self):
        cases = [
            (['-s', '/advise/tenso=2'], 3,
             r's\.json: /advise: unknown key "tenso"; did you mean "tensor"\?'),
            (['-s', '/advise/zero=[0, 4]'], 3, r's\.json: /advise/zero/1: must be from 0 to 3'),
            (['-s', '/advise/schedules="dapple"'], 3,
             r's\.json: /advise/schedules: unknown value "dapple"; (did you mean "\w+"\? )?'
             r'known: sequential, gpipe, 1f1b'),
            (['-s', '/parallel=[0, 1]'], 3,
             r's\.json: /parallel: must be an object \(got an array\)'),
            (['-s', '/schedule=[0, 1]'], 3,
             r's\.json: /schedule: must be an object \(got an array\)'),
            (['-s', '/model=[0, 1]'], 3, r's\.json: /model: must be an object \(got an array\)'),
            (['-s', '/model/name=gpd'], 3, r's\.json: /model/name: '),
            (['--budget', '30 q'], 2, r'--budget: unknown unit "q"'),
            (['--top', '0'], 2, r'--top must be from 1 to 1000'),
            (['--resume'], 2, r'--resume goes with --output'),
            (['-o', 'a.svg'], 2, r'--output a.svg: must end in'),
        ]
        for arguments, status, message in cases:
            err = self.sim(*arguments, status=status).stderr
            self.assertRegex(err, message)
            self.assertEqual(len(err.splitlines()), 1, err)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[1:])

#!/usr/bin/env python3
"""sim import run as users see it: test-run-descriptions.py SIM ROOT

A run description and a measured point with the same description have the same scenario, byte for
byte. Effects of keys, unknown frameworks, files of one's own, wrong input.
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(sys.argv.pop(2))
SIM = os.path.abspath(sys.argv.pop(1))
MEASUREMENT = ('id', 'measured', 'quality', 'unknown', 'features', 'peers')
EACH = 1 if os.environ.get('SIM_SANITIZED') else 4  # points of a file


def sim(*arguments, status=0, text=None):
    done = subprocess.run([SIM, *arguments], input=text, capture_output=True, text=True,
                          check=False)
    if done.returncode != status:
        raise AssertionError(f'{arguments}: status {done.returncode}\n{done.stderr}')
    return done


def merged(own, common):
    """What the points of a file share and one of them does not state."""
    made = dict(common)
    for key, value in own.items():
        both = isinstance(value, dict) and isinstance(common.get(key), dict)
        made[key] = merged(value, common[key]) if both else value
    return made


def shipped():
    for path in sorted(glob.glob(os.path.join(ROOT, 'facts', 'points', '*.json'))):
        with open(path, encoding='utf-8') as file:
            document = json.load(file)
        points = document['points']
        for point in points[::max(1, len(points) // EACH)]:
            yield path, merged(point, document.get('common', {}))


def described(point):
    run = {key: value for key, value in point.items() if key not in MEASUREMENT}
    return {'schema': 'run/1', 'name': point['id'], **run}


RUN = {'schema': 'run/1', 'name': 'r',
       'model': {'kind': 'decoder', 'layers': 4, 'hidden': 256, 'heads': 4, 'ffn': 1024,
                 'vocab': 1000, 'seq': 128, 'act': 'swiglu', 'norm': 'rmsnorm', 'pos': 'rope'},
       'hardware': {'gpu': 'h100', 'gpus': 2}, 'parallel': {'dp': 2},
       'batch': {'global': 8, 'micro': 1}, 'precision': 'bf16', 'framework': 'torchtitan'}


def changed(**members):
    return json.dumps(merged(members, RUN))


def said(stderr, head):
    """{key: text}"""
    return dict(re.findall(rf'{head}: (\S+?)[:;] (.*)', stderr))


class Descriptions(unittest.TestCase):
    def test_same_as_points(self):
        """The file of points, the description alone, and sim validate: the same bytes."""
        n = 0
        for path, point in shipped():
            expected = subprocess.run([SIM, 'validate', '--scenario', point['id']],
                                      capture_output=True, text=True, check=False)
            name = re.sub(r'([][*?\\])', r'\\\1', point['id'])
            with self.subTest(point['id']):
                if expected.returncode != 0:
                    text = json.dumps(described(point))
                    refused = sim('import', 'run', '-', status=1, text=text)
                    self.assertEqual(expected.stderr, refused.stderr)
                    continue
                got = sim('import', 'run', '-', text=json.dumps(described(point)))
                self.assertEqual(expected.stdout, got.stdout)
                if ',' not in name:
                    got = sim('import', 'run', path, '--select', f'id={name}')
                    self.assertEqual(expected.stdout, got.stdout)
                n += 1
        self.assertGreater(n, 7 * EACH)

    def test_says_what_keys_do(self):
        told = sim('import', 'run', '-', text=changed(
            parallel={'tp': 1}, options={'moe_dispatcher': 'flex', 'compil': True, 'dropout': 0.1},
            model={'params': 7e9})).stderr
        understood = said(told, 'understood')
        self.assertEqual('/model/parameters/intermediate', understood['/model/ffn'])
        self.assertIn('/runtime/name', understood['/framework'])
        self.assertEqual('required', understood['/precision'])
        without = said(told, 'without effect here')
        # Llama has no dropout, this network no experts, and one tensor-parallel rank is the default
        self.assertEqual({'/options/dropout', '/options/moe_dispatcher', '/parallel/tp'},
                         set(without))
        self.assertEqual('did you mean compile?', said(told, 'not understood')['/options/compil'])
        self.assertIn('not understood: /model/params\n', told)

    def test_names_mean_nothing(self):
        name = {'name': 'llama3-70b'}
        self.assertEqual(sim('import', 'run', '-', text=changed(model=name)).stdout,
                         sim('import', 'run', '-', text=changed()).stdout)

    def test_unknown_framework(self):
        """It is the usual one of the axes, which is said; never one without conventions."""
        for parallel, runtime in (({'dp': 2}, 'pytorch-ddp'),
                                  ({'dp': 2, 'zero': 3}, 'pytorch-fsdp'),
                                  ({'dp': 1, 'tp': 2}, 'megatron-core')):
            for framework in ('my trainer', None):
                with self.subTest(parallel=parallel, framework=framework):
                    got = sim('import', 'run', '-',
                              text=changed(parallel=parallel, framework=framework))
                    self.assertEqual(runtime, json.loads(got.stdout)['runtime']['name'])
                    self.assertIn('no framework is stated' if framework is None else
                                  'no runtime is known as "my trainer"', got.stderr)

    def test_own_files(self):
        """A device and a runtime in files of one's own decide the same as those in the program."""
        def scenario(gpu, framework, folder=None):
            text = changed(hardware={'gpu': gpu, 'machine': 'dgx-h100'}, framework=framework,
                           options={'offload': False})
            done = subprocess.run([SIM, 'import', 'run', '-'], input=text, capture_output=True,
                                  text=True, cwd=folder, check=True)
            return json.loads(done.stdout)

        with tempfile.TemporaryDirectory() as folder:
            for name, like in (('gpu', 'h100'), ('mine', 'torchtitan')):
                with open(os.path.join(folder, name + '.json'), 'w', encoding='utf-8') as file:
                    json.dump({'schema_version': 1, 'name': name, 'title': name, 'like': like},
                              file)
            got = scenario('gpu.json', 'mine.json', folder)
            self.assertEqual(('gpu.json', 'mine.json'),
                             (got['model']['device'], got['runtime']['name']))
            got['model']['device'], got['runtime']['name'] = 'h100', 'torchtitan'
            self.assertEqual(scenario('h100', 'torchtitan'), got)

    def test_wrong_input(self):
        rows = [('run.json: /schema: must be "run/1"', {'schema': 'run/2'}, 3),
                ('/hardware/gpus: must be', {'hardware': {'gpus': 'two'}}, 3),
                ('/options/fp8_weights: must be alone, copies or cast (got x)',
                 {'options': {'fp8_weights': 'x'}}, 3),
                ('r cannot be expressed; it needs: stated: a mesh of as many ranks as GPUs',
                 {'hardware': {'gpus': 4}}, 1),
                ('the device gpu-9', {'hardware': {'gpu': 'gpu-9'}}, 1)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'run.json')
            for message, members, status in rows:
                with self.subTest(message):
                    with open(path, 'w', encoding='utf-8') as file:
                        file.write(changed(**members))
                    self.assertIn(message, sim('import', 'run', path, status=status).stderr)
            points = os.path.join(ROOT, 'facts', 'points', 'torchtitan.json')
            self.assertIn("14 points; choose one, such as --select 'id=",
                          sim('import', 'run', points, status=2).stderr)
            self.assertIn('run has no option --batch',
                          sim('import', 'run', path, '--batch', '4', status=2).stderr)

    def test_misspelt_sections(self):
        run = {('modle' if key == 'model' else key): value for key, value in RUN.items()}
        run = merged({'options': {'accumulate': 1}, 'xyz': 1}, run)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'run.json')
            with open(path, 'w', encoding='utf-8') as file:
                json.dump(run, file)
            told = sim('import', 'run', path, status=3).stderr
            self.assertIn('missing key "model"', told)
            self.assertIn('/modle: unknown key; did you mean "model"?', told)
            self.assertIn('/xyz: unknown key\n', told)
            with open(path, 'w', encoding='utf-8') as file:
                file.write(changed(options={'accumulate': 1}))
            self.assertIn('/options/accumulate: must be true or false',
                          sim('import', 'run', path, status=3).stderr)


if __name__ == '__main__':
    unittest.main()

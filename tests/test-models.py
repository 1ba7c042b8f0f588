#!/usr/bin/env python3
"""The files of facts/families and facts/models, and users' own: test-models.py SIM SOURCE_ROOT.

The program counts as many parameters as a model's source publishes: exactly, or within the rounding
that the file states. All models have a source. A user's file is as good as one of these.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile
import unittest

SIM, ROOT = [os.path.abspath(word) for word in sys.argv[1:3]]


def load(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def sim(*words):
    return subprocess.run([SIM, *words], capture_output=True, text=True, check=False)


def folder_of(name):
    return sorted(glob.glob(os.path.join(ROOT, 'facts', name, '*.json')))


class Models(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, value):
        path = os.path.join(self.folder.name, name)
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(value, file)
        return path

    def count(self, *words):
        done = sim('model', *words, '--json')
        self.assertEqual(done.returncode, 0, f'{words}: {done.stderr}')
        return json.loads(done.stdout)['parameters']

    def test_families(self):
        for path in folder_of('families'):
            family = load(path)
            self.assertEqual(family['name'] + '.json', os.path.basename(path))
            self.assertTrue(family['source'] and family['summary'], path)
            self.assertGreater(self.count(family['name']), 0, path)

    def test_published_numbers(self):
        n = 0
        for path in folder_of('models'):
            model = load(path)
            self.assertEqual(model['name'] + '.json', os.path.basename(path))
            self.assertTrue(model['source'] and model['summary'], path)
            if 'published' not in model:
                continue
            published = model['published']
            self.assertTrue(published['source'], path)
            counted, within = self.count(model['name']), published.get('within', 0)
            self.assertLessEqual(within, 0.005, path)
            self.assertLessEqual(abs(counted - published['parameters']),
                                 within * published['parameters'],
                                 f'{model["name"]}: {counted} parameters, published '
                                 f'{published["parameters"]}')
            n += 1
        self.assertGreater(n, 40)

    def test_types_have_sources(self):
        for path in folder_of('model-types'):
            of = load(path)
            self.assertEqual(of['name'] + '.json', os.path.basename(path))
            self.assertIn('Config', of['source'], path)

    def test_aliases(self):
        """Names as people write them: parameters of the model that is meant."""
        for written, name in (('meta-llama/Meta-Llama-3-8B', 'llama3-8b'),
                              ('Llama-3.2-1B', 'llama3.2-1b'), ('Qwen/Qwen2.5-7B', 'qwen2.5-7b'),
                              ('DeepSeek-V3', 'deepseek-v3'), ('GPT-3 175B', 'gpt3-175b')):
            self.assertEqual(self.count(written), self.count(name), written)

    def test_parameters_override(self):
        """Two layers of Llama-3 8B: embedding and head of 128256 x 4096, and per layer attention
        2 * 4096 * (4096 + 1024), MLP 3 * 4096 * 14336, two norms; the last norm."""
        self.assertEqual(self.count('llama3-8b', '-p', 'layers=2'),
                         2 * 128256 * 4096 + 4096
                         + 2 * (2 * 4096 * 5120 + 3 * 4096 * 14336 + 2 * 4096))

    def test_own_file(self):
        """A model and a model_type of the user's own."""
        path = self.write('own.json', {'name': 'own', 'like': 'llama3-8b',
                                       'parameters': {'layers': 2}})
        self.assertEqual(self.count(path), self.count('llama3-8b', '-p', 'layers=2'))
        self.write('type.json', {'name': 'novel', 'like': 'llama',
                                 'keys': {'hidden_size': None, 'width': 'hidden'}})
        sizes = {'num_hidden_layers': 2, 'num_attention_heads': 32, 'vocab_size': 1000,
                 'num_key_value_heads': 8, 'intermediate_size': 14336}
        config = self.write('config.json', {'model_type': 'type.json', 'width': 4096, **sizes})
        known = self.write('known.json', {'model_type': 'llama', 'hidden_size': 4096, **sizes})
        self.assertEqual(self.count(config), self.count(known))

    def test_wrong_files(self):
        rows = [
            ({'name': 'm', 'like': 'llama3-9b'}, '/like: unknown model "llama3-9b"'),
            ({'name': 'm', 'family': 'decoders'},
             '/family: unknown model "decoders"; did you mean "decoder"?'),
            ({'name': 'm', 'family': 'decoder', 'parameters': {'layer': 2}},
             '/parameters: unknown key "layer"; did you mean "layers"?'),
            ({'name': 'm', 'family': 'decoder', 'parameters': {'layers': 0}},
             '/parameters/layers: must be from 1 to 4096 (got 0)'),
            ({'family': 'decoder'}, 'missing key "name"'),
            ({'name': 'm', 'family': 'decoder', 'parametres': {}}, 'unknown key "parametres"'),
        ]
        for model, message in rows:
            path = self.write('m.json', model)
            done = sim('model', path)
            self.assertEqual(done.returncode, 3, model)
            self.assertIn('m.json', done.stderr)
            self.assertIn(message, done.stderr.replace('m.json: ', ''))

    def test_wrong_types(self):
        sizes = {'num_hidden_layers': 2, 'num_attention_heads': 4, 'vocab_size': 10,
                 'hidden_size': 64, 'intermediate_size': 64}
        rows = [
            ({'name': 't', 'like': 'lama'}, '/like: unknown model_type "lama"'),
            ({'name': 't'}, '/family: '),
            ({'name': 't', 'like': 'llama', 'keys': {'vocab_size': 'words'}},
             '/keys/vocab_size: "words" is not a key of the family "decoder"'),
            ({'name': 't', 'like': 'llama', 'parameters': {'bias_in': 'none'}},
             '/parameters/bias_in: unknown value "none"'),
        ]
        for of, message in rows:
            self.write('t.json', of)
            done = sim('model', self.write('config.json', {'model_type': 't.json', **sizes}))
            self.assertEqual(done.returncode, 3, of)
            self.assertIn(message, done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

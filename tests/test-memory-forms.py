#!/usr/bin/env python3
"""Memory of whole models by category, compared with closed forms: test-memory-forms.py SIM

Weights, sums of gradients and states are counts of parameters times bytes over the devices that
divide them; activations of Llama are counted tensor by tensor, of GPT with attention by math
by Korthikanti et al., Reducing Activation Recomputation in Large Transformer Models (MLSys 2023,
arXiv 2205.05198), equations 1 to 4.
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'

WORDS = 128256
LLAMA_8B = {'layers': 32, 'hidden': 4096, 'heads': 32, 'kv_heads': 8, 'intermediate': 14336}
LLAMA_70B = {'layers': 80, 'hidden': 8192, 'heads': 64, 'kv_heads': 8, 'intermediate': 28672}
TOKENS = 8192
SAME = 1e-3  # of norms and rounded statistics, which forms leave out


def run(model, parallel, devices, micro_batches=1, **other):
    """One sequence a micro-batch and replica, in bf16 with Adam and gradients in float32."""
    name = other.pop('name', 'llama')
    schedule = '1f1b' if parallel.get('pipeline', 1) > 1 else 'sequential'
    sequences = other.pop('sequences', 1)
    scenario = {
        'schema_version': 1, 'runtime': 'ideal', 'name': 'form',
        'model': {'name': name, 'parameters': {'sequence': TOKENS, 'vocabulary': WORDS, **model},
                  'device': 'h100',
                  'precision': 'bf16', 'granularity': 'block', 'optimizer': 'adam',
                  'gradients': 'fp32',
                  'batch_size': sequences * parallel.get('data', 1) * micro_batches, **other},
        'platform': {'topology': 'dgx-h100', 'devices': devices},
        'collectives': {'fidelity': 'analytic'},
        'parallel': {**parallel, **({'accumulate': False} if parallel.get('zero', 0) > 1 else {})},
        'memory': {'fused': ['norm', 'swiglu', 'linear']},
        'schedule': {'kind': schedule, 'micro_batches': micro_batches}}
    with tempfile.TemporaryDirectory(prefix='test-memory-') as folder:
        path = os.path.join(folder, 'form.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(scenario, file)
        done = subprocess.run([SIM, 'run', path, '--no-output', '--json'], capture_output=True,
                              text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)['devices'][0]


def key_features(m):
    return m['hidden'] // m['heads'] * m['kv_heads']


def block(m):
    """Queries and what follows attention h x h each, keys and values, three matrices of the MLP,
    two norms."""
    h = m['hidden']
    return 2 * h * h + 2 * h * key_features(m) + 3 * h * m['intermediate'] + 2 * h


def parameters(m):
    return m['layers'] * block(m) + 2 * WORDS * m['hidden'] + m['hidden']


def kept_by_block(m):
    """Of a token, 2 bytes a feature: what each norm reads and makes, queries, keys, values,
    attention's result with a float32 for each head, gate and up, their product; a float32 for each
    norm."""
    h = m['hidden']
    return 2 * (2 * h + 2 * h + 2 * h + 2 * key_features(m)
                + 3 * m['intermediate']) + 4 * m['heads'] + 2 * 4


def kept(m):
    """Blocks, input and result of the last norm, and logarithms in float32."""
    return TOKENS * (m['layers'] * kept_by_block(m) + 2 * 2 * m['hidden'] + 4 + 4 * WORDS)


class Forms(unittest.TestCase):
    def expect(self, name, device, **forms):
        for category, form in forms.items():
            got = device['category_peak_bytes'][category]
            self.assertAlmostEqual(got / form, 1, delta=SAME,
                                   msg=f'{name}: {category}: {got:.0f}, form {form:.0f}')

    def test_zero(self):
        """States over 8 devices from stage 1 on, gradients from 2 on, weights at 3. Gradients that
        are still being reduced do not belong to the share: gradients must be no less."""
        all_of = parameters(LLAMA_8B)
        for zero in range(4):
            device = run(LLAMA_8B, {'data': 8, 'zero': zero}, 8)
            self.expect(f'zero {zero}', device, weights=2 * all_of / (8 if zero == 3 else 1),
                        activations=kept(LLAMA_8B),
                        optimizer_states=12 * all_of / (8 if zero > 0 else 1))
            share = 4 * all_of / (8 if zero > 1 else 1)
            got = device['category_peak_bytes']['gradients']
            in_flight = 4 * (block(LLAMA_8B) + WORDS * LLAMA_8B['hidden']) if zero > 1 else 0
            self.assertLessEqual(share * (1 - SAME), got)
            self.assertLessEqual(got, (share + in_flight) * (1 + SAME))

    def test_fsdp_of_70_billion(self):
        """With full recomputation a block keeps its input, of 2 bytes per feature; everything after
        the last runs once."""
        states = parameters(LLAMA_70B) / 64
        self.expect('none', run(LLAMA_70B, {'data': 64, 'zero': 3}, 64), weights=2 * states,
                    optimizer_states=12 * states, activations=kept(LLAMA_70B))
        self.expect('full', run(LLAMA_70B, {'data': 64, 'zero': 3}, 64, recompute=True),
                    weights=2 * states,
                    activations=80 * (2 * TOKENS * LLAMA_70B['hidden'] - kept_by_block(LLAMA_70B)
                                      * TOKENS)
                    + kept(LLAMA_70B))

    def test_divided_sequences_and_features(self):
        all_of = parameters(LLAMA_8B)
        self.expect('context', run(LLAMA_8B, {'data': 2, 'context': 4, 'zero': 1}, 8),
                    weights=2 * all_of,
                    gradients=4 * all_of, optimizer_states=12 * all_of / 8,
                    activations=kept(LLAMA_8B) / 4)
        self.expect('tensor', run(LLAMA_8B, {'tensor': 8, 'sequence_parallel': True}, 8),
                    weights=2 * all_of / 8,
                    gradients=4 * all_of / 8, optimizer_states=12 * all_of / 8,
                    activations=kept(LLAMA_8B) / 8)

    def test_first_stage(self):
        """Of 4 stages the first keeps 4 micro-batches; it has the embedding and 8 blocks."""
        device = run(LLAMA_8B, {'pipeline': 4, 'tensor': 2, 'sequence_parallel': True}, 8,
                     micro_batches=8)
        self.expect('pipeline', device, activations=4 * 8 * TOKENS * kept_by_block(LLAMA_8B) / 2,
                    weights=2 * (8 * block(LLAMA_8B) + WORDS * LLAMA_8B['hidden']) / 2)

    def test_adapters(self):
        """Rank 16 on four products: 16 times the sizes of input and output."""
        h, features = LLAMA_8B['hidden'], key_features(LLAMA_8B)
        trained = 32 * 16 * (2 * (h + h) + 2 * (h + features))
        lora = {'rank': 16, 'targets': ['q_proj', 'k_proj', 'v_proj', 'o_proj']}
        self.expect('lora', run(LLAMA_8B, {'data': 8}, 8, lora=lora),
                    weights=2 * (parameters(LLAMA_8B) + trained),
                    gradients=4 * trained, optimizer_states=12 * trained)

    def test_experts(self):
        """Mixtral 8x7B on 8 devices with an expert each, which nobody else has: states of the rest
        are divided."""
        layers, h, features, inner, words = 32, 4096, 1024, 14336, 32000
        dense = layers * (2 * h * h + 2 * h * features + 2 * h + 8 * h) + 2 * words * h + h
        experts = layers * 3 * h * inner
        model = {'layers': layers, 'hidden': h, 'heads': 32, 'kv_heads': 8, 'sequence': 4096,
                 'vocabulary': words,
                 'experts': 8, 'top_k': 2, 'expert_intermediate': inner}
        device = run(model, {'data': 8, 'expert': 8, 'zero': 1}, 8, name='mixtral')
        self.expect('experts', device, weights=2 * (dense + experts),
                    gradients=4 * (dense + experts),
                    optimizer_states=12 * (dense / 8 + experts))

    def test_korthikanti(self):
        """L s b h (34 + 5 a s / h) / t, the embedding's dropout, the input of the last norm and
        makes, and logarithms."""
        layers, s, b, h, a, words = 8, 1024, 2, 2048, 16, 51200
        model = {'layers': layers, 'hidden': h, 'heads': a, 'intermediate': 4 * h, 'sequence': s,
                 'vocabulary': words,
                 'dropout': 0.1, 'attention': 'math'}
        for t in (1, 2):
            parallel = {'tensor': 2, 'sequence_parallel': True} if t == 2 else {}
            form = (layers * s * b * h * (34 + 5 * a * s / h) + s * b * h * (1 + 2 + 2) +
                    4 * s * b * words) / t
            self.expect(f'tensor {t}', run(model, parallel, t, name='gpt', sequences=b),
                        activations=form)


if __name__ == '__main__':
    unittest.main()

#!/usr/bin/env python3
"""Draws the scenarios of drawn.jsonl: draw.py SIM > drawn.jsonl

Prints one scenario a line: 200 that are valid, spread evenly over all schedules and drawn over
models, platforms, partitions, collectives and noise, always the same ones for the same program. The
file is kept, so that a change of this script, or of validity, changes no row of the guard.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

NUMBER = 200
NETWORKS = [('vgg16', {'image': 32}), ('resnet50', {'image': 64}), ('densenet121', {'image': 64}),
            ('vit_b16', {'image': 64}), ('gpt', {'layers': 4, 'hidden': 128, 'heads': 4,
                                                 'sequence': 64, 'vocabulary': 1000}),
            ('llama', {'layers': 3, 'hidden': 128, 'heads': 4, 'kv_heads': 2, 'intermediate': 256,
                       'sequence': 64, 'vocabulary': 1000})]
DEVICES = [('v100', 'fp32'), ('v100', 'fp16'), ('a100', 'tf32'), ('a100', 'bf16'), ('h100', 'bf16')]


class Draw:
    """One scenario; every draw takes from one stream."""

    def __init__(self, stream, kind):
        self.stream, self.kind = stream, kind
        self.devices = stream.choice([2, 2, 3, 4, 4, 6, 8])
        self.micros = stream.randint(1, 8)
        self.fixed_layers = None  # by the schedule

    def one(self, *choices):
        return self.stream.choice(choices)

    def chance(self, share):
        return self.stream.random() < share

    # ---- schedules: each returns its parameters ----

    def sequential(self):
        self.devices = 1
        return {'micro_batches': self.micros}

    def dp(self):
        self.devices = self.one(2, 4, 8, 16, 32)
        return {'micro_batches': self.one(1, 1, 2, 4),
                **({'bucket': self.one('1 MB', '25 MB', '100 kB')} if self.chance(.5) else {})}

    def recomputed(self):
        return {'micro_batches': self.micros,
                **({'recompute': True} if self.chance(.3) else {})}

    def gpipe(self):
        return {**self.recomputed(), 'backward_order': self.one('reversed', 'fifo')}

    def one_f_one_b(self):
        return {**self.recomputed(), 'replicas': self.one('all_reduce', 'round_robin')}

    def interleaved_1f1b(self):
        self.devices = self.one(2, 3, 4)
        chunks = self.one(2, 3)
        self.fixed_layers = chunks * self.devices
        return {'micro_batches': self.stream.randint(1, 3 * self.devices),
                'stages_per_device': chunks,
                **({'recompute': True} if self.chance(.3) else {})}

    def zb_h1(self):
        return {'micro_batches': self.micros}

    def pipedream(self):
        if self.chance(.3):
            return {'vertical_sync': True}
        return {'replicas': self.one('all_reduce', 'round_robin')}

    def pipedream_2bw(self):
        return {'micro_batches': self.devices + self.stream.randint(0, 3)}

    def nf1b(self):
        return {'micro_batches': self.one(1, 2, 3, 4),
                'version_at': self.one('first_worker', 'last_worker', 'per_stage'),
                'backward_pass': self.one('mini_batch', 'mini_batch', 'micro_batches'),
                **({'in_flight': self.one(1, 2, 3)} if self.chance(.3) else {}),
                **({'backward': self.one(1, 2, .5)} if self.chance(.3) else {})}

    def periodic(self):
        return {'micro_batches': 2 * self.devices + self.stream.randint(0, 3),
                'timing': self.one('pattern', 'asap'), 'kept': self.one('full', 'literal'),
                'count_update': self.chance(.3)}

    def cdp(self):
        n = self.one(1, 2, 3, 4, 5)
        setting = self.one('single_gpu', 'multi_gpu', 'model_parallel', 'pipeline', 'zero')
        self.devices = None
        self.fixed_layers = n
        cyclic = self.kind != 'cdp_dp'
        return {'micro_batches': n, 'setting': setting,
                **({'start_delay': 'two_tasks'} if cyclic and self.chance(.3) else {}),
                **({'new_weights': 'beside'} if self.kind == 'cdp_v2' and self.chance(.3) else {}),
                **({'retention': 'micro_batch'} if setting.endswith('gpu') and self.chance(.3)
                   else {})}

    def custom(self):
        self.devices = 2
        return {'micro_batches': 2, 'device_tasks': self.one(
            ['F0 F1 B0 B1', 'F0 F1 B1 B0'], ['F0 F1 B1 B0', 'F0 F1 B1 B0'],
            ['F0 F1 B0 W0 B1 W1', 'F0 B0 F1 B1 W0 W1'])}

    def schedule(self):
        name = {'1f1b': 'one_f_one_b'}.get(self.kind, 'cdp' if self.kind.startswith('cdp')
                                           else self.kind)
        return {'kind': self.kind, **getattr(self, name)()}

    # ---- the rest ----

    def layers(self):
        if self.fixed_layers:
            return self.fixed_layers
        return (self.devices or 4) + self.stream.randint(0, 6)

    def inline_model(self):
        layers = []
        for i in range(self.layers()):
            forward, part = self.stream.randint(1, 5000), self.stream.randint(1, 5000)
            layers.append({'name': f'l{i}', 'forward': f'{forward} us',
                           'backward_input': f'{part} us',
                           'backward_weight': f'{self.stream.randint(0, 5000)} us',
                           'update': f'{self.stream.randint(0, 300)} us',
                           'weights': self.stream.randint(0, 10 ** 8),
                           'output': self.stream.randint(0, 10 ** 7),
                           'kept': self.stream.randint(0, 10 ** 8)})
        return {'inline': {'schema_version': 1, 'name': 'drawn', 'batch_size': 0, 'layers': layers,
                           'provenance': {'source': 'drawn', 'hardware': 'none',
                                          'date': '2026-11-22'}}}

    def named_model(self, schedule):
        name, parameters = self.one(*NETWORKS)
        device, precision = self.one(*DEVICES)
        parts = schedule.get('micro_batches', 1) * (self.devices or 1)
        return {'name': name, 'parameters': parameters, 'device': device, 'precision': precision,
                'batch_size': parts * self.one(1, 2, 4, 8),
                **({'granularity': 'block'} if self.chance(.3) else {}),
                **({'recompute': True} if self.chance(.2) else {})}

    def model(self, schedule):
        form = self.stream.random()
        if form < .35 and not self.fixed_layers:
            model = self.named_model(schedule)
        elif form < .6:
            model = {'uniform': {'layers': self.layers(), 'forward': self.one('1 ms', '3 ms'),
                                 'backward': self.one('2 ms', '3 ms', '6 ms'), 'update': '100 us',
                                 'weights': '20 MB', 'activation': '4 MB', 'workspace': '1 MB'}}
        else:
            model = self.inline_model()
        if self.chance(.2):
            model['gradients'] = 'fp32'
        return {**model, 'optimizer': self.one('sgd', 'momentum', 'adam')}

    def topology(self):
        plain = {'bandwidth': self.one('1 GB/s', '12 GB/s', '150 GB/s'),
                 'latency': self.one('0 s', '3 us', '20 us')}
        return self.one(
            {'topology': 'ideal'}, {'topology': 'ring', **plain},
            {'topology': 'nvlink_switch', **plain}, {'topology': 'pcie', **plain},
            {'topology': 'fat_tree', 'radix': 4, 'oversubscription': self.one(1, 2), **plain},
            {'topology': 'leaf_spine', 'hosts_per_leaf': 2, 'spines': 2, **plain},
            {'topology': 'torus', 'shape': [4, 4], **plain},
            {'topology': 'nvlink_mesh'}, {'topology': 'dgx-a100'}, {'topology': 'dgx-h100'},
            {'topology': 'dgx1-v100'}, {'topology': 'abci'},
            {'topology': 'cluster', 'node': {'topology': 'nvlink_mesh'},
             'network': {'topology': 'leaf_spine', 'hosts_per_leaf': 4, 'spines': 2,
                         'bandwidth': '12 GB/s', 'latency': '2 us'},
             'gpus_per_node': 2, 'nics_per_node': self.one(1, 2)})

    def platform(self):
        platform = self.topology()
        if self.devices:
            platform['devices'] = self.devices
        platform['memory'] = self.one('unlimited', '16 GiB', '2 GB')
        if platform['memory'] != 'unlimited' and self.chance(.3):
            platform['reserve'] = '500 MB'
        if platform['topology'] != 'ideal':
            platform['sharing'] = self.one('auto', 'auto', 'none', 'fifo', 'max_min')
            if self.chance(.1):
                platform.update(sharing='phi', phi=self.one(2, 1.5, 'count'))
        if self.chance(.2):
            platform['blocking'] = True
        if self.devices and self.chance(.2) and self.kind != 'periodic':
            platform['speed'] = [self.one(1, 1, .5, 2) for _ in range(self.devices)]
        if self.chance(.15):
            platform['stragglers'] = {'tasks': {'distribution': 'lognormal', 'mean': .1,
                                                'deviation': .1},
                                      'devices': {'distribution': 'constant', 'mean': .5,
                                                  'probability': .3}}
        if self.chance(.15) and platform['topology'] != 'ideal':
            platform['jitter'] = {'distribution': 'beta', 'mean': .1, 'deviation': .05}
            if platform['sharing'] in ('max_min', 'auto') and platform['topology'] != 'ring':
                platform['background'] = {'flows': 2, 'bytes': '1 MB', 'gap': '1 ms'}
        return platform

    def partition(self, schedule):
        if self.kind in ('1f1b', 'pipedream') and self.devices % 2 == 0 and self.chance(.5) and \
                not schedule.get('vertical_sync'):
            return {'planner': 'balanced', 'stages': self.devices // 2}
        if self.kind == 'periodic':
            return {'planner': self.one('contiguous_optimal', 'pipedream', 'madpipe', 'balanced')}
        if self.chance(.2) and self.devices and self.devices > 1 and not self.fixed_layers:
            return list(range(1, self.devices))
        return 'balanced'

    def collectives(self):
        return {'algorithm': self.one('usual', 'usual', 'auto', 'ring', 'tree', 'segmented'),
                'fidelity': self.one('auto', 'auto', 'flow', 'analytic', 'alpha_beta'),
                'chunks': self.one(0, 0, 1, 4), 'order': self.one('auto', 'auto', 'given', 'found')}

    def scenario(self):
        schedule = self.schedule()
        if self.kind not in ('sequential', 'dp') and not self.kind.startswith('cdp'):
            schedule['partition'] = self.partition(schedule)
        model = self.model(schedule)
        return {'schema_version': 1, 'model': model,
                **({'runtime': 'ideal'} if 'device' in model else {}), 'platform': self.platform(),
                'schedule': schedule, 'iterations': self.one(1, 2, 3, 5, 12),
                'seed': self.stream.randint(1, 1000),
                **({'collectives': self.collectives()} if self.chance(.5) else {})}


def accepted(sim, text):
    """Whether the program runs it, and soon."""
    with tempfile.NamedTemporaryFile('w', suffix='.json', encoding='utf-8') as file:
        file.write(text)
        file.flush()
        try:
            return subprocess.run([sim, 'run', '--no-output', '--json', file.name], check=False,
                                  capture_output=True, timeout=2).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def main():
    sim = os.path.abspath(sys.argv[1])
    listed = subprocess.run([sim, 'list', 'schedules', '--json'], check=True, capture_output=True)
    kinds = [entry['name'] for entry in json.loads(listed.stdout)['schedules']]
    stream = random.Random(1)
    for i in range(NUMBER):
        text = None
        while not text or not accepted(sim, text):
            text = json.dumps(Draw(stream, kinds[i % len(kinds)]).scenario())
        print(text, flush=True)


if __name__ == '__main__':
    main()

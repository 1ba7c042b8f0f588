#!/usr/bin/env python3
"""DualPipe against two replicas of dualpipe_v: test-dualpipe.py SIM

A slow simulation of DualPipe itself, with both directions on all ranks, by the steps of DeepSeek's
report (arXiv 2412.19437, section 3.2.1) and implementation (github.com/deepseek-ai/DualPipe). Ranks
of the first half take the time and keep the activations that `sim` has for dualpipe_v on half as
many devices, with half the micro-batches.
"""
import itertools
import json
import os
import subprocess
import sys
import unittest

SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'


class Rank:
    """What a rank does: (kind, direction, stage, micro-batch), B being a whole backward, I and W
    its halves."""

    def __init__(self, ranks, rank, micro_batches):
        self.steps, self.done, self.late, self.zero_bubble = [], {}, [], False
        self.stages = (rank, ranks - 1 - rank)  # by direction
        self.directions = (0, 1) if rank < ranks // 2 else (1, 0)  # by phase
        near = min(rank, ranks - 1 - rank)
        behind, main = ranks // 2 - near - 1, micro_batches // 2 - ranks + near + 1
        self.put('F0' * 2 * behind + 'F0F1' * (near + 1))
        for _ in range(behind):
            self.zero_bubble = True
            self.put('B1')
            self.weight()
            self.put('F1')
        self.zero_bubble = False
        self.put('F0B1F1B0' * main + 'B1F1B0' * behind)
        for i in range(2 * (near + 1)):  # B1 and B0 in turn, split from the second half on
            self.zero_bubble |= i // 2 == (near + 1) // 2 and (i % 2 == 1 or near % 2 == 1)
            self.put('B0' if i % 2 else 'B1')
        for _ in range(behind):
            self.weight()
            self.put('B0')
        while self.late:
            self.weight()

    def put(self, passes):
        for kind, phase in zip(passes[::2], map(int, passes[1::2])):
            micro = self.done[kind, phase] = self.done.get((kind, phase), -1) + 1
            direction = self.directions[phase]
            where = (direction, self.stages[direction], micro)
            if kind == 'B' and self.zero_bubble:
                kind = 'I'
                self.late.append(where)
            self.steps.append((kind, *where))

    def weight(self):
        self.steps.append(('W', *self.late.pop(0)))


def simulate(ranks, micro_batches, times):
    """When all ranks are done, and of each rank how many stages' activations it keeps at most."""
    steps = [Rank(ranks, rank, micro_batches).steps for rank in range(ranks)]
    at, end, next_step, kept, peak = [0] * ranks, {}, [0] * ranks, [0] * ranks, [0] * ranks
    while any(n < len(s) for n, s in zip(next_step, steps)):
        before = list(next_step)
        for rank in range(ranks):
            while next_step[rank] < len(steps[rank]):
                kind, direction, stage, micro = steps[rank][next_step[rank]]
                needs = [] if kind == 'F' else [('F', direction, stage, micro)]
                if kind == 'F' and stage > 0:
                    needs = [('F', direction, stage - 1, micro)]
                if kind in 'BI' and stage < ranks - 1:
                    needs.append(('G', direction, stage + 1, micro))
                if not all(need in end for need in needs):
                    break
                at[rank] = max([at[rank]] + [end[need] for need in needs]) + times[kind]
                end['F' if kind == 'F' else 'W' if kind == 'W' else 'G', direction, stage,
                    micro] = at[rank]
                kept[rank] += (kind == 'F') - (kind in 'BW')
                peak[rank] = max(peak[rank], kept[rank])
                next_step[rank] += 1
        assert next_step != before, 'a deadlock'
    return max(at), peak


def replica(ranks, micro_batches, forward, half):
    scenario = {'schema_version': 1, 'model': {'uniform': {
                    'layers': ranks, 'forward': f'{forward} s', 'backward': f'{2 * half} s',
                    'weights': '1 GB',
                    'activation': '1 GB'}},
                'platform': {'topology': 'ideal', 'devices': ranks // 2},
                'schedule': {'kind': 'dualpipe_v', 'micro_batches': micro_batches // 2}}
    done = subprocess.run([SIM, 'run', '/dev/stdin', '--no-output', '--json'],
                          input=json.dumps(scenario), capture_output=True,
                          text=True, check=True)
    run = json.loads(done.stdout)
    return run['makespan_s'], [round(d['peak_activation_bytes'] / 1e9) for d in run['devices']]


class DualPipe(unittest.TestCase):
    def test_two_replicas(self):
        for ranks, more, forward, half in itertools.product((2, 4, 6, 8), (0, 2, 6), (1, 2, 3),
                                                            (1, 2)):
            micro_batches = 2 * ranks + more
            with self.subTest(ranks=ranks, micro_batches=micro_batches, forward=forward, half=half):
                makespan, peak = simulate(ranks, micro_batches,
                                          {'F': forward, 'B': 2 * half, 'I': half, 'W': half})
                self.assertEqual((makespan, peak[:ranks // 2]),
                                 replica(ranks, micro_batches, forward, half))
                self.assertEqual(peak, peak[::-1])

    def test_hidden_experts(self):
        """Messages to experts are hidden in pairs of passes: of each stage of rank r of P and of
        all M micro-batches, in all forwards and backwards but 3 P - 1 - r. A backward sends as much
        as a forward, all of it exposed in zb_v. Embedding, six blocks with experts and head are 1,
        2, 2 and 1 of them on four stages."""
        for micro_batches in (4, 7):
            passes = [layers * 2 * micro_batches for layers in (1, 2)]
            alone = [layers * (3 * 2 - 1 - rank) for rank, layers in enumerate((1, 2))]
            exposed = sum(alone) / sum(passes)
            whole = mixture('zb_v', micro_batches, {'fidelity': 'analytic'})
            for given, hidden in (({}, 0.85), ({'fidelity': 'analytic'}, 0.85),
                                  ({'expert_overlap': 0.5}, 0.5),
                                  ({'expert_overlap': 1}, 1),
                                  ({'fidelity': 'analytic', 'expert_overlap': 0}, 0)):
                with self.subTest(micro_batches=micro_batches, given=given):
                    part = mixture('dualpipe_v', micro_batches, given) / whole
                    self.assertAlmostEqual(part, exposed + (1 - hidden) * (1 - exposed), 6)

    def test_messages_are_flows(self):
        self.assertGreater(mixture('dualpipe_v', 4, {'fidelity': 'flow'}),
                           0.999 * mixture('dualpipe_v', 4,
                                           {'fidelity': 'analytic', 'expert_overlap': 0}))


def mixture(kind, micro_batches, collectives):
    """Seconds of a step with exposed messages to experts, mean over devices."""
    scenario = {'schema_version': 1, 'runtime': 'ideal',
                'model': {'name': 'mixtral', 'parameters': {'layers': 6, 'hidden': 256, 'heads': 4,
                                                            'kv_heads': 4,
                                                            'expert_intermediate': 512,
                                                            'sequence': 256,
                                                            'vocabulary': 1024, 'experts': 4},
                          'device': 'h100', 'precision': 'bf16', 'granularity': 'block',
                          'optimizer': 'adam',
                          'batch_size': 2 * micro_batches},
                'platform': {'topology': 'nvlink_switch', 'devices': 4, 'bandwidth': '2 GB/s',
                             'latency': '1 us'},
                'parallel': {'pipeline': 2, 'expert': 2}, 'collectives': collectives,
                'schedule': {'kind': kind, 'micro_batches': micro_batches}}
    done = subprocess.run([SIM, 'run', '/dev/stdin', '--no-output', '--json'],
                          input=json.dumps(scenario), capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)['exposed_expert_s']


if __name__ == '__main__':
    unittest.main()

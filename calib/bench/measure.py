#!/usr/bin/env python3
"""Measures networks on this device twice, and PyTorch's training step of the same networks in
between:

    calib/bench/measure.py SIM FOLDER [--backend cpu|cuda] [--precision P,...] [--model M,...]

FOLDER: a new one, which gets two cost files per network and precision (the second holds all
that a scenario needs). Tells whether both agree, piece by piece, and how the sum of the pieces
compares with PyTorch's forward and backward of the same precision and layout. Takes turns: costs,
PyTorch, costs, PyTorch. Needs Python 3 with torch and torchvision. Exit status 4: a bound does not
hold.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

NOTICEABLE = 0.01  # of the sum of all pieces; smaller ones are not compared one by one
BATCHES = {'cpu': 4, 'cuda': 128}
ROUNDS = 5  # of PyTorch's steps; a round is its median
PASSES = ('forward', 'backward_input', 'backward_weight')
PRECISIONS = ('fp32', 'tf32', 'bf16', 'fp16')


def complain(text):
    sys.exit(f'{os.path.basename(sys.argv[0])}: {text}')


def call(*words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as error:
        complain(f'{words[0]}: {error.strerror}')
    if done.returncode != 0:
        complain(f'{" ".join(words)}: exit status {done.returncode}\n{done.stderr.strip()}')
    return done


def count(text):
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'must be a whole number from 1 on (got "{text}")')
    return int(text)


def share(text):
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f'must be a share, like 0.03 (got "{text}")')
    return value


def names(text):
    found = text.split(',')
    if '' in found or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f'must be different names by commas (got "{text}")')
    return found


def precisions(text):
    found = names(text)
    if not set(found) <= set(PRECISIONS):
        raise argparse.ArgumentTypeError(f'must be of {", ".join(PRECISIONS)} (got "{text}")')
    return found


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    parser.add_argument('sim')
    parser.add_argument('folder')
    parser.add_argument('--backend', choices=('cpu', 'cuda'), default='cuda')
    parser.add_argument('--precision', type=precisions, default='fp32',
                        help='fp32, tf32, bf16, fp16; several by commas')
    parser.add_argument('--model', type=names, default='resnet50,vit_b16', help='several by commas')
    parser.add_argument('--image', type=count, default=224, help='pixels (default: 224)')
    parser.add_argument('--batch', type=count, help='samples (default: 128, on the CPU 4)')
    parser.add_argument('--attention', choices=('flash', 'math'), default='math',
                        help='fused, or with its weights in memory (default), in both')
    parser.add_argument('--time-limit', default='20 s', help='of each measurement (default: 20 s)')
    parser.add_argument('--steps', type=count, default=20,
                        help="of PyTorch's, per round (default: 20)")
    parser.add_argument('--stable', type=share, default=0.03,
                        help='bound between both (default: 0.03)')
    parser.add_argument('--near', type=share, default=0.10,
                        help="bound to PyTorch's (default: 0.10)")
    options = parser.parse_args()
    if options.backend == 'cpu' and options.precision != ['fp32']:
        parser.error('argument --precision: the CPU computes in fp32')
    return options


# ---- ours ----

def parameters(options, model):
    chosen = {'image': options.image}
    if model.startswith('vit'):
        chosen['attention'] = options.attention
    return chosen


def calibrate(options, model, precision, path):
    words = [options.sim, 'calibrate', 'compute', '--backend', options.backend, '--model', model,
             '--precision', precision, '--batch', str(options.batch),
             '--time-limit', options.time_limit, '-o', path]
    for name, value in parameters(options, model).items():
        words += ['--param', f'{name}={value}']
    print(call(*words).stderr.strip(), flush=True)


def pieces(path):
    """Medians by piece and pass."""
    with open(path, encoding='utf-8') as file:
        entries = json.load(file)['compute']
    return {(entry['op'], name): entry[name]['median_s']
            for entry in entries for name in PASSES if name in entry}


def predicted(options, model, precision, path):
    """Seconds of forward and backward of the whole network, from the costs."""
    scenario = os.path.splitext(path)[0] + '-step.json'
    with open(scenario, 'w', encoding='utf-8') as file:
        json.dump({'schema_version': 1, 'name': f'{model}-{precision}', 'platform': 'ideal',
                   'model': {'name': model, 'parameters': parameters(options, model),
                             'precision': precision, 'batch_size': options.batch},
                   'costs': os.path.basename(path), 'schedule': {'kind': 'sequential'},
                   'iterations': 1}, file, indent=2)
    result = json.loads(call(options.sim, 'run', scenario, '--no-output', '--json').stdout)
    if result['costs']['estimated_times'] > 0:
        complain(f'{path} lacks {result["costs"]["missing"]}')
    spent = result['critical_path']['compute_s']
    return spent['forward'] + spent['backward']


# ---- PyTorch's ----

class Torch:
    """The time of a training step of a torchvision network, without the update."""

    def __init__(self, options, model, precision):
        import torch
        import torchvision
        self.torch = torch
        self.cuda = options.backend == 'cuda'
        self.attention = options.attention
        device = torch.device(options.backend)
        if self.cuda and not torch.cuda.is_available():
            complain('torch finds no GPU')
        torch.set_num_threads(1)  # what a measurement on the CPU has
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.allow_tf32 = precision == 'tf32'
        torch.backends.cuda.matmul.allow_tf32 = precision == 'tf32'
        kind = {'bf16': torch.bfloat16, 'fp16': torch.float16}.get(precision, torch.float32)
        name = {'vit_b16': 'vit_b_16', 'vit_l16': 'vit_l_16'}.get(model, model)
        sizes = {'image_size': options.image} if model.startswith('vit') else {}
        network = getattr(torchvision.models, name, None)
        if network is None:
            complain(f'torchvision has no network "{name}"')
        self.network = network(**sizes).to(device=device, dtype=kind).train()
        self.images = torch.randn(options.batch, 3, options.image, options.image, device=device,
                                  dtype=kind)
        self.labels = torch.randint(1000, (options.batch,), device=device)
        self.loss = torch.nn.CrossEntropyLoss()

    def step(self):
        self.network.zero_grad(set_to_none=True)
        self.loss(self.network(self.images), self.labels).backward()

    def times(self, steps):
        """Of many steps in a row, each with its gradients cleared by freeing them."""
        if not self.cuda:
            seconds = []
            for _ in range(steps):
                start = time.perf_counter()
                self.step()
                seconds.append(time.perf_counter() - start)
            return seconds
        marks = [self.torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]
        marks[0].record()
        for mark in marks[1:]:
            self.step()
            mark.record()
        self.torch.cuda.synchronize()
        return [1e-3 * a.elapsed_time(b) for a, b in zip(marks, marks[1:])]

    def rounds(self, steps):
        if self.cuda and hasattr(self.torch.backends.cuda, 'enable_flash_sdp'):
            fused = self.attention == 'flash'
            self.torch.backends.cuda.enable_flash_sdp(fused)
            self.torch.backends.cuda.enable_mem_efficient_sdp(fused)
            if hasattr(self.torch.backends.cuda, 'enable_cudnn_sdp'):
                self.torch.backends.cuda.enable_cudnn_sdp(fused)
        self.times(max(3, steps // 4))  # to warm up
        return [statistics.median(self.times(steps)) for _ in range(ROUNDS)]

    def version(self):
        name = self.torch.cuda.get_device_name() if self.cuda else 'CPU, one thread'
        return f'torch {self.torch.__version__} on {name}'


# ---- both ----

def compare(options, model, precision, first, second, torch_rounds):
    """Prints a line per figure; returns whether both bounds hold."""
    one, two = pieces(first), pieces(second)
    whole = sum(one.values())
    apart = sorted(((abs(two[key] / one[key] - 1), key) for key in one
                    if key in two and one[key] > NOTICEABLE * whole), reverse=True)
    totals = [predicted(options, model, precision, path) for path in (first, second)]
    theirs = statistics.median(torch_rounds)
    ratio = statistics.median(totals) / theirs - 1
    if not apart:
        complain(f'{first}: no piece takes over {100 * NOTICEABLE:.0f} % of their sum')
    stable = apart[0][0] <= options.stable
    near = abs(ratio) <= options.near
    print(f'{model} {precision}, batch {options.batch}')
    print(f'  forward and backward: {1e3 * totals[0]:.3f} and {1e3 * totals[1]:.3f} ms, '
          f'{100 * (totals[1] / totals[0] - 1):+.2f} %')
    print(f'  {len(apart)} pieces of over {100 * NOTICEABLE:.0f} % of their sum differ by at most '
          f'{100 * apart[0][0]:.2f} % ({apart[0][1][0]}: {apart[0][1][1]}), median '
          f'{100 * statistics.median(a for a, _ in apart):.2f} %: '
          f'{"holds" if stable else "DOES NOT HOLD"} ({100 * options.stable:g} %)')
    print(f'  PyTorch: {1e3 * theirs:.3f} ms ({1e3 * min(torch_rounds):.3f} to '
          f'{1e3 * max(torch_rounds):.3f}); ours is {100 * ratio:+.2f} %: '
          f'{"holds" if near else "DOES NOT HOLD"} ({100 * options.near:g} %)', flush=True)
    return stable and near


def main():
    options = parse()
    options.sim = os.path.abspath(options.sim)
    options.batch = options.batch or BATCHES[options.backend]
    os.makedirs(options.folder, exist_ok=True)
    good = True
    for model in options.model:
        for precision in options.precision:
            paths = [os.path.join(options.folder, f'{model}-{precision}-{i}.json') for i in (1, 2)]
            for path in paths:
                if os.path.exists(path):
                    complain(f'{path} is there already')
            rounds = []
            try:
                trainer = Torch(options, model, precision)
            except ImportError as error:
                complain(f'{error} (it needs torch and torchvision)')
            print(trainer.version(), flush=True)
            for path in paths:
                calibrate(options, model, precision, path)
                rounds += trainer.rounds(options.steps)
            del trainer
            good &= compare(options, model, precision, *paths, rounds)
    sys.exit(0 if good else 4)


if __name__ == '__main__':
    main()

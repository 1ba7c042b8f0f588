#!/usr/bin/env python3
"""Closed forms of strategies, evaluated a second time: test-strategies.py SIM

The networks are written down here once more, layer by layer, from their papers: ResNet-50 and
ResNet-152 (He et al., table 1), VGG-16 (Simonyan and Zisserman, configuration D), CosmoFlow (Oyama
et al.). Table 3 of Kahira et al. (HPDC 2021) is summed over these layers literally, halos
are counted row by row. Only the times of layers are taken from `sim model`, which rounds each to
whole picoseconds, so errors are up to half a picosecond of 30 us and more per layer: 2e-8 of the
sum that is computed from them. Everything else agrees to the last digits of a double.

The strategies are simulated as well, and the messages that nothing hides held against the same
sums.
"""
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

SIM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else 'sim'

ALPHA, BETA = 5e-6, 1e-10
PLATFORM = json.dumps({'topology': 'nvlink_switch', 'bandwidth': '10 GB/s', 'latency': '5 us'})
WIDTH = 4  # bytes of fp32
ROUNDED, EXACT = 1e-7, 1e-12


def run(*arguments):
    done = subprocess.run([SIM, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f'sim {" ".join(arguments)}: {done.stderr}')
    return done.stdout


# ---- the networks ----

class Layer:
    """x: elements read, y: written, per sample; F, C of those with filters; windows have
    `kernel`."""

    def __init__(self, kind, name, inputs, output, weights=0, biases=0, window=None, first=False):
        self.kind, self.name, self.first = kind, name, first
        self.inputs, self.output = inputs, output
        self.x = sum(math.prod(shape) for shape in inputs)
        self.y = math.prod(output)
        self.w, self.bi, self.window = weights, biases, window


class Net:
    def __init__(self, image):
        self.layers, self.image = [], image

    def add(self, *arguments, **more):
        layer = Layer(*arguments, **more, first=not self.layers)
        self.layers.append(layer)
        return layer.output

    def conv(self, name, x, filters, kernel, stride=1, pad=0, bias=False):
        out = (filters, *[(n + 2 * pad - kernel) // stride + 1 for n in x[1:]])
        weights = filters * x[0] * kernel ** (len(x) - 1)
        return self.add('conv', name, [x], out, weights, filters if bias else 0,
                        (kernel, stride, pad))

    def pool(self, name, x, kernel, stride, pad=0):
        out = (x[0], *[(n + 2 * pad - kernel) // stride + 1 for n in x[1:]])
        return self.add('pool', name, [x], out, window=(kernel, stride, pad))

    def norm(self, name, x):
        return self.add('norm', name, [x], x, x[0], x[0])

    def relu(self, name, x):
        return self.add('relu', name, [x], x)

    def dense(self, name, x, features):
        return self.add('linear', name, [x], (features,), x[0] * features, features)


def resnet(blocks):
    net = Net((3, 224, 224))
    x = net.relu('', net.norm('', net.conv('stem.conv1', net.image, 64, 7, 2, 3)))
    x = net.pool('stem.maxpool', x, 3, 2, 1)
    for stage, n in enumerate(blocks):
        width = 64 << stage
        for i in range(n):
            at = f'layer{stage + 1}.{i}.'
            stride = 2 if stage > 0 and i == 0 else 1
            y = net.relu('', net.norm('', net.conv(at + 'conv1', x, width, 1)))
            y = net.relu('', net.norm('', net.conv(at + 'conv2', y, width, 3, stride, 1)))
            y = net.norm('', net.conv(at + 'conv3', y, 4 * width, 1))
            if i == 0:
                x = net.norm('', net.conv(at + 'downsample.conv', x, 4 * width, 1, stride))
            x = net.relu('', net.add('add', '', [y, x], y))
    x = net.add('mean', '', [x], (2048, 1, 1))
    net.dense('head.fc', (2048,), 1000)
    return net


def vgg():
    net = Net((3, 224, 224))
    x = net.image
    for stage, (width, n) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        for i in range(n):
            at = f'stage{stage + 1}.conv{i + 1}'
            x = net.relu('', net.conv(at, x, width, 3, 1, 1, bias=True))
        x = net.pool(f'stage{stage + 1}.pool', x, 2, 2)
    x = net.add('mean', '', [x], (512, 7, 7))
    x = (512 * 7 * 7,)
    for name in 'fc6', 'fc7':
        x = net.relu('', net.dense(name + '.linear', x, 4096))
        x = net.add('dropout', '', [x], x)
    net.dense('fc8.linear', x, 1000)
    return net


def cosmoflow():
    net = Net((4, 256, 256, 256))
    x = net.image
    for i, width in enumerate((16, 32, 64, 128, 256, 256, 256)):
        x = net.relu('', net.conv(f'conv{i + 1}.conv', x, width, 3, 2 if i == 3 else 1, 1))
        if i < 6:
            x = net.pool(f'conv{i + 1}.pool', x, 3, 2, 1)
    x = (math.prod(x),)
    for i, features in enumerate((2048, 256, 4)):
        x = net.add('dropout', '', [x], x)
        x = net.dense(f'fc{i + 1}.linear', x, features)
        if i < 2:
            x = net.relu('', x)
    return net


NETS = {'resnet50': resnet((3, 4, 6, 3)), 'resnet152': resnet((3, 8, 36, 3)), 'vgg16': vgg(),
        'cosmoflow': cosmoflow()}


# ---- halos, row by row ----

def rows(n, parts, i):
    """Row r is in part floor(r parts / n)."""
    own = [r for r in range(n) if r * parts // n == i]
    return range(own[0], own[-1] + 1) if own else range(0)


def lacking(n_in, n_out, window, parts):
    """The most rows that any part lacks: (before, behind) of the input, and of the gradients."""
    kernel, stride, pad = window
    most = [0, 0, 0, 0]
    for i in range(parts):
        own_in, own_out = rows(n_in, parts, i), rows(n_out, parts, i)
        read = {o * stride - pad + k for o in own_out for k in range(kernel)} & set(range(n_in))
        of = {o for o in range(n_out)
              if any(o * stride - pad + k in own_in for k in range(kernel))} if own_in else set()
        for at, (needed, own) in enumerate(((read, own_in), (of, own_out))):
            before = len([r for r in needed if r < own.start])
            behind = len([r for r in needed if r >= own.stop])
            most[2 * at] = max(most[2 * at], before)
            most[2 * at + 1] = max(most[2 * at + 1], behind)
    return most


def halo_seconds(net, space, samples):
    seconds = 0
    for layer in net.layers:
        if not layer.window:
            continue
        shapes = [list(layer.inputs[0]), list(layer.output)]
        for shape in shapes:
            shape[1:] = [-(-n // q) for n, q in zip(shape[1:], space)]
        for d, parts in enumerate(space[:len(shapes[0]) - 1]):
            found = lacking(layer.inputs[0][1 + d], layer.output[1 + d], layer.window, parts)
            for at, shape in enumerate(shapes):
                pair = found[2 * at:2 * at + 2]
                for n in pair if at == 0 or not layer.first else ():
                    area = math.prod(shape) // shape[1 + d]
                    seconds += (ALPHA if n else 0) + samples * n * area * WIDTH * BETA
                shape[1 + d] += sum(pair)
    return seconds


# ---- table 3 ----

class Times:
    """Seconds of the layers of the chain, for a number of samples."""

    def __init__(self, name, batch):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'm.json')
            run('model', name, '-d', 'v100', '-b', str(batch), '-o', path, '--log-level', 'error')
            with open(path) as file:
                model = json.load(file)
        def seconds(value):
            number, unit = value.split() if isinstance(value, str) else (value, 's')
            return float(number) * {'s': 1, 'ms': 1e-3, 'us': 1e-6, 'ns': 1e-9, 'ps': 1e-12}[unit]
        layers = model['layers']
        self.forward = [seconds(l['forward']) for l in layers]
        self.backward = [seconds(l['backward_input']) + seconds(l['backward_weight'])
                         for l in layers]
        self.update = [seconds(l['update']) for l in layers]
        self.output = [l['output'] for l in layers]


def sums(net):
    weighted = [l for l in net.layers if l.kind in ('conv', 'linear')]
    return (sum(l.x + l.y for l in net.layers), sum(l.w for l in net.layers),
            sum(l.bi for l in net.layers), [l.y for l in weighted[:-1]])


def table3(net, row, batch, times, samples):
    """The parts of an iteration (D = B), and the memory."""
    p1, p2 = row['groups'], row['members']
    p = p1 * p2
    images, w, bi, ys = sums(net)
    passes = batch * sum(f + b for f, b in zip(times.forward, times.backward)) / samples / p
    update = sum(times.update)
    parts = dict.fromkeys(('gradients_s', 'layers_s', 'halo_s', 'stages_s'), 0)
    memory = 2 * batch * images / p1
    kind = row['strategy']
    if kind in ('filter', 'channel', 'data_filter'):
        update /= p2
        parts['layers_s'] = 3 * (p2 - 1) * sum(ALPHA + batch * y / p * WIDTH * BETA for y in ys)
        parts['gradients_s'] = 2 * (p1 - 1) * (ALPHA + w / p * WIDTH * BETA)
        memory += 2 * w / p2 + bi
    elif kind in ('data', 'serial'):
        parts['gradients_s'] = 2 * (p1 - 1) * (ALPHA + w / p1 * WIDTH * BETA) if p1 > 1 else 0
        memory += 2 * w + bi
    else:
        parts['gradients_s'] = 2 * (p2 - 1) * (ALPHA + w / p2 * WIDTH * BETA)
        if p1 > 1:
            parts['gradients_s'] += 2 * (p1 - 1) * (ALPHA + w / p1 * WIDTH * BETA)
        parts['halo_s'] = halo_seconds(net, row['space'], batch / p1)
        memory = memory / p2 + 2 * w + bi
    return {'passes_s': passes, 'update_s': update, **parts, 'memory_bytes': WIDTH * memory}


def balanced(costs, stages):
    """Ends of the stages: the least bottleneck, of equal ones that whose last stage starts
    first."""
    n = len(costs)
    before = [0]
    for cost in costs:
        before.append(before[-1] + cost)
    best, choice = [{0: 0}], []
    for s in range(1, stages + 1):
        best.append({})
        choice.append({})
        for end in range(s, n + 1):
            value, first = min((max(best[s - 1][f], before[end] - before[f]), f)
                               for f in best[s - 1] if f < end)
            best[s][end], choice[s - 1][end] = value, first
    ends = [n]
    for s in range(stages - 1, 0, -1):
        ends.append(choice[s][ends[-1]])
    return ends[::-1]


class Forms(unittest.TestCase):
    def near(self, row, expected, got):
        tolerance = ROUNDED if row.endswith(('passes_s', 'update_s')) else EXACT
        if abs(expected - got) > tolerance * max(abs(expected), abs(got)):
            self.fail(f'{row}: expected {expected!r}, got {got!r}')

    def rows(self, name, devices, batch, *more):
        text = run('strategies', name, '-n', str(devices), '-b', str(batch), '-d', 'v100',
                   '--platform', PLATFORM, '--json', *more)
        return {row['strategy']: row for row in json.loads(text)['strategies']}

    def test_table3(self):
        compared = 0
        for name, net in NETS.items():
            for devices, batch in ((4, 32), (8, 64), (16, 128), (64, 2048), (256, 2048),
                                   (1024, 32768)):
                times = {}
                for kind, row in self.rows(name, devices, batch).items():
                    if not row['fits'] or kind == 'pipeline':
                        continue
                    samples = -(-batch // row['groups'])
                    times.setdefault(samples, Times(name, samples))
                    expected = table3(net, row, batch, times[samples], samples)
                    for key, value in expected.items():
                        self.near(f'{name} on {devices}, {kind}, {key}', value, row[key])
                        compared += 1
        self.assertGreater(compared, 700)

    def test_pipeline(self):
        for name, net in NETS.items():
            for devices, batch, segments in ((2, 32, 8), (4, 32, 4), (8, 64, 32)):
                row = self.rows(name, devices, batch, '--segments', str(segments))['pipeline']
                t = Times(name, batch // segments)
                ends = balanced([f + b for f, b in zip(t.forward, t.backward)], devices)
                cuts = list(zip([0] + ends, ends))
                passes = max(sum(t.forward[a:b]) for a, b in cuts) + \
                    max(sum(t.backward[a:b]) for a, b in cuts)
                output = max(t.output[b - 1] for _, b in cuts[:-1]) / (batch // segments)
                turns = devices + segments - 1
                where = f'{name} in {devices} stages, '
                self.near(where + 'passes_s', turns * passes, row['passes_s'])
                self.near(where + 'update_s', max(sum(t.update[a:b]) for a, b in cuts),
                          row['update_s'])
                self.near(where + 'stages', 2 * (turns - 1) *
                          (ALPHA + batch / segments * output * BETA), row['stages_s'])

    def test_epoch(self):
        """Of 1,000 samples in mini-batches of 32 there are 32, the last one smaller: what grows
        with samples is there 1,000 times, updates and latencies 32 times."""
        for kind, row in self.rows('vgg16', 8, 32, '--dataset', '1000').items():
            if kind in ('spatial', 'data_spatial', 'pipeline'):
                continue
            once = row['gradients_s'] + row['update_s']
            if kind in ('filter', 'channel', 'data_filter'):
                once += 3 * (row['members'] - 1) * 15 * ALPHA
            grows = row['iteration_s'] - once
            self.near(kind, 1000 / 32 * grows + 32 * once, row['epoch_s'])

    def test_products(self):
        """Groups of one device are data; one group is filter or spatial."""
        for name in NETS:
            ones = self.rows(name, 4, 64, '--group', '1')
            all_ = self.rows(name, 4, 64, '--group', '4')
            for hybrid, row, of in (('data_filter', ones, 'data'), ('data_spatial', ones, 'data'),
                                    ('data_filter', all_, 'filter'),
                                    ('data_spatial', all_, 'spatial')):
                for key in ('passes_s', 'update_s', 'gradients_s', 'layers_s', 'halo_s', 'stages_s',
                            'memory_bytes'):
                    self.near(f'{name}, {hybrid} against {of}, {key}', row[of][key],
                              row[hybrid][key])

    def test_limits(self):
        """min F and min W x H over the layers above; channels from the second layer with filters
        on. Section 5.3.4: 64 filters in VGG16 and ResNet-50."""
        for name, net in NETS.items():
            rows = self.rows(name, 4, 32)
            weighted = [l for l in net.layers if l.kind in ('conv', 'linear')]
            filters = [(l.output[0], l.name) for l in weighted]
            channels = [(l.inputs[0][0], l.name) for l in weighted[1:]]
            pixels = [(math.prod(shape[1:]), l.name) for l in net.layers if l.window
                      for shape in (l.inputs[0], l.output)]
            for kind, limits in (('filter', filters), ('channel', channels), ('spatial', pixels)):
                least = min(n for n, _ in limits)
                self.assertEqual(rows[kind]['at_most_devices'], least, f'{name}, {kind}')
                self.assertEqual(rows[kind]['limited_by'],
                                 next(at for n, at in limits if n == least), f'{name}, {kind}')
            self.assertEqual(rows['data']['at_most_devices'], 32)
        for name in 'vgg16', 'resnet50':
            self.assertEqual(self.rows(name, 4, 32)['filter']['at_most_devices'], 64)
            self.assertEqual(self.rows(name, 4, 32)['channel']['at_most_devices'], 64)
            self.assertTrue(self.rows(name, 64, 32)['filter']['fits'])
            self.assertFalse(self.rows(name, 128, 32)['filter']['fits'])
            self.assertFalse(self.rows(name, 64, 32)['data']['fits'])

    def test_reuse(self):
        """gamma multiplies memory alone."""
        whole, part = self.rows('vgg16', 4, 32), self.rows('vgg16', 4, 32, '--reuse', '0.25')
        for kind, row in whole.items():
            self.near(kind, row['memory_bytes'] / 4, part[kind]['memory_bytes'])
            self.near(kind, row['iteration_s'], part[kind]['iteration_s'])

    def test_contention(self):
        """Two GPUs of a node of ABCI share a NIC: the rings of data + filter between groups of 4
        have half of it, 12 GB/s over PCIe by two; rings of single GPUs cross it once each way."""
        text = run('strategies', 'vgg16', '-n', '16', '-b', '512', '--json')
        rows = {row['strategy']: row for row in json.loads(text)['strategies']}
        w = sum(l.w for l in NETS['vgg16'].layers) * WIDTH
        # latencies: topologies/abci.c, 0.5 us for each of 4 PCIe links, 0.1 us for each of 2 of a
        # leaf
        alpha = 2.2e-6
        self.near('data', 2 * 15 * (alpha + w / 16 / 12e9), rows['data']['gradients_s'])
        self.near('data_filter', 2 * 3 * (alpha + w / 16 / 6e9), rows['data_filter']['gradients_s'])
        # a ring of leaders has its own NIC; within the node two NVLinks, 0.6 us
        self.near('data_spatial', 2 * 3 * (alpha + w / 4 / 12e9) + 2 * 3 * (0.6e-6 + w / 4 / 50e9),
                  rows['data_spatial']['gradients_s'])

    def test_usage(self):
        for arguments, message in (
                (['--group', '3'],
                 'sim: error: strategies: --group must divide the 8 devices (got 3)'),
                (['--batch', '0'], 'sim: error: strategies: --batch must be at least 1 (got 0)'),
                (['--reuse', '-1'],
                 'sim: error: strategies: --reuse must be a number above 0, at most 1e+15 (got '
                 '"-1")')):
            done = subprocess.run([SIM, 'strategies', 'vgg16', *arguments], capture_output=True,
                                  text=True, check=False)
            self.assertEqual((done.returncode, done.stderr.strip()), (2, message))


def all_reduce(p, elements):
    return 2 * (p - 1) * (ALPHA + elements / p * WIDTH * BETA)


def all_gather(p, elements):
    return (p - 1) * (ALPHA + elements / p * WIDTH * BETA)


class Simulated(unittest.TestCase):
    """VGG-16 on a switch. Nothing overlaps in these strategies, so that an iteration takes what one
    device computes, and its messages. Of these the forms of table 3 leave something out, each of
    which is added here by name."""

    BATCH = 32

    def setUp(self):
        layers = NETS['vgg16'].layers
        self.weighted = [l for l in layers if l.kind in ('conv', 'linear')]
        self.w = sum(l.w for l in layers)
        self.parameters = self.w + sum(l.bi for l in layers)

    def run_strategy(self, parallel, devices, sharing='max_min', **collectives):
        scenario = {'schema_version': 1, 'runtime': 'ideal', 'name': 'vgg',
                    'model': {'name': 'vgg16', 'device': 'v100', 'batch_size': self.BATCH},
                    'platform': {**json.loads(PLATFORM), 'devices': devices, 'sharing': sharing},
                    'parallel': parallel, 'schedule': {'kind': 'sequential'},
                    'collectives': {'algorithm': 'usual', **collectives}, 'iterations': 1}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 's.json')
            with open(path, 'w') as file:
                json.dump(scenario, file)
            return json.loads(run('run', path, '--no-output', '--json'))

    def form(self, name, devices, *more):
        text = run('strategies', 'vgg16', '-n', str(devices), '-b', str(self.BATCH), '-d', 'v100',
                   '--platform', PLATFORM, '--json', *more)
        return next(row for row in json.loads(text)['strategies'] if row['strategy'] == name)

    def messages(self, done):
        """Time without computing: a round of messages is rounded up to a picosecond, bytes to those
        that the ranks can share equally."""
        path = done['critical_path']
        self.assertEqual(path['dependency_s'], 0)
        return path['communication_s']

    def near(self, what, expected, got):
        if abs(expected - got) > 1e-6 * expected:
            self.fail(f'{what}: expected {expected!r}, got {got!r}')

    def test_data(self):
        """Table 3, of all parameters."""
        for p in 4, 16:
            got = self.messages(self.run_strategy({'data': p}, p))
            biases = self.parameters - self.w
            form = self.form('data', p)['messages_s']
            self.near('data', all_reduce(p, self.parameters), got)
            self.near('data', form + 2 * (p - 1) / p * biases * WIDTH * BETA, got)

    def layerwise(self, p, batch, method):
        """An all-gather of each output, and an all-reduce of the gradients of each input but the
        first; or the other way round, and not of the first layer."""
        outputs = [batch * l.y for l in self.weighted]
        inputs = [batch * l.x for l in self.weighted[1:]]
        if method == 'filter':
            return sum(all_gather(p, y) for y in outputs) + sum(all_reduce(p, x) for x in inputs)
        return sum(all_reduce(p, y) for y in outputs[1:]) + sum(all_gather(p, x) for x in inputs)

    def test_filter_and_channel(self):
        """Table 3 equates |x| of a layer with |y| of the previous layer, which poolings violate,
        and leaves out y of the last layer, which filter and channel exchange as
        well."""
        form = self.form('filter', 4)['messages_s']
        ys = [self.BATCH * l.y for l in self.weighted]
        xs = [self.BATCH * l.x for l in self.weighted]
        self.near('table 3', sum(all_gather(4, y) + all_reduce(4, y) for y in ys[:-1]), form)
        for method in 'filter', 'channel':
            got = self.messages(self.run_strategy({method: 4}, 4))
            self.near(method, self.layerwise(4, self.BATCH, method), got)
            first, second = (all_gather,
                             all_reduce) if method == 'filter' else (all_reduce, all_gather)
            differs = first(4, ys[-1]) + sum(second(4, x) - second(4, y)
                                             for x, y in zip(xs[1:], ys[:-1]))
            if method == 'channel':
                differs -= first(4, ys[0])
            self.near(method, form + differs, got)

    def test_data_filter(self):
        """phi: two rings of gradients use each NIC of a node at once; on a switch each has its
        own."""
        for fidelity in 'flow', 'analytic':
            got = self.messages(self.run_strategy({'data': 2, 'filter': 2}, 4, fidelity=fidelity))
            weights = sum(-(-l.output[0] // 2) * (l.w + l.bi) // l.output[0] for l in self.weighted)
            self.near('data_filter', self.layerwise(2, self.BATCH / 2, 'filter') +
                      all_reduce(2, weights), got)

    def halos(self, space, batch):
        """Both ways at once: of the messages to two neighbours the latencies coincide."""
        seconds = 0
        for layer in NETS['vgg16'].layers:
            if not layer.window:
                continue
            shape, out = [list(s) for s in (layer.inputs[0], layer.output)]
            found = lacking(shape[1], out[1], layer.window, space)
            pool = layer.kind == 'pool'
            for at, rows_of in enumerate((shape, shape if pool else out)):
                pair = found[:2] if pool else found[2 * at:2 * at + 2]
                if sum(pair) == 0 or (at == 1 and layer.first):
                    continue
                row = batch * rows_of[0] * rows_of[2] * WIDTH * BETA
                seconds += ALPHA + row * (max(pair) if space == 2 or 0 in pair else 2 * max(pair))
        return seconds

    def test_spatial(self):
        """Halos, a gather in front of the linear layers, and all gradients."""
        last = 512 * 7 * 7
        for p in 2, 4, 7:
            got = self.messages(self.run_strategy({'space': [p]}, p))
            self.near(f'spatial over {p}', self.halos(p, self.BATCH) +
                      all_gather(p, self.BATCH * last) + all_reduce(p, self.parameters), got)
        got = self.messages(self.run_strategy({'data': 2, 'space': [2]}, 4))
        self.near('data_spatial', self.halos(2, self.BATCH / 2) +
                  all_gather(2, self.BATCH / 2 * last) + all_reduce(4, self.parameters), got)

    def test_products(self):
        """One group of devices is the strategy alone; axes of size 1 do not appear."""
        for one, same in (({'data': 1, 'filter': 4}, {'filter': 4}),
                          ({'data': 4, 'filter': 1}, {'data': 4}),
                          ({'data': 4, 'space': [1, 1]}, {'data': 4}),
                          ({'data': 1, 'space': [2, 2]}, {'space': [2, 2]})):
            self.assertEqual(self.run_strategy(one, 4)['hash'], self.run_strategy(same, 4)['hash'])

    def test_leaders(self):
        """Sums of gradients by an algorithm that fits no halo: in VGG-16 data-parallel it is as if
        all collectives took it. One that does not fit the sums is refused."""
        where = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'scenarios')
        path = os.path.join(where, 'vgg16-dp-abci.json')
        for name in 'hierarchical', 'segmented':
            hashes = [json.loads(run('run', path, '--no-output', '--json', '-s',
                                     f'/collectives={{"{key}": "{name}"}}'))['hash']
                      for key in ('algorithm', 'gradients')]
            self.assertEqual(*hashes)
            path_ = os.path.join(where, 'abci-cosmoflow.json')
            done = json.loads(run('run', path_, '--no-output', '--json', '-s',
                                  f'/collectives/gradients={name}'))
            self.assertIn(name, done['collectives']['algorithms'])
            self.assertIn('direct', done['collectives']['algorithms'])
        done = subprocess.run([SIM, 'check', path, '-s', '/collectives/gradients=direct'],
                              capture_output=True, text=True, check=False)
        self.assertIn('/collectives/gradients: must fit the all_reduce of 16 ranks', done.stderr)

    def test_refused(self):
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'scenarios',
                            'abci-resnet50.json')
        for parallel, message in (
                ('{"filter": 128}',
                 '/parallel/filter: must be at most the 64 filters of stem.conv1 '
                                    '(got 128)'),
                ('{"space": [128]}', '/parallel/space: must be at most the 112 rows of stem.conv1 '
                                     '(got 128)'),
                ('{"space": [2], "space_until": "layer9"}', '/parallel/space_until: must name an '
                 'operator or a block of the network (got "layer9"); `sim model resnet50 --json` '
                 'lists them')):
            done = subprocess.run([SIM, 'check', path, '-s', f'/parallel={parallel}', '-s',
                                   '/platform/devices=128'], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 3)
            self.assertIn('abci-resnet50.json: ' + message, done.stderr)

    def test_closed_form_beside(self):
        """`sim run` prints what `sim strategies` does, of an iteration and of an epoch; with one
        ring data parallelism differs by the gradients of biases alone."""
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'scenarios',
                            'abci-resnet50.json')
        for parallel, name in (('{"data": 16}', 'data'), ('{"space": [4, 4]}', 'spatial'),
                               ('{"filter": 16}', 'filter'), ('{"channel": 16}', 'channel'),
                               ('{"data": 4, "filter": 4}', 'data_filter'),
                               ('{"data": 4, "space": [2, 2]}', 'data_spatial')):
            done = json.loads(run('run', path, '--no-output', '--json', '-s',
                                  f'/parallel={parallel}',
                                  '-s', '/dataset=1281167', '-s', '/collectives/fidelity=analytic'))
            forms = {form['figure']: form for form in done['closed_forms']
                     if 'Kahira' in form['source']}
            rows = json.loads(run('strategies', 'resnet50', '-n', '16', '-b', '512', '--dataset',
                                  '1281167', '--json'))['strategies']
            row = next(row for row in rows if row['strategy'] == name)
            self.near(name, row['iteration_s'], forms['iteration_time_s']['closed_form'])
            self.near(name, row['epoch_s'], forms['epoch_time_s']['closed_form'])
            self.assertFalse(forms['epoch_time_s']['promised'])

    def test_contention(self):
        """ABCI, 4 nodes of 4 GPUs with two NICs: rings between groups of 4 have half a NIC each,
        delays as well as messages. Table 3 with phi = 2."""
        results = []
        for fidelity in 'flow', 'analytic':
            scenario = {'schema_version': 1, 'runtime': 'ideal', 'name': 'vgg',
                        'model': {'name': 'vgg16', 'device': 'v100', 'batch_size': 128},
                        'platform': {'topology': 'abci', 'devices': 16},
                        'parallel': {'data': 4, 'filter': 4}, 'schedule': {'kind': 'sequential'},
                        'collectives': {'algorithm': 'ring', 'fidelity': fidelity}, 'iterations': 1}
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, 's.json')
                with open(path, 'w') as file:
                    json.dump(scenario, file)
                done = json.loads(run('run', path, '--no-output', '--json'))
            results.append(self.messages(done))
        within = sum(3 * (0.6e-6 + 32 * l.y / 4 * WIDTH / 50e9) for l in self.weighted) + \
            sum(6 * (0.6e-6 + 32 * l.x / 4 * WIDTH / 50e9) for l in self.weighted[1:])
        between = 6 * (2.2e-6 + self.parameters / 16 * WIDTH / 6e9)
        for got in results:
            self.near('data_filter on ABCI', within + between, got)


if __name__ == '__main__':
    unittest.main()

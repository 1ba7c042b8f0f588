#!/usr/bin/env python3
"""Estimates the layers of VGG-16 and ResNet-50 and writes vgg16.json and resnet50.json.

Nothing here was measured. Every operation of the network is counted in floating-point operations
and in bytes moved, and takes the longer of the two times (a roofline) on an assumed device:

    peak 15.7 Tflop/s and 900 GB/s   data sheet of the NVIDIA Tesla V100 SXM2 (float32)
    60 % of the peak                 convolutions and dense layers
    80 % of the bandwidth            everything

Forward of one operation, batch size N, all tensors float32, each read and written once:
    conv, dense   2 flops per multiply-add; reads input and weights, writes output
    batch norm    reads its input twice (statistics, then result), writes its output
    relu          in place: reads and writes its output once
    pool          reads input, writes output, max pooling also 8 bytes of index per output
    dropout       reads input, writes output and a mask of 1 byte per element
    add           in place: reads two tensors, writes one

Backward:
    conv, dense   the gradients of input and of weights each as many flops as forward; the input's
                  reads the output's gradient and the weights and writes the input's gradient,
                  the weights' reads the output's gradient and the input and writes the weights'
                  gradient; the first layer of a network has no gradient of the input
    batch norm    reads input and gradient twice, writes the gradient; counted with the input's
    relu          reads output and gradient, writes the gradient
    pool          reads the output's gradient and the index, writes the input's gradient
    dropout       reads gradient and mask, writes the gradient
    add           passes the gradient on; where two branches start from one tensor their gradients
                  are added (reads two, writes one)

Update: stochastic gradient descent with momentum: reads weights, gradient and momentum, writes
weights and momentum.

Kept for backward, as automatic differentiation keeps it, each tensor once, by the layer that reads
it:
    conv, dense   the input
    batch norm    the input, and mean and deviation per channel
    relu          its output, which the next operation reads (in place: its input is gone)
    max pooling   the input and the index
    dropout       the mask
A rectified output at the end of a layer is therefore counted as the input of the next layer.

No workspace, no loss function, no time to launch kernels, no overlap of operations.

    python3 scenarios/models/estimate.py            writes both files beside the script
    python3 scenarios/models/estimate.py FOLDER     writes them there
"""

import json
import pathlib
import sys

BATCH = 128
FLOAT = 4
INDEX = 8  # bytes of an index of max pooling
MASK = 1  # bytes of an element of a dropout mask

PEAK_FLOPS = 15.7e12
MATRIX_EFFICIENCY = 0.6
PEAK_BANDWIDTH = 900e9
BANDWIDTH_EFFICIENCY = 0.8

DATE = "2026-11-21"
SOURCE = "estimate.py: roofline estimates from the architecture, nothing measured"
HARDWARE = "none; assumed device: 15.7 Tflop/s and 900 GB/s (data sheet of the V100 SXM2, float32)"
NOTES = (
    "60 % of the peak rate for convolutions and dense layers, 80 % of the bandwidth for all memory "
    "traffic; SGD with momentum; no workspace, loss, launch time or overlap. "
)


def roofline(flops, traffic):
    """Seconds: the longer of computing and moving."""
    computing = flops / (PEAK_FLOPS * MATRIX_EFFICIENCY)
    moving = traffic / (PEAK_BANDWIDTH * BANDWIDTH_EFFICIENCY)
    return max(computing, moving)


class Layer:
    """Sums up the operations of one layer of the chain."""

    def __init__(self, name, first=False):
        self.name = name
        self.first = first  # of the network: no gradient of its input
        self.forward = self.backward_input = self.backward_weight = 0.0
        self.parameters = self.multiply_adds = 0
        self.kept = self.output = 0

    def _matrix(self, multiply_adds, weights, bias, read, written):
        """A convolution or dense layer; `read` and `written` are elements of input and output."""
        flops = 2 * multiply_adds
        traffic = FLOAT * (read + written + weights)
        self.forward += roofline(flops, traffic)
        if not self.first:
            self.backward_input += roofline(flops, traffic)
        self.backward_weight += roofline(flops, traffic)
        self.parameters += weights + bias
        self.multiply_adds += multiply_adds
        self.kept += FLOAT * read
        self.first = False

    def conv(self, c_in, c_out, kernel, size_in, size_out, bias):
        weights = kernel * kernel * c_in * c_out
        self._matrix(
            BATCH * size_out * size_out * weights,
            weights,
            c_out if bias else 0,
            BATCH * c_in * size_in * size_in,
            BATCH * c_out * size_out * size_out,
        )

    def dense(self, n_in, n_out):
        self._matrix(BATCH * n_in * n_out, n_in * n_out, n_out, BATCH * n_in, BATCH * n_out)

    def batch_norm(self, channels, size):
        elements = BATCH * channels * size * size
        self.forward += roofline(0, 3 * FLOAT * elements)
        self.backward_input += roofline(0, 5 * FLOAT * elements)
        self.parameters += 2 * channels
        self.kept += FLOAT * (elements + 2 * channels)

    def relu(self, elements):
        """In place. What it keeps is counted where its output is read."""
        self.forward += roofline(0, 2 * FLOAT * elements)
        self.backward_input += roofline(0, 3 * FLOAT * elements)

    def dropout(self, elements):
        self.forward += roofline(0, (2 * FLOAT + MASK) * elements)
        self.backward_input += roofline(0, (2 * FLOAT + MASK) * elements)
        self.kept += MASK * elements

    def max_pool(self, channels, size_in, size_out):
        read = BATCH * channels * size_in * size_in
        written = BATCH * channels * size_out * size_out
        traffic = FLOAT * (read + written) + INDEX * written
        self.forward += roofline(0, traffic)
        self.backward_input += roofline(0, traffic)
        self.kept += FLOAT * read + INDEX * written

    def average_pool(self, channels, size_in):
        traffic = FLOAT * BATCH * channels * (size_in * size_in + 1)
        self.forward += roofline(0, traffic)
        self.backward_input += roofline(0, traffic)

    def add(self, elements, forward=True):
        seconds = roofline(0, 3 * FLOAT * elements)
        if forward:
            self.forward += seconds
        else:
            self.backward_input += seconds

    def keep(self, elements):
        self.kept += FLOAT * elements

    def hand_on(self, elements):
        self.output = FLOAT * elements
        return self

    def json(self):
        weights = FLOAT * self.parameters
        return {
            "name": self.name,
            "forward": milliseconds(self.forward),
            "backward_input": milliseconds(self.backward_input),
            "backward_weight": milliseconds(self.backward_weight),
            "update": milliseconds(roofline(0, 5 * weights)),
            "weights": weights,
            "output": self.output,
            "kept": self.kept,
        }


def milliseconds(seconds):
    return f"{seconds * 1e3:.6g} ms"


def vgg16():
    """Configuration D: Simonyan and Zisserman, Very Deep Convolutional Networks, 2015, table 1"""
    layers = []
    size, channels = 224, 3
    stages = [(64, 2), (128, 2), (256, 3), (512, 3), (512, 3)]
    for stage, (width, convs) in enumerate(stages, 1):
        for i in range(1, convs + 1):
            layer = Layer(f"conv{stage}_{i}", first=not layers)
            layer.conv(channels, width, 3, size, size, bias=True)
            channels = width
            layer.relu(BATCH * channels * size * size)
            layers.append(layer.hand_on(BATCH * channels * size * size))
        layer = Layer(f"pool{stage}")
        layer.max_pool(channels, size, size // 2)
        size //= 2
        layers.append(layer.hand_on(BATCH * channels * size * size))
    features = channels * size * size
    for name, width in [("fc6", 4096), ("fc7", 4096), ("fc8", 1000)]:
        layer = Layer(name)
        layer.dense(features, width)
        features = width
        if name != "fc8":
            layer.relu(BATCH * width)
            layer.dropout(BATCH * width)
            layer.keep(BATCH * width)  # the rectified tensor: the next layer reads dropout's output
        layers.append(layer.hand_on(BATCH * width))
    return layers


def bottleneck(name, c_in, width, size_in, stride):
    """A block of three convolutions and a shortcut, the stride in the 3x3 convolution."""
    size = size_in // stride
    c_out = 4 * width
    inner = BATCH * width * size_in * size_in
    middle = BATCH * width * size * size
    outer = BATCH * c_out * size * size
    layer = Layer(name)
    layer.conv(c_in, width, 1, size_in, size_in, bias=False)
    layer.batch_norm(width, size_in)
    layer.relu(inner)
    layer.conv(width, width, 3, size_in, size, bias=False)
    layer.batch_norm(width, size)
    layer.relu(middle)
    layer.conv(width, c_out, 1, size, size, bias=False)
    layer.batch_norm(c_out, size)
    if stride != 1 or c_in != c_out:
        read = BATCH * c_in * size_in * size_in
        layer.conv(c_in, c_out, 1, size_in, size, bias=False)
        layer.keep(-read)  # the first convolution keeps the same tensor
        layer.batch_norm(c_out, size)
    layer.add(outer)
    layer.relu(outer)
    layer.add(BATCH * c_in * size_in * size_in, forward=False)
    return layer.hand_on(outer)


def resnet50():
    """He et al., Deep Residual Learning for Image Recognition, 2016, table 1; with the stride in
    the 3x3 convolutions, as current frameworks have it (4.09 instead of 3.86 G multiply-adds)."""
    stem = Layer("stem", first=True)
    stem.conv(3, 64, 7, 224, 112, bias=False)
    stem.batch_norm(64, 112)
    stem.relu(BATCH * 64 * 112 * 112)
    stem.max_pool(64, 112, 56)
    layers = [stem.hand_on(BATCH * 64 * 56 * 56)]
    channels, size = 64, 56
    stages = [(64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)]
    for stage, (width, blocks, first_stride) in enumerate(stages, 2):
        for i in range(1, blocks + 1):
            stride = first_stride if i == 1 else 1
            layers.append(bottleneck(f"conv{stage}_{i}", channels, width, size, stride))
            channels, size = 4 * width, size // stride
    head = Layer("head")
    head.keep(BATCH * channels * size * size)  # the last block's rectified output
    head.average_pool(channels, size)
    head.dense(channels, 1000)
    layers.append(head.hand_on(BATCH * 1000))
    return layers


def write(path, name, layers, parameters, multiply_adds, notes):
    """One line per layer. The published totals guard against a wrong architecture."""
    if sum(layer.parameters for layer in layers) != parameters:
        sys.exit(f"{name}: must have {parameters} parameters")
    if sum(layer.multiply_adds for layer in layers) != BATCH * multiply_adds:
        sys.exit(f"{name}: must take {multiply_adds} multiply-adds per sample")
    provenance = {"source": SOURCE, "hardware": HARDWARE, "date": DATE, "notes": NOTES + notes}
    head = {
        "schema_version": 1,
        "name": name,
        "batch_size": BATCH,
        "input": FLOAT * BATCH * 3 * 224 * 224,
        "provenance": provenance,
    }
    text = json.dumps(head, indent=2)[:-2] + ',\n  "layers": [\n'
    text += ",\n".join("    " + json.dumps(layer.json()) for layer in layers)
    path.write_text(text + "\n  ]\n}\n", encoding="utf-8")


def main(arguments):
    folder = pathlib.Path(arguments[1]) if len(arguments) > 1 else pathlib.Path(__file__).parent
    write(
        folder / "vgg16.json",
        "vgg16",
        vgg16(),
        138_357_544,
        15_470_264_320,
        "A layer is a convolution or dense layer with its rectifier (and dropout), or a pooling.",
    )
    write(
        folder / "resnet50.json",
        "resnet50",
        resnet50(),
        25_557_032,
        4_089_184_256,
        "A layer is a bottleneck block, or the stem, or the head.",
    )


if __name__ == "__main__":
    main(sys.argv)

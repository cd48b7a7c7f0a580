"""Reads training steps that tests/unit/bench/torch_test.cpp wrote, one a file, repeats each in PyTorch with the same weights, images and dropout masks, and
compares outputs, loss and all gradients. PyTorch computes in double precision, so that what differs is our rounding and not also its
own: in single precision either may pick another pixel where two in a pooling window are equal but for the last bit. Ends 1 if any
differs."""

import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

SHAPES = [
    ("fc2.weight", (10, 50)),
    ("fc2.bias", (10,)),
    ("fc1.weight", (50, 320)),
    ("fc1.bias", (50,)),
    ("conv2.weight", (20, 10, 5, 5)),
    ("conv2.bias", (20,)),
    ("conv1.weight", (10, 1, 5, 5)),
    ("conv1.bias", (10,)),
]

failed = False


class Reader:
    def __init__(self, path):
        self.content = open(path, "rb").read()
        self.place = 0

    def take(self, kind, shape):
        count = int(np.prod(shape))
        out = np.frombuffer(self.content, kind, count, self.place).reshape(shape)
        self.place += out.nbytes
        return torch.from_numpy(np.array(out, np.float64 if kind == np.float32 else kind))

    def parameters(self):
        return {name: self.take(np.float32, shape) for name, shape in SHAPES}


def compare(name, got, want, tolerance):
    global failed
    difference = (got - want).abs().max().item()
    scale = max(want.abs().max().item(), 1e-3)
    wrong = not difference <= tolerance * scale
    failed |= wrong
    print(f"{name}: largest difference {difference:.3g} of {scale:.3g}{'  DIFFERS' if wrong else ''}")


def check(path):
    print(os.path.basename(path))
    step = Reader(path)
    images = int(step.take(np.int32, (1,))[0])
    pixels = step.take(np.uint8, (images, 1, 28, 28))
    labels = step.take(np.uint8, (images,)).long()
    w = {name: value.requires_grad_() for name, value in step.parameters().items()}
    masks = step.take(np.float32, (images, 70))
    outputs = step.take(np.float32, (images, 10))
    loss = step.take(np.float32, (1,))
    gradients = step.parameters()
    assert step.place == len(step.content), (step.place, len(step.content))

    x = (pixels.double() / 255 - 0.1307) / 0.3081
    x = F.relu(F.max_pool2d(F.conv2d(x, w["conv1.weight"], w["conv1.bias"]), 2))
    x = F.conv2d(x, w["conv2.weight"], w["conv2.bias"]) * masks[:, :20, None, None]
    x = F.relu(F.max_pool2d(x, 2)).reshape(-1, 320)
    x = F.relu(F.linear(x, w["fc1.weight"], w["fc1.bias"])) * masks[:, 20:]
    x = F.linear(x, w["fc2.weight"], w["fc2.bias"])
    expected_loss = F.nll_loss(F.log_softmax(x, dim=1), labels)
    expected_loss.backward()

    compare("outputs", outputs, x.detach(), 1e-5)
    compare("loss", loss, expected_loss.detach().reshape(1), 1e-5)
    for name, _ in SHAPES:
        compare(name, gradients[name], w[name].grad, 2e-5)


for argument in sys.argv[1:]:
    check(argument)
sys.exit(failed)

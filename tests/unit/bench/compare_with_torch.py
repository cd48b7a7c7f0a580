"""Reads training steps that tests/unit/bench/torch_test.cpp wrote, one a file, repeats each in PyTorch with the same weights, images and dropout masks, and
compares outputs, loss and all gradients. PyTorch computes in double precision, so that what differs is our rounding and not also its
own: in single precision either may pick another pixel where two in a pooling window are equal but for the last bit. Ends 1 if any
differs."""

import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

MNIST = [
    ("fc2.weight", (10, 50)),
    ("fc2.bias", (10,)),
    ("fc1.weight", (50, 320)),
    ("fc1.bias", (50,)),
    ("conv2.weight", (20, 10, 5, 5)),
    ("conv2.bias", (20,)),
    ("conv1.weight", (10, 1, 5, 5)),
    ("conv1.bias", (10,)),
]
CIFAR = []
for _name, _shape in (
    ("fc3", (10, 4096)),
    ("fc2", (4096, 4096)),
    ("fc1", (4096, 1024)),
    ("conv5", (256, 256, 3, 3)),
    ("conv4", (256, 384, 3, 3)),
    ("conv3", (384, 192, 3, 3)),
    ("conv2", (192, 64, 3, 3)),
    ("conv1", (64, 3, 3, 3)),
):
    CIFAR += [(_name + ".weight", _shape), (_name + ".bias", _shape[:1])]

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

    def parameters(self, shapes):
        return {name: self.take(np.float32, shape) for name, shape in shapes}


def compare(name, got, want, tolerance):
    global failed
    difference = (got - want).abs().max().item()
    scale = max(want.abs().max().item(), 1e-3)
    wrong = not difference <= tolerance * scale
    failed |= wrong
    print(f"{name}: largest difference {difference:.3g} of {scale:.3g}{'  DIFFERS' if wrong else ''}")


def mnist(pixels, w, masks):
    x = (pixels.double() / 255 - 0.1307) / 0.3081
    x = F.relu(F.max_pool2d(F.conv2d(x, w["conv1.weight"], w["conv1.bias"]), 2))
    x = F.conv2d(x, w["conv2.weight"], w["conv2.bias"]) * masks[:, :20, None, None]
    x = F.relu(F.max_pool2d(x, 2)).reshape(-1, 320)
    x = F.relu(F.linear(x, w["fc1.weight"], w["fc1.bias"])) * masks[:, 20:]
    return F.linear(x, w["fc2.weight"], w["fc2.bias"])


def cifar(pixels, w, masks):
    x = (pixels.double() / 255 - 0.5) / 0.5
    for i in range(1, 6):
        x = F.relu(F.conv2d(x, w[f"conv{i}.weight"], w[f"conv{i}.bias"], stride=2 if i == 1 else 1, padding=1))
        x = F.max_pool2d(x, 2) if i in (1, 2, 5) else x
    x = x.reshape(-1, 1024) * masks[:, :1024]
    x = F.relu(F.linear(x, w["fc1.weight"], w["fc1.bias"])) * masks[:, 1024:]
    x = F.relu(F.linear(x, w["fc2.weight"], w["fc2.bias"]))
    return F.linear(x, w["fc3.weight"], w["fc3.bias"])


def check(path):
    print(os.path.basename(path))
    step = Reader(path)
    channels, images = step.take(np.int32, (2,)).tolist()
    net, shapes, size, units = (mnist, MNIST, 28, 70) if channels == 1 else (cifar, CIFAR, 32, 5120)
    pixels = step.take(np.uint8, (images, channels, size, size))
    labels = step.take(np.uint8, (images,)).long()
    w = {name: value.requires_grad_() for name, value in step.parameters(shapes).items()}
    masks = step.take(np.float32, (images, units))
    outputs = step.take(np.float32, (images, 10))
    loss = step.take(np.float32, (1,))
    gradients = step.parameters(shapes)
    assert step.place == len(step.content), (step.place, len(step.content))

    x = net(pixels, w, masks)
    expected_loss = F.nll_loss(F.log_softmax(x, dim=1), labels)
    expected_loss.backward()

    compare("outputs", outputs, x.detach(), 1e-5)
    compare("loss", loss, expected_loss.detach().reshape(1), 1e-5)
    for name, _ in shapes:
        compare(name, gradients[name], w[name].grad, 2e-5)


for argument in sys.argv[1:]:
    check(argument)
sys.exit(failed)

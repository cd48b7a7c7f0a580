"""Trains on Fashion-MNIST with Keras 3, on whatever backend KERAS_BACKEND names: muster run -n 2 -- python3 keras3_mnist.py"""

import argparse
import sys

import fashion_mnist

try:
    import keras
except ImportError:
    print("this example needs Keras 3: pip install keras, and one of torch, tensorflow and jax")
    sys.exit(77)

import muster.keras as hvd

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=64, help="of each rank")
parser.add_argument("--samples", type=int, default=60000)
args = parser.parse_args()

hvd.init()
keras.utils.set_random_seed(1 + hvd.rank())

mine = slice(hvd.rank(), args.samples - args.samples % hvd.size(), hvd.size())  # as many for each rank: ranks take steps together
images, labels = fashion_mnist.load(args.samples)
model = keras.Sequential([keras.layers.Input((784,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)])
optimizer = hvd.DistributedOptimizer(keras.optimizers.SGD(0.02 * hvd.size(), momentum=0.9))
model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], jit_compile=False)
callbacks = [hvd.callbacks.BroadcastGlobalVariablesCallback(0), hvd.callbacks.MetricAverageCallback()]
history = model.fit(images[mine], labels[mine], args.batch_size, args.epochs, verbose=0, callbacks=callbacks)

images, labels = fashion_mnist.load(10000, train=False)
part = slice(hvd.rank(), None, hvd.size())
right = (model.predict(images[part], verbose=0).argmax(1) == labels[part]).sum()
accuracy = int(hvd.allreduce(right, op=hvd.Sum)) / len(labels)
if hvd.rank() == 0:
    print(f"epoch {args.epochs - 1}: accuracy {accuracy:.3f} of the test images, {hvd.size()} ranks, Keras on {keras.backend.backend()}", flush=True)

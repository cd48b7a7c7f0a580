"""Trains models of tf.keras on several ranks: `import muster.tensorflow.keras as hvd`. The same as muster.keras, on the Keras that TensorFlow uses."""

from muster.keras import *  # noqa: F401,F403
from muster.tensorflow.keras import callbacks, elastic  # noqa: F401

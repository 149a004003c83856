"""Six models that TensorFlow writes with their variables."""

from .exported import keras_cnn, keras_lstm, module_with_loop
from .graphs import adam, partitioned, queue

ALL = {
    "keras_cnn": keras_cnn,
    "keras_lstm": keras_lstm,
    "module_with_loop": module_with_loop,
    "adam": adam,
    "queue": queue,
    "partitioned": partitioned,
}

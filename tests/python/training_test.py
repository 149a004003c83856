"""Networks, random numbers, optimizers, and whole trainings."""

import gzip
import math
import pathlib

import numpy as np
import pytest

import tagflow
import tagflow.numpy as tnp
from tagflow import nn, optim, random

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(3, 5))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(
        x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "sigmoid": sigmoid,
    "log_sigmoid": lambda x: np.log(sigmoid(x)),
    "silu": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "tanh": np.tanh,
    "softmax": softmax,
    "log_softmax": lambda x: np.log(softmax(x)),
    "logsumexp": lambda x: np.log(np.sum(np.exp(x))),
    "layer_norm": lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(
        x.var(-1, keepdims=True) + 1e-6),
    "rms_norm": lambda x: x / np.sqrt((x ** 2).mean(-1, keepdims=True) + 1e-6),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_their_formulas(name):
    got = tagflow.function(getattr(nn, name))(X)
    np.testing.assert_allclose(got, ACTIVATIONS[name](X), rtol=2e-6)


def test_gelu_in_both_forms():
    exact = X * 0.5 * (1 + np.vectorize(math.erf)(X / math.sqrt(2)))
    np.testing.assert_allclose(nn.gelu(X, approximate=False), exact, rtol=1e-9)
    np.testing.assert_allclose(nn.gelu(X), exact, atol=1e-3)


def test_softmax_goes_along_any_axis():
    np.testing.assert_allclose(nn.softmax(X, axis=0), softmax(X, 0))


def test_losses_are_their_formulas():
    labels = np.array([0, 4, 2])
    log = np.log(softmax(X))
    expected = -log[np.arange(3), labels]
    np.testing.assert_allclose(
        nn.sparse_softmax_cross_entropy(X, labels), expected)
    np.testing.assert_allclose(
        nn.softmax_cross_entropy(X, np.eye(5)[labels]), expected)
    y = sigmoid(RANDOM.normal(size=X.shape))
    np.testing.assert_allclose(
        nn.sigmoid_cross_entropy(X, y),
        -y * np.log(sigmoid(X)) - (1 - y) * np.log(1 - sigmoid(X)))
    np.testing.assert_allclose(nn.mean_squared_error(X, y),
                               ((X - y) ** 2).mean())


def test_convolutions_and_pools():
    x = RANDOM.normal(size=(2, 5, 6, 3)).astype(np.float32)
    kernel = RANDOM.normal(size=(3, 2, 3, 4)).astype(np.float32)
    expected = np.zeros((2, 3, 5, 4))
    for i in range(3):
        for j in range(5):
            expected[:, i, j] = np.einsum(
                "bhwc,hwcd->bd", x[:, i:i + 3, j:j + 2], kernel)
    np.testing.assert_allclose(nn.conv(x, kernel, padding="VALID"), expected,
                               rtol=1e-4, atol=1e-5)
    windows = x[:, :4].reshape(2, 2, 2, 3, 2, 3)
    np.testing.assert_allclose(nn.max_pool(x), windows.max((2, 4)))
    np.testing.assert_allclose(nn.avg_pool(x), windows.mean((2, 4)), rtol=1e-5)
    assert nn.depthwise_conv(x, kernel[:, :, :, :2]).shape == (2, 5, 6, 6)


def test_a_key_gives_the_same_numbers_each_time():
    key = random.key(42)
    a = random.normal(key, (3,))
    np.testing.assert_array_equal(a, random.normal(key, (3,)))
    one, two = random.split(key)
    assert not np.array_equal(random.normal(one, (3,)),
                              random.normal(two, (3,)))
    traced = tagflow.function(lambda k: random.normal(k, (3,)))
    np.testing.assert_array_equal(a, traced(key))
    assert not np.array_equal(random.fold_in(key, 1), random.fold_in(key, 2))
    with pytest.raises(TypeError, match="no key"):
        random.normal(np.float32(1), (3,))


def test_distributions_have_their_moments():
    n = 20000
    keys = random.split(random.key(1), 9)
    x = random.normal(keys[0], (n,))
    assert abs(x.mean()) < 0.03 and abs(x.std() - 1) < 0.03
    u = random.uniform(keys[1], (n,), minval=-1.0, maxval=3.0)
    assert u.min() >= -1 and u.max() < 3 and abs(u.mean() - 1) < 0.05
    i = random.randint(keys[2], (n,), 2, 5)
    assert set(i.tolist()) == {2, 3, 4}
    assert abs(random.bernoulli(keys[3], 0.3, (n,)).mean() - 0.3) < 0.02
    assert abs(random.exponential(keys[4], (n,)).mean() - 1) < 0.05
    logits = np.log(np.array([0.2, 0.8], np.float32))
    drawn = random.categorical(keys[5], np.broadcast_to(logits, (n, 2)))
    assert abs(drawn.mean() - 0.8) < 0.02
    assert sorted(random.permutation(keys[6], 10).tolist()) == list(range(10))
    assert np.abs(random.truncated_normal(keys[7], (n,))).max() < 2
    assert random.choice(keys[8], np.arange(5), (7,)).shape == (7,)
    kept = nn.dropout(keys[0], np.ones(n, np.float32), 0.25)
    assert abs((kept == 0).mean() - 0.25) < 0.02 and abs(kept.mean() - 1) < 0.03


def steps_of(optimizer, formula, count=4):
    """Runs an optimizer beside a formula in NumPy."""
    p = {"w": np.array([1.0, -2.0]), "b": [np.float64(0.5)]}
    state = optimizer.init(p)
    expected = {"w": p["w"].copy(), "b": 0.5}
    memory = {"w": {}, "b": {}}
    for t in range(1, count + 1):
        g = {"w": np.sin(np.asarray(p["w"]) * t), "b": [np.cos(p["b"][0] * t)]}
        for name, grad in (("w", g["w"]), ("b", g["b"][0])):
            expected[name] = formula(expected[name], grad, memory[name], t)
        p, state = optimizer.update(g, state, p)
        np.testing.assert_allclose(p["w"], expected["w"], rtol=1e-12)
        np.testing.assert_allclose(p["b"][0], expected["b"], rtol=1e-12)
    assert state["step"] == count


def momentum(p, g, m, t):
    m["a"] = 0.9 * m.get("a", 0) + g
    return p - 0.1 * m["a"]


def nesterov(p, g, m, t):
    m["a"] = 0.9 * m.get("a", 0) + g
    return p - 0.1 * (g + 0.9 * m["a"])


def adagrad(p, g, m, t):
    m["a"] = m.get("a", 0.1) + g * g
    return p - 0.1 * g / np.sqrt(m["a"])


def rmsprop(p, g, m, t):
    m["r"] = 0.9 * m.get("r", 1.0) + 0.1 * g * g
    m["a"] = 0.5 * m.get("a", 0) + 0.1 * g / np.sqrt(m["r"] + 1e-10)
    return p - m["a"]


def adam(p, g, m, t):
    m["m"] = 0.9 * m.get("m", 0) + (1 - 0.9) * g
    m["v"] = 0.999 * m.get("v", 0) + (1 - 0.999) * g * g
    scale = np.sqrt(1 - 0.999 ** t) / (1 - 0.9 ** t)
    return p - 0.1 * scale * m["m"] / (np.sqrt(m["v"]) + 1e-8)


@pytest.mark.parametrize("optimizer, formula", [
    (optim.SGD(0.1), lambda p, g, m, t: p - 0.1 * g),
    (optim.SGD(optim.exponential_decay(0.1, 1, 0.5)),
     lambda p, g, m, t: p - 0.1 * 0.5 ** (t - 1) * g),
    (optim.Momentum(0.1), momentum), (optim.Momentum(0.1, nesterov=True),
                                      nesterov),
    (optim.Adagrad(0.1), adagrad), (optim.RMSProp(0.1, momentum=0.5), rmsprop),
    (optim.Adam(0.1), adam),
    (optim.AdamW(0.1), lambda p, g, m, t: adam(p, g, m, t) - 0.1 * 0.01 * p),
], ids=lambda o: repr(o)[:24] if isinstance(o, optim.Optimizer) else "")
def test_optimizers_are_their_formulas(optimizer, formula):
    if callable(optimizer.learning_rate):
        formula_exact = formula  # the rate is computed in float32

        def formula(p, g, m, t):
            return p - np.float64(np.float32(0.1) * np.float32(0.5) ** (
                t - 1)) * g
        del formula_exact
    steps_of(optimizer, formula)


def test_gradients_are_clipped_by_their_norm():
    g = {"a": np.array([3.0, 0.0]), "b": np.float64(4)}
    assert optim.global_norm(g) == 5
    clipped = optim.clip_by_global_norm(g, 1.0)
    np.testing.assert_allclose(clipped["a"], [0.6, 0])
    np.testing.assert_allclose(optim.clip_by_global_norm(g, 9.0)["b"], 4)
    rate = tagflow.function(optim.cosine_decay(0.2, 10, 0.1))
    np.testing.assert_allclose([rate(0), rate(10), rate(99)], [0.2, 0.02, 0.02],
                               rtol=1e-5)


def test_an_optimizer_runs_in_a_loop_and_is_differentiated():
    optimizer = optim.SGD(0.1)

    def loss(p, target):
        return tnp.sum((p - target) ** 2)

    def trained(target):
        def body(state):
            i, p, s = state
            p, s = optimizer.update(tagflow.grad(loss)(p, target), s, p)
            return i + 1, p, s

        start = tnp.zeros((2,), np.float64)
        return tagflow.while_loop(lambda s: s[0] < 20, body,
                                  (0, start, optimizer.init(start)))[1]

    target = np.array([1.0, -3.0])
    np.testing.assert_allclose(tagflow.function(trained)(target),
                               target * (1 - 0.8 ** 20))
    np.testing.assert_allclose(tagflow.jacobian(trained)(target),
                               np.eye(2) * (1 - 0.8 ** 20))


FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")


def idx(name):
    """The array in a file of the format IDX."""
    with gzip.open(FASHION / name) as file:
        data = file.read()
    rank = data[3]
    shape = np.frombuffer(data, ">i4", rank, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


@pytest.mark.skipif(not FASHION.is_dir(), reason="no dataset-fashion-mnist")
def test_a_network_learns_pictures():
    images = idx("train-images-idx3-ubyte.gz")[:6400].reshape(-1, 784)
    labels = idx("train-labels-idx1-ubyte.gz")[:6400]
    x = (images / np.float32(255)).astype(np.float32)
    optimizer = optim.Adam(1e-3)

    def logits(p, x):
        return nn.relu(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]

    def loss(p, x, y):
        return tnp.mean(nn.sparse_softmax_cross_entropy(logits(p, x), y))

    @tagflow.function
    def epoch(p, state, xs, ys):
        def step(carry, batch):
            p, state = carry
            value, grads = tagflow.value_and_grad(loss)(p, *batch)
            return optimizer.update(grads, state, p), value

        (p, state), losses = tagflow.scan(step, (p, state), (xs, ys))
        return p, state, losses

    key1, key2 = random.split(random.key(0))
    p = {"w1": random.normal(key1, (784, 64)) / np.float32(28),
         "b1": np.zeros(64, np.float32),
         "w2": random.normal(key2, (64, 10)) / np.float32(8),
         "b2": np.zeros(10, np.float32)}
    state = optimizer.init(p)
    for _ in range(3):
        p, state, losses = epoch(p, state, x[:6000].reshape(60, 100, 784),
                                 labels[:6000].reshape(60, 100))
    right = nn.softmax(tagflow.function(logits)(p, x[6000:])).argmax(1)
    assert (right == labels[6000:]).mean() > 0.75
    assert losses[-10:].mean() < 0.7 and state["step"] == 180


@pytest.mark.parametrize("draw, mean, variance", [
    (lambda k, n: random.laplace(k, (n,)), 0, 2),
    (lambda k, n: random.gamma(k, np.float64(3), (n,)), 3, 3),
    (lambda k, n: random.beta(k, 2.0, 3.0, (n,)), 0.4, 0.04),
    (lambda k, n: random.poisson(k, 4.0, (n,)), 4, 4),
    (lambda k, n: random.dirichlet(k, np.array([2.0, 3.0]), (n,))[:, 0],
     0.4, 0.04),
    (lambda k, n: random.multivariate_normal(
        k, np.array([1.0, 2.0]), np.array([[2.0, 1.0], [1.0, 3.0]]), (n,))
     @ np.array([1.0, -1.0]), -1, 3),
])
def test_numbers_are_distributed_as_they_say(draw, mean, variance):
    x = draw(random.key(1), 20000)
    assert x.shape == (20000,)
    assert abs(np.mean(x) - mean) < 0.03 * (1 + abs(mean))
    assert abs(np.var(x) / variance - 1) < 0.06
    assert (draw(random.key(1), 20000) == x).all()
    assert (draw(random.key(2), 20000) != x).any()


def test_parameters_of_distributions_are_broadcast():
    x = random.gamma(random.key(0), np.array([0.5, 100.0]), (1000, 2))
    assert abs(x.mean(0) - [0.5, 100]).max() < 2
    assert random.poisson(random.key(0), np.ones((2, 3))).shape == (2, 3)
    each = tagflow.vmap(lambda k, a: random.gamma(k, a))(
        random.split(random.key(0), 3), np.array([1.0, 2.0, 3.0]))
    assert each.shape == (3,) and len(set(each.tolist())) == 3

"""What the tests of the Python package share."""

import pathlib

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def graphs():
    """The folder with graphs as text."""
    return TOP / "tests/apps/graphs"


@pytest.fixture
def models():
    """The folder with models that TensorFlow exported."""
    return TOP / "tests/apps/models"


def nodes(*texts):
    """A GraphDef as text: 'name op attr=... <- input input'."""
    import tagflow
    return tagflow.Graph._parse_text("\n".join(texts))


def placeholder(name, dtype, shape=None):
    """A node that is fed."""
    dims = "" if shape is None else "".join(
        f" dim {{ size: {d} }}" for d in shape)
    known = f" attr {{ key: 'shape' value {{ shape {{{dims} }} }} }}" \
        if shape is not None else ""
    return (f"node {{ name: '{name}' op: 'Placeholder' attr {{ key: 'dtype' "
            f"value {{ type: DT_{dtype} }} }}{known} }}")


def op(name, kind, *inputs, **types):
    """A node with attributes that are types."""
    attrs = "".join(f" attr {{ key: '{key}' value {{ type: DT_{value} }} }}"
                    for key, value in types.items())
    return f"node {{ name: '{name}' op: '{kind}'" + "".join(
        f" input: '{i}'" for i in inputs) + attrs + " }"

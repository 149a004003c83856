"""Writes the small models that are ordinary tests.

usage: python -m models.record FOLDER    in tests/with_tensorflow, in a Python
                                         with tensorflow; FOLDER is
                                         tests/apps/models
"""

import pathlib
import shutil
import sys

from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from . import ALL

STEPS = 6
# What says how a graph came to be, and no more.
NOTES = ("_output_shapes", "_XlaMustCompile", "debug_name", "api_implements",
         "_construction_context", "_read_only_resource_inputs")


def functions_of(node):
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        yield from (function.name for function in value.list.func)


def shrink(meta_graph):
    """Takes off what no run needs."""
    graph = meta_graph.graph_def
    functions = {f.signature.name: f for f in graph.library.function}
    needed, found = set(), list(graph.node)
    while found:
        for name in functions_of(found.pop()):
            if name in functions and name not in needed:
                needed.add(name)
                found.extend(functions[name].node_def)
    kept = [functions[name] for name in sorted(needed)]
    nodes = [*graph.node, *(n for f in kept for n in f.node_def)]
    for node in nodes:
        node.ClearField("experimental_debug_info")
    for attrs in [*(n.attr for n in nodes), *(f.attr for f in kept)]:
        for name in NOTES:
            attrs.pop(name, None)
    for function in kept:
        function.arg_attr.clear()
        function.resource_arg_unique_id.clear()
    del graph.library.function[:]
    graph.library.function.extend(kept)
    meta_graph.meta_info_def.ClearField("stripped_op_list")
    for name in ("while_context", "cond_context", "trainable_variables"):
        meta_graph.collection_def.pop(name, None)
    objects = meta_graph.object_graph_def
    for name in [n for n in objects.concrete_functions if n not in needed]:
        del objects.concrete_functions[name]


def shrink_file(path):
    if path.suffix == ".meta":
        proto = meta_graph_pb2.MetaGraphDef()
        proto.ParseFromString(path.read_bytes())
        shrink(proto)
    else:
        proto = saved_model_pb2.SavedModel()
        proto.ParseFromString(path.read_bytes())
        shrink(proto.meta_graphs[0])
    path.write_bytes(proto.SerializeToString(deterministic=True))


def main():
    for name, make in ALL.items():
        folder = pathlib.Path(sys.argv[1]) / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder, STEPS, small=True)
        (folder / "model" / "fingerprint.pb").unlink(missing_ok=True)
        for path in [*folder.glob("*.meta"), *folder.glob("model/*.pb")]:
            shrink_file(path)


if __name__ == "__main__":
    main()

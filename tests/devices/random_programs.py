"""Random programs of a few nodes: TensorArrays, lists, stacks, optionals."""
import numpy as np
from random_graphs import Program
from random_ops import *


def i32(v):
    return np.array(v, np.int32)


def finish(p, label, fetches):
    p.fetches, p.label = fetches, label
    p.describe = label + " " + " ".join(
        f"{n.op}({','.join(n.input)})" for n in p.graph.node
        if n.op not in ("Const", "Placeholder")) + " " + " ".join(
        f"{k}={v.dtype}{list(v.shape)}{v.tolist() if v.size < 9 else '..'}"
        for k, v in p.feeds.items()) + " " + str(
            [str(dict((k, str(a).strip()) for k, a in n.attr.items()))
             for n in p.graph.node
             if n.op not in ("Const", "Placeholder")]).replace("\\n", " ")[:600]
    return p


DT = ["float32", "int32", "int64", "float64", "bool", "string"]


def maybe_shape(dims):
    return rnd.choice([None, None, list(dims), [-1] * len(dims), shape()])


def arrays():
    for _ in range(6):
        p = Program()
        dtype = rnd.choice(DT)
        n = rnd.randint(-rare(), 4)
        elem = shape(rnd.randint(0, 2), 3)
        handle, flow = p.add("TensorArrayV3", [i32(n)], {
            "dtype": dtype, "element_shape": maybe_shape(elem),
            "dynamic_size": rare(0.4), "clear_after_read": rare(0.5),
            "identical_element_shapes": rare(0.3)})
        fetches = []

        def other():
            return elem if not rare(0.1) else shape()

        def type_of():
            return dtype if not rare(0.04) else rnd.choice(DT)
        written = rnd.random()
        if written < 0.4:
            for i in range(max(n, 0) + rare(0.1)):
                if rare(0.1):
                    continue
                flow, = p.add("TensorArrayWriteV3", [
                    handle, i32(i if not rare(0.07) else rnd.randint(-1, 5)),
                    tensor(other(), type_of()), flow], {})
        elif written < 0.7:
            count = rnd.randint(0, max(n, 0) + rare())
            at = rnd.sample(range(max(n, count) or 1), min(count, max(n, count)))
            if at and rare(0.1):
                at[0] = rnd.choice([-1, 7, at[-1]])
            flow, = p.add("TensorArrayScatterV3", [
                handle, i32(at), tensor([len(at) + rare()] + other(),
                                        type_of()), flow], {})
        else:
            lengths = [rnd.randint(0, 3) for _ in range(max(n, 0) + rare())]
            if rare(0.4):
                lengths = [2] * len(lengths)
            if lengths and rare(0.05):
                lengths[0] = -1
            rest = other()
            flow, = p.add("TensorArraySplitV3", [
                handle, tensor([max(0, sum(lengths)) + rare()] + rest, type_of()),
                np.array(lengths, np.int64), flow], {})
        if rare(0.3):
            handle, flow = p.add("TensorArrayGradV3", [handle, flow],
                                 {"source": "g"})
            for i in range(rnd.randint(0, max(n, 0))):
                flow, = p.add("TensorArrayWriteV3", [
                    handle, i32(i), tensor(other(), type_of()), flow], {})
                if rare(0.3):
                    flow, = p.add("TensorArrayWriteV3", [
                        handle, i32(i), tensor(elem, dtype), flow], {})
        how = rnd.randrange(5)
        if how == 0:
            fetches += p.add("TensorArrayReadV3", [
                handle, i32(rnd.randint(-rare(), max(n - 1, 0))), flow],
                {"dtype": type_of()})
        elif how == 1:
            at = [rnd.randint(-rare(), max(n - 1 + rare(), 0))
                  for _ in range(rnd.randint(0, max(n, 0)))]
            fetches += p.add("TensorArrayGatherV3", [handle, i32(at), flow], {
                "dtype": type_of(), "element_shape": maybe_shape(elem)})
        elif how == 2:
            fetches += p.add("TensorArrayConcatV3", [handle, flow], {
                "dtype": type_of(),
                "element_shape_except0": maybe_shape(elem[1:])})
        elif how == 3:
            fetches += p.add("TensorArraySizeV3", [handle, flow], {})
            fetches += p.add("TensorArrayGatherV3", [
                handle, i32(list(range(max(n, 0)))), flow], {"dtype": dtype})
        else:
            first = p.add("TensorArrayReadV3", [
                handle, i32(0), flow], {"dtype": dtype})
            again = p.add("TensorArrayReadV3", [
                handle, i32(0), flow], {"dtype": dtype}, control=first)
            fetches += first + again
        yield finish(p, "TensorArray", fetches)


def lists():
    for _ in range(8):
        p = Program()
        dtype = rnd.choice(DT)
        elem = shape(rnd.randint(0, 2), 3)
        n = rnd.randint(0, 4)
        st = rnd.choice(["int32", "int64"])

        def es(kind="int32"):
            c = rnd.random()
            if c < 0.3:
                return ints(-1, kind)
            if c < 0.6:
                return ints([-1] * len(elem), kind)
            if c < 0.95:
                return ints(elem, kind)
            return ints([rnd.randint(-2, 3) for _ in range(rnd.randint(0, 3))],
                        kind)

        def other():
            return elem if not rare(0.08) else shape()

        def type_of():
            return dtype if not rare(0.04) else rnd.choice(DT)
        how = rnd.randrange(7)
        ed = {"element_dtype": dtype}
        if how == 0:
            l, = p.add("TensorListReserve", [es(st), i32(n - rare())],
                       dict(ed, shape_type=st))
        elif how == 1:
            l, = p.add("EmptyTensorList", [es(st), i32(
                rnd.choice([-1, -1, n, 10]))], dict(ed, shape_type=st))
        elif how == 2:
            l, = p.add("TensorListFromTensor", [
                tensor([n] + elem if not rare() else shape(), dtype), es(st)],
                dict(ed, shape_type=st))
        elif how == 3:
            at = rnd.sample(range(n + 2), n)
            if at and rare(0.1):
                at[0] = rnd.choice([-1, at[-1]])
            l, = p.add("TensorListScatterV2", [
                tensor([len(at) + rare()] + other(), dtype), i32(at), es(st),
                i32(rnd.choice([-1, -1, n + 2, 0, 1]))],
                dict(ed, shape_type=st))
        elif how == 4:
            at = rnd.sample(range(n + 2), n)
            l, = p.add("TensorListScatter", [
                tensor([len(at)] + other(), dtype), i32(at), es(st)],
                dict(ed, shape_type=st))
        elif how == 5:
            lengths = [rnd.randint(0, 3) for _ in range(n)]
            if lengths and rare():
                lengths[0] -= 4
            l, = p.add("TensorListSplit", [
                tensor([max(0, sum(lengths)) + rare()] + elem[1:], dtype),
                ints([-1] + elem[1:] if not rare(0.2) else elem, st),
                ints(lengths, "int64")], dict(ed, shape_type=st))
        else:
            l, = p.add("TensorListReserve", [es(st), i32(n)],
                       dict(ed, shape_type=st))
            for i in range(n):
                if rare(0.15):
                    continue
                l, = p.add("TensorListSetItem", [
                    l, i32(i if not rare() else rnd.choice([-1, n])),
                    tensor(other(), dtype)], dict(
                        ed, resize_if_index_out_of_bounds=rare(0.3)))
        fetches = []
        for _ in range(rnd.randint(0, 4)):
            w = rnd.randrange(8)
            if w == 0:
                l, = p.add("TensorListPushBack", [
                    l, tensor(other(), type_of())], ed)
            elif w == 1:
                l, t = p.add("TensorListPopBack", [l, es()], ed)
                fetches.append(t)
            elif w == 2:
                l, = p.add("TensorListResize", [
                    l, i32(rnd.randint(-rare(), 5))], {})
            elif w == 3:
                l, = p.add("TensorListSetItem", [
                    l, i32(rnd.randint(-rare(), max(0, n))),
                    tensor(other(), type_of())], dict(
                        ed, resize_if_index_out_of_bounds=rare(0.3)))
            elif w == 4:
                fetches += p.add("TensorListGetItem", [
                    l, i32(rnd.randint(-rare(), max(0, n - 1) + rare())),
                    es()], dict(ed, element_dtype=type_of()))
            elif w == 5:
                l, = p.add("TensorListConcatLists", [l, l], ed)
            elif w == 6:
                at = [rnd.randint(-rare(), max(0, n - 1))
                      for _ in range(rnd.randint(0, 2))]
                l, = p.add("TensorListScatterIntoExistingList", [
                    l, tensor([len(at)] + other(), dtype), i32(at)], ed)
            else:
                fetches += p.add("TensorListElementShape", [l], {
                    "shape_type": st})
        fetches += p.add("TensorListLength", [l], {})
        w = rnd.randrange(4)
        if w == 0:
            fetches += p.add("TensorListStack", [l, es()], dict(
                ed, num_elements=rnd.choice([-1, -1, n])))
        elif w == 1:
            at = [rnd.randint(-rare(), max(0, n - 1))
                  for _ in range(rnd.randint(0, 4))]
            fetches += p.add("TensorListGather", [l, i32(at), es()], ed)
        elif w == 2:
            fetches += p.add("TensorListConcatV2", [
                l, rnd.choice([ints(-1, st), ints([-1] + elem[1:], st),
                               ints(elem, st)]),
                ints([rnd.randint(0, 3)] * rnd.choice([0, 0, 0, n]), "int64")],
                dict(ed, shape_type=st))
        else:
            fetches += p.add("TensorListConcat", [l], dict(
                ed, element_shape=maybe_shape(elem)))
        yield finish(p, "TensorList", fetches)


def stacks():
    p = Program()
    dtype = rnd.choice(DT)
    h, = p.add("StackV2", [i32(rnd.choice([-1, 0, 1, 3]))],
               {"elem_type": dtype, "stack_name": "s"})
    last = None
    depth = 0
    fetches = []
    for _ in range(rnd.randint(1, 5)):
        if rare(0.6):
            o, = p.add("StackPushV2", [h, tensor(shape(), dtype if not rare()
                                                 else rnd.choice(DT))], {},
                       control=[last] if last else [])
        else:
            o, = p.add("StackPopV2", [h], {
                "elem_type": dtype if not rare() else rnd.choice(DT)},
                control=[last] if last else [])
        fetches.append(o)
        last = o
    yield finish(p, "Stack", fetches)
    p = Program()
    x, y = tensor(shape(), "float32"), tensor(shape(), "int32")
    o, = p.add("OptionalFromValue", [[x, y]], {}) if rare(.7) else p.add(
        "OptionalNone", [], {})
    fetches = p.add("OptionalHasValue", [o], {})
    if rare(0.8):
        fetches += p.add("OptionalGetValue", [o], {
            "output_types": ["float32", "int32"] if not rare(0.1) else
            rnd.choice([["float32"], ["int32", "int32"]]),
            "output_shapes": rnd.choice([[None, None], [list(x.shape), None],
                                         [shape(), None]])})
    yield finish(p, "Optional", fetches)
    # Of a list in an optional, sums and zeros of lists.
    p = Program()
    dtype = rnd.choice(["float32", "int32", "float64", "complex64", "string",
                        "bool"])
    ls = []
    dims = shape(1)
    for _ in range(2):
        d = dims if not rare(0.2) else shape(1)
        l, = p.add("TensorListFromTensor", [
            tensor([2 + rare(0.1)] + d, dtype), ints(-1, "int32")], {
                "element_dtype": dtype, "shape_type": "int32"})
        ls.append(l)
    if rare(0.6):
        s, = p.add("AddN", [ls], {"T": "variant", "N": 2})
    else:
        s, = p.add("ZerosLike", [ls[0]], {"T": "variant"})
    yield finish(p, "VariantMath", p.add("TensorListStack", [
        s, ints(-1, "int32")], {"element_dtype": dtype}))


def ranks():
    """What becomes of tensors of many dimensions, most of them 1."""
    for _ in range(6):
        p = Program()
        r = rnd.choice([7, 8, 9, 10, 11, 12, 63, 100, 252, 253, 254])
        dtype = rnd.choice(["float32", "int32", "string"])
        dims = [1] * r
        for _ in range(2):
            dims[rnd.randrange(r)] = 2
        n = int(np.prod(dims))
        def high():
            return p.add("Reshape", [tensor([n], dtype), ints(dims)], {})[0]
        T = {"T": dtype}
        op = rnd.choice(["ExpandDims", "Reshape", "Fill", "Pack", "Transpose",
                         "Sum", "AddV2", "Tile", "Pad", "Slice", "StridedSlice",
                         "ReverseV2", "ConcatV2", "GatherV2", "OneHot", "Split",
                         "Unpack", "Squeeze", "Shape", "BroadcastTo", "Less",
                         "Select", "MatrixDiag", "Softmax", "ArgMax", "Cumsum",
                         "GatherNd", "Where", "Roll", "BatchMatMulV2", "TopKV2"])
        x = high()
        if op in ("Sum", "AddV2", "Less", "Softmax", "ArgMax", "Cumsum",
                  "BatchMatMulV2", "TopKV2", "MatrixDiag", "Where", "Roll") \
                and dtype == "string":
            dtype = "float32"
            T = {"T": dtype}
            x = high()
        if op in ("Softmax",) and dtype != "float32":
            continue
        z = lambda v: np.array(v, np.int32)
        if op == "ExpandDims":
            o = p.add(op, [x, z(rnd.choice([0, -1, r]))], T)
        elif op == "Fill":
            o = p.add(op, [z(dims), tensor([], dtype)], {})
        elif op == "Reshape":
            o = p.add(op, [x, z([n])], T)
        elif op == "Pack":
            o = p.add(op, [[x, x]], dict(T, N=2))
        elif op == "Transpose":
            o = p.add(op, [x, z(rnd.sample(range(r), r))], T)
        elif op == "Sum":
            o = p.add(op, [x, z(rnd.sample(range(r), rnd.randint(0, r)))], T)
        elif op in ("AddV2", "Less"):
            o = p.add(op, [x, rnd.choice([x, tensor([2, 1, 2], dtype)])], T)
        elif op == "Tile":
            o = p.add(op, [x, z([rnd.choice([1, 1, 1, 2]) if i < 6 else 1
                                 for i in range(r)])], T)
        elif op == "Pad":
            o = p.add(op, [x, z([[int(i < 2), 0] for i in range(r)])], T)
        elif op == "Slice":
            o = p.add(op, [x, z([0] * r), z([1] * r)], dict(T, Index="int32"))
        elif op == "StridedSlice":
            k = rnd.choice([r, 3, 1])
            o = p.add(op, [x, z([0] * k), z([1] * k), z([1] * k)],
                      dict(T, Index="int32"))
        elif op == "ReverseV2":
            o = p.add(op, [x, z([0, r - 1])], T)
        elif op == "ConcatV2":
            o = p.add(op, [[x, x], z(rnd.choice([0, r - 1]))], dict(T, N=2))
        elif op == "GatherV2":
            o = p.add(op, [x, z([[0, 0], [0, 0]]), z(rnd.randrange(r))],
                      {"Tparams": dtype, "Tindices": "int32",
                       "Taxis": "int32"})
        elif op == "OneHot":
            dtype = "int32"
            x = high()
            o = p.add(op, [x, z(2), tensor([], "float32"),
                           tensor([], "float32")],
                      {"T": "float32", "TI": "int32"})
        elif op == "Split":
            o = p.add(op, [z(rnd.randrange(r)), x], dict(T, num_split=1))
        elif op == "Unpack":
            a = rnd.randrange(r)
            o = p.add(op, [x], dict(T, num=dims[a], axis=a))
        elif op == "Squeeze":
            o = p.add(op, [x], T)
        elif op == "Shape":
            o = p.add(op, [x], T)
        elif op == "BroadcastTo":
            o = p.add(op, [tensor([2, 1, 2], dtype), z([1] * (r - 3) +
                                                      [2, 2, 2])], {})
        elif op == "Select":
            c, = p.add("Reshape", [tensor([n], "bool"), ints(dims)], {})
            o = p.add(op, [c, x, x], T)
        elif op == "GatherNd":
            o = p.add(op, [x, z([[0] * rnd.choice([r, 7, 8])])],
                      {"Tparams": dtype, "Tindices": "int32"})
        elif op == "ArgMax" or op == "Cumsum":
            o = p.add(op, [x, z(rnd.randrange(r))], T)
        elif op == "Roll":
            o = p.add(op, [x, z([1]), z([rnd.randrange(r)])],
                      dict(T, Tshift="int32", Taxis="int32"))
        elif op == "BatchMatMulV2":
            o = p.add(op, [x, x], dict(T, adj_y=True))
        elif op == "TopKV2":
            o = p.add(op, [x, z(1)], T)
        else:
            o = p.add(op, [x], T)
        fetches = []
        for t in o:
            # As vectors and shapes: numpy has a limit, too.
            od = {"Shape": "int32", "Less": "bool", "ArgMax": "int64",
                  "Where": "int64", "OneHot": "float32"}.get(op, dtype)
            if op == "TopKV2" and t == o[1]:
                od = "int32"
            fetches += p.add("Reshape", [t, z([-1])], {"T": od})
            fetches += p.add("Shape", [t], {"T": od})
        p = finish(p, "Rank_" + op, fetches)
        p.describe = f"rank {r} dims {[(i, d) for i, d in enumerate(dims) if d > 1]} {p.describe[:400]}"
        yield p


THEMES = [arrays, lists, stacks, ranks]

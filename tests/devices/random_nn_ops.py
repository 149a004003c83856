"""Random cases of convolutions, pools, normalisations, losses, resizing."""
from random_ops import *


def window(size, k, s, d, padding):
    e = (k - 1) * d + 1
    return -(-size // s) if padding == "SAME" else max(
        0, -(-(size - e + 1) // s))


def convs():
    fmt = "NHWC" if not rare(0.1) else "NCHW"
    order = (lambda n, h, w, c: [n, h, w, c] if fmt == "NHWC"
             else [n, c, h, w])
    dtype = rnd.choice(["float32", "float64", "float32", "int32", "float16",
                        "bfloat16"])
    n, h, w, c, m = (0 if rare(0.03) else rnd.randint(1, 6) for _ in range(5))
    n, m = min(n, 2), min(m, 3)
    groups = rnd.choice([1, 1, 1, 2])
    kh, kw = rnd.randint(1, 3), rnd.randint(1, 3)
    sh, sw = rnd.randint(1, 3), rnd.randint(1, 3)
    dh, dw = (rnd.choice([1, 1, 2]), rnd.choice([1, 1, 2]))
    padding = rnd.choice(["SAME", "VALID", "EXPLICIT"])
    strides, dil = order(1, sh, sw, 1), order(1, dh, dw, 1)
    pads = []
    p = [0, 0, 0, 0]
    if padding == "EXPLICIT":
        p = [rnd.randint(0, 2) for _ in range(4)]
        pads = ([0, 0] + p + [0, 0]) if fmt == "NHWC" else ([0, 0, 0, 0] + p)
    attrs = {"strides": strides, "dilations": dil, "padding": padding,
             "explicit_paddings": pads, "data_format": fmt}
    x = tensor(order(n, h, w, c * groups), dtype, -3, 3)
    f = tensor([kh, kw, c, m * groups], dtype, -3, 3)
    yield "Conv2D", [x, f], attrs

    def out(size, k, s, d, before, after):
        if padding == "EXPLICIT":
            return window(size + before + after, k, s, d, "VALID")
        return window(size, k, s, d, padding)

    oh, ow = out(h, kh, sh, dh, p[0], p[1]), out(w, kw, sw, dw, p[2], p[3])
    dy = tensor(order(n, oh, ow, m * groups), dtype, -3, 3)
    if rare(0.1):
        dy = tensor(order(n, oh + 1, ow, m * groups), dtype, -3, 3)
    yield "Conv2DBackpropInput", [ints(x.shape, "int32"), f, dy], attrs
    yield "Conv2DBackpropFilter", [x, ints(f.shape, "int32"), dy], attrs
    if dtype != "int32":
        s = order(1, sh, sh, 1)
        attrs = dict(attrs, strides=s, dilations=dil)
        xd = tensor(order(n, h, w, c), dtype, -3, 3)
        fd = tensor([kh, kw, c, m], dtype, -3, 3)
        yield "DepthwiseConv2dNative", [xd, fd], attrs
        oh, ow = out(h, kh, sh, dh, p[0], p[1]), out(w, kw, sh, dw, p[2], p[3])
        dy = tensor(order(n, oh, ow, c * m), dtype, -3, 3)
        yield "DepthwiseConv2dNativeBackpropInput", [
            ints(xd.shape, "int32"), fd, dy], attrs
        yield "DepthwiseConv2dNativeBackpropFilter", [
            xd, ints(fd.shape, "int32"), dy], attrs
    dtype = rnd.choice(["float32", "float64"])
    padding = rnd.choice(["SAME", "VALID"])
    d, kd = rnd.randint(1, 4), rnd.randint(1, 2)
    attrs = {"strides": [1, sh, sw, sh, 1], "padding": padding}
    x = tensor([n, d, h, w, c], dtype, -3, 3)
    f = tensor([kd, kh, kw, c, m], dtype, -3, 3)
    yield "Conv3D", [x, f], attrs
    o = [window(d, kd, sh, 1, padding), window(h, kh, sw, 1, padding),
         window(w, kw, sh, 1, padding)]
    dy = tensor([n] + o + [m], dtype, -3, 3)
    yield "Conv3DBackpropInputV2", [ints(x.shape, "int32"), f, dy], attrs
    yield "Conv3DBackpropFilterV2", [x, ints(f.shape, "int32"), dy], attrs
    dtype = rnd.choice(NUMBER)
    fmt = rnd.choice(["NHWC", "NCHW"])
    dims = shape(rnd.randint(2, 5) if not rare() else 1)
    ch = dims[1] if fmt == "NCHW" and len(dims) > 1 else dims[-1]
    yield "BiasAdd", [tensor(dims, dtype), tensor([ch + rare()], dtype)], {
        "data_format": fmt}
    yield "BiasAddV1", [tensor(dims, dtype), tensor([dims[-1]], dtype)], {}
    yield "BiasAddGrad", [tensor(dims, dtype)], {"data_format": fmt}


def pools():
    fmt = "NHWC" if not rare(0.08) else "NCHW"
    order = (lambda n, h, w, c: [n, h, w, c] if fmt == "NHWC"
             else [n, c, h, w])
    n, h, w, c = (0 if rare(0.03) else rnd.randint(1, 6) for _ in range(4))
    kh, kw, sh, sw = (rnd.randint(1, 3) for _ in range(4))
    padding = rnd.choice(["SAME", "VALID"])
    attrs = {"ksize": order(1, kh, kw, 1), "strides": order(1, sh, sw, 1),
             "padding": padding, "data_format": fmt}
    oh, ow = window(h, kh, sh, 1, padding), window(w, kw, sw, 1, padding)
    if rare(0.1):
        oh += rnd.choice([-1, 1]) if oh else 1
    dtype = rnd.choice(types_of("AvgPool"))
    x = tensor(order(n, h, w, c), dtype, -5, 5)
    y = tensor(order(n, oh, ow, c), dtype, -5, 5)
    yield "AvgPool", [x], attrs
    yield "AvgPoolGrad", [ints(x.shape, "int32"), y], attrs
    dtype = rnd.choice(types_of("MaxPool"))
    x = tensor(order(n, h, w, c), dtype, -5, 5)
    y = tensor(order(n, oh, ow, c), dtype, -5, 5)
    result = yield "MaxPool", [x], attrs
    no_k = {"padding": padding, "data_format": fmt}
    k, s = (ints(attrs[a], "int32") for a in ("ksize", "strides"))
    yield "MaxPoolV2", [x, k, s], no_k
    if result is not None and not rare(0.05):
        yield "MaxPoolGrad", [x, result[0], y], attrs
        yield "MaxPoolGradV2", [x, result[0], y, k, s], no_k
        yield "MaxPoolGradGrad", [x, result[0], tensor(x.shape, dtype)], attrs
        yield "MaxPoolGradGradV2", [
            x, result[0], tensor(x.shape, dtype), k, s], no_k
    if fmt == "NHWC":
        attrs = {k: v for k, v in attrs.items() if k != "data_format"}
        attrs["Targmax"] = rnd.choice(["int32", "int64"])
        attrs["include_batch_in_index"] = rare(0.5)
        if rare(0.3) and result is not None:
            # A maximum without a rival.
            pass
        result = yield "MaxPoolWithArgmax", [x], attrs
        if result is not None:
            argmax = result[1]
            if rare(0.1):
                argmax = argmax - 1
            yield "MaxPoolGradWithArgmax", [x, y, argmax], attrs
            yield "MaxPoolGradGradWithArgmax", [
                x, tensor(x.shape, dtype), argmax], attrs
    dtype = rnd.choice(["float32", "float64"])
    d = rnd.randint(1, 4)
    kd, sd = rnd.randint(1, 2), rnd.randint(1, 2)
    attrs = {"ksize": [1, kd, kh, kw, 1], "strides": [1, sd, sh, sw, 1],
             "padding": padding}
    x = tensor([n, d, h, w, c], dtype, -5, 5)
    dims = [n, window(d, kd, sd, 1, padding), window(h, kh, sh, 1, padding),
            window(w, kw, sw, 1, padding) + rare(), c]
    y = tensor(dims, dtype)
    yield "AvgPool3D", [x], attrs
    yield "AvgPool3DGrad", [ints(x.shape, "int32"), y], attrs
    x = tensor([n, d, h, w, c], "float32", -5, 5)
    y = tensor(dims, "float32")
    result = yield "MaxPool3D", [x], attrs
    if result is not None:
        yield "MaxPool3DGrad", [x, result[0], y], attrs
        yield "MaxPool3DGradGrad", [x, result[0],
                                    tensor(x.shape, "float32")], attrs


def norms():
    fmt = rnd.choice(["NHWC", "NCHW"] if rare(0.2) else ["NHWC"])
    n, h, w, c = (0 if rare(0.04) else rnd.randint(1, 4) for _ in range(4))
    dims = [n, h, w, c] if fmt == "NHWC" else [n, c, h, w]
    training = rare(0.5)
    for version in ("", "V2", "V3"):
        dtype = rnd.choice(types_of("FusedBatchNorm" + version))
        u = "float32"
        x = tensor(dims, dtype, -3, 3)
        c2 = c + rare()
        stats = [tensor([c2], u, 1, 3) for _ in "so"]
        used = not training or rare(0.2)
        stats += [tensor([c] if used else [0], u, 1, 3) for _ in "mv"]
        attrs = {"is_training": training, "data_format": fmt,
                 "epsilon": rnd.choice([1e-3, 0.1]),
                 "exponential_avg_factor": rnd.choice([1.0, 1.0, 0.5])}
        if version:
            attrs["U"] = u
        result = yield "FusedBatchNorm" + version, [x] + stats, attrs
        if result is not None:
            attrs = {k: v for k, v in attrs.items() if "exp" not in k}
            reserve = list(result[3:5])
            if version == "V3":
                reserve.append(np.zeros([0], np.float32))
            yield "FusedBatchNormGrad" + version, [
                tensor(dims, dtype, -3, 3), x, stats[0]] + reserve, attrs
    dtype = rnd.choice(["float32", "float16", "bfloat16"])
    attrs = {"depth_radius": rnd.randint(0, 5),
             "bias": rnd.choice([1.0, 2.0]),
             "alpha": rnd.choice([1.0, 0.5]), "beta": rnd.choice([.5, 1.0])}
    x = tensor([n, h, w, c], dtype, -3, 3)
    result = yield "LRN", [x], attrs
    if result is not None:
        yield "LRNGrad", [tensor([n, h, w, c], dtype), x, result[0]], attrs


def losses():
    dtype = rnd.choice(FLOATS)
    rows, classes = rnd.randint(0, 4), rnd.randint(0, 4)
    if classes == 0 and not rare(0.2):
        classes = 2
    a, b = [rows, classes], [rows, classes]
    if rare(0.2):
        b = [1, classes]
    if rare(0.2):
        a, b = b, a
    if rare(0.05):
        a = shape()
    yield "SoftmaxCrossEntropyWithLogits", [
        tensor(a, dtype, limits=0.02), tensor(b, dtype, 0, 1)], {}
    yield "SparseSoftmaxCrossEntropyWithLogits", [
        tensor([rows, classes], dtype),
        tensor([rows + rare()], rnd.choice(["int32", "int64"]), -rare(),
               max(classes - 1, 0) + rare())], {}
    t = rnd.choice(["int32", "int64"])
    p = tensor([rows, classes], "float32", limits=0.1)
    targets = tensor([rows + rare()], t, -1, max(classes, 0))
    k = rnd.randint(0, 4)
    yield "InTopK", [p, targets], {"k": k, "T": t}
    yield "InTopKV2", [p, targets, ints(k, t)], {}
    for srt in (True, False):
        dtype = rnd.choice(REAL)
        x = tensor(shape(rnd.randint(1, 3), 12), dtype, -3, 3)
        k = rnd.randint(0, x.shape[-1] + rare())
        yield "TopK", [x], {"k": k, "sorted": srt}
        yield "TopKV2", [x, ints(k, "int32")], {"sorted": srt}
    x = tensor([1, rnd.randint(1, 3), rnd.randint(1, 3), 2],
               rnd.choice(["float32", "float64", "int32", "uint8", "float16"]),
               0, 9)
    size = tensor([2 + rare(0.03)], "int32", 1 - rare(), 6)
    for corners, half in [(False, False), (True, False), (False, True)]:
        attrs = {"align_corners": corners, "half_pixel_centers": half}
        yield "ResizeBilinear", [x], attrs
        yield "ResizeNearestNeighbor", [x, size], attrs
        yield "ResizeBilinear", [x, size], attrs
        y = tensor([1, rnd.randint(1, 5), rnd.randint(1, 5), 2], "float32")
        image = tensor([1, rnd.randint(1, 4), rnd.randint(1, 4), 2],
                       rnd.choice(["float32", "float64", "float16"]))
        yield "ResizeBilinearGrad", [y, image], attrs
        yield "ResizeNearestNeighborGrad", [y, size], attrs
    value = tensor([], rnd.choice(REAL), 0, 3)


THEMES = [convs, pools, norms, losses]

// Pools and their gradients.
#include "graph/op_registry.h"
#include "graph/ops/convolution_window.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

constexpr const char* kPoolTypes = "T: {half, bfloat16, float, double}";
constexpr const char* kMaxTypes =
    "T: {half, bfloat16, float, double, int32, int64, uint8, int16, int8, "
    "uint16} = float";

// The shape of the windows' positions; dimensions are unknown if a size or a
// stride is an input that is not constant. Windows of MaxPool and similar ops
// also slide over the channels.
Result<PartialShape> pooled_shape(ShapeContext& c, const PartialShape& in,
                                  const WindowAttrs& window) {
  const bool over_channels =
      c.node().op().starts_with("MaxPool") && window.rank == 4;
  PartialShape out = in;
  for (int i = 1; i < window.rank; ++i) {
    if (!in.dim_known(i)) continue;
    if (i == window.channel_dim() && !over_channels) continue;
    if (window.size.empty() || window.stride.empty()) {
      out.set_dim(i, PartialShape::kUnknown);
      continue;
    }
    WindowDim dim;
    dim.size = window.size[size_t(i)];
    dim.stride = window.stride[size_t(i)];
    if (!window.explicit_paddings.empty()) {
      dim.pad_before = window.explicit_paddings[size_t(2 * i)];
      dim.pad_after = window.explicit_paddings[size_t(2 * i) + 1];
    }
    Result<int64_t> count = inferred_count(dim, in.dim(i), window.padding);
    if (!count.ok()) return c.fail(count.status().message());
    out.set_dim(i, *count);
  }
  return out;
}

// The shape of a pool of input 0, whose sizes and strides are attributes, or,
// if `sizes_at` is not negative, the inputs from there.
Result<PartialShape> pool_output(ShapeContext& c, int rank, int sizes_at) {
  TAGFLOW_ASSIGN(WindowAttrs window, window_attrs(c.node(), rank));
  TAGFLOW_ASSIGN(const PartialShape in, c.with_rank(0, rank));
  if (sizes_at >= 0) {
    for (int i : {0, 1}) {
      TAGFLOW_RETURN_IF_ERROR(c.with_rank(sizes_at + i, 1).status());
      if (const Tensor* value = c.constant(sizes_at + i))
        for (int32_t element : value->flat<int32_t>())
          (i == 0 ? window.size : window.stride).push_back(element);
    }
    Status status = window.check();
    if (!status.ok()) return c.fail(status.message());
  }
  return pooled_shape(c, in, window);
}

Status pool_shape(ShapeContext& c, int rank) {
  TAGFLOW_ASSIGN(PartialShape out, pool_output(c, rank, -1));
  c.set_output(0, std::move(out));
  return Status();
}

// Sizes and strides are inputs 1 and 2.
Status pool_v2_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape out, pool_output(c, 4, 1));
  c.set_output(0, std::move(out));
  return Status();
}

// Argmax pools have windows over height and width only.
Status argmax_pool_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(WindowAttrs window, window_attrs(c.node(), 4));
  TAGFLOW_ASSIGN(const PartialShape in, c.with_rank(0, 4));
  window.size[0] = window.size[3] = 1;
  window.stride[0] = window.stride[3] = 1;
  TAGFLOW_ASSIGN(PartialShape out, pooled_shape(c, in, window));
  c.set_output(0, out);
  c.set_output(1, std::move(out));
  return Status();
}

// A gradient has the shape of the pool's input.
Status like_input_shape(ShapeContext& c, int rank) {
  TAGFLOW_RETURN_IF_ERROR(window_attrs(c.node(), rank).status());
  TAGFLOW_ASSIGN(PartialShape in, c.with_rank(0, rank));
  c.set_output(0, std::move(in));
  return Status();
}

// The gradient of a gradient has the shape of the pool's output; its third
// input has the shape of the first.
Status like_output_shape(ShapeContext& c, int rank) {
  TAGFLOW_ASSIGN(PartialShape out,
                 pool_output(c, rank, c.num_inputs() == 5 ? 3 : -1));
  Result<PartialShape> pooled = out.merge(c.input(1));
  if (!pooled.ok())
    return c.fail(fmt::format("orig_output is {}, but the pool's {}",
                              c.input(1).to_string(), out.to_string()));
  if (!c.input(0).merge(c.input(2)).ok())
    return c.fail(fmt::format("grad is {}, orig_input {}",
                              c.input(2).to_string(), c.input(0).to_string()));
  c.set_output(0, std::move(pooled).value());
  return Status();
}

Status average_grad_shape(ShapeContext& c, int rank) {
  TAGFLOW_RETURN_IF_ERROR(window_attrs(c.node(), rank).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 1).status());
  TAGFLOW_ASSIGN(const PartialShape shape, c.constant_as_shape(0));
  const bool known = shape.has_rank() && shape.rank() == rank;
  c.set_output(0, known ? shape : PartialShape::of_rank(rank));
  return Status();
}

using RankedShapeFn = Status (*)(ShapeContext&, int);
ShapeFn of_rank(RankedShapeFn fn, int rank) {
  return [fn, rank](ShapeContext& c) { return fn(c, rank); };
}

// A builder with the attributes of a pool over `rank` dimensions.
OpDefBuilder pool(const std::string& name, int rank, bool explicit_padding) {
  OpDefBuilder builder(name);
  builder.work(Work::kWindow);
  if (explicit_padding) {
    builder.attrs({"padding: {'SAME', 'VALID', 'EXPLICIT'}",
                   "explicit_paddings: list(int) = []"});
  } else {
    builder.attr("padding: {'SAME', 'VALID'}");
  }
  builder.attr(rank == 4 ? "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
                         : "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'");
  return builder;
}

OpDefBuilder sized_pool(const std::string& name, int rank,
                        bool explicit_padding) {
  OpDefBuilder builder = pool(name, rank, explicit_padding);
  builder.attrs(
      {rank == 4 ? "ksize: list(int) >= 4" : "ksize: list(int) >= 5",
       rank == 4 ? "strides: list(int) >= 4" : "strides: list(int) >= 5"});
  return builder;
}

void add_max_pools(OpRegistry& registry) {
  registry.add(sized_pool("MaxPool", 4, true)
                   .input("input: T")
                   .output("output: T")
                   .attr(kMaxTypes)
                   .shape(of_rank(pool_shape, 4)));
  registry.add(pool("MaxPoolV2", 4, false)
                   .inputs({"input: T", "ksize: int32", "strides: int32"})
                   .output("output: T")
                   .attr(kMaxTypes)
                   .shape(pool_v2_shape));
  const auto add_grad = [&](OpDefBuilder builder, RankedShapeFn shape,
                            const char* types, int rank, bool inputs) {
    builder.inputs({"orig_input: T", "orig_output: T", "grad: T"})
        .output("output: T")
        .attr(types)
        .shape(of_rank(shape, rank));
    if (inputs) builder.inputs({"ksize: int32", "strides: int32"});
    registry.add(std::move(builder));
  };
  const char* defaulted = "T: realnumbertype = float";
  const char* reals = "T: realnumbertype";
  add_grad(sized_pool("MaxPoolGrad", 4, true), like_input_shape, defaulted, 4,
           false);
  add_grad(pool("MaxPoolGradV2", 4, false), like_input_shape, defaulted, 4,
           true);
  add_grad(sized_pool("MaxPoolGradGrad", 4, false), like_output_shape, reals, 4,
           false);
  add_grad(pool("MaxPoolGradGradV2", 4, false), like_output_shape, reals, 4,
           true);
  add_grad(sized_pool("MaxPool3DGradGrad", 5, false), like_output_shape, reals,
           5, false);
  registry.add(sized_pool("MaxPool3D", 5, false)
                   .input("input: T")
                   .output("output: T")
                   .attr(kPoolTypes)
                   .shape(of_rank(pool_shape, 5)));
  registry.add(
      sized_pool("MaxPool3DGrad", 5, false)
          .inputs({"orig_input: TInput", "orig_output: TInput", "grad: T"})
          .output("output: T")
          .attrs({"T: {half, bfloat16, float, double} = float",
                  "TInput: {half, bfloat16, float, double} = float"})
          .shape(of_rank(like_input_shape, 5)));
}

void add_argmax_pools(OpRegistry& registry) {
  const auto builder = [](const char* name) {
    return OpDefBuilder(name)
        .attrs({"ksize: list(int) >= 4", "strides: list(int) >= 4",
                "padding: {'SAME', 'VALID'}",
                "include_batch_in_index: bool = false", "T: realnumbertype"})
        .work(Work::kWindow);
  };
  registry.add(builder("MaxPoolWithArgmax")
                   .input("input: T")
                   .outputs({"output: T", "argmax: Targmax"})
                   .attr("Targmax: {int32, int64} = int64")
                   .shape(argmax_pool_shape));
  for (const char* name :
       {"MaxPoolGradWithArgmax", "MaxPoolGradGradWithArgmax"}) {
    const bool grad_grad = std::string_view(name) != "MaxPoolGradWithArgmax";
    registry.add(builder(name)
                     .inputs({"input: T", "grad: T", "argmax: Targmax"})
                     .output("output: T")
                     .attr("Targmax: {int32, int64}")
                     .shape([grad_grad](ShapeContext& c) {
                       TAGFLOW_ASSIGN(PartialShape shape,
                                      c.with_rank(grad_grad ? 2 : 0, 4));
                       c.set_output(0, std::move(shape));
                       return Status();
                     }));
  }
}

void add_average_pools(OpRegistry& registry) {
  for (int rank : {4, 5}) {
    const std::string name = rank == 4 ? "AvgPool" : "AvgPool3D";
    registry.add(sized_pool(name, rank, false)
                     .input(rank == 4 ? "value: T" : "input: T")
                     .output("output: T")
                     .attr(kPoolTypes)
                     .shape(of_rank(pool_shape, rank)));
    registry.add(sized_pool(name + "Grad", rank, false)
                     .inputs({"orig_input_shape: int32", "grad: T"})
                     .output("output: T")
                     .attr(kPoolTypes)
                     .shape(of_rank(average_grad_shape, rank)));
  }
}

}  // namespace

void register_pooling_ops(OpRegistry& registry) {
  add_max_pools(registry);
  add_argmax_pools(registry);
  add_average_pools(registry);
}

}  // namespace tagflow::graph

// Normalisations.
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

// The dimension of x that holds its channels; x is of 4 or 5 dimensions.
Result<PartialShape> channels_of(const ShapeContext& c, const PartialShape& x) {
  TAGFLOW_ASSIGN(const std::string format, c.attr<std::string>("data_format"));
  if (!x.has_rank()) return PartialShape::of_rank(1);
  const int rank = int(format.size());
  if (x.rank() != rank)
    return c.fail(fmt::format("x is {}, not of the {} dimensions of {}",
                              x.to_string(), rank, format));
  return PartialShape({x.dim(format[1] == 'C' ? 1 : rank - 1)});
}

Status batch_norm_shape(ShapeContext& c) {
  const PartialShape& x = c.input(0);
  TAGFLOW_ASSIGN(PartialShape channels, channels_of(c, x));
  for (int i : {1, 2}) {
    TAGFLOW_ASSIGN(const PartialShape vector, c.with_rank(i, 1));
    Result<PartialShape> merged = channels.merge(vector);
    if (!merged.ok())
      return c.fail(fmt::format("input {} is {} for {} channels", i,
                                vector.to_string(), channels.to_string()));
    channels = std::move(merged).value();
  }
  c.set_output(0, x);
  for (int i = 1; i < 5; ++i) c.set_output(i, channels);
  return Status();
}

Status batch_norm_grad_shape(ShapeContext& c) {
  Result<PartialShape> x = c.input(0).merge(c.input(1));
  if (!x.ok())
    return c.fail(fmt::format("y_backprop is {}, x is {}",
                              c.input(0).to_string(), c.input(1).to_string()));
  TAGFLOW_ASSIGN(const PartialShape channels, channels_of(c, *x));
  c.set_output(0, std::move(x).value());
  c.set_output(1, channels);
  c.set_output(2, channels);
  c.set_output(3, {0});
  c.set_output(4, {0});
  return Status();
}

void add_batch_norm(OpRegistry& registry, int version) {
  const std::string suffix = version == 1 ? "" : "V" + std::to_string(version);
  const auto builder = [&](const std::string& name) {
    OpDefBuilder b(name + suffix);
    b.attrs({version == 1 ? "T: {float}" : "T: {half, bfloat16, float}",
             "epsilon: float = 0.0001", "is_training: bool = true"})
        .work(Work::kTranscendental)
        .attr(version == 3
                  ? "data_format: {'NHWC', 'NCHW', 'NDHWC', 'NCDHW'} = 'NHWC'"
                  : "data_format: {'NHWC', 'NCHW'} = 'NHWC'");
    if (version > 1)
      b.attr(version == 3 && name == "FusedBatchNorm" ? "U: {bfloat16, float}"
                                                      : "U: {float}");
    return b;
  };
  const std::string u = version == 1 ? ": T" : ": U";
  OpDefBuilder forward = builder("FusedBatchNorm");
  forward.input("x: T")
      .attr("exponential_avg_factor: float = 1.0")
      .output("y: T")
      .shape(batch_norm_shape);
  for (const char* name : {"scale", "offset", "mean", "variance"})
    forward.input(name + u);
  for (const char* name :
       {"batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"})
    forward.output(name + u);
  if (version == 3) forward.output("reserve_space_3: U");
  registry.add(std::move(forward));

  OpDefBuilder grad = builder("FusedBatchNormGrad");
  grad.inputs({"y_backprop: T", "x: T",
               version == 1 ? "scale: T" : "scale: float",
               "reserve_space_1" + u, "reserve_space_2" + u});
  if (version == 3) grad.input("reserve_space_3: U");
  grad.outputs({"x_backprop: T", "scale_backprop" + u, "offset_backprop" + u,
                (version == 3 ? "reserve_space_4" : "reserve_space_3") + u,
                (version == 3 ? "reserve_space_5" : "reserve_space_4") + u})
      .shape(batch_norm_grad_shape);
  registry.add(std::move(grad));
}

// Every input and the output have one shape, of 4 dimensions.
Status lrn_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape shape, c.with_rank(0, 4));
  for (int i = 1; i < c.num_inputs(); ++i) {
    Result<PartialShape> merged = shape.merge(c.input(i));
    if (!merged.ok())
      return c.fail(fmt::format("input {} is {}, not {}", i,
                                c.input(i).to_string(), shape.to_string()));
    shape = std::move(merged).value();
  }
  c.set_output(0, std::move(shape));
  return Status();
}

OpDefBuilder lrn(const char* name) {
  return OpDefBuilder(name)
      .output("output: T")
      .attrs({"depth_radius: int = 5", "bias: float = 1.0",
              "alpha: float = 1.0", "beta: float = 0.5",
              "T: {half, bfloat16, float} = float"})
      .shape(lrn_shape)
      .work(Work::kTranscendental);
}

}  // namespace

void register_normalization_ops(OpRegistry& registry) {
  for (int version : {1, 2, 3}) add_batch_norm(registry, version);
  registry.add(lrn("LRN").input("input: T"));
  registry.add(lrn("LRNGrad").inputs(
      {"input_grads: T", "input_image: T", "output_image: T"}));
}

}  // namespace tagflow::graph

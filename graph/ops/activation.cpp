// Activations, softmax, losses, biases.
#include "graph/op_registry.h"
#include "graph/ops/elementwise_shapes.h"
#include "graph/ops/type_sets.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

constexpr const char* kFloatTypes = "T: {half, bfloat16, float, double}";

// Both inputs and the output have one shape.
Status alike_shape(ShapeContext& c) {
  Result<PartialShape> merged = c.input(0).merge(c.input(1));
  if (!merged.ok())
    return c.fail(fmt::format("the inputs are {} and {}, not of one shape",
                              c.input(0).to_string(), c.input(1).to_string()));
  c.set_output(0, std::move(merged).value());
  return Status();
}

OpDefBuilder activation(const char* name, std::string_view types) {
  return OpDefBuilder(name)
      .input("features: T")
      .output("activations: T")
      .attr(types)
      .shape(unchanged_shape);
}

OpDefBuilder activation_grad(const char* name, const char* types,
                             const char* known) {
  return OpDefBuilder(name)
      .inputs({"gradients: T", known})
      .output("backprops: T")
      .attr(types)
      .shape(alike_shape);
}

void add_activations(OpRegistry& registry) {
  const char* reals = "T: realnumbertype";
  for (const char* name : {"Relu", "Relu6"})
    registry.add(activation(name, reals).fusible());
  registry.add(activation_grad("ReluGrad", reals, "features: T").fusible());
  registry.add(activation_grad("Relu6Grad", reals, "features: T"));
  for (const char* name : {"Elu", "Softplus"})
    registry.add(
        activation(name, kFloatTypes).fusible().work(Work::kTranscendental));
  registry.add(
      activation("Selu", type_set(kFloating)).work(Work::kTranscendental));
  registry.add(activation_grad("EluGrad", kFloatTypes, "outputs: T"));
  registry.add(OpDefBuilder("SeluGrad")
                   .inputs({"gradients: T", "outputs: T"})
                   .output("backprops: T")
                   .attr(type_set(kFloating))
                   .shape(same_shape));
  registry.add(activation_grad("SoftplusGrad", kFloatTypes, "features: T"));
  const char* types = "T: {half, bfloat16, float, double} = float";
  registry.add(OpDefBuilder("LeakyRelu")
                   .input("features: T")
                   .output("activations: T")
                   .attrs({"alpha: float = 0.2", types})
                   .shape(unchanged_shape));
  registry.add(OpDefBuilder("LeakyReluGrad")
                   .inputs({"gradients: T", "features: T"})
                   .output("backprops: T")
                   .attrs({"alpha: float = 0.2", types})
                   .shape(alike_shape));
}

Status softmax_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape logits, c.with_rank_at_least(0, 1));
  c.set_output(0, std::move(logits));
  return Status();
}

// loss: [batch], backprop: [batch, classes].
void set_loss_shapes(ShapeContext& c, const PartialShape& rows) {
  if (rows.has_rank()) c.set_output(0, PartialShape({rows.dim(0)}));
  c.set_output(1, rows);
}

Status cross_entropy_shape(ShapeContext& c) {
  Result<PartialShape> rows = broadcast(c.input(0), c.input(1));
  if (!rows.ok() || (rows->has_rank() && rows->rank() != 2))
    return c.fail(
        fmt::format("logits {} and labels {} do not fit [batch, "
                    "classes]",
                    c.input(0).to_string(), c.input(1).to_string()));
  set_loss_shapes(c, rows->has_rank() ? *rows : PartialShape::of_rank(2));
  return Status();
}

Status sparse_cross_entropy_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape rows, c.with_rank(0, 2));
  TAGFLOW_ASSIGN(const PartialShape labels, c.with_rank(1, 1));
  Result<PartialShape> batch = PartialShape({rows.dim(0)}).merge(labels);
  if (!batch.ok())
    return c.fail(fmt::format("{} labels for logits {}", labels.to_string(),
                              rows.to_string()));
  rows.set_dim(0, batch->dim(0));
  set_loss_shapes(c, rows);
  return Status();
}

void add_losses(OpRegistry& registry) {
  registry.add(OpDefBuilder("Softmax")
                   .input("logits: T")
                   .output("softmax: T")
                   .attr(kFloatTypes)
                   .shape(softmax_shape)
                   .work(Work::kTranscendental));
  registry.add(OpDefBuilder("LogSoftmax")
                   .input("logits: T")
                   .output("logsoftmax: T")
                   .attr(kFloatTypes)
                   .shape(softmax_shape)
                   .work(Work::kTranscendental));
  registry.add(OpDefBuilder("SoftmaxCrossEntropyWithLogits")
                   .inputs({"features: T", "labels: T"})
                   .outputs({"loss: T", "backprop: T"})
                   .attr(kFloatTypes)
                   .shape(cross_entropy_shape)
                   .work(Work::kTranscendental));
  registry.add(OpDefBuilder("SparseSoftmaxCrossEntropyWithLogits")
                   .inputs({"features: T", "labels: Tlabels"})
                   .outputs({"loss: T", "backprop: T"})
                   .attrs({kFloatTypes, "Tlabels: {int32, int64} = int64"})
                   .shape(sparse_cross_entropy_shape)
                   .work(Work::kTranscendental));
}

// The dimension of channels.
Result<int> channel_dim(const ShapeContext& c, const PartialShape& value) {
  if (c.node().op() == "BiasAddV1") return value.rank() - 1;
  TAGFLOW_ASSIGN(const std::string format, c.attr<std::string>("data_format"));
  return format == "NCHW" ? 1 : value.rank() - 1;
}

Status bias_add_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(PartialShape value, c.with_rank_at_least(0, 2));
  TAGFLOW_ASSIGN(const PartialShape bias, c.with_rank(1, 1));
  if (!value.has_rank()) return Status();
  TAGFLOW_ASSIGN(const int channel, channel_dim(c, value));
  Result<PartialShape> size = PartialShape({value.dim(channel)}).merge(bias);
  if (!size.ok())
    return c.fail(
        fmt::format("a bias {} for {}", bias.to_string(), value.to_string()));
  value.set_dim(channel, size->dim(0));
  c.set_output(0, std::move(value));
  return Status();
}

Status bias_add_grad_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const PartialShape value, c.with_rank_at_least(0, 2));
  if (!value.has_rank()) {
    c.set_output(0, PartialShape::of_rank(1));
    return Status();
  }
  TAGFLOW_ASSIGN(const int channel, channel_dim(c, value));
  c.set_output(0, PartialShape({value.dim(channel)}));
  return Status();
}

void add_biases(OpRegistry& registry) {
  const char* format = "data_format: {'NHWC', 'NCHW'} = 'NHWC'";
  const auto bias_add = [](const char* name) {
    return OpDefBuilder(name)
        .inputs({"value: T", "bias: T"})
        .output("output: T")
        .attr("T: numbertype")
        .shape(bias_add_shape);
  };
  registry.add(bias_add("BiasAdd").attr(format));
  registry.add(bias_add("BiasAddV1"));
  registry.add(OpDefBuilder("BiasAddGrad")
                   .input("out_backprop: T")
                   .output("output: T")
                   .attrs({"T: numbertype", format})
                   .shape(bias_add_grad_shape)
                   .work(Work::kReduce));
}

}  // namespace

void register_activation_ops(OpRegistry& registry) {
  add_activations(registry);
  add_losses(registry);
  add_biases(registry);
}

}  // namespace tagflow::graph

#include "devices/kernels/product/layer_ops.h"

#include <string_view>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"

namespace tagflow::devices {
namespace {

// The maximum number of operands of a fused kernel.
constexpr int64_t kMostSegments = 64;

}  // namespace

Status LayerOps::build(const KernelInfo& info) {
  TAGFLOW_ASSIGN(const auto program, info.attr<Strings>("program"));
  TAGFLOW_ASSIGN(const auto names, info.attr<Strings>("names"));
  TAGFLOW_ASSIGN(dtype_, info.attr<DataType>("T"));
  TAGFLOW_ASSIGN(const bool has_bias, info.attr<bool>("has_bias"));
  TAGFLOW_ASSIGN(num_more_, info.attr<int64_t>("S"));
  num_outputs_ = info.num_outputs();
  const size_t others = size_t(info.num_inputs() - num_more_) - 2;
  if (has_bias && others == 0)
    return invalid_argument("there is no bias among the inputs");
  const size_t num_operands = others - (has_bias ? 1 : 0);
  TAGFLOW_ASSIGN(segments_, info.attr<int64_t>("segments"));
  TAGFLOW_ASSIGN(width_, info.attr<int64_t>("width"));
  constexpr int64_t kMostColumns = int64_t(1) << 48;
  if (segments_ > kMostSegments || width_ > kMostColumns ||
      (segments_ > 1 && width_ == 0))
    return invalid_argument("{} segments of {} columns", segments_, width_);
  if (program.empty() && num_operands > 0)
    return invalid_argument("{} operands without a program", num_operands);
  if (program.empty() && info.num_outputs() != 1)
    return invalid_argument("{} outputs without a program", info.num_outputs());
  const size_t num_ops =
      (num_more_ > 0 ? 1 : 0) + 1 + (has_bias ? 1 : 0) + program.size();
  if (names.size() != num_ops)
    return invalid_argument("{} names for {} ops", names.size(), num_ops);
  auto name = names.begin();
  if (num_more_ > 0) TAGFLOW_RETURN_IF_ERROR(add_join(*name++));
  TAGFLOW_RETURN_IF_ERROR(add_product(info.node(), *name++));
  if (has_bias) {
    TAGFLOW_ASSIGN(const graph::Endpoint values, add_input());
    const graph::Endpoint operands[] = {{product_.node, 0}, values};
    TAGFLOW_RETURN_IF_ERROR(add_stage(bias_, *name++, "BiasAdd", operands));
  }
  if (program.empty()) return {};
  return add_tail(info, {name, names.end()}, num_operands);
}

// --- Creation ----------------------------------------------------------------

Result<graph::Endpoint> LayerOps::add_input() {
  TAGFLOW_ASSIGN(graph::Node * input,
                 graph_.add(graph_.unique_name("input"), "Placeholder", {},
                            {{"dtype", dtype_}}));
  return graph::Endpoint{input, 0};
}

Status LayerOps::add_stage(Stage& stage, const std::string& name,
                           std::string_view op,
                           std::span<const graph::Endpoint> inputs,
                           AttrMap attrs) {
  TAGFLOW_ASSIGN(stage.node, graph_.add(graph_.unique_name(name), op, inputs,
                                        std::move(attrs)));
  TAGFLOW_ASSIGN(stage.kernel,
                 KernelRegistry::global().make(*stage.node, "CPU"));
  return {};
}

Status LayerOps::add_join(const std::string& name) {
  std::vector<graph::Endpoint> parts;
  for (int64_t i = 0; i < num_parts(); ++i) {
    TAGFLOW_ASSIGN(parts.emplace_back(), add_input());
  }
  TAGFLOW_ASSIGN(
      graph::Node * axis,
      graph_.add(graph_.unique_name("axis"), "Const", {},
                 {{"value", Tensor::scalar(-1)}, {"dtype", DataType::kInt32}}));
  parts.push_back({axis, 0});
  return add_stage(join_, name, "ConcatV2", parts);
}

Status LayerOps::add_product(const graph::Node& layer,
                             const std::string& name) {
  constexpr std::string_view kPrefix = "_Fused";
  std::string_view op = layer.op();
  if (op.starts_with(kPrefix))
    op.remove_prefix(kPrefix.size());
  else
    op = "MatMul";  // _PackedMatMul
  TAGFLOW_ASSIGN(const graph::OpDef* def, graph::OpRegistry::global().find(op));
  AttrMap attrs;
  for (const graph::AttrDef& attr : def->attrs)
    if (const auto known = layer.attrs().find(attr.name);
        known != layer.attrs().end())
      attrs.insert_or_assign(known->first, known->second);
  TAGFLOW_ASSIGN(const graph::Endpoint x, add_input());
  TAGFLOW_ASSIGN(const graph::Endpoint weights, add_input());
  const graph::Endpoint operands[] = {x, weights};
  return add_stage(product_, name, op, operands, std::move(attrs));
}

// The operands are the product's segments, then the others.
Status LayerOps::add_tail(const KernelInfo& info, Strings names,
                          size_t num_others) {
  std::vector<graph::Endpoint> operands;
  std::vector<int64_t> columns;
  for (int64_t i = 0; i < segments_; ++i)
    columns.insert(columns.end(), {i * width_, width_});
  columns.resize(columns.size() + 2 * num_others);
  if (segments_ == 1) columns.clear();
  for (size_t i = 0; i < size_t(segments_) + num_others; ++i) {
    TAGFLOW_ASSIGN(operands.emplace_back(), add_input());
  }
  TAGFLOW_ASSIGN(const auto program, info.attr<Strings>("program"));
  TAGFLOW_ASSIGN(auto outputs, info.attr<std::vector<int64_t>>("outputs"));
  const std::string last = names.back();
  const AttrMap attrs = {{"N", int64_t(operands.size())},
                         {"M", int64_t(info.num_outputs())},
                         {"program", program},
                         {"outputs", std::move(outputs)},
                         {"columns", std::move(columns)},
                         {"names", std::move(names)}};
  TAGFLOW_RETURN_IF_ERROR(
      add_stage(tail_, last, "_FusedElementwise", operands, attrs));
  tiles_ = dynamic_cast<const FusedTiles*>(tail_.kernel.get());
  return {};
}

// --- Properties of the layer ------------------------------------------------

bool LayerOps::is_set(std::string_view flag) const {
  const auto value = product_.node->attr<bool>(flag);
  return value.ok() && *value;
}

const Tensor& LayerOps::part(const KernelContext& context, int64_t i) const {
  return context.input(
      i == 0 ? 0 : int(int64_t(context.num_inputs()) - num_more_ + i - 1));
}

// The operands of the element-wise ops that are not segments.
std::span<const Tensor> LayerOps::others_of(
    const KernelContext& context) const {
  const auto inputs = context.inputs();
  const size_t first = bias_.node == nullptr ? 2 : 3;
  return inputs.subspan(first, inputs.size() - size_t(num_more_) - first);
}

bool LayerOps::find_bias(const KernelContext& context, int64_t outputs,
                         const float*& bias) const {
  if (bias_.node == nullptr) return true;
  const Tensor& values = context.input(2);
  if (values.rank() != 1 || values.dim(0) != outputs) return false;
  bias = values.data<float>();
  return true;
}

Result<bool> LayerOps::begin_tail(KernelContext& context, Shape product,
                                  LayerTail& tail) const {
  Shape result = std::move(product);
  if (segments_ > 1) result.set_dim(result.rank() - 1, width_);
  if (!tail.add_others(others_of(context), result) ||
      !tail.fits(*tiles_, segments_))
    return false;
  for (int i = 0; i < context.num_outputs(); ++i) {
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(i, result));
    tail.add_output(*out);
  }
  return true;
}

Result<bool> LayerOps::compute_rows(KernelContext& context,
                                    const RowFactors& factors,
                                    const Shape& product) const {
  if (!has_tail()) {
    TAGFLOW_ASSIGN(Tensor * out, context.allocate_output(0, product));
    multiply_rows(context, factors, out->mutable_data<float>());
    return true;
  }
  if (segments_ > 1 && factors.matrix.layout().outputs != segments_ * width_)
    return false;
  LayerTail tail;
  TAGFLOW_ASSIGN(const bool fits, begin_tail(context, product, tail));
  if (!fits) return false;
  multiply_row_blocks(context, factors, segments_, [&](const RowBlock& block) {
    run_tail(tail, {.first = block.values,
                    .begin = block.first_row * tail.row() + block.first_column,
                    .rows = block.rows,
                    .columns = block.columns,
                    .segments = segments_,
                    .segment = block.columns});
  });
  return true;
}

// --- One by one -------------------------------------------------------------

double LayerOps::cost(const KernelContext& context,
                      const Tensor& weights) const {
  Tensor factors[] = {context.input(0), weights};
  const KernelContext product(product_.node, factors, context.mutable_outputs(),
                              &context.step(), &context.tag(),
                              &context.allocator());
  return product_.kernel->cost(product);
}

Status LayerOps::run(const KernelContext& context, const Stage& stage,
                     std::span<Tensor> inputs, std::span<Tensor> outputs) {
  KernelContext one(stage.node, inputs, outputs, &context.step(),
                    &context.tag(), &context.allocator());
  const Status status = stage.kernel->compute(one);
  if (status.ok()) return {};
  return Status(status.code(), fmt::format("{}, in \"{}\"", status.message(),
                                           stage.node->name()));
}

Status LayerOps::compute(KernelContext& context, const Tensor& weights) const {
  Tensor result;
  Tensor factors[] = {context.input(0), weights};
  if (join_.node != nullptr) {
    Operands parts;
    for (int64_t i = 0; i < num_parts(); ++i) parts.push_back(part(context, i));
    parts.push_back(Tensor::scalar(-1));
    TAGFLOW_RETURN_IF_ERROR(run(context, join_, parts, {factors, 1}));
  }
  TAGFLOW_RETURN_IF_ERROR(run(context, product_, factors, {&result, 1}));
  if (bias_.node != nullptr) {
    Tensor operands[] = {std::move(result), context.input(2)};
    TAGFLOW_RETURN_IF_ERROR(run(context, bias_, operands, {&result, 1}));
  }
  if (tail_.node == nullptr) {
    context.set_output(0, std::move(result));
    return {};
  }
  const auto others = others_of(context);
  Operands operands(size_t(segments_), result);
  operands.insert(operands.end(), others.begin(), others.end());
  result = Tensor();
  return run(context, tail_, operands, context.mutable_outputs());
}

}  // namespace tagflow::devices

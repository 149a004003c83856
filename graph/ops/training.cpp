// Optimizers' updates of a variable and its slots: ApplyAdam and similar ops,
// dense and sparse, by reference and by handle.
#include <algorithm>

#include "graph/op_registry.h"
#include "graph/ops/shape_arithmetic.h"
#include "graph/ops/variable_ops.h"

namespace tagflow::graph {

namespace {

// An optimizer with up to four ops: Apply*, ResourceApply*, SparseApply* and
// ResourceSparseApply*. Names are separated by blanks.
struct Optimizer {
  const char* name;
  const char* states;     // the variable and its slots
  const char* arguments;  // the scalars and the gradient, in their order
  const char* option = "";
  bool has_reference = true;
  bool has_sparse = true;
  bool has_sparse_reference = true;
};

// As in TensorFlow, except for SparseApplyAdam, which applies ApplyAdam to the
// rows of a gradient and their slots.
constexpr Optimizer kOptimizers[] = {
    {.name = "GradientDescent",
     .states = "var",
     .arguments = "alpha delta",
     .has_sparse = false},
    {"ProximalGradientDescent", "var", "alpha l1 l2 delta"},
    {"Momentum", "var accum", "lr grad momentum", "use_nesterov: bool = false"},
    {.name = "KerasMomentum",
     .states = "var accum",
     .arguments = "lr grad momentum",
     .option = "use_nesterov: bool = false",
     .has_reference = false,
     .has_sparse_reference = false},
    {"Adam", "var m v", "beta1_power beta2_power lr beta1 beta2 epsilon grad",
     "use_nesterov: bool = false"},
    {.name = "AdamWithAmsgrad",
     .states = "var m v vhat",
     .arguments = "beta1_power beta2_power lr beta1 beta2 epsilon grad",
     .has_reference = false,
     .has_sparse = false},
    {.name = "AdaMax",
     .states = "var m v",
     .arguments = "beta1_power lr beta1 beta2 epsilon grad",
     .has_sparse = false},
    {"Adagrad", "var accum", "lr grad", "update_slots: bool = true"},
    {"AdagradV2", "var accum", "lr epsilon grad", "update_slots: bool = true"},
    {"AdagradDA", "var gradient_accumulator gradient_squared_accumulator",
     "grad lr l1 l2 global_step"},
    {"ProximalAdagrad", "var accum", "lr l1 l2 grad"},
    {"Adadelta", "var accum accum_update", "lr rho epsilon grad"},
    {"Ftrl", "var accum linear", "grad lr l1 l2 lr_power",
     "multiply_linear_by_lr: bool = false"},
    {"FtrlV2", "var accum linear", "grad lr l1 l2 l2_shrinkage lr_power",
     "multiply_linear_by_lr: bool = false"},
    {"RMSProp", "var ms mom", "lr rho momentum epsilon grad"},
    {"CenteredRMSProp", "var mg ms mom", "lr rho momentum epsilon grad"},
    {.name = "AddSign",
     .states = "var m",
     .arguments = "lr alpha sign_decay beta grad",
     .has_sparse = false},
    {.name = "PowerSign",
     .states = "var m",
     .arguments = "lr logbase sign_decay beta grad",
     .has_sparse = false},
};

bool is_gradient(std::string_view name) {
  return name == "grad" || name == "delta";
}

// Checks the inputs after the variables: scalars, the gradient, indices.
Status check_arguments(const ShapeContext& c, int first, PartialShape variable,
                       PartialShape& rows) {
  for (int i = first; i < c.num_inputs(); ++i) {
    const std::string& name = c.node().op_def().inputs[size_t(i)].name;
    const PartialShape& shape = c.input(i);
    if (is_gradient(name)) {
      rows = shape;
    } else if (name == "indices") {
      TAGFLOW_RETURN_IF_ERROR(c.with_rank(i, 1).status());
    } else if (shape.has_rank() && shape.rank() != 0) {
      return c.fail(fmt::format("{} must be a scalar, not of shape {}", name,
                                shape.to_string()));
    }
  }
  if (!rows.compatible(variable))
    return c.fail(
        fmt::format("the gradient of shape {} does not fit the "
                    "variable of shape {}",
                    rows.to_string(), variable.to_string()));
  return {};
}

// The shape with an unknown first dimension, to compare only the dimensions of
// rows: a gradient's first dimension is that of the indices.
PartialShape any_rows(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return shape;
  return concatenate(PartialShape({-1}), sub_shape(shape, 1, shape.rank()));
}

Status apply_shape(ShapeContext& c, int states, bool is_sparse) {
  PartialShape variable = state_shape(c, 0);
  for (int i = 1; i < states; ++i) {
    const PartialShape slot = state_shape(c, i);
    auto merged = variable.merge(slot);
    if (!merged.ok())
      return c.fail(
          fmt::format("{} of shape {} does not fit the variable of shape {}",
                      c.node().op_def().inputs[size_t(i)].name,
                      slot.to_string(), variable.to_string()));
    variable = *std::move(merged);
  }
  if (is_sparse && variable.has_rank() && variable.rank() < 1)
    return c.fail("the variable must be at least a vector, not a scalar");
  PartialShape gradient;
  TAGFLOW_RETURN_IF_ERROR(check_arguments(
      c, states, is_sparse ? any_rows(variable) : variable, gradient));
  if (is_sparse) {
    if (gradient.has_rank() && gradient.rank() < 1)
      return c.fail("the gradient must be at least a vector, not a scalar");
    const auto& inputs = c.node().op_def().inputs;
    for (int i = states; i < c.num_inputs(); ++i)
      if (inputs[size_t(i)].name == "indices" && gradient.has_rank() &&
          !c.input(i).compatible(sub_shape(gradient, 0, 1)))
        return c.fail(
            fmt::format("indices of shape {} do not fit the "
                        "gradient of shape {}",
                        c.input(i).to_string(), gradient.to_string()));
  }
  if (c.num_outputs() > 0) c.set_output(0, std::move(variable));
  return {};
}

// Calls `visit` with each word of a text.
template <class F>
void for_words(std::string_view text, F visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    visit(std::string(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void add_apply(OpRegistry& registry, const Optimizer& optimizer,
               bool is_reference, bool is_sparse) {
  OpDefBuilder op(fmt::format("{}{}Apply{}", is_reference ? "" : "Resource",
                              is_sparse ? "Sparse" : "", optimizer.name));
  int states = 0;
  for_words(optimizer.states, [&](const std::string& name) {
    op.input(name + (is_reference ? ": Ref(T)" : ": resource"));
    ++states;
  });
  for_words(optimizer.arguments, [&](const std::string& name) {
    if (!is_gradient(name)) {
      op.input(name + (name == "global_step" ? ": int64" : ": T"));
    } else if (!is_sparse) {
      op.input(name + ": T");
    } else {
      op.inputs({"grad: T", "indices: Tindices"});
    }
  });
  if (is_reference) op.output("out: Ref(T)");
  op.attrs({"T: numbertype", "use_locking: bool = false"});
  if (is_sparse) op.attr("Tindices: {int32, int64}");
  if (*optimizer.option != '\0') op.attr(optimizer.option);
  op.stateful().shape([states, is_sparse](ShapeContext& c) {
    return apply_shape(c, states, is_sparse);
  });
  registry.add(std::move(op));
}

}  // namespace

void register_training_ops(OpRegistry& registry) {
  for (const Optimizer& optimizer : kOptimizers) {
    add_apply(registry, optimizer, false, false);
    if (optimizer.has_reference) add_apply(registry, optimizer, true, false);
    if (optimizer.has_sparse) add_apply(registry, optimizer, false, true);
    if (optimizer.has_sparse && optimizer.has_sparse_reference)
      add_apply(registry, optimizer, true, true);
  }
}

}  // namespace tagflow::graph

#include "tests/devices/kernel_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "graph/dtype_visit.h"
#include "graph/graph.h"
#include "graph/handle.h"

namespace tagflow::devices {

namespace {

using graph::Endpoint;
using graph::Graph;
using graph::Node;

// Splits whatever it gets into three shards, run one after another, last
// first.
class ShardingParallel : public Parallel {
 public:
  void run(int64_t total, double, RangeBody body) override {
    const int64_t first = total / 3, second = total - total / 3;
    if (second < total) body(second, total);
    if (first < second) body(first, second);
    if (first > 0) body(0, first);
  }
};

// Variants that say the same of themselves: what else they hold only their ops
// know.
bool variants_alike(const Tensor& actual, const Tensor& expected) {
  const auto text = [](const Variant& variant) {
    return variant.get() == nullptr ? "" : variant.get()->describe();
  };
  const auto a = actual.flat<Variant>(), b = expected.flat<Variant>();
  return std::ranges::equal(a, b, {}, text, text);
}

// The node "op" over placeholders, or over constants.
Result<Node*> build(Graph& graph, std::string_view op,
                    const std::vector<Tensor>& inputs, AttrMap attrs,
                    bool constants) {
  std::vector<Endpoint> endpoints;
  for (const Tensor& input : inputs) {
    AttrMap source_attrs{{"dtype", input.dtype()}};
    if (constants) source_attrs["value"] = input;
    TAGFLOW_ASSIGN(Node * node, graph.add(graph.unique_name("input"),
                                          constants ? "Const" : "Placeholder",
                                          {}, std::move(source_attrs)));
    endpoints.push_back({node, 0});
  }
  return graph.add("op", op, endpoints, std::move(attrs));
}

Status run_to_end(const Kernel& kernel, KernelContext& context) {
  const auto* async = dynamic_cast<const AsyncKernel*>(&kernel);
  if (async == nullptr) return run_kernel(kernel, context);
  Status status = error(Code::kInternal, "the kernel did not finish");
  run_kernel_async(*async, context,
                   [&](Status result) { status = std::move(result); });
  return status;
}

Result<Outputs> run_once(const Node& node, const Kernel& kernel,
                         std::vector<Tensor> inputs, const StepInfo& step) {
  Outputs outputs(size_t(node.num_outputs()));
  const Tag tag;
  KernelContext context(&node, inputs, outputs, &step, &tag);
  if (kernel.may_be_expensive() && !(kernel.cost(context) >= 0))
    return error(Code::kInternal, "the estimated cost is not a number");
  TAGFLOW_RETURN_IF_ERROR(run_to_end(kernel, context));
  for (size_t i = 0; i < outputs.size(); ++i) {
    const DataType dtype = node.output_dtypes()[i];
    // What travels through a reference is a value.
    if (outputs[i].dtype() != remove_ref(dtype))
      return error(Code::kInternal, "output {} is {}, not of type {}", i,
                   outputs[i].describe(), dtype_name(dtype));
  }
  return outputs;
}

Status check_inferred(const Outputs& outputs,
                      const std::vector<PartialShape>& shapes) {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!shapes[i].accepts(outputs[i].shape()))
      return error(Code::kInternal, "output {} is {}, inferred was {}", i,
                   outputs[i].describe(), shapes[i].to_string());
  return {};
}

Status check_repeated(const Result<Outputs>& again, const Outputs& outputs,
                      std::string_view how) {
  if (!again.ok()) return again.status().with_prefix(how);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string text = difference((*again)[i], outputs[i], 1e-5);
    if (!text.empty())
      return error(Code::kInternal, "{}output {}: {}", how, i, text);
  }
  return {};
}

// A shortcut past compute(), if it takes these inputs, gives what that
// gives.
Status check_shortcut(const Kernel& kernel, const std::vector<Tensor>& inputs,
                      const Outputs& outputs) {
  const ScalarFunction shortcut = kernel.scalar_function();
  if (shortcut == nullptr) return {};
  Outputs again(1);
  if (!shortcut(inputs.data(), again[0])) return {};
  return check_repeated(std::move(again), outputs, "by the shortcut: ");
}

std::vector<Tensor> clones(const std::vector<Tensor>& tensors) {
  std::vector<Tensor> copies;
  for (const Tensor& tensor : tensors) copies.push_back(tensor.clone());
  return copies;
}

// run_op, with or without the check of shape inference.
Result<Outputs> run_checked(std::string_view op,
                            const std::vector<Tensor>& inputs, AttrMap attrs,
                            const StepInfo* step, bool inferred) {
  Graph graph;
  TAGFLOW_ASSIGN(Node * node, build(graph, op, inputs, attrs, false));
  TAGFLOW_ASSIGN(auto kernel, KernelRegistry::global().make(*node, "CPU"));
  const StepInfo plain_step;
  if (step == nullptr) step = &plain_step;
  TAGFLOW_ASSIGN(Outputs outputs, run_once(*node, *kernel, inputs, *step));

  if (inferred) {
    TAGFLOW_ASSIGN(const auto shapes, infer_op(op, inputs, attrs));
    TAGFLOW_RETURN_IF_ERROR(check_inferred(outputs, shapes));
  }
  TAGFLOW_RETURN_IF_ERROR(check_shortcut(*kernel, inputs, outputs));
  if (!node->op_def().is_stateful) {
    TAGFLOW_RETURN_IF_ERROR(
        check_repeated(run_once(*node, *kernel, clones(inputs), *step), outputs,
                       "with unshared inputs: "));
    ShardingParallel parallel;
    StepInfo sharded = *step;
    sharded.parallel = &parallel;
    TAGFLOW_RETURN_IF_ERROR(check_repeated(
        run_once(*node, *kernel, inputs, sharded), outputs, "in shards: "));
  }
  return outputs;
}

}  // namespace

Result<Outputs> run_op(std::string_view op, const std::vector<Tensor>& inputs,
                       AttrMap attrs, const StepInfo* step) {
  return run_checked(op, inputs, std::move(attrs), step, true);
}

Result<Outputs> run_op_beyond_inference(std::string_view op,
                                        const std::vector<Tensor>& inputs,
                                        AttrMap attrs) {
  if (infer_op(op, inputs, attrs).ok())
    return error(Code::kInternal, "shape inference does not refuse it");
  return run_checked(op, inputs, std::move(attrs), nullptr, false);
}

Result<std::vector<PartialShape>> infer_op(std::string_view op,
                                           const std::vector<Tensor>& inputs,
                                           AttrMap attrs) {
  Graph graph;
  TAGFLOW_ASSIGN(Node * node, build(graph, op, inputs, std::move(attrs), true));
  std::vector<PartialShape> shapes;
  for (int i = 0; i < node->num_outputs(); ++i)
    shapes.push_back(node->output_shape(i));
  return shapes;
}

namespace {

// 4 units in the last place at 1.
template <class Real>
double default_tolerance() {
  if constexpr (std::is_same_v<Real, Half>) return 4.0 / 1024;
  if constexpr (std::is_same_v<Real, BFloat16>) return 4.0 / 128;
  return 4 * double(std::numeric_limits<Real>::epsilon());
}

bool close(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

template <class T>
bool elements_close(const T& a, const T& b, double tolerance) {
  if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
    if (tolerance == 0) tolerance = default_tolerance<typename T::value_type>();
    const double size = std::max(1.0, double(std::abs(b)));
    return close(a.real(), b.real(), tolerance * size) &&
           close(a.imag(), b.imag(), tolerance * size);
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                       std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    if (tolerance == 0) tolerance = default_tolerance<T>();
    return close(double(a), double(b), tolerance);
  } else {
    return a == b;
  }
}

}  // namespace

std::string difference(const Tensor& actual, const Tensor& expected,
                       double tolerance) {
  const std::string both = fmt::format(
      "got {}, expected {}", actual.to_string(24), expected.to_string(24));
  if (actual.valid() != expected.valid() ||
      actual.dtype() != expected.dtype() ||
      !(actual.shape() == expected.shape()))
    return both;
  std::string text;
  const bool visited = visit_dtype(actual.dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t i = 0; i < actual.num_elements() && text.empty(); ++i)
      if (!elements_close(actual.data<T>()[i], expected.data<T>()[i],
                          tolerance))
        text = fmt::format("element {} differs: {}", i, both);
  });
  if (actual.dtype() == DataType::kVariant)
    return variants_alike(actual, expected) ? "" : both;
  if (!visited && !identical(actual, expected)) return both;
  return text;
}

void expect_close(const Tensor& actual, const Tensor& expected,
                  double tolerance) {
  CHECK(difference(actual, expected, tolerance) == "");
}

void expect_close(const Result<Outputs>& actual, const Tensor& expected,
                  double tolerance) {
  REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
  REQUIRE(!actual->empty());
  expect_close((*actual)[0], expected, tolerance);
}

void expect_error(const Status& status, Code code, std::string_view text) {
  const std::string message(status.message());
  INFO("the status is ", status.to_string());
  CHECK(std::string(code_name(status.code())) == std::string(code_name(code)));
  INFO("it should contain ", std::string(text));
  CHECK(message.find(text) != std::string::npos);
}

}  // namespace tagflow::devices

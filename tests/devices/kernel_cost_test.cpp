// Every kernel of ours estimates its cost.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "graph/graph.h"
#include "graph/op_registry.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

using graph::ArgDef;
using graph::AttrDef;
using graph::Endpoint;
using graph::Graph;
using graph::Node;
using graph::OpDef;

// Attributes that an op needs, and that its definition does not tell.
const std::map<std::string, AttrMap>& special_attrs() {
  static const std::map<std::string, AttrMap> attrs = {
      {"StringToHashBucketStrong", {{"key", std::vector<int64_t>{1, 2}}}}};
  return attrs;
}

// A node of any op whose kernel is `def`, over placeholders of scalars: for
// types the first that there is a kernel for, for the rest what the op allows.
class AnyNode {
 public:
  explicit AnyNode(const KernelDef& def)
      : def_(def), op_(*graph::OpRegistry::global().find_or_null(def.op)) {}

  Result<Node*> make() {
    if (const auto it = special_attrs().find(def_.op);
        it != special_attrs().end())
      attrs_ = it->second;
    for (const AttrDef& attr : op_.attrs)
      if (!attrs_.contains(attr.name) && !attr.default_value) add(attr);
    std::vector<Endpoint> endpoints;
    for (const ArgDef& arg : op_.inputs)
      for (const DataType dtype : types_of(arg)) {
        TAGFLOW_ASSIGN(Node * input,
                       graph_.add(graph_.unique_name("input"), "Placeholder",
                                  {}, {{"dtype", remove_ref(dtype)}}));
        endpoints.push_back({input, 0});
        inputs.push_back(Tensor::make(remove_ref(dtype), {}));
      }
    return graph_.add("op", def_.op, endpoints, attrs_);
  }

  std::vector<Tensor> inputs;

 private:
  DataType type_for(const AttrDef& attr) const {
    if (const auto it = def_.types.find(attr.name); it != def_.types.end())
      return it->second.front();
    return attr.allowed_types.empty() ? DataType::kFloat
                                      : attr.allowed_types.front();
  }
  void add(const AttrDef& attr) {
    AttrValue& value = attrs_[attr.name];
    if (attr.type == "type") value = type_for(attr);
    if (attr.type == "list(type)")
      value = std::vector<DataType>(2, type_for(attr));
    if (attr.type == "int") value = attr.minimum.value_or(1);
    if (attr.type == "list(int)") value = std::vector<int64_t>(4, 1);
    if (attr.type == "float") value = 1.0f;
    if (attr.type == "bool") value = false;
    if (attr.type == "shape") value = PartialShape::scalar();
    if (attr.type == "list(shape)")
      value = std::vector<PartialShape>(2, PartialShape::scalar());
    if (attr.type == "tensor") value = Tensor::scalar(1.0f);
    if (attr.type == "string")
      value = attr.allowed_strings.empty() ? std::string("x")
                                           : attr.allowed_strings.front();
    if (attr.type == "list(string)") value = std::vector<std::string>();
  }
  const AttrValue& value_of(const std::string& name) const {
    const auto it = attrs_.find(name);
    return it != attrs_.end() ? it->second
                              : *op_.find_attr(name)->default_value;
  }
  std::vector<DataType> types_of(const ArgDef& arg) const {
    if (!arg.type_list_attr.empty()) {
      const auto it = attrs_.find(arg.type_list_attr);
      if (it == attrs_.end()) return {};
      return *it->second.get_if<std::vector<DataType>>();
    }
    const DataType dtype = arg.type_attr.empty()
                               ? arg.dtype
                               : *value_of(arg.type_attr).get_if<DataType>();
    int64_t count = 1;
    if (!arg.number_attr.empty())
      count = *value_of(arg.number_attr).get_if<int64_t>();
    return std::vector<DataType>(size_t(count), dtype);
  }

  const KernelDef& def_;
  const OpDef& op_;
  Graph graph_;
  AttrMap attrs_;
};

}  // namespace

TEST_CASE("every registered kernel says what it costs, or that it is cheap") {
  const KernelRegistry& registry = KernelRegistry::global();
  size_t kernels = 0;
  for (const std::string& op : graph::OpRegistry::global().names())
    for (const KernelDef& def : registry.kernels_of(op)) {
      AnyNode any(def);
      const Result<Node*> node = any.make();
      CAPTURE(op);
      // A type that the op does not take, or an attribute of another length.
      if (!node.ok()) continue;
      const auto kernel = def.factory(KernelInfo(**node));
      // Attributes that do not go together, as a format's.
      if (!kernel.ok()) continue;
      ++kernels;
      std::vector<Tensor> outputs(size_t((*node)->num_outputs()));
      const StepInfo step;
      const Tag tag;
      const KernelContext context(*node, any.inputs, outputs, &step, &tag);
      const double cost = cost_of(**kernel, context);
      CHECK((!(*kernel)->may_be_expensive() || std::isfinite(cost)));
    }
  CHECK(kernels > 500);
}

TEST_CASE("a kernel that says nothing is worth a hop") {
  class Silent : public Kernel {
   public:
    Status compute(KernelContext&) const override { return {}; }
  };
  class Throwing : public Silent {
   public:
    double cost(const KernelContext&) const override { throw 3; }
  };
  const StepInfo step;
  const Tag tag;
  const KernelContext context(nullptr, {}, {}, &step, &tag);
  CHECK(Silent().may_be_expensive());
  CHECK(cost_of(Silent(), context) == Kernel::kUnknownCost);
  CHECK(cost_of(Throwing(), context) == Kernel::kUnknownCost);
}

TEST_CASE("many updates of few results, and many results of few, cost much") {
  const auto cost = [](const char* op, std::vector<Tensor> inputs) {
    Graph graph;
    std::vector<Endpoint> endpoints;
    for (const Tensor& input : inputs) {
      // The last one says how many results there are.
      const bool is_last = endpoints.size() + 1 == inputs.size();
      AttrMap attrs = {{"dtype", input.dtype()}};
      if (is_last) attrs["value"] = input;
      endpoints.push_back(
          {graph
               .add(graph.unique_name("input"),
                    is_last ? "Const" : "Placeholder", {}, std::move(attrs))
               .value(),
           0});
    }
    const Node* node = graph.add("op", op, endpoints, {}).value();
    const auto kernel = KernelRegistry::global().make(*node, "CPU").value();
    CHECK(kernel->may_be_expensive());
    const StepInfo step;
    const Tag tag;
    return cost_of(*kernel, KernelContext(node, inputs, {}, &step, &tag));
  };
  constexpr int64_t kMany = 1'000'000;
  CHECK(cost("ScatterNd", {Tensor::make(DataType::kInt32, {kMany, 1}),
                           Tensor::make(DataType::kFloat, {kMany}),
                           Tensor::vector<int32_t>({1})}) >
        Kernel::kHeavyNanoseconds);
  CHECK(cost("ScatterNd",
             {Tensor::vector<int32_t>({0}), Tensor::vector<float>({1}),
              Tensor::vector<int32_t>({int32_t(kMany)})}) >
        Kernel::kHeavyNanoseconds);
  CHECK(cost("UnsortedSegmentSum",
             {Tensor::vector<float>({1}), Tensor::vector<int32_t>({0}),
              Tensor::scalar(int32_t(kMany))}) > Kernel::kHeavyNanoseconds);
}

}  // namespace tagflow::devices

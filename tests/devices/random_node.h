// A node of a random op that is run without an engine.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "graph/graph.h"

namespace tagflow::devices {

class RandomNode {
 public:
  RandomNode(std::string op, std::vector<Tensor> inputs, AttrMap attrs = {},
             std::string name = "op")
      : inputs_(std::move(inputs)) {
    std::vector<graph::Endpoint> endpoints;
    for (const Tensor& input : inputs_) {
      const auto source = graph_.add(graph_.unique_name("input"), "Placeholder",
                                     {}, {{"dtype", input.dtype()}});
      REQUIRE(source.ok());
      endpoints.push_back({*source, 0});
    }
    const auto node =
        graph_.add(std::move(name), op, endpoints, std::move(attrs));
    REQUIRE_MESSAGE(node.ok(), node.status().to_string());
    node_ = *node;
    auto kernel = KernelRegistry::global().make(*node_, "CPU");
    REQUIRE_MESSAGE(kernel.ok(), kernel.status().to_string());
    kernel_ = std::move(*kernel);
  }

  const graph::Node& node() const { return *node_; }
  const Kernel& kernel() const { return *kernel_; }
  std::span<Tensor> inputs() { return inputs_; }

  Tensor draw(const StepInfo& step = {}, const Tag& tag = {}) {
    Tensor output;
    KernelContext context(node_, inputs_, {&output, 1}, &step, &tag);
    const Status status = run_kernel(*kernel_, context);
    REQUIRE_MESSAGE(status.ok(), status.to_string());
    return output;
  }

 private:
  graph::Graph graph_;
  std::vector<Tensor> inputs_;
  graph::Node* node_ = nullptr;
  std::unique_ptr<Kernel> kernel_;
};

// So many earlier runs for every node.
class FixedRuns : public RandomRuns {
 public:
  explicit FixedRuns(int64_t runs) : runs_(runs) {}
  int64_t earlier_runs(const std::string&) override { return runs_; }

 private:
  int64_t runs_;
};

}  // namespace tagflow::devices

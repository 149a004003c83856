// Kernels that may wait, called by hand: each call in a step of its own.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/kernel_registry.h"
#include "devices/state/guard.h"
#include "devices/state/resource_manager.h"
#include "tests/devices/kernel_fixture.h"
#include "tests/graph/hand_made.h"

namespace tagflow::devices {

// A node over placeholders, and its CPU kernel.
class TestedOp {
 public:
  TestedOp(std::string_view op, const std::vector<DataType>& inputs,
           AttrMap attrs = {}, std::string name = "node") {
    std::vector<graph::Endpoint> endpoints;
    for (const DataType type : inputs)
      endpoints.push_back(
          {graph::testing::add(
               graph_, graph_.unique_name("input"),
               is_ref(type) ? "FIFOQueue" : "Placeholder", {},
               is_ref(type) ? AttrMap{{"component_types",
                                       std::vector<DataType>{DataType::kInt32}}}
                            : AttrMap{{"dtype", type}}),
           0});
    node_ = graph::testing::add(graph_, std::move(name), op, endpoints,
                                std::move(attrs));
    Result<std::unique_ptr<Kernel>> made =
        KernelRegistry::global().make(*node_, "CPU");
    status_ = made.status();
    if (made.ok()) kernel_ = *std::move(made);
  }
  // Why there is no kernel.
  const Status& status() const { return status_; }
  const graph::Node& node() const { return *node_; }
  const Kernel& kernel() const {
    REQUIRE_MESSAGE(kernel_ != nullptr, status_.to_string());
    return *kernel_;
  }

 private:
  graph::Graph graph_;
  graph::Node* node_ = nullptr;
  Status status_;
  std::unique_ptr<Kernel> kernel_;
};

// One execution. Must be over before it goes.
class Call {
 public:
  Call(const TestedOp& op, std::vector<Tensor> inputs,
       ResourceManager* state = nullptr, Allocator& memory = host_allocator())
      : op_(op),
        inputs_(std::move(inputs)),
        outputs_(size_t(op.node().num_outputs())),
        context_(&op.node(), inputs_, outputs_, &step_, &tag_, &memory) {
    step_.cancels = &cancels_;
    step_.commits = &gate_;
    step_.cancelled = &is_cancelled_;
    step_.state = state;
  }
  Call(const Call&) = delete;

  // As the engine does it, or without the shortcut.
  Call& start(bool may_be_at_once = true) {
    const auto* async = dynamic_cast<const AsyncKernel*>(&op_.kernel());
    if (async == nullptr) {
      finish(run_kernel(op_.kernel(), context_));
      return *this;
    }
    if (may_be_at_once) {
      if (std::optional<Status> status = try_async_kernel(*async, context_)) {
        finish(*std::move(status));
        return *this;
      }
    }
    run_kernel_async(*async, context_,
                     [this](Status status) { finish(std::move(status)); });
    return *this;
  }
  // As an error elsewhere in the step does.
  void cancel() {
    is_cancelled_ = true;
    cancels_.cancel();
  }
  // As the answer of the step does.
  void close_gate() { (void)gate_.close(); }
  bool is_over() const { return answers_.load() > 0; }
  int answers() const { return answers_.load(); }
  // REQUIRES of these: it is over.
  const Status& status() const { return status_; }
  const Tensor& output(int i = 0) const {
    REQUIRE_MESSAGE(is_over(), "the call waits");
    REQUIRE_MESSAGE(status_.ok(), status_.to_string());
    return outputs_[size_t(i)];
  }
  std::string waits_for() const {
    return dynamic_cast<const AsyncKernel&>(op_.kernel())
        .describe_wait(context_);
  }

 private:
  void finish(Status status) {
    status_ = std::move(status);
    answers_.fetch_add(1);
  }

  const TestedOp& op_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::atomic<bool> is_cancelled_{false};
  CancelList cancels_;
  CommitGate gate_{[] {}};
  StepInfo step_;
  Tag tag_;
  KernelContext context_;
  Status status_;
  std::atomic<int> answers_{0};
};

// Calls an op once, with types that follow from the inputs.
inline Result<Outputs> call_op(ResourceManager& state, std::string_view op,
                               const std::vector<Tensor>& inputs,
                               AttrMap attrs = {}) {
  StepInfo step;
  step.state = &state;
  return run_op(op, inputs, std::move(attrs), &step);
}

}  // namespace tagflow::devices

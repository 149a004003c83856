#include "tests/actors/holding_op.h"

#include <doctest/doctest.h>

#include <condition_variable>
#include <mutex>
#include <utility>

#include "devices/kernel.h"
#include "tests/actors/test_op.h"

namespace tagflow::actors {
namespace {

std::mutex mutex;  // guards the below
std::condition_variable changed;
bool is_up = false;
std::vector<std::string> begun;

class BlockKernel : public devices::Kernel {
 public:
  explicit BlockKernel(const devices::KernelInfo&) {}
  double cost(const devices::KernelContext&) const override { return 1e6; }
  Status compute(devices::KernelContext& context) const override {
    std::unique_lock lock(mutex);
    begun.push_back(context.node().name());
    changed.notify_all();
    changed.wait(lock, [] { return !is_up; });
    context.set_output(0, context.input(0));
    return {};
  }
};

std::function<void()> to_call;

class CallKernel : public devices::CheapKernel {
 public:
  explicit CallKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    if (to_call) to_call();
    context.set_output(0, context.input(0));
    return {};
  }
};

}  // namespace

graph::Output test_call(const graph::Scope& s, const graph::Input& x) {
  static const bool once = (add_test_op<CallKernel>("TestCall"), true);
  (void)once;
  return s.op("TestCall", {x});
}

TestCall::TestCall(std::function<void()> call) { to_call = std::move(call); }
TestCall::~TestCall() { to_call = nullptr; }

graph::Output test_block(const graph::Scope& s, const graph::Input& x) {
  static const bool once = (add_test_op<BlockKernel>("TestBlock"), true);
  (void)once;
  return s.op("TestBlock", {x});
}

graph::Graph blocked_graph() {
  graph::Graph graph;
  const graph::Scope s(graph);
  graph::ops::identity(s.named("y"),
                       test_block(s, s.constant(Tensor::scalar(2))));
  REQUIRE(s.status().ok());
  return graph;
}

Blockade::Blockade() {
  std::lock_guard lock(mutex);
  is_up = true;
  begun.clear();
}

Blockade::~Blockade() { let_go(); }

void Blockade::let_go() {
  std::lock_guard lock(mutex);
  is_up = false;
  changed.notify_all();
}

void Blockade::until_begun(int count) const {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return int(begun.size()) >= count; });
}

std::vector<std::string> Blockade::order() const {
  std::lock_guard lock(mutex);
  return begun;
}

}  // namespace tagflow::actors

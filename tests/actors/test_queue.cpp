#include "tests/actors/test_queue.h"

#include <algorithm>
#include <utility>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/actors/test_op.h"

namespace tagflow::actors {

// Who waits. Whoever completes it claims it first.
class TestQueue::Taker : public devices::CancelHook,
                         public std::enable_shared_from_this<Taker> {
 public:
  Taker(TestQueue& queue, devices::KernelContext& context,
        devices::Completion done)
      : queue_(queue), context_(context), done_(std::move(done)) {}

  // False if it was cancelled, or its step has been answered.
  bool complete(int value) {
    if (!claim()) return false;
    bool taken = false;
    {
      const devices::Commit commit = context_.commit();
      taken = bool(commit);
    }
    if (taken) context_.set_output(0, Tensor::scalar(value));
    answer(taken ? Status() : cancelled());
    return taken;
  }
  void answer(Status status) { std::exchange(done_, nullptr)(status); }
  static Status cancelled() {
    return error(Code::kCancelled, "[TestTake] the step was cancelled");
  }

  bool is_cancelled = false;  // guarded by the queue's mutex

 protected:
  void on_cancel() override {
    const std::shared_ptr<Taker> self = shared_from_this();
    {
      std::lock_guard lock(queue_.mutex_);
      // Who waits longest is cancelled first: at the front.
      const auto at = std::ranges::find(queue_.takers_, self);
      if (at != queue_.takers_.end()) queue_.takers_.erase(at);
      is_cancelled = true;
    }
    answer(cancelled());
  }

 private:
  TestQueue& queue_;
  devices::KernelContext& context_;
  devices::Completion done_;
};

TestQueue& TestQueue::global() {
  static TestQueue queue;
  return queue;
}

void TestQueue::put(int value) {
  for (;;) {
    std::shared_ptr<Taker> first;
    {
      std::lock_guard lock(mutex_);
      if (takers_.empty()) {
        values_.push_back(value);
        return;
      }
      first = std::move(takers_.front());
      takers_.pop_front();
    }
    if (first->complete(value)) return;
  }
}

size_t TestQueue::size() const {
  std::lock_guard lock(mutex_);
  return values_.size();
}

size_t TestQueue::waiting() const {
  std::lock_guard lock(mutex_);
  return takers_.size();
}

void TestQueue::clear() {
  std::lock_guard lock(mutex_);
  values_.clear();
}

class TakeKernel : public devices::AsyncKernel {
 public:
  explicit TakeKernel(const devices::KernelInfo&) {}
  devices::WaitsFor waits_for() const override {
    return devices::WaitsFor::kSharedState;
  }
  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    TestQueue& queue = TestQueue::global();
    const auto taker =
        std::make_shared<TestQueue::Taker>(queue, context, std::move(done));
    // Before others see it: then the context may be gone at any time.
    if (!context.on_cancel(taker)) {
      if (taker->claim()) taker->answer(TestQueue::Taker::cancelled());
      return;
    }
    int value = 0;
    {
      std::lock_guard lock(queue.mutex_);
      if (taker->is_cancelled) return;
      if (queue.values_.empty()) {
        queue.takers_.push_back(taker);
        return;
      }
      value = queue.values_.front();
      queue.values_.pop_front();
    }
    if (!taker->complete(value)) queue.put(value);
  }
};

namespace {

class PutKernel : public devices::Kernel {
 public:
  explicit PutKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    const devices::Commit commit = context.commit();
    if (!commit) return error(Code::kCancelled, "[TestPut] was cancelled");
    TestQueue::global().put(context.input(0).scalar_value<int32_t>());
    context.set_output(0, context.input(0));
    return {};
  }
};

void register_ops() {
  static const bool once = [] {
    add_test_op<PutKernel>("TestPut", "int32");
    graph::OpRegistry::global().add(graph::OpDefBuilder("TestTake")
                                        .output("y: int32")
                                        .stateful()
                                        .shape(graph::scalar_shape));
    devices::KernelRegistry::global().add<TakeKernel>("TestTake");
    return true;
  }();
  (void)once;
}

}  // namespace

graph::Output test_put(const graph::Scope& s, const graph::Input& x) {
  register_ops();
  return s.op("TestPut", {x});
}

graph::Output test_take(const graph::Scope& s) {
  register_ops();
  return s.op("TestTake", {});
}

}  // namespace tagflow::actors

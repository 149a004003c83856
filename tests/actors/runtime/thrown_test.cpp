// An exception anywhere in a run is the error of that run.
#include <doctest/doctest.h>

#include <atomic>
#include <future>

#include "actors/watch/observer.h"
#include "devices/kernel.h"
#include "graph/builder/builder.h"
#include "tests/actors/holding_op.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_op.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// What kernels and observers do where they would throw.
void throw_int() { throw 3; }
constexpr const char* kOfInt = "unexpected exception of type int";

class CheapThrow : public devices::CheapKernel {
 public:
  explicit CheapThrow(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext&) const override {
    throw_int();
    return {};
  }
};

class HeavyThrow : public devices::Kernel {
 public:
  explicit HeavyThrow(const devices::KernelInfo&) {}
  double cost(const devices::KernelContext&) const override { return 1e9; }
  Status compute(devices::KernelContext&) const override {
    throw_int();
    return {};
  }
};

// In one shard or in several.
class ShardThrow : public devices::Kernel {
 public:
  explicit ShardThrow(const devices::KernelInfo&) {}
  double cost(const devices::KernelContext&) const override { return 1e9; }
  Status compute(devices::KernelContext& context) const override {
    const bool all = context.input(0).scalar_value<int32_t>() != 0;
    context.parallel_for(64, 1e6, [&](int64_t begin, int64_t) {
      if (all || begin == 0) throw_int();
    });
    context.set_output(0, context.input(0));
    return {};
  }
};

class AsyncThrow : public devices::AsyncKernel {
 public:
  explicit AsyncThrow(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext&,
                     devices::Completion) const override {
    throw_int();
  }
};

void register_ops() {
  static const bool once = [] {
    add_test_op<CheapThrow>("TestCheapThrow");
    add_test_op<HeavyThrow>("TestHeavyThrow");
    add_test_op<ShardThrow>("TestShardThrow");
    add_test_op<AsyncThrow>("TestAsyncThrow");
    return true;
  }();
  (void)once;
}

// Throws at its k-th call.
class Thrower : public Observer {
 public:
  explicit Thrower(int k) : left_(k) {}
  bool thrown() const { return left_ <= 0; }
  void on_fire(const Location&, const Node&, bool) override { call(); }
  void on_fired(const Location&, const Node&,
                std::span<const Tensor>) override {
    call();
  }
  void on_compute(const Location&, const Node&) override { call(); }
  void on_computed(const Location&, const Node&) override { call(); }
  void on_iteration_start(const Location&) override { call(); }
  void on_iteration_end(const Location&) override { call(); }
  void on_frame_start(const Location&, const Location&) override { call(); }
  void on_frame_end(const Location&) override { call(); }

 private:
  void call() {
    if (--left_ == 0) throw_int();
  }
  std::atomic<int> left_;
};

}  // namespace

TEST_CASE("an int that a kernel throws is the error of its run alone") {
  register_ops();
  for (const char* op : {"TestCheapThrow", "TestHeavyThrow", "TestShardThrow",
                         "TestAsyncThrow"}) {
    Graph graph;
    const Scope s(graph);
    // In the midst of others, and in a loop.
    Outputs sums;
    for (int i = 0; i < 4; ++i)
      sums.push_back(
          Output(s.op(op, {s.constant(Tensor::scalar(int32_t(i % 2)))})));
    const Outputs last = while_loop(
        s,
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 3);
        },
        [op](const Scope& in, const Outputs& v) -> Outputs {
          return ops::add(in, v[0], Output(in.op(op, {v[0]})));
        },
        {1});
    ops::add_n(s.named("y"), {sums[0], sums[1], sums[2], sums[3], last[0]});
    ops::add(s.named("fine"), s.constant(Tensor::scalar(1)), 2);
    REQUIRE(s.status().ok());
    for (const SessionOptions& options : configurations()) {
      INFO(op, " ", describe(options));
      auto session = make_session(options, graph);
      const auto out = session->run({}, {"y"}, {}, within_a_minute());
      CHECK(out.status().code() == Code::kInternal);
      CAPTURE(out.status().to_string());
      CHECK(out.status().message().find(kOfInt) != std::string_view::npos);
      std::promise<Code> code;
      session->run_async({}, {"y"}, {}, within_a_minute(),
                         [&](auto answer, RunStats) {
                           code.set_value(answer.status().code());
                         });
      CHECK(code.get_future().get() == Code::kInternal);
      CHECK(must_run(*session, {}, {"fine"})[0].scalar_value<int>() == 3);
    }
  }
}

TEST_CASE("an int that an observer throws is the error of its run alone") {
  Graph graph;
  const Scope s(graph);
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 3); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return ops::add(in, v[0], 1);
      },
      {0});
  // Some of these on lanes.
  Inputs heavy{last[0]};
  for (int i = 0; i < 3; ++i)
    heavy.add(test_block(s, s.constant(Tensor::scalar(0))));
  ops::add_n(s.named("y"), heavy);
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    bool thrown = true;
    for (int k = 1; thrown; ++k) {
      CAPTURE(k);
      Thrower observer(k);
      RunOptions run = within_a_minute();
      run.observer = &observer;
      const auto out = session->run({}, {"y"}, {}, run);
      thrown = observer.thrown();
      if (thrown) {
        CHECK(out.status().message().find(kOfInt) != std::string_view::npos);
      } else {
        CHECK(out.ok());
      }
    }
    CHECK(must_run(*session, {}, {"y"})[0].scalar_value<int>() == 3);
  }
}

// Note [The ring], observed by the nodes that run on it: a slot has a different
// address in each iteration actor.
#include <doctest/doctest.h>

#include <set>

#include "graph/builder/builder.h"
#include "tests/actors/pending.h"
#include "tests/actors/test_op.h"
#include "tests/actors/test_queue.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

constexpr int kTrips = 30, kWindow = 6;

std::vector<const Tensor*> slots;  // of one worker's, by iteration

class WhereKernel : public devices::CheapKernel {
 public:
  explicit WhereKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    slots.push_back(&context.input(0));
    context.set_output(0, context.input(0));
    return {};
  }
};

// Counts to kTrips. An iteration waits for a value of the queue if "wait" says
// so; the next ones do not wait for that.
Graph counting() {
  static const bool once =
      (add_test_op<WhereKernel>("TestWhere", "int32"), true);
  REQUIRE(once);
  Graph graph;
  const Scope s(graph);
  const Output wait =
      ops::placeholder(s.named("wait"), DataType::kBool, PartialShape());
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], kTrips);
      },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Outputs taken = cond(
            in, wait,
            [](const Scope& then) -> Outputs { return {test_take(then)}; },
            [&](const Scope& other) -> Outputs {
              return {ops::identity(other, v[0])};
            });
        const Output count = ops::add(in, in.op("TestWhere", {v[0]}), 1);
        return {count, ops::add(in, v[1], taken[0])};
      },
      {0, 0}, {.parallel_iterations = kWindow});
  ops::identity(s.named("count"), last[0]);
  ops::identity(s.named("sum"), last[1]);
  REQUIRE(s.status().ok());
  return graph;
}

size_t num_actors(size_t first) {
  return std::set(slots.begin() + ptrdiff_t(first), slots.end()).size();
}

}  // namespace

TEST_CASE("a ring holds all that is in flight, and then shrinks again") {
  TestQueue::global().clear();
  auto session = make_session({.workers = 1}, counting());
  const auto run = [&](bool wait) {
    slots.clear();
    const std::vector<std::string> fetches{"count", "sum"};
    Pending pending(*session, {{"wait", Tensor::scalar(wait)}}, fetches,
                    within_a_minute());
    const auto until_waiting = [&](size_t count) {
      while (TestQueue::global().waiting() < count && !pending.answered())
        std::this_thread::yield();
    };
    for (int i = 0; wait && i < kTrips; ++i) {
      // At first all that may run at once.
      until_waiting(i == 0 ? kWindow : 1);
      TestQueue::global().put(2);
    }
    const Answer given = pending.get();
    REQUIRE(given.ok());
    CHECK((*given)[0].scalar_value<int32_t>() == kTrips);
    REQUIRE(slots.size() == kTrips);
    return (*given)[1].scalar_value<int32_t>();
  };
  CHECK(run(false) == kTrips * (kTrips - 1) / 2);
  CHECK(num_actors(0) == 2);
  for (int i = 0; i < 3; ++i) {
    CHECK(run(true) == 2 * kTrips);
    CHECK(num_actors(0) == kWindow);
    CHECK(run(false) == kTrips * (kTrips - 1) / 2);
    CHECK(num_actors(kWindow) == 2);
  }
}

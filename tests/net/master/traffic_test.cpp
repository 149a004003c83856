// What a step over two workers puts on the wire.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "autodiff/gradients.h"
#include "tests/actors/pending.h"
#include "tests/actors/program.h"
#include "tests/net/master/tapped.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::must;

constexpr int64_t kWindow = 1 << 20;  // bytes
// 0 + 1 + ..., as a loop of floats adds.
float sum_below(int count) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += float(i);
  return sum;
}

Tensor trips(int count) { return Tensor::scalar<int32_t>(count); }

// While i < `trips`, on task 0: what `body` makes of i and of a number of task
// 1, which begins when "put" has run.
struct Ahead : actors::Program {
  using Body = std::function<Output(const Scope& first, const Scope& second,
                                    const Output& i, const Output& y)>;
  Ahead(int trips, const Body& body) {
    const Scope here = s.with_device(kHere), there = s.with_device(kThere);
    const ops::Queue queue =
        ops::fifo_queue(there.named("queue"), {DataType::kFloat});
    ops::enqueue(there.named("put"), queue, {ops::constant(there, 0.f)});
    const Output taken = ops::dequeue(there, queue)[0];
    const Output scalar =
        ops::constant(there, Tensor::make(DataType::kInt32, {0}));
    out = while_loop(
        s,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in.with_device(kHere), v[0], trips);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Scope first = in.with_device(kHere);
          const Scope second = in.with_device(kThere);
          return {ops::add(first, v[0], 1), body(first, second, v[0], v[1])};
        },
        {ops::constant(here, 0), ops::reshape(there, taken, scalar)},
        {.parallel_iterations = 10})[1];
    must(s.status());
  }
  Output out;
};

// Runs it, and lets task 1 begin when task 0 can run ahead no further. The
// result.
float run_ahead(const Ahead& p, const Tapped& cluster) {
  const auto session = cluster.session(p.graph);
  actors::Pending pending(*session, p.out.name(), actors::within_a_minute());
  CHECK(actors::comes_true(
      [&] { return cluster.traffic.window().announced > 0; }));
  must(session->run({}, {}, {"put"}, actors::within_a_minute()));
  return must(must(pending.get())[0].item<float>());
}

}  // namespace

TEST_CASE("a step's messages to and from its master do not grow with trips") {
  actors::Program p;
  const Scope here = p.s.with_device(kHere);
  const Output n = ops::placeholder(here.named("n"), DataType::kInt32, {});
  const Output out = while_loop(
      here,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                ops::add(in.with_device(kThere), v[1], 1.f)};
      },
      {ops::constant(here, 0), ops::constant(here, 1.f)},
      {.parallel_iterations = 32})[1];
  must(p.s.status());
  Tapped cluster;
  const auto session = cluster.session(p.graph);
  const auto run = [&](int count) {
    const auto results =
        actors::must_run(*session, {{"n", trips(count)}}, {out.name()});
    CHECK(must(results[0].item<float>()) == float(count) + 1);
  };
  run(1);  // registers
  std::vector<uint64_t> frames, reports;
  for (const int count : {10, 10'000}) {
    const auto of = [&](FrameKind kind) {
      return cluster.traffic.of(Role::kMaster, kind).frames;
    };
    const auto of_stalls = [&] {
      return of(FrameKind::kReport) + of(FrameKind::kAsk);
    };
    const uint64_t stalls = of_stalls();
    const uint64_t all = cluster.traffic.of(Role::kMaster).frames;
    run(count);
    reports.push_back(of_stalls() - stalls);
    frames.push_back(cluster.traffic.of(Role::kMaster).frames - all -
                     reports.back());
  }
  CHECK(frames[0] == 4);  // a Run and a Done for each worker
  CHECK(frames[1] == frames[0]);
  // A busy machine may stop a process long enough for a few.
  CHECK(reports[1] < 1000);
  CHECK(cluster.traffic.of(Role::kWorker, FrameKind::kTokens).frames >=
        2 * 10'000);
}

TEST_CASE("what a receiver keeps of a sender that runs ahead is a window") {
  constexpr int kTrips = 5000;
  constexpr int kFloats = 256;
  const Ahead p(kTrips, [](const Scope& first, const Scope& second,
                           const Output& i, const Output& y) {
    const Output x =
        ops::fill(first, {kFloats}, ops::cast(first, i, DataType::kFloat));
    return ops::add(second, y, ops::reduce_max(second, x, {0}));
  });
  Tapped cluster;
  CHECK(run_ahead(p, cluster) == sum_below(kTrips));
  const TapTraffic::Window window = cluster.traffic.window();
  CHECK(window.most > kWindow / 2);
  CHECK(window.most <= kWindow);
}

TEST_CASE("dead tokens of a sender that runs ahead are in its window, too") {
  constexpr int kTrips = 20'000;  // with more tokens than the window has
  const Ahead p(kTrips, [](const Scope& first, const Scope& second,
                           const Output& i, const Output& y) {
    // Of the two that leave task 0, one is dead.
    const Output x = ops::cast(first, i, DataType::kFloat);
    const auto ways = first.op("Switch", {x, ops::less(first, i, 0)});
    const Outputs merged = second.op(
        "Merge", {ops::identity(second, ways[0]), ops::neg(second, ways[1])});
    return ops::add(second, y, merged[0]);
  });
  Tapped cluster;
  CHECK(run_ahead(p, cluster) == sum_below(kTrips));
  const TapTraffic::Window window = cluster.traffic.window();
  CHECK(window.dead > 1000);
  CHECK(window.most > kWindow / 2);
  CHECK(window.most <= kWindow);
}

TEST_CASE("the gradient of a cut loop sends no more than values for values") {
  constexpr int kFloats = 256;
  constexpr uint64_t kBytes = kFloats * sizeof(float);
  actors::Program p;
  const Scope here = p.s.with_device(kHere);
  const Output n = ops::placeholder(here.named("n"), DataType::kInt32, {});
  const Output x =
      ops::placeholder(here.named("x"), DataType::kFloat, {kFloats});
  const Output last = while_loop(
      here,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output y = ops::tanh(in.with_device(kThere), v[1]);
        return {ops::add(in, v[0], 1), ops::tanh(in, y)};
      },
      {ops::constant(here, 0), x})[1];
  const auto gradients = autodiff::dense_gradients(here, {last}, {x});
  must(p.s.status());
  Tapped cluster;
  const auto session = cluster.session(p.graph);
  Tensor value = Tensor::make(DataType::kFloat, {kFloats});
  std::ranges::fill(value.mutable_flat<float>(), 0.5f);
  const auto bytes_of = [&](int count, const Output& fetch) {
    const std::vector<actors::Feed> feeds = {{"n", trips(count)}, {"x", value}};
    actors::must_run(*session, feeds, {fetch.name()});
    const uint64_t before = cluster.traffic.of(Role::kWorker).bytes;
    actors::must_run(*session, feeds, {fetch.name()});
    return cluster.traffic.of(Role::kWorker).bytes - before;
  };
  const uint64_t few = bytes_of(100, gradients[0]);
  const uint64_t more = bytes_of(200, gradients[0]);
  const uint64_t most = bytes_of(400, gradients[0]);
  INFO(few, " ", more, " ", most);
  // A value goes to task 1 in each trip, and one comes back.
  CHECK(bytes_of(400, last) >= 2 * 400 * kBytes);
  CHECK(most - more < 3 * 2 * 200 * kBytes);
  // It is linear: twice as many further trips send twice as many bytes.
  const double ratio = double(most - more) / double(more - few);
  CHECK(ratio > 1.9);
  CHECK(ratio < 2.1);
}

}  // namespace tagflow::net

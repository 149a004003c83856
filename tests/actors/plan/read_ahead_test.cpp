// Runs whose loops only read variables.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "actors/shared_state.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;

namespace {

ops::Variable matrix(const Scope& s, const char* name) {
  return ops::variable(s.named(name), DataType::kFloat, PartialShape({32, 32}));
}

Output filled(const Scope& s, float value) {
  return ops::fill(s, s.constant(Tensor::vector<int32_t>({32, 32})), value);
}

// for (i < trips) h = body(h)
Output loop(const Scope& s, const Output& trips, const Output& start,
            const std::function<Output(const Scope&, const Output&)>& body) {
  return while_loop(
      s,
      [&](const Scope& in, const Outputs& h) {
        return ops::less(in, h[0], trips);
      },
      [&](const Scope& in, const Outputs& h) -> Outputs {
        return {ops::add(in, h[0], 1), body(in, h[1])};
      },
      {0, start})[1];
}

float fetch_one(Session& session, const std::string& name,
                const std::vector<Feed>& feeds) {
  return must(must_run(session, feeds, {name})[0].item<float>());
}

// Variables v and w. "h": x (v + w / 32) as often as "trips" says, and the sum
// of what comes out; "train" does that, and adds 1 / 1024 to all of v when it
// is over.
Graph products() {
  Graph graph;
  const Scope s(graph);
  const ops::Variable v = matrix(s, "v"), w = matrix(s, "w");
  ops::assign(s.named("init_v"), v, filled(s, 1.0f / 64));
  ops::assign(s.named("init_w"), w, filled(s, 1.0f / 2));
  const Output trips = ops::placeholder(s.named("trips"), DataType::kInt32, {});
  const Output end =
      loop(s.named("loop"), trips, filled(s, 1.0f),
           [&](const Scope& in, const Output& h) {
             const Output scaled =
                 ops::mul(in, ops::read(in.named("read_w"), w), 1.0f / 32);
             return ops::add(
                 in, ops::matmul(in, h, ops::read(in.named("read_v"), v)),
                 ops::matmul(in, h, scaled));
           });
  const Output sum = ops::reduce_sum(s.named("h"), end, {0, 1});
  const Output add =
      ops::assign_add(s.named("add").with_control_dependencies({sum}), v,
                      filled(s, 1.0f / 1024));
  ops::identity(s.named("train").with_control_dependencies({add}), sum);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

Feed trips(int32_t count) { return {"trips", Tensor::scalar(count)}; }

}  // namespace

TEST_CASE("a loop gets what its variables are when it begins, in every run") {
  const Graph graph = products();
  for (const SessionOptions& options : configurations()) {
    const auto session = make_session(options, graph);
    must(session->run({}, {}, {"init_v", "init_w"}, within_a_minute()));
    for (int run = 0; run < 12; ++run) {
      const float factor = 32 * (1.0f / 64 + run / 1024.0f + 1.0f / 64);
      CHECK(fetch_one(*session, "h", {trips(2)}) ==
            doctest::Approx(1024 * factor * factor));
      CHECK(fetch_one(*session, "train", {trips(1)}) ==
            doctest::Approx(1024 * factor));
    }
  }
}

TEST_CASE("a variable without a value matters if the loop makes a trip") {
  const Graph graph = products();
  for (const SessionOptions& options : configurations()) {
    const auto session = make_session(options, graph);
    for (int run = 0; run < 8; ++run) {
      CHECK(fetch_one(*session, "h", {trips(0)}) == 1024);
      const std::string message = message_of(
          session->run({trips(1)}, {"h"}, {}, within_a_minute()).status(),
          Code::kFailedPrecondition);
      CHECK((contains(message, "\"v\"") || contains(message, "\"w\"")));
    }
    must(session->run({}, {}, {"init_v"}, within_a_minute()));
    CHECK(contains(
        message_of(
            session->run({trips(1)}, {"h"}, {}, within_a_minute()).status(),
            Code::kFailedPrecondition),
        "\"w\""));
    must(session->run({}, {}, {"init_w"}, within_a_minute()));
    CHECK(fetch_one(*session, "h", {trips(1)}) == doctest::Approx(1024));
  }
}

TEST_CASE("a loop never sees a later write without an earlier one") {
  Graph graph;
  const Scope s(graph);
  const auto number = [&](const char* name) {
    return ops::variable(s.named(name), DataType::kFloat,
                         PartialShape::scalar());
  };
  const ops::Variable first = number("first"), second = number("second");
  ops::assign(s.named("init_first"), first, 0.0f);
  ops::assign(s.named("init_second"), second, 0.0f);
  const Output one = ops::assign_add(s.named("one"), first, 1.0f);
  ops::assign_add(s.named("write").with_control_dependencies({one}), second,
                  1.0f);
  // What is read of `second` may be that of `first` at most, however often.
  const Output most =
      loop(s, ops::constant(s, 20), ops::constant(s, -1e9f),
           [&](const Scope& in, const Output& h) {
             const Output later = ops::read(in, second);
             const Output earlier =
                 ops::read(in.with_control_dependencies({later}), first);
             return ops::maximum(in, h, ops::sub(in, later, earlier));
           });
  ops::identity(s.named("most"), most);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  for (const int workers : {1, 2}) {
    SessionOptions options;
    options.workers = workers;
    options.passes = PassSet().without(Pass::kFreeze);
    const auto session = make_session(options, graph);
    must(
        session->run({}, {}, {"init_first", "init_second"}, within_a_minute()));
    std::atomic<bool> is_done{false};
    Status written;
    std::thread writer([&] {
      while (!is_done && written.ok())
        written = session->run({}, {}, {"write"}, within_a_minute()).status();
    });
    float worst = -1e9f;
    for (int run = 0; run < 300; ++run)
      worst = std::max(worst, fetch_one(*session, "most", {}));
    is_done = true;
    writer.join();
    must(written);
    CHECK(worst <= 0);
  }
}

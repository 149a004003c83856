// One step over several processes, whose partitions meet over a network that
// delays and reorders: the engine's side of a cluster, without a socket.
#include "tests/actors/processes.h"

#include <doctest/doctest.h>

#include "tests/actors/engine_check.h"
#include "tests/actors/program.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

Status check(Processes& processes, const reference::Case& c,
             const reference::Interpretation& expected,
             const SessionOptions& options) {
  std::vector<std::string> live;
  std::vector<Tensor> values;
  for (size_t i = 0; i < c.fetches.size(); ++i) {
    const reference::Outcome& outcome = expected.fetches[i];
    if (outcome.state == reference::State::kDead) {
      const Status status =
          processes.run(c.graph, c.feeds, {c.fetches[i]}, options).status();
      if (status.code() != Code::kInvalidArgument)
        return error(Code::kInternal, "{} should be dead: {}", c.fetches[i],
                     status.to_string());
    }
    if (outcome.state != reference::State::kLive) continue;
    live.push_back(c.fetches[i]);
    values.push_back(outcome.value);
  }
  TAGFLOW_ASSIGN(const auto results,
                 processes.run(c.graph, c.feeds, live, options));
  for (size_t i = 0; i < live.size(); ++i)
    if (!identical(results[i], values[i]))
      return error(Code::kInternal, "{} is {}, expected {}", live[i],
                   results[i].to_string(), values[i].to_string());
  return {};
}

}  // namespace

TEST_CASE("random graphs over several processes agree with the reference") {
  for (const int count : {2, 3}) {
    Processes processes(count, count == 2 ? "cpu:2" : "cpu:1,stream:1", 2,
                        uint64_t(count));
    int cut = 0;
    for (uint64_t seed = 900'000; seed < 900'060; ++seed) {
      const auto c = reference::random_graph(seed);
      REQUIRE(c.ok());
      const auto expected =
          reference::interpret(c->graph, c->feeds, c->fetches);
      REQUIRE(expected.ok());
      if (expected->is_ambiguous) continue;
      SessionOptions options = configuration(seed * 7);
      options.scatter = seed;
      INFO(count, " processes, seed ", seed, ", ", describe(options));
      const Status status = check(processes, *c, *expected, options);
      INFO(status.to_string());
      CHECK(status.ok());
      cut += processes.parts() > 1 ? 1 : 0;
    }
    CHECK(cut > 20);
  }
}

TEST_CASE("an error in one process ends the parts of all, which run again") {
  Program p;
  const Output n = ops::placeholder(p.s.named("n"), DataType::kInt32, {});
  // A loop of many trips on task 0, whose body on task 1 fails in trip n.
  const auto out = ops::while_loop(
      p.s.named("loop"), {ops::constant(p.s, 0)},
      [](const Scope& s, const Outputs& v) {
        return ops::less(s, v[0], ops::constant(s, 1000));
      },
      [&](const Scope& s, const Outputs& v) -> Outputs {
        const Scope there = s.with_device("/job:worker/task:1");
        const Output fine = ops::not_equal(there, v[0], n);
        const Operation check = ops::assert_(there, fine, {"trip"});
        const Output next = ops::add(there.after(check), v[0],
                                     ops::constant(there, 1));
        return {ops::identity(s.with_device("/job:worker/task:0"), next)};
      });
  must(p.s.status());
  Processes processes(2, "cpu:1", 1, 7);
  for (const int bad : {500, -1, 0, -1}) {
    CAPTURE(bad);
    const auto answer = processes.run(
        p.graph, std::vector<std::pair<std::string, Tensor>>{
                     {"n", Tensor::scalar(bad)}},
        {out[0].to_string()}, {});
    INFO(answer.status().to_string());
    CHECK(processes.parts() == 2);
    if (bad < 0) {
      REQUIRE(answer.ok());
      CHECK((*answer)[0].scalar_value<int32_t>() == 1000);
    } else {
      CHECK(answer.status().code() == Code::kInvalidArgument);
    }
  }
}

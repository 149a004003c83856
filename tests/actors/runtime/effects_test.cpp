// Effects in functions run in the order of the program, as TensorFlow recorded
// it (record_effects.py), in every configuration.
#include <doctest/doctest.h>

#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

struct Case {
  int n;
  int64_t before, value;
};

constexpr Case kCases[] = {{0, 1, 15},
                           {1, 12, 125},
                           {2, 1234, 12345},
                           {3, 12342, 123425},
                           {4, 1234234, 12342345}};

std::vector<SessionOptions> all_options() {
  std::vector<SessionOptions> all = configurations();
  for (const char* devices : {"cpu:2", "cpu:2,stream:2"})
    for (const uint64_t seed : {1, 2, 3}) {
      SessionOptions& options = all.emplace_back();
      options.devices = devices;
      options.scatter = seed;
    }
  for (uint8_t pass = 0; pass < kNumPasses; ++pass) {
    all.emplace_back().passes = PassSet::only(Pass(pass));
    all.emplace_back().passes = PassSet().without(Pass(pass));
  }
  return all;
}

}  // namespace

TEST_CASE("functions change a variable in the order of their calls") {
  const Graph graph = recorded_graph("effects");
  for (const SessionOptions& options : all_options()) {
    const auto session = make_session(options, graph);
    for (const Case& one : kCases) {
      INFO("n ", one.n, ", passes ", options.passes.to_string());
      must(session->run({}, {}, {"log/Assign"}, within_a_minute()));
      const auto before = must_run(
          *session, {{"n", Tensor::scalar<int32_t>(one.n)}}, {"before"});
      CHECK(must(before[0].item<int64_t>()) == one.before);
      const auto value = must_run(*session, {}, {"value"});
      CHECK(must(value[0].item<int64_t>()) == one.value);
    }
  }
}

TEST_CASE("an assertion that fails fails the run, and undoes nothing") {
  const auto session = make_session({}, recorded_graph("effects"));
  must(session->run({}, {}, {"log/Assign"}, within_a_minute()));
  const auto run = session->run({{"n", Tensor::scalar<int32_t>(7)}}, {"before"},
                                {}, within_a_minute());
  CHECK(run.status().code() == Code::kInvalidArgument);
  // The last effect does not wait for the assertion: so TensorFlow wrote it.
  const auto value = must(must_run(*session, {}, {"value"})[0].item<int64_t>());
  CHECK((value == 12342342342 || value == 123423423425));
}

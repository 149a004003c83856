// Whole graphs on a GPU: loops whose predicate and body are computed there.
#include "tests/actors/cuda/gpu_session.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

// Multiplies a vector of 1000 until its sum, and not a counter, says that it
// is enough; what it is and how many trips it took.
void build_loop(Graph& graph, const std::string& device) {
  Scope s = Scope(graph).with_device(device);
  const Output start = s.op("Placeholder", {}, {{"dtype", DataType::kFloat}});
  const Outputs end = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, ops::reduce_sum(in, v[0]), 1e6F);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output grown = ops::mul(in, v[0], 1.0625F);
        return {ops::add(in, grown, ops::tanh(in, v[0])),
                ops::add(in, v[1], 1)};
      },
      {start, 0});
  ops::identity(s.named("grown"), end[0]);
  ops::identity(s.named("trips"), end[1]);
}

}  // namespace

TEST_CASE("a loop steered by what a GPU computes ends as on the CPU") {
  if (!has_gpu_or_skip()) return;
  Tensor start = Tensor::make(DataType::kFloat, {1000});
  for (int i = 0; i < 1000; ++i)
    start.mutable_data<float>()[i] = 1.0F + float(i % 7);
  std::vector<std::vector<Tensor>> results;
  for (const std::string device : {"", "/device:GPU:0"}) {
    Graph graph;
    build_loop(graph, device);
    SessionOptions options;
    if (!device.empty()) options.devices = "cuda:1";
    options.soft_placement = true;
    const auto session = make_session(options, graph);
    for (int again = 0; again < 3; ++again)
      results.push_back(must_run(*session, {{"Placeholder:0", start}},
                                 {"grown:0", "trips:0"}));
  }
  REQUIRE(results[0][1].scalar_value<int32_t>() > 50);
  for (const auto& result : results) {
    CHECK(result[1].scalar_value<int32_t>() ==
          results[0][1].scalar_value<int32_t>());
    expect_near(result[0], results[0][0]);
  }
}

TEST_CASE("nodes scattered over the CPU and a GPU compute the same") {
  if (!has_gpu_or_skip()) return;
  const Tensor start = Tensor::of<float>({1000}, std::vector<float>(1000, 2));
  for (uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    Graph graph;
    build_loop(graph, "");
    SessionOptions options;
    options.devices = "cpu:2,cuda:1";
    options.scatter = seed;
    const auto session = make_session(options, graph);
    const auto result =
        must_run(*session, {{"Placeholder:0", start}}, {"grown:0", "trips:0"});
    options = {};
    const auto plain = make_session(options, graph);
    const auto expected =
        must_run(*plain, {{"Placeholder:0", start}}, {"grown:0", "trips:0"});
    CHECK(result[1].scalar_value<int32_t>() ==
          expected[1].scalar_value<int32_t>());
    expect_near(result[0], expected[0]);
  }
}

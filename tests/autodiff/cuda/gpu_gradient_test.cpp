// Gradients of loops on a GPU.
#include "tests/actors/cuda/gpu_session.h"
#include "tests/autodiff/swapping.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT

TEST_CASE("gradients on a GPU need a third of the memory, the bits the same") {
  if (!actors::has_gpu_or_skip()) return;
  expect_swapping("GPU", "cuda");
}

TEST_CASE("gradients of nested loops on a GPU are the CPU's") {
  if (!actors::has_gpu_or_skip()) return;
  for (const int order : {1, 2}) {
    INFO("order ", order);
    std::vector<Tensor> results;
    for (const std::string device : {"/device:CPU:0", "/device:GPU:0"}) {
      Graph graph;
      const Scope s = Scope(graph).with_device(device);
      Tensor values = Tensor::make(DataType::kFloat, {1000});
      for (int64_t i = 0; i < 1000; ++i)
        values.mutable_data<float>()[i] = float(i) / 1000;
      const Output x = ops::constant(s, values);
      Output y = ops::reduce_sum(s, nested(s, x, ops::constant(s, 0.9f), 3));
      for (int k = 0; k < order; ++k) y = dense_gradients(s, {y}, {x})[0];
      REQUIRE_MESSAGE(s.status().ok(), s.status().to_string());
      actors::SessionOptions options;
      options.devices = "cpu:1,cuda:1";
      const auto session = actors::make_session(options, graph);
      results.push_back(actors::must_run(*session, {}, {y.name()})[0]);
    }
    actors::expect_near(results[1], results[0]);
  }
}

// Gradients on devices whose memory has a limit, for each kind of device.
#pragma once

#include <doctest/doctest.h>

#include <cstring>

#include "devices/device.h"
#include "tests/autodiff/evaluate.h"

namespace tagflow::autodiff {

using namespace tagflow::graph;  // NOLINT: tests

inline constexpr int64_t kElements = 1 << 14;  // floats: 64 KiB
inline constexpr int64_t kBytes = 4 * kElements;

struct Ran {
  Tensor gradient;
  devices::MemoryStats memory;
};

// On the CPU and a device of that keyword, with so many bytes of memory.
inline Ran run_within(const Graph& graph, const std::string& fetch,
                      const std::string& keyword, int64_t memory) {
  actors::SessionOptions options;
  options.devices = fmt::format("cpu:1,{}:1:memory={}", keyword, memory);
  auto session = actors::Session::create(std::move(options));
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  REQUIRE((*session)->extend(graph).ok());
  auto results = (*session)->run({}, {fetch});
  REQUIRE_MESSAGE(results.ok(), results.status().to_string());
  return {(*results)[0], (*session)->devices()[1]->memory()};
}

// y = tanh(y w), 20 times, in each of `outer` trips that add to y.
inline Output nested(const Scope& s, const Output& x, const Output& w,
                     int outer) {
  const auto loop =
      [](const Scope& at, int trips, const Output& from,
         const std::function<Output(const Scope&, const Output&)>& body) {
        return while_loop(
            at,
            [&](const Scope& in, const Outputs& v) {
              return ops::less(in, v[0], trips);
            },
            [&](const Scope& in, const Outputs& v) -> Outputs {
              return {ops::add(in, v[0], 1), body(in, v[1])};
            },
            {0, from}, {.parallel_iterations = 4})[1];
      };
  const auto product = [&](const Scope& in, const Output& y) {
    return ops::tanh(in, ops::mul(in, y, w));
  };
  if (outer == 1) return loop(s, 20, x, product);
  return loop(s, outer, x, [&](const Scope& in, const Output& y) {
    return ops::add(in, y, loop(in, 20, y, product));
  });
}

// If memory is a third of what a gradient takes, saved values go to the host
// and come back, and the result is the same to the bit. `type` is of device
// names, `keyword` of specs.
inline void expect_swapping(const std::string& type,
                            const std::string& keyword) {
  for (const int outer : {1, 3})
    for (const int order : {1, 2}) {
      INFO("outer ", outer, ", order ", order);
      Graph graph;
      const Scope root(graph);
      const Scope s = root.with_device("/device:" + type + ":0");
      Tensor values = Tensor::make(DataType::kFloat, {kElements});
      for (int64_t i = 0; i < kElements; ++i)
        values.mutable_data<float>()[i] = float(i) / kElements;
      const Output x = ops::constant(s, values);
      const Output w = ops::constant(s, 0.9f);
      Output y = ops::reduce_sum(s, nested(s, x, w, outer));
      for (int k = 0; k < order; ++k)
        y = dense_gradients(s, {y}, {k == 0 ? w : x})[0];
      REQUIRE_MESSAGE(root.status().ok(), root.status().to_string());
      const Ran enough = run_within(graph, y.name(), keyword, int64_t(1) << 30);
      CHECK(enough.memory.swapped_out == 0);
      CHECK(enough.memory.peak > 20 * kBytes);
      const Ran small =
          run_within(graph, y.name(), keyword, enough.memory.peak / 3);
      CHECK(small.memory.swapped_out > 0);
      CHECK(small.memory.peak <= enough.memory.peak / 3);
      REQUIRE(small.gradient.bytes() == enough.gradient.bytes());
      CHECK(std::memcmp(small.gradient.raw(), enough.gradient.raw(),
                        small.gradient.bytes()) == 0);
    }
}

}  // namespace tagflow::autodiff

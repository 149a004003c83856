// The caller's OpenMP settings: kernels run on its thread too.
#include <doctest/doctest.h>

#include <vector>

#include "devices/kernels/convolution/packed_convolution.h"
#include "devices/kernels/onednn.h"
#include "graph/graph.h"
#include "tests/devices/kernel_fixture.h"

namespace tagflow::devices {
namespace {

// Sets the threads of this thread's parallel regions, and what they were
// again.
class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) {
    omp_set_num_threads(count);
  }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  const int before_;
};

Tensor ones(const Shape& shape) {
  Tensor tensor = Tensor::make(DataType::kFloat, shape);
  for (float& value : tensor.mutable_flat<float>()) value = 1;
  return tensor;
}

}  // namespace

TEST_CASE("a SingleThreaded guard sets one OpenMP thread while it lives") {
  const Threads threads(3);
  {
    const SingleThreaded guard;
    CHECK(omp_get_max_threads() == 1);
    const SingleThreaded inner;
    CHECK(omp_get_max_threads() == 1);
  }
  CHECK(omp_get_max_threads() == 3);
}

TEST_CASE("a large product leaves the caller's OpenMP threads as they were") {
  const Threads threads(3);
  const Tensor square = ones({96, 96});
  const Result<Outputs> outputs = run_op("MatMul", {square, square});
  REQUIRE(outputs.ok());
  CHECK((*outputs)[0].data<float>()[0] == 96);
  CHECK(omp_get_max_threads() == 3);
}

TEST_CASE(
    "a packed convolution leaves the caller's OpenMP threads as they were") {
  const Threads threads(3);
  constexpr int64_t kImages = 4, kSide = 16, kChannels = 32;
  WeightLayout layout;
  layout.height = layout.width = 3;
  layout.inputs = layout.outputs = kChannels;
  const auto convolution =
      PackedConvolution::make(layout, ones({3, 3, kChannels, kChannels}));
  Geometry geometry;
  geometry.batch = kImages;
  geometry.channels = kChannels;
  geometry.in = {1, kSide, kSide};
  geometry.size = {1, 3, 3};
  geometry.out = {1, kSide - 2, kSide - 2};

  graph::Graph graph;
  const Result<graph::Node*> node =
      graph.add("x", "Placeholder", {}, {{"dtype", DataType::kFloat}});
  REQUIRE(node.ok());
  const StepInfo step;
  const Tag tag;
  const KernelContext context(*node, {}, {}, &step, &tag);
  const Tensor in = ones({kImages, kSide, kSide, kChannels});
  Tensor out = ones({kImages, kSide - 2, kSide - 2, kChannels});
  int64_t finished = 0;
  const Result<bool> done = convolution->compute(
      context, geometry, {in.data<float>()}, out.mutable_data<float>(),
      [&](int64_t begin, int64_t end) { finished += end - begin; });
  REQUIRE(done.ok());
  REQUIRE(*done);
  CHECK(finished == out.num_elements());
  CHECK(out.data<float>()[0] == 9 * kChannels);
  CHECK(omp_get_max_threads() == 3);
}

}  // namespace tagflow::devices

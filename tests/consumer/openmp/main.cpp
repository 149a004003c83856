// Sessions leave their caller's OpenMP settings unchanged: the number of
// threads, and the processors that they may run on.
#include <omp.h>

#include <cstdio>
#include <vector>

#include "actors/session/session.h"
#include "graph/builder/builder.h"

using namespace tagflow;         // NOLINT: a program
using namespace tagflow::graph;  // NOLINT

namespace {

constexpr int kThreads = 3;

Tensor ones(const Shape& shape) {
  const std::vector<float> values(size_t(shape.num_elements()), 1);
  return Tensor::of<float>(shape, std::span(values));
}

// How many threads a parallel region has.
int team() {
  int threads = 0;
#pragma omp parallel
#pragma omp single
  threads = omp_get_num_threads();
  return threads;
}

// A product of fed values, one by a constant, and a convolution.
bool leaves_threads(int64_t size) {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat);
  const Output pictures =
      ops::placeholder(s.named("pictures"), DataType::kFloat);
  ops::matmul(s.named("square"), x, x);
  ops::matmul(s.named("by_constant"), x, ones({size, size}));
  ops::conv2d(s.named("conv"), pictures, ones({3, 3, size, 8}), {1, 1, 1, 1},
              "SAME");
  const auto session = actors::Session::create({}).value();
  Status status = s.ok() ? session->extend(graph) : s.status();
  for (int i = 0; status.ok() && i < 3; ++i)
    for (const char* fetch : {"square", "by_constant", "conv"}) {
      const std::vector<actors::Feed> feeds = {
          {"x", ones({size, size})}, {"pictures", ones({1, 8, 8, size})}};
      const bool is_conv = fetch[0] == 'c';
      status = session->run({feeds[is_conv ? 1 : 0]}, {fetch}).status();
      if (omp_get_max_threads() == kThreads) continue;
      std::fprintf(stderr, "%s of %d: %d threads\n", fetch, int(size),
                   omp_get_max_threads());
      return false;
    }
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return status.ok();
}

}  // namespace

int main() {
  omp_set_num_threads(kThreads);
  const int processors = omp_get_num_procs();
  // What is small runs on this thread, what is large on a worker.
  for (const int64_t size : {8, 33, 34, 36, 40, 48, 64, 128, 384})
    if (!leaves_threads(size)) return 1;
  if (team() != kThreads || omp_get_num_procs() != processors) {
    std::fprintf(stderr, "%d threads in a region, %d processors\n", team(),
                 omp_get_num_procs());
    return 1;
  }
  std::printf("openmp: ok\n");
  return 0;
}

// Workloads: single kernels on one thread.
//
//   matmul       a product of square float matrices
//   elementwise  tanh(x) * x + 1
//   sum          the sum of all elements
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

constexpr int kElements = 1'000'000;

// Seconds of one run with one worker.
Result<double> seconds_of(const Result<BenchGraph>& graph,
                          BenchOptions options) {
  TAGFLOW_RETURN_IF_ERROR(graph.status());
  options.engine.workers = 1;
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(*graph, session));
  constexpr int kInner = 5;
  return run.seconds({}, options.repeats, kInner);
}

Result<Measurement> measure_elements(std::string name,
                                     const Result<BenchGraph>& graph,
                                     const BenchOptions& options) {
  TAGFLOW_ASSIGN(const double seconds, seconds_of(graph, options));
  return Measurement{
      std::move(name),
      seconds * 1e3,
      "ms",
      {{"elements", kElements}, {"workers", 1}, {"repeats", options.repeats}}};
}

}  // namespace

Result<Measurement> measure_matmul(const BenchOptions& options) {
  TAGFLOW_ASSIGN(const double seconds,
                 seconds_of(make_product(options.size), options));
  const double n = options.size;
  return Measurement{
      "matmul",
      2 * n * n * n / seconds / 1e9,
      "GFLOP/s",
      {{"size", options.size}, {"workers", 1}, {"repeats", options.repeats}}};
}

Result<Measurement> measure_elementwise(const BenchOptions& options) {
  return measure_elements("elementwise", make_elementwise(kElements), options);
}

Result<Measurement> measure_sum(const BenchOptions& options) {
  return measure_elements("sum", make_sum(kElements), options);
}

}  // namespace tagflow::apps

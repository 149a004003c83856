// Workloads: memory that has a limit.
//
//   swap           the gradient of a loop of --trips that saves 1 MiB in each,
//                  on a stream device with a third of the memory that it uses,
//                  over the same with enough. The stream's launches take 1 ms
//                  each, and to copy all that is saved takes half the time of
//                  the forward loop. Runs of both alternate; results must be
//                  the same, and with enough memory nothing is swapped
//   freeing_first  --nodes branches Fill(16 MiB) -> Sum on one worker: the peak
//                  of the device's memory, in MiB
#include <algorithm>
#include <cstring>

#include "apps/bench/building.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"
#include "autodiff/gradients.h"
#include "devices/device.h"

namespace tagflow::apps {
namespace {

using namespace graph;  // NOLINT: the builder's vocabulary

constexpr int64_t kMebi = int64_t(1) << 20;

// while i < n: y = tanh(y), i += 1, and the derivative of the last y's sum by
// the first. Feeds "n".
Result<BenchGraph> make_saving_loop() {
  Building building;
  const Scope s = building.scope().with_device("/device:STREAM:0");
  const Output n = trip_count(s.with_device("/cpu:0"));
  const Output x = opaque(s, pseudo_random({kMebi / int64_t(sizeof(float))}));
  const Output y = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::tanh(in, v[1])};
      },
      {0, x})[1];
  return building.done(
      {"n:0"}, autodiff::dense_gradients(s, {ops::reduce_sum(s, y)}, {x}));
}

// A separate session whose stream device has that memory and bandwidth; 0: the
// default.
struct OnStream {
  static Result<OnStream> make(const BenchGraph& graph,
                               const BenchOptions& options, int64_t memory,
                               int64_t bandwidth) {
    TAGFLOW_ASSIGN(actors::SessionOptions session,
                   on_one_engine(options.engine));
    session.devices = "cpu:1,stream:1:latency=1ms";
    if (memory > 0) session.devices += fmt::format(":memory={}", memory);
    if (bandwidth > 0)
      session.devices += fmt::format(":bandwidth={}", bandwidth);
    TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
    return OnStream{std::move(run)};
  }

  // Of its device so far.
  devices::MemoryStats memory() const {
    for (const auto& device : run.session().devices())
      if (device->accelerator() != nullptr) return device->memory();
    return {};
  }

  PreparedRun run;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace

Result<Measurement> measure_swap(const BenchOptions& options) {
  const int64_t trips = options.trips > 0 ? options.trips : 60;
  const Tensor n = Tensor::scalar(int32_t(trips));
  TAGFLOW_ASSIGN(const BenchGraph graph, make_saving_loop());
  // The memory and time that it takes without a limit.
  TAGFLOW_ASSIGN(OnStream free, OnStream::make(graph, options, 0, 0));
  TAGFLOW_ASSIGN(const auto expected, free.run.results({&n, 1}));
  TAGFLOW_ASSIGN(const double seconds, free.run.time({&n, 1}));
  const int64_t peak = free.memory().peak;
  // The forward loop takes half of the time.
  const auto bandwidth = int64_t(double(trips * kMebi) / (0.5 * 0.5 * seconds));
  TAGFLOW_ASSIGN(OnStream enough, OnStream::make(graph, options, 0, bandwidth));
  TAGFLOW_ASSIGN(OnStream small,
                 OnStream::make(graph, options, peak / 3, bandwidth));
  std::vector<double> ratios;
  for (int i = -1; i < options.repeats; ++i) {
    TAGFLOW_ASSIGN(const double fast, enough.run.time({&n, 1}));
    TAGFLOW_ASSIGN(const double slow, small.run.time({&n, 1}));
    if (i >= 0) ratios.push_back(slow / fast);
  }
  TAGFLOW_ASSIGN(const auto results, small.run.results({&n, 1}));
  if (!same_bits(results[0], expected[0]))
    return error(Code::kInternal, "[swap] the results differ");
  const devices::MemoryStats swapped = small.memory();
  if (enough.memory().swapped_out > 0)
    return error(Code::kInternal, "[swap] swapped with memory enough: {}",
                 to_string(enough.memory()));
  const double runs = options.repeats + 2;
  return Measurement{
      "swap",
      median(std::move(ratios)),
      "ratio",
      {{"trips", trips},
       {"peak_mib", double(peak) / kMebi},
       {"small_mib", double(peak / 3) / kMebi},
       {"small_peak_mib", double(swapped.peak) / kMebi},
       {"swapped_out_mib_per_run", double(swapped.swapped_out) / kMebi / runs},
       {"swapped_in_mib_per_run", double(swapped.swapped_in) / kMebi / runs},
       {"bandwidth_mib_per_s", double(bandwidth) / kMebi},
       {"repeats", options.repeats}}};
}

Result<Measurement> measure_freeing_first(const BenchOptions& options) {
  const int branches = options.nodes > 0 ? options.nodes : 32;
  Building building;
  const Scope& s = building.scope();
  const Output elements = trip_count(s);
  Outputs sums;
  for (int i = 0; i < branches; ++i)
    sums.push_back(ops::reduce_sum(
        s, s.op("Fill", {ops::reshape(s, elements, {1}), float(i + 1)})[0]));
  TAGFLOW_ASSIGN(const BenchGraph graph, building.done({"n:0"}, sums));
  BenchOptions on_one = options;
  on_one.engine.workers = 1;
  if (on_one.engine.devices.empty())
    on_one.engine.devices = "cpu:1:memory=2GiB";
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(on_one.engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  const Tensor n = Tensor::scalar(int32_t(16 * kMebi / int64_t(sizeof(float))));
  TAGFLOW_ASSIGN(const double seconds, run.seconds({&n, 1}, options.repeats));
  int64_t peak = 0;
  for (const auto& device : run.session().devices())
    peak = std::max(peak, device->memory().peak);
  return Measurement{"freeing_first",
                     double(peak) / kMebi,
                     "MiB",
                     {{"branches", branches},
                      {"devices", on_one.engine.devices},
                      {"ms", seconds * 1e3},
                      {"repeats", options.repeats}}};
}

}  // namespace tagflow::apps

// Workloads: two CPU devices, which exchange tokens.
//
//   devices_loop      a loop on one device, with one op of its body on the
//                     other, window 32
//   devices_pingpong  a loop that goes to the other device and back in every
//                     iteration, window 1
//   devices_hop       a chain of ops that alternates between the devices
//   stream_overlap    a loop of --trips kernels of 50 us on a stream
//                     device, one after another: time over the bare sum
//   place             to place --nodes nodes on four devices by simulation,
//                     and to cut the graph and schedule its Recvs with its
//                     nodes scattered at random: about every edge is cut
#include <chrono>

#include "apps/bench/busy_op.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"
#include "devices/device_registry.h"
#include "devices/kernel_catalog.h"
#include "graph/analysis/extract.h"
#include "graph/partition/partition.h"
#include "graph/partition/recv_schedule.h"
#include "graph/placement/placer.h"
#include "graph/placement/scatter.h"

namespace tagflow::apps {
namespace {

BenchOptions on_two_cpus(BenchOptions options) {
  const bool has_devices =
      !options.engine.devices.empty() || options.engine.backend != nullptr;
  if (!has_devices) options.engine.devices = "cpu:2";
  return options;
}

// Microseconds of one iteration.
Result<Measurement> measure_trips(const char* name,
                                  const Result<BenchGraph>& graph, int window,
                                  const BenchOptions& options) {
  const int64_t trips = options.trips > 0 ? options.trips : 20'000;
  TAGFLOW_ASSIGN(
      const double seconds,
      seconds_per_trip(graph, on_two_cpus(options), trips, double(trips)));
  return Measurement{name,
                     seconds * 1e6,
                     "us",
                     {{"trips", trips},
                      {"window", window},
                      {"workers", options.engine.workers},
                      {"repeats", options.repeats}}};
}

}  // namespace

Result<Measurement> measure_devices_loop(const BenchOptions& options) {
  const int window = options.engine.window > 0 ? options.engine.window : 32;
  return measure_trips("devices_loop", make_loop_over_devices(window), window,
                       options);
}

Result<Measurement> measure_devices_pingpong(const BenchOptions& options) {
  const int window = options.engine.window > 0 ? options.engine.window : 1;
  return measure_trips("devices_pingpong", make_device_pingpong(), window,
                       options);
}

Result<Measurement> measure_stream_overlap(const BenchOptions& options) {
  constexpr int64_t kNanoseconds = 50'000;
  const int64_t trips = options.trips > 0 ? options.trips : 1000;
  TAGFLOW_RETURN_IF_ERROR(register_busy_op());
  TAGFLOW_ASSIGN(const BenchGraph graph,
                 make_busy_loop({.nanoseconds = kNanoseconds,
                                 .device = "/device:STREAM:0"}));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  if (session.devices.empty()) session.devices = "cpu:1,stream:1";
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  const Tensor all = Tensor::scalar(int32_t(trips));
  TAGFLOW_ASSIGN(const double seconds, run.seconds({&all, 1}, options.repeats));
  return Measurement{"stream_overlap",
                     seconds * 1e9 / double(trips * kNanoseconds),
                     "ratio",
                     {{"trips", trips},
                      {"kernel_us", double(kNanoseconds) / 1e3},
                      {"workers", options.engine.workers},
                      {"repeats", options.repeats}}};
}

Result<Measurement> measure_place(const BenchOptions& options) {
  const int nodes = options.nodes > 0 ? options.nodes : 100'000;
  const std::string spec =
      options.engine.devices.empty() ? "cpu:4" : options.engine.devices;
  TAGFLOW_ASSIGN(const auto devices, devices::make_devices(spec));
  std::vector<graph::DeviceInfo> infos;
  for (const auto& device : devices) infos.push_back(device->info());
  TAGFLOW_ASSIGN(const BenchGraph large, make_large(nodes));
  std::vector<graph::Endpoint> feeds, fetches;
  for (const std::string& feed : large.feeds) {
    TAGFLOW_ASSIGN(feeds.emplace_back(), large.graph.endpoint(feed));
  }
  for (const std::string& fetch : large.fetches) {
    TAGFLOW_ASSIGN(fetches.emplace_back(), large.graph.endpoint(fetch));
  }
  const devices::RegisteredKernels catalog;
  std::vector<double> placing, cutting, scheduling, all;
  size_t parts = 0, sends = 0;
  for (int i = -1; i < options.repeats; ++i) {
    TAGFLOW_ASSIGN(graph::Program program,
                   graph::extract(large.graph, feeds, fetches, {}));
    const auto start = Clock::now();
    TAGFLOW_ASSIGN(const auto placed,
                   graph::place(program, infos, catalog, {}, {}));
    const auto is_placed = Clock::now();
    constexpr uint64_t kSeed = 1;
    TAGFLOW_ASSIGN(const auto scattered,
                   graph::scatter(program, infos, catalog, kSeed));
    const auto is_scattered = Clock::now();
    TAGFLOW_ASSIGN(auto cut,
                   graph::partition(std::move(program), infos, scattered));
    const auto is_cut = Clock::now();
    TAGFLOW_RETURN_IF_ERROR(graph::schedule_recvs(cut).status());
    const auto end = Clock::now();
    if (i < 0) continue;
    const auto seconds = [](auto duration) {
      return std::chrono::duration<double>(duration).count();
    };
    placing.push_back(seconds(is_placed - start));
    cutting.push_back(seconds(is_cut - is_scattered));
    scheduling.push_back(seconds(end - is_cut));
    all.push_back(placing.back() + cutting.back() + scheduling.back());
    parts = cut.size();
    sends = 0;
    for (const graph::Partition& part : cut)
      for (const graph::Node* target : part.program.targets)
        sends += target->op() == "_Send";
  }
  return Measurement{"place",
                     median(std::move(all)),
                     "s",
                     {{"nodes", large.graph.size()},
                      {"devices", infos.size()},
                      {"partitions", parts},
                      {"transfers", sends},
                      {"place", median(std::move(placing))},
                      {"partition", median(std::move(cutting))},
                      {"schedule", median(std::move(scheduling))},
                      {"repeats", options.repeats}}};
}

Result<Measurement> measure_devices_hop(const BenchOptions& options) {
  const int nodes = options.nodes > 0 ? options.nodes : 2000;
  TAGFLOW_ASSIGN(const BenchGraph graph, make_device_hops(nodes));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(on_two_cpus(options).engine));
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  TAGFLOW_ASSIGN(const double seconds, run.seconds({}, options.repeats, 5));
  return Measurement{"devices_hop",
                     seconds / nodes * 1e6,
                     "us",
                     {{"nodes", nodes},
                      {"workers", options.engine.workers},
                      {"repeats", options.repeats}}};
}

}  // namespace tagflow::apps

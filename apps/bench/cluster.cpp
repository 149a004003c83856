// Workloads: two workers, each in a process of its own, and their master in
// this one. Each measurement follows one of what it cannot be faster than, the
// system's TCP over loopback; `config` has that figure, and the ratio.
//
//   cluster_loop      a loop on one worker, with an op of its body on each,
//                     window 32
//   cluster_sum       a loop with a sum over both workers in each iteration,
//                     window 1: one round trip
//   cluster_step      one NoOp on each worker
//   cluster_transfer  a step that takes 64 MiB from one worker to the other
//
// Some are compared with the same in this process, or on one worker:
//
//   cluster_lstm      one run of an LSTM of two layers, each on a worker: the
//                     loss, and, to --train, gradients and updates
//   cluster_register  all that precedes the first run of a graph, which the
//                     workers get then
//   cluster_mlp       a train step of two mirrored replicas, and the speedup:
//   cluster_cnn       how many times as many pictures it takes in a second as a
//                     step on one of the workers, whose batch is half of it
#include <algorithm>
#include <functional>
#include <memory>
#include <span>

#include "apps/bench/building.h"
#include "apps/bench/compare_entries.h"
#include "apps/bench/gradient_graphs.h"
#include "apps/bench/local_cluster.h"
#include "apps/bench/loopback.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

using namespace graph;  // NOLINT: as other graphs of the workloads

constexpr int kTrips = 2'000;       // TensorFlow takes a millisecond for each
constexpr int kRoundTrips = 2'000;  // of a floor
constexpr int kSteps = 100;         // of a measurement of cluster_step
constexpr int64_t kNodes = 10'000;  // of cluster_register
constexpr int64_t kElements = int64_t{16} << 20;
constexpr size_t kBytes = size_t(kElements) * sizeof(float);

// while i < n: i += 1, x += 1, y += 1; y on task 1.
Result<BenchGraph> make_cluster_loop(int window) {
  Building building;
  const Scope s = building.scope().with_device(kTasks[0]);
  const Scope there = building.scope().with_device(kTasks[1]);
  const Output n = trip_count(s);
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::add(in, v[1], 1.0f),
                ops::add(in.with_device(kTasks[1]), v[2], 1.0f)};
      },
      {0, 0.0f, ops::constant(there, 0.0f)}, {.parallel_iterations = window});
  return building.done({"n:0"}, {}, {ops::group(s, last)});
}

// while i < n: i += 1, a = ((a + 1) + (a + 1)) / 2; one of the sums on task 1.
Result<BenchGraph> make_cluster_sum() {
  Building building;
  const Scope s = building.scope().with_device(kTasks[0]);
  const Output n = trip_count(s);
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [](const Scope& in, const Outputs& v) -> Outputs {
        const Output here = ops::add(in, v[1], 1.0f);
        const Output there = ops::add(in.with_device(kTasks[1]), v[1], 1.0f);
        return {ops::add(in, v[0], 1),
                ops::mul(in, ops::add(in, here, there), 0.5f)};
      },
      {0, 0.0f}, {.parallel_iterations = 1});
  return building.done({"n:0"}, {}, {ops::group(s, last)});
}

// A variable of task 0, of which task 1 takes one element.
Result<BenchGraph> make_cluster_transfer() {
  Building building;
  const Scope here = building.scope().with_device(kTasks[0]);
  const Scope there = building.scope().with_device(kTasks[1]);
  const ops::Variable v =
      ops::variable(here.named("v"), DataType::kFloat, {kElements});
  const Output init = ops::assign(
      here, v,
      ops::fill(here, {kElements}, opaque(here, Tensor::scalar(0.5f))));
  const Output element =
      ops::slice(there, ops::read(here, v), {int64_t{7}}, {int64_t{1}});
  return building.done({}, {element}, {}, {init});
}

// x + 1 + 1 ..., in runs of 100 sums that are on the devices in turns.
Result<BenchGraph> make_cluster_register(int64_t nodes,
                                         std::span<const char* const> devices) {
  constexpr int64_t kRun = 100;
  Building building;
  Output sum = opaque(building.scope(), Tensor::scalar(0.5f));
  for (int64_t i = 0; i < nodes; ++i) {
    const char* const device = devices[size_t(i / kRun) % devices.size()];
    sum = ops::add(building.scope().with_device(device), sum, 1.0f);
  }
  return building.done({}, {sum});
}

struct ClusterWorkload {
  const char* name;
  const char* what;  // for the table of the comparison
  Result<BenchGraph> (*make)(int window);
  int window;  // 0: there is no loop
  int trips;
  int inner;  // runs of a measurement
  double scale;
  const char* unit;
  const char* floor;  // its name
  Result<double> (*floor_seconds)();
};

Result<double> round_trip() { return tcp_round_trip_seconds(kRoundTrips); }
Result<double> stream() { return tcp_stream_seconds(kBytes); }

const ClusterWorkload kWorkloads[] = {
    {"cluster_loop", "loop, an op of its body on each worker, window 32",
     make_cluster_loop, 32, kTrips, 1, 1e6, "us", "tcp_round_trip", round_trip},
    {"cluster_sum", "loop with a sum over both workers, window 1",
     [](int) { return make_cluster_sum(); }, 1, kTrips, 1, 1e6, "us",
     "tcp_round_trip", round_trip},
    {"cluster_step", "empty step on both workers",
     [](int) { return make_empty_on(kTasks); }, 0, 0, kSteps, 1e6, "us",
     "tcp_round_trip", round_trip},
    {"cluster_transfer", "64 MiB from worker to worker",
     [](int) { return make_cluster_transfer(); }, 0, 0, 1, 1e3, "ms",
     "tcp_stream", stream},
};

// Workers, and a workload that is ready to run there.
struct ReadyRun {
  LocalCluster cluster;
  PreparedRun run;
};

Result<std::shared_ptr<ReadyRun>> make_ready(const BenchGraph& graph,
                                             const BenchOptions& options) {
  TAGFLOW_ASSIGN(
      LocalCluster cluster,
      LocalCluster::start(kWorkers, options.engine.workers, options.tls));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  session.backend = cluster.master();
  TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
  return std::make_shared<ReadyRun>(
      ReadyRun{std::move(cluster), std::move(run)});
}

// Seconds of one trip of a loop, or of one step.
Result<double> seconds_once(PreparedRun& run, int trips, int inner) {
  return trips == 0 ? run.mean_seconds({}, inner) : run.seconds_per_trip(trips);
}

Result<Measurement> measure(const ClusterWorkload& workload,
                            const BenchOptions& options) {
  const int window =
      options.engine.window > 0 ? options.engine.window : workload.window;
  const int trips = workload.trips > 0 && options.trips > 0 ? int(options.trips)
                                                            : workload.trips;
  TAGFLOW_ASSIGN(const BenchGraph graph, workload.make(window));
  TAGFLOW_ASSIGN(const auto ready, make_ready(graph, options));
  TAGFLOW_ASSIGN(const Compared compared,
                 compare_in_turns(options.repeats, workload.floor_seconds, [&] {
                   return seconds_once(ready->run, trips, workload.inner);
                 }));
  Measurement measured{
      workload.name,
      compared.second * workload.scale,
      workload.unit,
      {{"repeats", options.repeats}, {"workers", options.engine.workers}}};
  measured.config[workload.floor] = compared.first * workload.scale;
  measured.config["ratio"] = compared.ratio;
  if (trips > 0) {
    measured.config["trips"] = trips;
    measured.config["window"] = window;
  }
  return measured;
}

// Seconds of all trips, or of one step, on workers that live as long as the
// function.
std::function<Result<double>(const BenchOptions&)> own_seconds(
    std::function<Result<BenchGraph>()> make, int trips, int inner) {
  return [make = std::move(make), trips, inner,
          ready = std::shared_ptr<ReadyRun>()](
             const BenchOptions& options) mutable -> Result<double> {
    if (ready == nullptr) {
      TAGFLOW_ASSIGN(const BenchGraph graph, make());
      TAGFLOW_ASSIGN(ready, make_ready(graph, options));
    }
    TAGFLOW_ASSIGN(const double seconds, median_of(options.repeats, [&] {
                     return seconds_once(ready->run, trips, inner);
                   }));
    return seconds * std::max(trips, 1);
  };
}

ComparePlan plan_of(std::string name, std::string what, int trips, int inner,
                    double scale, std::string unit,
                    std::function<Result<BenchGraph>()> make) {
  ComparePlan plan;
  plan.entry.name = std::move(name);
  plan.entry.what = std::move(what);
  plan.entry.workers = kWorkers;
  plan.entry.trips = trips;
  plan.entry.units = std::max(trips, 1);
  plan.entry.scale = scale;
  plan.entry.unit = std::move(unit);
  plan.entry.inner = inner;
  // A loop is many measurements of a trip, but a step is one.
  plan.entry.most_repeats = trips > 0 ? 1 : 5;
  plan.entry.own = own_seconds(make, trips, inner);
  plan.make = std::move(make);
  return plan;
}

// --- An LSTM ----------------------------------------------------------------

LstmSize layered_size(const BenchOptions& options) {
  BenchOptions sizes = options;
  if (sizes.units == 0) sizes.units = 512;
  return lstm_size(sizes);
}

Result<BenchGraph> make_cluster_lstm(
    const LstmSize& size, bool train,
    std::span<const char* const> devices = kTasks) {
  return make_layered_lstm(size, devices,
                           train ? StepPart::kUpdates : StepPart::kLoss);
}

// TensorFlow reads the graph of the forward pass, and builds its own gradients.
ComparePlan lstm_plan(int batch, bool train) {
  LstmSize size = layered_size({});
  size.batch = batch;
  ComparePlan plan = plan_of(
      "cluster_lstm",
      fmt::format("{}LSTM of {} units, a layer on each worker, batch {}, {} "
                  "steps",
                  train ? "train step: " : "", size.units, size.batch,
                  size.steps),
      0, 1, 1e3, "ms", [=] { return make_cluster_lstm(size, train); });
  if (!train) return plan;
  plan.entry.program = "cluster_lstm_train";
  plan.entry.sizes = {{"batch", size.batch},
                      {"steps", size.steps},
                      {"inputs", size.inputs},
                      {"units", size.units}};
  return plan;
}

// --- Replicas ---------------------------------------------------------------

struct ReplicatedModel {
  const char* name;
  PictureModel model;
  int batch;  // of a replica
  int inner;
};

constexpr ReplicatedModel kReplicated[] = {
    {"cluster_mlp", PictureModel::kMlp, 128, 5},
    {"cluster_cnn", PictureModel::kCnn, 64, 1},
};

ComparePlan replicas_plan(const ReplicatedModel& of) {
  ComparePlan plan = plan_of(
      of.name,
      fmt::format(
          "train step: a replica of {} on each worker, batch {}",
          of.model == PictureModel::kMlp ? "784-512-10" : "2 convolutions",
          of.batch),
      0, of.inner, 1e3, "ms",
      [&of] { return make_replicas(of.model, of.batch, kTasks); });
  plan.entry.program = of.name;
  plan.entry.sizes = {{"batch", of.batch}};
  return plan;
}

Result<Measurement> measure_replicas(const ReplicatedModel& of,
                                     const BenchOptions& options) {
  const int batch = options.batch > 0 ? options.batch : of.batch;
  TAGFLOW_ASSIGN(const BenchGraph two, make_replicas(of.model, batch, kTasks));
  TAGFLOW_ASSIGN(const BenchGraph one,
                 make_replicas(of.model, batch, std::span(kTasks).first(1)));
  TAGFLOW_ASSIGN(const auto ready, make_ready(two, options));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  session.backend = ready->cluster.master();
  TAGFLOW_ASSIGN(PreparedRun alone, PreparedRun::make(one, session));
  TAGFLOW_ASSIGN(
      const Compared compared,
      compare_in_turns(
          options.repeats, [&] { return seconds_once(alone, 0, of.inner); },
          [&] { return seconds_once(ready->run, 0, of.inner); }));
  return Measurement{of.name,
                     compared.second * 1e3,
                     "ms",
                     {{"batch", batch},
                      {"one_worker", compared.first * 1e3},
                      {"speedup", kWorkers / compared.ratio},
                      {"repeats", options.repeats},
                      {"workers", options.engine.workers}}};
}

}  // namespace

void add_cluster_plans(std::vector<ComparePlan>& plans) {
  for (const ClusterWorkload& workload : kWorkloads)
    plans.push_back(
        plan_of(workload.name, workload.what, workload.trips, workload.inner,
                workload.scale, workload.unit,
                [&workload] { return workload.make(workload.window); }));
  for (const int batch : {1, 32})
    for (const bool train : {false, true})
      plans.push_back(lstm_plan(batch, train));
  for (const ReplicatedModel& each : kReplicated)
    plans.push_back(replicas_plan(each));
  plans.push_back(cluster_checkpoint_plan());
}

Result<Measurement> measure_cluster_lstm(const BenchOptions& options) {
  const LstmSize size = layered_size(options);
  TAGFLOW_ASSIGN(const BenchGraph graph,
                 make_cluster_lstm(size, options.train));
  TAGFLOW_ASSIGN(const auto ready, make_ready(graph, options));
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  constexpr const char* kAnywhere[kWorkers] = {"", ""};
  TAGFLOW_ASSIGN(const BenchGraph uncut,
                 make_cluster_lstm(size, options.train, kAnywhere));
  TAGFLOW_ASSIGN(PreparedRun whole, PreparedRun::make(uncut, session));
  TAGFLOW_ASSIGN(const Compared compared,
                 compare_in_turns(
                     options.repeats, [&] { return whole.time({}); },
                     [&] { return ready->run.time({}); }));
  Measurement measured{"cluster_lstm", compared.second * 1e3, "ms",
                       lstm_config(size, options)};
  measured.config["one_process"] = compared.first * 1e3;
  measured.config["ratio"] = compared.ratio;
  return measured;
}

Result<Measurement> measure_cluster_register(const BenchOptions& options) {
  TAGFLOW_ASSIGN(
      const LocalCluster cluster,
      LocalCluster::start(kWorkers, options.engine.workers, options.tls));
  const int64_t nodes = options.nodes > 0 ? options.nodes : kNodes;
  TAGFLOW_ASSIGN(actors::SessionOptions session,
                 to_session_options(options.engine));
  const auto seconds = [&](std::span<const char* const> devices) {
    return median_of(options.repeats, [&]() -> Result<double> {
      TAGFLOW_ASSIGN(const BenchGraph graph,
                     make_cluster_register(nodes, devices));
      return seconds_of(
          [&] { return PreparedRun::make(graph, session).status(); });
    });
  };
  constexpr const char* kHere[] = {"/device:CPU:0", "/device:CPU:1"};
  session.devices = "cpu:2";
  TAGFLOW_ASSIGN(const double one, seconds(kHere));
  session.devices = {};
  session.backend = cluster.master();
  TAGFLOW_ASSIGN(const double cut, seconds(kTasks));
  return Measurement{"cluster_register",
                     cut * 1e3,
                     "ms",
                     {{"nodes", nodes},
                      {"one_process", one * 1e3},
                      {"repeats", options.repeats},
                      {"workers", options.engine.workers}}};
}

Result<Measurement> measure_cluster_loop(const BenchOptions& options) {
  return measure(kWorkloads[0], options);
}

Result<Measurement> measure_cluster_sum(const BenchOptions& options) {
  return measure(kWorkloads[1], options);
}

Result<Measurement> measure_cluster_step(const BenchOptions& options) {
  return measure(kWorkloads[2], options);
}

Result<Measurement> measure_cluster_transfer(const BenchOptions& options) {
  return measure(kWorkloads[3], options);
}

Result<Measurement> measure_cluster_mlp(const BenchOptions& options) {
  return measure_replicas(kReplicated[0], options);
}

Result<Measurement> measure_cluster_cnn(const BenchOptions& options) {
  return measure_replicas(kReplicated[1], options);
}

}  // namespace tagflow::apps

// The workloads of `tagflow bench`, and how they are measured.
//
// Every workload warms up with runs that are not counted, then takes the median
// over `repeats` runs, each from the calling thread through a prepared call.
// The files named below describe each workload at its function.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "apps/bench/graphs.h"
#include "apps/shared/runs/engine_options.h"
#include "graph/status.h"

namespace tagflow::apps {

struct BenchOptions {
  int vars = 1;
  int64_t trips = 0;  // 0: the workload's own number
  std::string op = "Identity";
  int nodes = 0;  // 0: the workload's own number
  int size = 1024;
  int64_t bytes = 1'000'000'000;
  int batch = 0;  // of these, 0: the workload's own number
  int steps = 0;
  int inputs = 0;
  int units = 0;
  bool train = false;
  bool tls = false;  // of the cluster's connections
  int tasks = 16;    // of cluster_scale
  int repeats = 9;
  EngineOptions engine;
};

// Smaller is better, except for GFLOP/s, GB/s and ratios.
struct Measurement {
  std::string name;
  double value = 0;
  std::string unit;
  nlohmann::json config = nlohmann::json::object();

  // {"name", "value", "unit", "config"} on one line.
  std::string to_json() const;
};

struct Workload {
  std::string_view name;
  std::string_view what;  // one line, for --help
  Result<Measurement> (*measure)(const BenchOptions& options);
};

// All of them, in the order of `bench all`.
std::span<const Workload> workloads();
// Null if no workload has the name.
const Workload* find_workload(std::string_view name);

// Seconds per trip: the time of a run of `trips` minus that of a run of 0,
// divided by `total`, the number of counted trips.
Result<double> seconds_per_trip(const Result<BenchGraph>& graph,
                                const BenchOptions& options, int64_t trips,
                                double total);

// The size in the options, with the defaults of lstm for what they leave open;
// `inputs` as in LstmSize.
LstmSize lstm_size(const BenchOptions& options, int inputs = 0);
// What a measurement says of itself: the size, and the options that count.
nlohmann::json lstm_config(const LstmSize& size, const BenchOptions& options);

// Like to_session_options(), with one engine for all sessions made from the
// result: the engine of the process, unless the options set workers or the
// hand-off. Returns errors of that function and of actors::Engine.
Result<actors::SessionOptions> on_one_engine(const EngineOptions& options);

// loops.cpp: ns per iteration, the run of zero trips subtracted
Result<Measurement> measure_loop(const BenchOptions& options);
Result<Measurement> measure_nested(const BenchOptions& options);
Result<Measurement> measure_loop_cond(const BenchOptions& options);
Result<Measurement> measure_map_fn(const BenchOptions& options);
Result<Measurement> measure_tensor_array(const BenchOptions& options);
Result<Measurement> measure_assign(const BenchOptions& options);
Result<Measurement> measure_queue(const BenchOptions& options);
Result<Measurement> measure_loop_memory(const BenchOptions& options);
Result<Measurement> measure_loop_scaling(const BenchOptions& options);
Result<Measurement> measure_trace(const BenchOptions& options);
// nodes.cpp: ns per op, every node fires
Result<Measurement> measure_chain(const BenchOptions& options);
Result<Measurement> measure_dead(const BenchOptions& options);
Result<Measurement> measure_wide(const BenchOptions& options);
Result<Measurement> measure_empty_step(const BenchOptions& options);
Result<Measurement> measure_load(const BenchOptions& options);
// fairness.cpp: ms, the worst p99
Result<Measurement> measure_fairness(const BenchOptions& options);
// sessions.cpp: us from the creation of a session to its end
Result<Measurement> measure_sessions(const BenchOptions& options);
// devices.cpp: us per iteration or hop; a ratio; seconds
Result<Measurement> measure_devices_loop(const BenchOptions& options);
Result<Measurement> measure_devices_pingpong(const BenchOptions& options);
Result<Measurement> measure_devices_hop(const BenchOptions& options);
Result<Measurement> measure_stream_overlap(const BenchOptions& options);
Result<Measurement> measure_place(const BenchOptions& options);
// cluster.cpp: us per trip or step; ms
Result<Measurement> measure_cluster_loop(const BenchOptions& options);
Result<Measurement> measure_cluster_sum(const BenchOptions& options);
Result<Measurement> measure_cluster_step(const BenchOptions& options);
Result<Measurement> measure_cluster_transfer(const BenchOptions& options);
Result<Measurement> measure_cluster_lstm(const BenchOptions& options);
Result<Measurement> measure_cluster_register(const BenchOptions& options);
Result<Measurement> measure_cluster_mlp(const BenchOptions& options);
Result<Measurement> measure_cluster_cnn(const BenchOptions& options);
// cluster_checkpoint.cpp: GB/s
Result<Measurement> measure_cluster_checkpoint(const BenchOptions& options);
// cluster_service.cpp: us per step
Result<Measurement> measure_cluster_service(const BenchOptions& options);
// cluster_scale.cpp: us per trip
Result<Measurement> measure_cluster_scale(const BenchOptions& options);
// kmeans.cpp: a ratio
Result<Measurement> measure_kmeans_scaling(const BenchOptions& options);
// recurrent.cpp: ms per run; seconds
Result<Measurement> measure_lstm(const BenchOptions& options);
Result<Measurement> measure_prefetch(const BenchOptions& options);
// gradients.cpp: us per trip or element; a ratio; seconds; bytes
Result<Measurement> measure_loop_grad(const BenchOptions& options);
Result<Measurement> measure_map_fn_grad(const BenchOptions& options);
Result<Measurement> measure_second_order_ratio(const BenchOptions& options);
Result<Measurement> measure_gradient_build(const BenchOptions& options);
Result<Measurement> measure_grad_memory(const BenchOptions& options);
// gradient_memory.cpp: ratios; bytes
Result<Measurement> measure_recompute(const BenchOptions& options);
Result<Measurement> measure_grad_shapes(const BenchOptions& options);
Result<Measurement> measure_grad_pushes(const BenchOptions& options);
Result<Measurement> measure_grad_gathers(const BenchOptions& options);
Result<Measurement> measure_gradient_nodes(const BenchOptions& options);
// training.cpp: ms per train step; a ratio
Result<Measurement> measure_mlp(const BenchOptions& options);
Result<Measurement> measure_cnn(const BenchOptions& options);
Result<Measurement> measure_lstm_backward_ratio(const BenchOptions& options);
// state.cpp: us per step or update
Result<Measurement> measure_embedding(const BenchOptions& options);
Result<Measurement> measure_stream_assign(const BenchOptions& options);
// memory.cpp: a ratio; MiB
Result<Measurement> measure_swap(const BenchOptions& options);
Result<Measurement> measure_freeing_first(const BenchOptions& options);
// checkpoint.cpp: GB/s
Result<Measurement> measure_checkpoint(const BenchOptions& options);
// kernels.cpp: one thread
Result<Measurement> measure_matmul(const BenchOptions& options);
Result<Measurement> measure_elementwise(const BenchOptions& options);
Result<Measurement> measure_sum(const BenchOptions& options);

}  // namespace tagflow::apps

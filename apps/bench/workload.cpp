#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

constexpr Workload kWorkloads[] = {
    {"loop", "while i < n: i += 1 (--vars, --window, --trips)", measure_loop},
    {"nested", "a loop in a loop, --trips each", measure_nested},
    {"loop_cond", "a loop with a conditional in it", measure_loop_cond},
    {"map_fn", "map_fn of x * x + 1 over --trips floats", measure_map_fn},
    {"tensor_array", "a loop of --trips that writes a TensorArray",
     measure_tensor_array},
    {"assign", "a loop of --trips that adds to a variable", measure_assign},
    {"queue", "a loop of --trips through a queue", measure_queue},
    {"chain", "--nodes ops (--op), one after another", measure_chain},
    {"dead", "--nodes ops on a branch that is not taken", measure_dead},
    {"wide", "--nodes independent ops (--op)", measure_wide},
    {"empty_step", "a run of one NoOp", measure_empty_step},
    {"devices_loop", "a loop of --trips, one op of it on a second device",
     measure_devices_loop},
    {"devices_pingpong", "a loop of --trips to a second device and back",
     measure_devices_pingpong},
    {"devices_hop", "--nodes ops on two devices in turns", measure_devices_hop},
    {"stream_overlap", "--trips kernels of 50 us in a row, over their sum",
     measure_stream_overlap},
    {"cluster_loop", "a loop of --trips, an op of it on each of two workers",
     measure_cluster_loop},
    {"cluster_sum", "a loop of --trips that sums over two workers",
     measure_cluster_sum},
    {"cluster_step", "a run of one NoOp on each of two workers",
     measure_cluster_step},
    {"cluster_service",
     "cluster_step by a client of a master service, over that by a master",
     measure_cluster_service},
    {"cluster_scale", "a loop of --trips that sums over --tasks workers",
     measure_cluster_scale},
    {"cluster_transfer", "64 MiB from one worker to another",
     measure_cluster_transfer},
    {"cluster_lstm",
     "an LSTM with a layer on each of two workers, as lstm (512 --units)",
     measure_cluster_lstm},
    {"cluster_register", "preparing a graph of --nodes nodes for two workers",
     measure_cluster_register},
    {"cluster_mlp", "a train step of an mlp with a replica on each worker",
     measure_cluster_mlp},
    {"cluster_cnn", "a train step of a cnn with a replica on each worker",
     measure_cluster_cnn},
    {"cluster_checkpoint",
     "--bytes of floats, written by the two workers that have them, beside "
     "steps",
     measure_cluster_checkpoint},
    {"place", "placing and cutting a graph of --nodes nodes", measure_place},
    {"kmeans_scaling",
     "2 CPU devices over 1, --trips of k-means (--nodes points)",
     measure_kmeans_scaling},
    {"lstm",
     "an LSTM, forward or --train (--batch, --steps, --inputs, --units)",
     measure_lstm},
    {"loop_grad", "a loop of --trips products, and its gradient",
     measure_loop_grad},
    {"map_fn_grad", "the gradient of map_fn of x * x + 1 over --trips floats",
     measure_map_fn_grad},
    {"second_order_ratio",
     "the second derivative of a loop of --trips over the first",
     measure_second_order_ratio},
    {"gradient_build", "making the gradient of a graph of --nodes nodes",
     measure_gradient_build},
    {"mlp", "a train step of 784-512-10 (--batch)", measure_mlp},
    {"cnn", "a train step of two convolutions and a dense layer (--batch)",
     measure_cnn},
    {"lstm_backward_ratio", "an LSTM with its gradients, over its forward pass",
     measure_lstm_backward_ratio},
    {"prefetch",
     "--trips batches of 10 ms beside steps of 10 ms, through a queue",
     measure_prefetch},
    {"embedding",
     "a gather and update of 128 of --nodes rows, beside a reader of all",
     measure_embedding},
    {"stream_assign", "a loop of --trips that adds 1 MiB on a stream device",
     measure_stream_assign},
    {"swap",
     "the gradient of a loop of --trips in a third of its memory, over enough",
     measure_swap},
    {"freeing_first", "peak memory of --nodes branches Fill(16 MiB) -> Sum",
     measure_freeing_first},
    {"matmul", "a product of --size x --size floats", measure_matmul},
    {"elementwise", "tanh(x) * x + 1 of 10^6 floats", measure_elementwise},
    {"sum", "the sum of 10^6 floats", measure_sum},
    {"checkpoint", "--bytes of floats, written to a bundle and read again",
     measure_checkpoint},
    {"load", "reading, checking and planning --nodes nodes", measure_load},
    {"loop_scaling", "2 workers over 1, two kernels of ~100 us in a loop",
     measure_loop_scaling},
    {"trace", "a loop of --trips that is recorded, over one that is not",
     measure_trace},
    {"fairness",
     "a small run beside kernels of 50 ms, and beside --nodes nodes",
     measure_fairness},
    {"sessions", "--nodes sessions at once: their time, memory and threads",
     measure_sessions},
    {"loop_memory", "peak memory of a loop of --trips", measure_loop_memory},
    {"grad_memory", "peak memory of the gradient of a loop of --trips",
     measure_grad_memory},
    {"recompute",
     "a gradient that keeps every sqrt(--trips)-th value, over all",
     measure_recompute},
    {"grad_shapes", "peak memory where shapes differ in each of --trips",
     measure_grad_shapes},
    {"grad_pushes",
     "a gradient of twice --trips list pushes, over that of once",
     measure_grad_pushes},
    {"grad_gathers",
     "a gradient of twice --trips row gathers, over that of once",
     measure_grad_gathers},
    {"gradient_nodes", "the third derivative of nested loops, over the loops",
     measure_gradient_nodes},
};

}  // namespace

std::string Measurement::to_json() const {
  // An ordered object: the name first.
  nlohmann::ordered_json line;
  line["name"] = name;
  line["value"] = value;
  line["unit"] = unit;
  line["config"] = config;
  return line.dump();
}

std::span<const Workload> workloads() { return kWorkloads; }

Result<actors::SessionOptions> on_one_engine(const EngineOptions& options) {
  TAGFLOW_ASSIGN(actors::SessionOptions session, to_session_options(options));
  const bool is_plain =
      session.workers == 0 && session.hand_off == actors::HandOff::kDirect;
  if (is_plain) {
    TAGFLOW_ASSIGN(session.engine, actors::Engine::process());
  } else {
    actors::EngineOptions apart;
    apart.workers = session.workers;
    apart.hand_off = session.hand_off;
    TAGFLOW_ASSIGN(session.engine, actors::Engine::create(apart));
  }
  return session;
}

const Workload* find_workload(std::string_view name) {
  for (const Workload& workload : kWorkloads) {
    if (workload.name == name) return &workload;
  }
  return nullptr;
}

}  // namespace tagflow::apps

#include "apps/bench/compare_entries.h"

#include <functional>
#include <memory>
#include <optional>

#include "apps/bench/checkpoint_files.h"
#include "apps/bench/stopwatch.h"

namespace tagflow::apps {
namespace {

constexpr int64_t kCheckpointBytes = 1'000'000'000;
constexpr double kNano = 1e9, kMicro = 1e6, kMilli = 1e3;

using Plan = ComparePlan;

Plan loop(int vars, int window, int trips) {
  Plan plan;
  plan.entry.name = "loop";
  plan.entry.what = fmt::format("`while`, {} variable{}, window {}", vars,
                                vars == 1 ? "" : "s", window);
  plan.entry.trips = trips;
  plan.entry.units = trips;
  plan.entry.scale = kNano;
  plan.entry.unit = "ns per iteration";
  plan.make = [=] { return make_loop(vars, window); };
  return plan;
}

Plan nested(int trips) {
  Plan plan;
  plan.entry.name = "nested";
  plan.entry.what = fmt::format("nested loops, {0} x {0}", trips);
  plan.entry.trips = trips;
  plan.entry.units = double(trips) * trips;
  plan.entry.scale = kNano;
  plan.entry.unit = "ns per inner iteration";
  plan.make = make_nested_loop;
  return plan;
}

Plan loop_cond(int trips) {
  Plan plan = loop(1, 10, trips);
  plan.entry.name = "loop_cond";
  plan.entry.what = "loop with a conditional in it";
  plan.make = make_loop_with_cond;
  return plan;
}

// A loop that reads or writes containers.
Plan container_loop(std::string name, std::string what, std::string unit,
                    int trips, Result<BenchGraph> (*make)()) {
  Plan plan = loop(1, 10, trips);
  plan.entry.name = std::move(name);
  plan.entry.what = std::move(what);
  plan.entry.scale = kMicro;
  plan.entry.unit = std::move(unit);
  plan.make = make;
  return plan;
}

// `nodes` ops a run, all of which fire.
Plan nodes(std::string name, std::string what, int count,
           std::function<Result<BenchGraph>(int)> make) {
  Plan plan;
  plan.entry.name = std::move(name);
  plan.entry.what = fmt::format("{} {}", count, what);
  plan.entry.units = count;
  plan.entry.scale = kNano;
  plan.entry.unit = "ns per op";
  plan.entry.every_node_fires = true;
  plan.entry.inner = 5;
  plan.make = [=] { return make(count); };
  return plan;
}

Plan on_two_devices(Plan plan, std::string name, std::string what) {
  plan.entry.name = std::move(name);
  plan.entry.what = std::move(what);
  plan.entry.devices = 2;
  plan.entry.scale = kMicro;
  return plan;
}

void add_device_plans(std::vector<Plan>& plans) {
  Plan across =
      on_two_devices(loop(1, 32, 5'000), "devices_loop",
                     "loop, an op of its body on a second device, window 32");
  across.entry.unit = "us per iteration";
  across.make = [] { return make_loop_over_devices(32); };
  Plan pingpong = on_two_devices(loop(1, 1, 5'000), "devices_pingpong",
                                 "loop to a second device and back, window 1");
  pingpong.entry.unit = "us per iteration";
  pingpong.make = make_device_pingpong;
  Plan hops =
      on_two_devices(nodes("", "", 2'000, make_device_hops), "devices_hop",
                     "chain that alternates between two devices");
  hops.entry.unit = "us per hop";
  plans.push_back(std::move(across));
  plans.push_back(std::move(pingpong));
  plans.push_back(std::move(hops));
}

Plan empty_step() {
  Plan plan;
  plan.entry.name = "empty_step";
  plan.entry.what = "empty step";
  plan.entry.scale = kMicro;
  plan.entry.unit = "us";
  plan.entry.inner = 1000;
  plan.make = make_empty;
  return plan;
}

Plan matmul(int size) {
  Plan plan;
  plan.entry.name = "matmul";
  plan.entry.what = fmt::format("{0} x {0} matrix product, one thread", size);
  plan.entry.units = 2.0 * size * size * size;
  plan.entry.scale = 1 / kNano;
  plan.entry.unit = "GFLOP/s";
  plan.entry.is_rate = true;
  plan.entry.threads = 1;
  plan.entry.inner = 3;
  plan.make = [=] { return make_product(size); };
  return plan;
}

Plan elements(std::string name, std::string what,
              Result<BenchGraph> (*make)(int)) {
  Plan plan;
  plan.entry.name = std::move(name);
  plan.entry.what = std::move(what);
  plan.entry.scale = kMilli;
  plan.entry.unit = "ms";
  plan.entry.threads = 1;
  plan.entry.inner = 5;
  plan.make = [make] { return make(1'000'000); };
  return plan;
}

Plan lstm(const LstmSize& size) {
  Plan plan;
  plan.entry.name = "lstm";
  plan.entry.what =
      fmt::format("LSTM forward, batch {}, {} steps of {}, {} units",
                  size.batch, size.steps, size.inputs, size.units);
  plan.entry.threads = 2;
  plan.entry.scale = kMilli;
  plan.entry.unit = "ms";
  plan.entry.inner = size.is_short() ? 10 : 1;
  plan.make = [=] { return make_lstm(size); };
  return plan;
}

Plan embedding() {
  Plan plan;
  plan.entry.name = "embedding";
  plan.entry.what = "gather and update of 128 rows of 10^6 x 64";
  plan.entry.scale = kMicro;
  plan.entry.unit = "us";
  plan.entry.inner = 1000;
  plan.make = [] { return make_embedding(1'000'000, 64, 128); };
  return plan;
}

// The same bytes to and from the page cache. Our SaveV2 would wait for the
// disk, unlike TensorFlow's, so the writer is timed alone.
void add_checkpoint_plans(std::vector<Plan>& plans) {
  struct Shared {
    std::optional<CheckpointFiles> files;
  };
  const auto shared = std::make_shared<Shared>();
  const auto start = [shared]() -> Status {
    if (shared->files) return {};
    TAGFLOW_ASSIGN(CheckpointFiles files,
                   CheckpointFiles::make(kCheckpointBytes));
    shared->files.emplace(std::move(files));
    return {};
  };
  const auto common = [] {
    Plan plan;
    plan.entry.scale = 1 / kNano;
    plan.entry.units = kCheckpointBytes;
    plan.entry.unit = "GB/s";
    plan.entry.is_rate = true;
    plan.entry.most_repeats = 3;
    // Only one way, since there is nothing to optimise, and each way keeps a
    // GB.
    plan.entry.every_node_fires = true;
    return plan;
  };
  Plan write = common(), read = common();
  write.entry.name = "checkpoint_write";
  write.entry.what = "checkpoint of 1 GB, to the page cache";
  write.make = [=]() -> Result<BenchGraph> {
    TAGFLOW_RETURN_IF_ERROR(start());
    return make_save(shared->files->prefix(), shared->files->elements());
  };
  write.entry.own = [=](const BenchOptions& options) -> Result<double> {
    std::vector<double> seconds;
    for (int i = 0; i < options.repeats; ++i) {
      TAGFLOW_ASSIGN(seconds.emplace_back(), shared->files->write_seconds());
    }
    return median(std::move(seconds));
  };
  read.entry.name = "checkpoint_read";
  read.entry.what = "checkpoint of 1 GB, from the page cache";
  read.make = [=]() -> Result<BenchGraph> {
    TAGFLOW_RETURN_IF_ERROR(start());
    return make_restore(shared->files->prefix());
  };
  read.entry.prepare = [=] { return shared->files->write_seconds().status(); };
  plans.push_back(std::move(write));
  plans.push_back(std::move(read));
}

// A workload without a counterpart in TensorFlow.
Plan own_only(const char* name, std::string what, double scale,
              std::string unit) {
  const Workload* workload = find_workload(name);
  Plan plan;
  plan.entry.name = name;
  plan.entry.what = std::move(what);
  plan.entry.scale = scale;
  plan.entry.unit = std::move(unit);
  plan.entry.has_rival = false;
  plan.entry.own = [=](const BenchOptions& options) -> Result<double> {
    TAGFLOW_ASSIGN(const Measurement measured, workload->measure(options));
    return measured.value / scale;
  };
  plan.make = [] { return BenchGraph(); };
  return plan;
}

std::vector<Plan> all_plans() {
  const auto identities = [](int n) { return make_chain("Identity", n); };
  const auto additions = [](int n) { return make_chain("Add", n); };
  const auto dead = [](int n) { return make_dead_chain("Identity", n); };
  const auto fan_out = [](int n) { return make_fan_out("Identity", n); };
  std::vector<Plan> plans;
  plans.push_back(loop(1, 1, 20'000));
  plans.push_back(loop(1, 10, 20'000));
  plans.push_back(loop(1, 32, 20'000));
  plans.push_back(loop(10, 32, 4'000));
  plans.push_back(loop(100, 32, 800));
  plans.push_back(nested(100));
  plans.push_back(loop_cond(10'000));
  plans.push_back(container_loop("map_fn", "`map_fn` of a scalar function",
                                 "us per element", 10'000, make_map_fn));
  plans.push_back(container_loop("tensor_array",
                                 "loop that writes a `TensorArray`",
                                 "us per write", 5'000, make_loop_of_writes));
  plans.push_back(container_loop("assign", "loop that adds to a variable",
                                 "us per update", 5'000, make_loop_of_updates));
  plans.push_back(container_loop("queue", "loop through a queue",
                                 "us per element", 5'000, make_loop_of_queue));
  plans.push_back(nodes("chain", "`Identity` in a chain", 10'000, identities));
  plans.push_back(nodes("chain", "`Add` in a chain", 10'000, additions));
  plans.push_back(nodes("dead", "dead `Identity`", 10'000, dead));
  plans.push_back(nodes("wide", "independent `Identity`", 10'000, fan_out));
  plans.push_back(empty_step());
  add_gradient_plans(plans);
  add_device_plans(plans);
  plans.push_back(lstm({1, 100, 16, 16}));
  plans.push_back(lstm({32, 28, 28, 128}));
  plans.push_back(lstm({64, 100, 128, 512}));
  add_training_plans(plans);
  plans.push_back(matmul(256));
  plans.push_back(matmul(1024));
  plans.push_back(elements("elementwise", "tanh(x) * x + 1 of 10^6, one thread",
                           make_elementwise));
  plans.push_back(elements("sum", "sum of 10^6, one thread", make_sum));
  plans.push_back(embedding());
  plans.push_back(own_only("stream_assign",
                           "loop that adds 1 MiB to a variable on a `stream`",
                           kMicro, "us per update"));
  plans.push_back(own_only(
      "prefetch", "100 batches of 10 ms beside steps of 10 ms", 1, "s"));
  add_checkpoint_plans(plans);
  return plans;
}

}  // namespace

Result<std::vector<CompareEntry>> compare_entries(const std::string& only,
                                                  bool over_workers) {
  std::vector<Plan> plans;
  if (over_workers) {
    add_cluster_plans(plans);
  } else {
    plans = all_plans();
  }
  std::vector<CompareEntry> entries;
  for (Plan& plan : plans) {
    if (!only.empty() && plan.entry.name != only) continue;
    TAGFLOW_ASSIGN(plan.entry.graph, plan.make());
    entries.push_back(std::move(plan.entry));
  }
  return entries;
}

}  // namespace tagflow::apps

// Workload: cluster_checkpoint, a checkpoint of --bytes of floats, half of them
// on each of two workers, which write them to the disk while steps run: a
// product of matrices on each worker, and an update by it. The value is what is
// written in a second, from the call of the saver until the checkpoint is
// published; `config` has how many times as long a step takes meanwhile, in the
// median, as in as much time before, and the same for a master that fetches and
// writes all. Files of the checkpoint before are removed ahead of its time.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "actors/checkpoint/saver.h"
#include "apps/bench/building.h"
#include "apps/bench/compare_entries.h"
#include "apps/bench/local_cluster.h"
#include "apps/bench/rival.h"
#include "apps/bench/stopwatch.h"
#include "apps/bench/workload.h"

namespace tagflow::apps {
namespace {

using namespace graph;  // NOLINT: as other graphs of the workloads

constexpr int64_t kBytes = 1'000'000'000;  // of the comparison
constexpr int kTensors = 16;               // of both workers
constexpr int kSize = 512;                 // of the matrices

int64_t elements_of(int64_t bytes) {
  return std::max<int64_t>(1, bytes / kTensors / int64_t(sizeof(float)));
}

Result<BenchGraph> make_saved(int64_t elements) {
  Building building;
  Outputs inits, updates;
  for (int i = 0; i < kTensors; ++i) {
    const Scope s =
        building.scope().with_device(kTasks[size_t(i) * kWorkers / kTensors]);
    const ops::Variable v = ops::variable(s.named("v" + std::to_string(i)),
                                          DataType::kFloat, {elements});
    inits.push_back(ops::assign(
        s, v,
        ops::fill(s, {elements}, opaque(s, Tensor::scalar(float(i) + 0.5f)))));
  }
  for (int task = 0; task < kWorkers; ++task) {
    const Scope s = building.scope().with_device(kTasks[task]);
    const Shape shape = {kSize, kSize};
    const ops::Variable w = ops::variable(s.named("w" + std::to_string(task)),
                                          DataType::kFloat, shape);
    const Output x = opaque(s, pseudo_random(shape));
    inits.push_back(ops::assign(s, w, ops::zeros_like(s, x)));
    updates.push_back(ops::assign_sub(
        s, w, ops::mul(s, ops::matmul(s, x, ops::read(s, w)), 1e-3f)));
  }
  return building.done({}, {}, {ops::group(building.scope(), updates)}, inits);
}

// Runs steps until its end. Thread-compatible.
class Steps {
 public:
  explicit Steps(PreparedRun& run) : thread_([this, &run] { repeat(run); }) {}
  ~Steps() { static_cast<void>(stop()); }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  int64_t count() const { return count_; }
  Status stop() {
    is_over_ = true;
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  void repeat(PreparedRun& run) {
    while (!is_over_ && status_.ok()) {
      status_ = run.run({});
      ++count_;
    }
  }

  std::atomic<bool> is_over_{false};
  std::atomic<int64_t> count_{0};
  Status status_;
  std::thread thread_;
};

// Workers with the variables, and a saver.
class SavedCluster {
 public:
  static Result<std::unique_ptr<SavedCluster>> make(
      const BenchOptions& options, int64_t bytes,
      actors::ShardWriters writers) {
    TAGFLOW_ASSIGN(TemporaryFolder folder, TemporaryFolder::make());
    TAGFLOW_ASSIGN(LocalCluster cluster,
                   LocalCluster::start(kWorkers, options.engine.workers,
                                       options.tls, folder.path()));
    TAGFLOW_ASSIGN(const BenchGraph graph, make_saved(elements_of(bytes)));
    TAGFLOW_ASSIGN(actors::SessionOptions session,
                   to_session_options(options.engine));
    session.backend = cluster.master();
    TAGFLOW_ASSIGN(PreparedRun run, PreparedRun::make(graph, session));
    auto made = std::unique_ptr<SavedCluster>(new SavedCluster(
        std::move(folder), std::move(cluster), std::move(run)));
    TAGFLOW_ASSIGN(made->saver_,
                   actors::Saver::create(made->run_.session(),
                                         {.folder = made->folder_.path(),
                                          .keep = 0,
                                          .writers = writers,
                                          .sync = true}));
    // What the first save registers is not counted.
    TAGFLOW_RETURN_IF_ERROR(made->seconds().status());
    return made;
  }

  PreparedRun& run() { return run_; }
  // Of a checkpoint.
  Result<double> seconds() {
    std::error_code code;
    for (const auto& file :
         std::filesystem::directory_iterator(folder_.path(), code))
      if (file.path().filename().string().starts_with("model.ckpt-"))
        std::filesystem::remove(file.path(), code);
    return seconds_of([this]() -> Status {
      TAGFLOW_RETURN_IF_ERROR(saver_->save(++step_));
      return saver_->wait();
    });
  }

  struct Beside {
    double seconds = 0;
    double slowed = 0;  // how many times as long a step takes
  };
  Result<Beside> seconds_beside_steps(double before) {
    Steps steps(run_);
    const auto wait_for = [](double seconds) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    };
    // The first ones warm up.
    wait_for(0.1);
    const int64_t first = steps.count();
    const Clock::time_point begin = Clock::now();
    wait_for(before);
    const int64_t second = steps.count();
    const double quiet =
        std::chrono::duration<double>(Clock::now() - begin).count();
    TAGFLOW_ASSIGN(const double took, seconds());
    const int64_t last = steps.count();
    TAGFLOW_RETURN_IF_ERROR(steps.stop());
    const double rate = double(second - first) / quiet;
    return Beside{took,
                  rate / (double(std::max<int64_t>(1, last - second)) / took)};
  }

 private:
  SavedCluster(TemporaryFolder folder, LocalCluster cluster, PreparedRun run)
      : folder_(std::move(folder)),
        cluster_(std::move(cluster)),
        run_(std::move(run)) {}

  TemporaryFolder folder_;
  LocalCluster cluster_;
  PreparedRun run_;
  std::unique_ptr<actors::Saver> saver_;
  int64_t step_ = 0;
};

struct Medians {
  double seconds = 0, slowed = 0, alone = 0;
};

Result<Medians> measure_saves(const BenchOptions& options,
                              actors::ShardWriters writers) {
  TAGFLOW_ASSIGN(const auto cluster,
                 SavedCluster::make(options, options.bytes, writers));
  std::vector<double> seconds, slowed, alone;
  for (int i = 0; i < options.repeats; ++i) {
    TAGFLOW_ASSIGN(alone.emplace_back(), cluster->seconds());
    TAGFLOW_ASSIGN(const auto beside,
                   cluster->seconds_beside_steps(std::max(0.5, alone.back())));
    seconds.push_back(beside.seconds);
    slowed.push_back(beside.slowed);
  }
  return Medians{median(std::move(seconds)), median(std::move(slowed)),
                 median(std::move(alone))};
}

}  // namespace

ComparePlan cluster_checkpoint_plan() {
  ComparePlan plan;
  plan.entry.name = "cluster_checkpoint";
  plan.entry.what =
      "checkpoint of 1 GB over two workers, beside steps, to the disk "
      "(TensorFlow: to the page cache)";
  plan.entry.workers = kWorkers;
  plan.entry.units = double(kBytes);
  plan.entry.scale = 1e-9;
  plan.entry.unit = "GB/s";
  plan.entry.is_rate = true;
  plan.entry.most_repeats = 3;
  // There is nothing to optimise, and each way keeps a GB.
  plan.entry.every_node_fires = true;
  plan.entry.program = "cluster_checkpoint";
  plan.entry.sizes = {{"tensors", kTensors},
                      {"elements", int(elements_of(kBytes))},
                      {"size", kSize}};
  struct Shared {
    std::unique_ptr<SavedCluster> cluster;
    std::optional<TemporaryFolder> theirs;
  };
  const auto shared = std::make_shared<Shared>();
  plan.make = [shared]() -> Result<BenchGraph> {
    TAGFLOW_ASSIGN(TemporaryFolder folder, TemporaryFolder::make());
    TAGFLOW_ASSIGN(BenchGraph graph, make_saved(elements_of(kBytes)));
    graph.written = folder.path() / "model";
    shared->theirs.emplace(std::move(folder));
    return graph;
  };
  plan.entry.own = [shared](const BenchOptions& options) -> Result<double> {
    if (shared->cluster == nullptr) {
      TAGFLOW_ASSIGN(
          shared->cluster,
          SavedCluster::make(options, kBytes, actors::ShardWriters::kWorkers));
    }
    return median_of(options.repeats, [&]() -> Result<double> {
      TAGFLOW_ASSIGN(const auto beside,
                     shared->cluster->seconds_beside_steps(0.1));
      return beside.seconds;
    });
  };
  return plan;
}

Result<Measurement> measure_cluster_checkpoint(const BenchOptions& options) {
  TAGFLOW_ASSIGN(const Medians workers,
                 measure_saves(options, actors::ShardWriters::kWorkers));
  TAGFLOW_ASSIGN(const Medians master,
                 measure_saves(options, actors::ShardWriters::kMaster));
  const auto speed = [&](double seconds) {
    return double(elements_of(options.bytes)) * kTensors * sizeof(float) /
           seconds / 1e9;
  };
  return Measurement{"cluster_checkpoint",
                     speed(workers.seconds),
                     "GB/s",
                     {{"bytes", options.bytes},
                      {"slowed", workers.slowed},
                      {"without_steps", speed(workers.alone)},
                      {"by_master", speed(master.seconds)},
                      {"slowed_by_master", master.slowed},
                      {"repeats", options.repeats},
                      {"workers", options.engine.workers}}};
}

}  // namespace tagflow::apps

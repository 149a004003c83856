// A training whose workers write their variables.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/checkpoint/saver.h"
#include "tests/actors/process_cases.h"
#include "tests/net/link/test_certificates.h"
#include "tests/net/local_worker.h"
#include "tests/temp_path.h"

namespace tagflow::net::testing {

using graph::testing::must;

// Removed with its end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(tagflow::testing::temp_path("shards_" + name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& name = {}) const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  bool has_temporary() const {
    return std::ranges::any_of(names(), [](const std::string& name) {
      return graph::testing::contains(name, ".tmp-tagflow-");
    });
  }

 private:
  const std::filesystem::path path_;
};

struct Workers {
  // As local_worker() has them, and maybe more.
  Workers(std::vector<WorkerOptions> wanted, bool has_tls) {
    ClusterOptions options = local_cluster();
    if (has_tls) options.tls = master_tls();
    for (uint32_t task = 0; task < wanted.size(); ++task) {
      if (has_tls) wanted[task].tls = worker_tls(task);
      workers.push_back(must(Worker::start(std::move(wanted[task]))));
      options.members.push_back(
          {{"worker", task}, {"localhost", workers.back()->port()}});
    }
    cluster = must(Cluster::connect(std::move(options)));
  }
  // Each may write in its folder, if that has a name.
  explicit Workers(const std::vector<std::string>& folders,
                   bool has_tls = false)
      : Workers(that_write(folders), has_tls) {}

  static std::vector<WorkerOptions> that_write(
      const std::vector<std::string>& folders) {
    std::vector<WorkerOptions> all;
    for (uint32_t task = 0; task < folders.size(); ++task) {
      all.push_back(local_worker(task));
      all.back().checkpoints = folders[task];
    }
    return all;
  }
  std::vector<std::unique_ptr<Worker>> workers;
  std::shared_ptr<Cluster> cluster;
};

inline std::vector<std::string> all_in(const Folder& folder, size_t count) {
  return std::vector<std::string>(count, folder.path());
}

// A variable of each worker, and one by reference, which a step changes by
// noise; the last ones are large. They are pinned to their workers: all, none,
// or those before the first free one.
struct Training : actors::Program {
  Training(uint32_t tasks, bool is_pinned, int64_t last_size = 1000,
           uint32_t first_free = UINT32_MAX) {
    using namespace graph;  // NOLINT: for tests
    Outputs inits, steps;
    for (uint32_t task = 0; task < tasks; ++task) {
      const Scope at =
          is_pinned && task < first_free
              ? s.with_device("/job:worker/task:" + std::to_string(task))
              : s;
      const std::string number = std::to_string(task);
      const int64_t size = task + 1 == tasks ? last_size : 5;
      const Output shape = ops::constant(at, Tensor::vector<int64_t>({size}));
      const ops::Variable w =
          ops::variable(at.named("w" + number), DataType::kFloat, {size});
      const Output noise = ops::random_uniform(at.named("noise" + number),
                                               shape, DataType::kFloat);
      inits.push_back(
          ops::assign(at, w, ops::fill(at, shape, ops::constant(at, 1.f))));
      steps.push_back(ops::assign_add(at, w, noise));
      ops::read(at.named("read" + number), w);
      const Output count = ops::reference_variable(
          at.named("count" + number), DataType::kInt64, PartialShape::scalar());
      inits.push_back(ops::assign(at, count, Tensor::scalar<int64_t>(0)));
      steps.push_back(ops::assign_add(at, count, Tensor::scalar<int64_t>(1)));
      ops::identity(at.named("count_read" + number), count);
      reads.insert(reads.end(), {"read" + number, "count_read" + number});
      // Never has a value.
      ops::variable(at.named("unset" + number), DataType::kFloat, {2});
    }
    ops::group(s.named("init"), inits);
    ops::group(s.named("step"), steps);
    must(s.status());
  }
  std::unique_ptr<actors::Session> session(
      std::shared_ptr<actors::Backend> backend) const {
    actors::SessionOptions options;
    options.backend = std::move(backend);
    options.seed = 5;
    return actors::make_session(options, graph);
  }
  std::vector<Tensor> values(actors::Session& session) const {
    return must(session.run({}, reads, {}, actors::within_a_minute()));
  }
  std::vector<std::string> reads;
};

inline void run(actors::Session& session, const std::string& target,
                int times = 1) {
  for (int i = 0; i < times; ++i)
    must(session.run({}, {}, {target}, actors::within_a_minute()));
}

inline void check_same(const std::vector<Tensor>& a,
                       const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(identical(a[i], b[i]));
}

inline actors::SaverOptions by_workers(const Folder& folder) {
  actors::SaverOptions options;
  options.folder = folder.path();
  options.writers = actors::ShardWriters::kWorkers;
  options.sync = false;
  return options;
}

inline std::unique_ptr<actors::Saver> make_saver(const actors::Session& session,
                                                 actors::SaverOptions options) {
  return must(actors::Saver::create(session, std::move(options)));
}

// Returns when the checkpoint is written.
inline void save(actors::Saver& saver, int64_t step) {
  must(saver.save(step));
  must(saver.wait());
}

}  // namespace tagflow::net::testing

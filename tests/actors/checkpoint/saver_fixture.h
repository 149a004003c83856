// Shared by tests of savers: a folder, and a graph that counts.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "actors/checkpoint/saver.h"
#include "actors/checkpoint/snapshot.h"
#include "actors/shared_state.h"
#include "devices/device.h"
#include "devices/files/bundle_writer.h"
#include "devices/files/safetensors.h"
#include "devices/files/state.h"
#include "devices/files/tensor_file.h"
#include "graph/builder/builder.h"
#include "tests/actors/checkpoint/hooked_files.h"
#include "tests/actors/sessions.h"
#include "tests/failing_new.h"
#include "tests/graph/pbtxt.h"
#include "tests/temp_path.h"

namespace tagflow::actors {

using namespace graph;  // NOLINT: of tests alone
using graph::testing::must;

namespace fs = std::filesystem;

// Removed with its end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(tagflow::testing::temp_path("saver_" + name)) {
    fs::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  std::string path(const std::string& name = "") const {
    return name.empty() ? path_.string() : (path_ / name).string();
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  const fs::path path_;
};

// "init" and "step", which adds one to all elements of two variables and to
// "count".
inline Graph counting(int64_t size = 16) {
  Graph graph;
  const Scope s(graph);
  Outputs inits, steps;
  const Output ones =
      ops::fill(s, Tensor::of<int64_t>({1}, {size}), Tensor::scalar(1.0f));
  for (const std::string name : {"w", "m"}) {
    const auto variable =
        ops::variable(s.named(name), DataType::kFloat, PartialShape({size}));
    inits.push_back(ops::assign(s, variable, ops::zeros_like(s, ones)));
    steps.push_back(ops::assign_add(s, variable, ones));
  }
  const Output count = ops::reference_variable(
      s.named("count"), DataType::kInt64, PartialShape::scalar());
  inits.push_back(ops::assign(s, count, Tensor::scalar<int64_t>(0)));
  steps.push_back(ops::assign_add(s, count, Tensor::scalar<int64_t>(1)));
  ops::group(s.named("init"), inits);
  ops::group(s.named("step"), steps);
  // Never has a value.
  ops::variable(s.named("unset"), DataType::kFloat, PartialShape({2}));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

inline void run_target(Session& session, const std::string& target) {
  must(session.run({}, {}, {target}, within_a_minute()));
}

inline std::unique_ptr<Saver> make_saver(const Session& session,
                                         SaverOptions options) {
  return must(Saver::create(session, std::move(options)));
}

// Of a session that counts: what it has come to, if all variables agree.
inline int64_t count_of(Session& session) {
  const auto snapshot = must(must(Snapshots::create(session))->take());
  const auto count = snapshot.variables.at("count").scalar_value<int64_t>();
  for (const std::string name : {"w", "m"})
    for (const float value : snapshot.variables.at(name).flat<float>())
      CHECK(value == float(count));
  return count;
}

inline std::string error_of(const Status& status) { return status.to_string(); }
inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

// One bundle of these.
inline void write_bundle(const std::string& prefix,
                         const std::map<std::string, Tensor>& tensors) {
  auto writer =
      must(checkpoint::BundleWriter::create(prefix, 1, {nullptr, false}));
  for (const auto& [name, tensor] : tensors) must(writer->add(name, tensor));
  must(writer->finish());
  must(writer->publish());
}

}  // namespace tagflow::actors

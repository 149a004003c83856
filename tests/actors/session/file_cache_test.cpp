// CacheDataset with a file name. Files and errors are TensorFlow's.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "devices/files/bundle_reader.h"
#include "tests/actors/session/pipeline_graph.h"
#include "tests/temp_folder.h"

using namespace tagflow;
using namespace tagflow::actors;
using graph::testing::contains;
namespace fs = std::filesystem;

namespace {

struct Folder : tagflow::testing::TempFolder {
  Folder() : TempFolder("file_cache") {}
  std::set<std::string> names() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path()))
      names.insert(entry.path().filename().string());
    return names;
  }
};

using Names = std::set<std::string>;
const Names kWhole{"c.data-00000-of-00001", "c.index"};

// The numbers below `stop`, cached in files.
struct Cached : PipelineGraph {
  Cached(int64_t stop, const std::string& prefix) {
    range("numbers", stop);
    add({body_const("prefix", Tensor::scalar(prefix)),
         body_node("cached", "CacheDataset", {"numbers", "prefix"},
                   with_spec())});
  }
};

std::unique_ptr<Session> started(const Cached& graph,
                                 const SessionOptions& options = {}) {
  auto session = make_session(options, graph.graph);
  initialise(*session);
  return session;
}

// The numbers up to the end, or the error.
std::string rest(Session& session) {
  std::string text;
  for (;;) {
    const auto number = next_number(session);
    if (number.status().code() == Code::kOutOfRange) return text;
    if (!number.ok()) return text + number.status().to_string();
    text += std::to_string(*number) + " ";
  }
}

}  // namespace

TEST_CASE("an iteration writes the cache, and later ones read it") {
  const Folder folder;
  Cached graph(4, folder / "c");
  graph.iterate("cached");
  const auto session = started(graph);
  CHECK(folder.names().empty());  // nobody has asked for an element
  CHECK(rest(*session) == "0 1 2 3 ");
  CHECK(folder.names() == kWhole);
  initialise(*session);
  CHECK(rest(*session) == "0 1 2 3 ");
  // Whatever its input is now.
  Cached other(2, folder / "c");
  other.iterate("cached");
  CHECK(rest(*started(other)) == "0 1 2 3 ");
  const auto reader = must(checkpoint::BundleReader::open(folder / "c"));
  CHECK(must(reader->read("      3_0")).scalar_value<int64_t>() == 3);
}

TEST_CASE("what was not read to the end is no cache") {
  const Folder folder;
  Cached graph(4, folder / "c");
  graph.iterate("cached");
  const auto session = started(graph);
  for (int again = 0; again < 3; ++again) {
    CHECK(must(next_number(*session)) == 0);
    CHECK(folder.names().contains("c_0.lockfile"));
    initialise(*session);  // it begins anew
    CHECK(folder.names().empty());
  }
  CHECK(rest(*session) == "0 1 2 3 ");
  CHECK(folder.names() == kWhole);
}

TEST_CASE("a repeated cache is written once") {
  const Folder folder;
  Cached graph(3, folder / "c");
  graph.number("count", 2);
  graph.add(
      {body_node("again", "RepeatDataset", {"cached", "count"}, with_spec())});
  graph.iterate("again");
  CHECK(rest(*started(graph)) == "0 1 2 0 1 2 ");
  CHECK(folder.names() == kWhole);
}

TEST_CASE("a cache without elements is whole") {
  const Folder folder;
  Cached graph(0, folder / "c");
  graph.iterate("cached");
  CHECK(rest(*started(graph)) == "");
  CHECK(folder.names() == kWhole);
  CHECK(rest(*started(graph)) == "");
}

TEST_CASE("a cache that another iteration writes is refused") {
  const Folder folder;
  Cached graph(3, folder / "c");
  graph.iterate("cached");
  const auto first = started(graph);
  CHECK(must(next_number(*first)) == 0);
  const auto second = started(graph);
  const auto refused = next_number(*second).status();
  CHECK(refused.code() == Code::kAlreadyExists);
  CHECK(contains(refused.to_string(), "c_0.lockfile"));
  CHECK(contains(refused.to_string(), "[CacheDataset \"cached\"]"));
  CHECK(rest(*first) == "1 2 ");
  CHECK(next_number(*second).status().code() == Code::kAlreadyExists);
  initialise(*second);
  CHECK(rest(*second) == "0 1 2 ");
}

TEST_CASE("damaged and foreign caches are refused") {
  const Folder folder;
  Cached graph(3, folder / "c");
  graph.iterate("cached");
  CHECK(rest(*started(graph)) == "0 1 2 ");
  fs::remove(folder / "c.data-00000-of-00001");
  const auto missing = next_number(*started(graph)).status();
  CHECK(missing.code() == Code::kNotFound);
  CHECK(contains(missing.to_string(), "[CacheDataset \"cached\"]"));
  CHECK(contains(missing.to_string(), "cache \""));
  std::ofstream(folder / "c.index") << "no index";
  const auto damaged = next_number(*started(graph)).status();
  CHECK(damaged.code() == Code::kDataLoss);
  CHECK(contains(damaged.to_string(), folder / "c"));
}

TEST_CASE("a cache is only where its session may read and write") {
  const Folder folder;
  Cached graph(3, folder / "c");
  graph.iterate("cached");
  SessionOptions options;
  options.policy.reads = graph::FileScope::everywhere();
  options.policy.writes = graph::FileScope::nowhere();
  CHECK(next_number(*started(graph, options)).status().code() ==
        Code::kPermissionDenied);
  options.policy.reads = graph::FileScope::beneath("/usr");
  options.policy.writes = graph::FileScope::everywhere();
  CHECK(next_number(*started(graph, options)).status().code() ==
        Code::kPermissionDenied);
  CHECK(folder.names().empty());
  // In memory, none is needed.
  Cached in_memory(3, "");
  in_memory.iterate("cached");
  options.policy.reads = options.policy.writes = graph::FileScope::nowhere();
  CHECK(rest(*started(in_memory, options)) == "0 1 2 ");
}

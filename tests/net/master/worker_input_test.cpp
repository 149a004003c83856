// Readers and datasets on the workers of a cluster: each reads the files of its
// worker, and a checkpoint has their positions.
#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/checkpoint/snapshot.h"
#include "graph/builder/builder.h"
#include "tests/actors/program.h"
#include "tests/net/master/worker_shards.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using namespace testing;         // NOLINT: likewise
using graph::testing::contains;

// Workers that may read their own folders, each with a file "lines", whose
// name is all that the graph says.
struct Readers {
  explicit Readers(uint32_t tasks, bool has_tls) {
    std::vector<WorkerOptions> wanted;
    for (uint32_t task = 0; task < tasks; ++task) {
      folders.push_back(
          std::make_unique<Folder>("input" + std::to_string(task)));
      std::ofstream out(folders.back()->path("lines"));
      for (int i = 0; i < 5; ++i) out << "worker " << task << " " << i << "\n";
      wanted.push_back(local_worker(task));
      wanted.back().policy.reads = FileScope::beneath(folders.back()->path());
    }
    workers.emplace(std::move(wanted), has_tls);
  }
  std::unique_ptr<actors::Session> session(const Graph& graph) const {
    actors::SessionOptions options;
    options.backend = workers->cluster;
    return actors::make_session(options, graph);
  }

  std::vector<std::unique_ptr<Folder>> folders;
  std::optional<Workers> workers;
};

Scope at(const Scope& s, uint32_t task) {
  return s.with_device("/job:worker/task:" + std::to_string(task));
}

std::string text_of(actors::Session& session, const std::string& fetch) {
  const auto got = session.run({}, {fetch}, {}, actors::within_a_minute());
  return got.ok() ? (*got)[0].scalar_value<std::string>()
                  : got.status().to_string();
}

// A reader of each worker, over a queue of names there: "value0", "value1".
struct ReaderGraph : actors::Program {
  explicit ReaderGraph(uint32_t tasks) {
    Outputs given;
    for (uint32_t task = 0; task < tasks; ++task) {
      const std::string number = std::to_string(task);
      const Scope here = at(s, task);
      const ops::Queue queue =
          ops::fifo_queue(here.named("queue" + number), {DataType::kString},
                          {.shapes = {PartialShape::scalar()}});
      given.push_back(
          ops::enqueue(here, queue, {ops::constant(here, "lines")}));
      const Output reader =
          here.named("reader" + number).op("TextLineReaderV2", {});
      const Output read = here.op("ReaderReadV2", {reader, queue.handle});
      ops::identity(here.named("value" + number), Output(read.node(), 1));
    }
    ops::group(s.named("give"), given);
    must(s.status());
  }
};

// An iterator of each worker over the lines of a file: "value0", "value1",
// initialised by "init".
struct DatasetGraph : actors::Program {
  explicit DatasetGraph(uint32_t tasks) {
    const AttrMap spec{
        {"output_types", std::vector<DataType>{DataType::kString}},
        {"output_shapes", std::vector<PartialShape>{PartialShape::scalar()}}};
    Outputs inits;
    for (uint32_t task = 0; task < tasks; ++task) {
      const std::string number = std::to_string(task);
      const Scope here = at(s, task);
      const Output lines =
          here.op("TextLineDataset",
                  {ops::constant(here, "lines"), ops::constant(here, ""),
                   ops::constant(here, Tensor::scalar<int64_t>(0))});
      const Output kept =
          here.op("TakeDataset",
                  {lines, ops::constant(here, Tensor::scalar<int64_t>(4))},
                  AttrMap(spec));
      AttrMap named(spec);
      named["shared_name"] = std::string();
      named["container"] = std::string();
      const Output iterator =
          here.named("iterator" + number).op("IteratorV2", {}, named);
      inits.push_back(here.op("MakeIterator", {kept, iterator}));
      here.named("value" + number)
          .op("IteratorGetNext", {iterator}, AttrMap(spec));
    }
    ops::group(s.named("init"), inits);
    must(s.status());
  }
};

constexpr uint32_t kTasks = 2;

// Values go on behind those that were there before a snapshot. `target` begins,
// after a restore, too, if `begins_again`.
void check_positions(const Graph& graph, const std::string& target,
                     bool begins_again) {
  actors::Snapshot snapshot;
  {
    const Readers readers(kTasks, false);
    const auto session = readers.session(graph);
    must(session->run({}, {}, {target}, actors::within_a_minute()));
    CHECK(text_of(*session, "value0") == "worker 0 0");
    CHECK(text_of(*session, "value1") == "worker 1 0");
    CHECK(text_of(*session, "value1") == "worker 1 1");
    snapshot = must(must(actors::Snapshots::create(*session))->take());
  }
  const Readers others(kTasks, false);
  const auto session = others.session(graph);
  must(must(actors::Snapshots::create(*session))->restore(snapshot));
  if (begins_again)
    must(session->run({}, {}, {target}, actors::within_a_minute()));
  CHECK(text_of(*session, "value0") == "worker 0 1");
  CHECK(text_of(*session, "value1") == "worker 1 2");
}

}  // namespace

TEST_CASE("a reader reads the files of its worker") {
  for (const bool has_tls : {false, true}) {
    const Readers readers(kTasks, has_tls);
    const ReaderGraph graph(kTasks);
    const auto session = readers.session(graph.graph);
    must(session->run({}, {}, {"give"}, actors::within_a_minute()));
    for (const char* line : {"0", "1", "2"})
      for (const std::string task : {"0", "1"})
        CHECK(text_of(*session, "value" + task) ==
              "worker " + task + " " + line);
  }
}

TEST_CASE("a dataset reads the files of its worker") {
  for (const bool has_tls : {false, true}) {
    const Readers readers(kTasks, has_tls);
    const DatasetGraph graph(kTasks);
    const auto session = readers.session(graph.graph);
    must(session->run({}, {}, {"init"}, actors::within_a_minute()));
    for (const char* line : {"0", "1", "2", "3"})
      for (const std::string task : {"0", "1"})
        CHECK(text_of(*session, "value" + task) ==
              "worker " + task + " " + line);
    CHECK(contains(text_of(*session, "value0"), "End of sequence"));
  }
}

TEST_CASE("a snapshot has the positions of iterators on workers") {
  check_positions(DatasetGraph(kTasks).graph, "init", /*begins_again=*/true);
}

TEST_CASE("a snapshot has the positions of readers on workers") {
  check_positions(ReaderGraph(kTasks).graph, "give", /*begins_again=*/false);
}

}  // namespace tagflow::net

// The queue runners of a MetaGraph: which are read, and which are rejected.
#include "graph/file/queue_runner.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/file/graphdef.h"
#include "graph/proto/meta_graph.pb.h"
#include "tests/graph/hand_made.h"
#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

tensorflow::QueueRunnerDef full_runner() {
  tensorflow::QueueRunnerDef runner;
  runner.set_queue_name("q");
  runner.add_enqueue_op_name("put");
  runner.add_enqueue_op_name("put");
  runner.set_close_op_name("close");
  runner.set_cancel_op_name("cancel");
  return runner;
}

// Of a file with that element of the collection.
Result<std::vector<QueueRunnerDef>> read(const std::string& bytes) {
  tensorflow::MetaGraphDef meta;
  (*meta.mutable_collection_def())["queue_runners"]
      .mutable_bytes_list()
      ->add_value(bytes);
  const std::filesystem::path path =
      tagflow::testing::temp_path("queue_runner.meta");
  std::ofstream(path, std::ios::binary) << meta.SerializeAsString();
  Result<GraphFile> file = load_file(path);
  std::filesystem::remove(path);
  TAGFLOW_RETURN_IF_ERROR(file.status());
  return file->queue_runners;
}

}  // namespace

TEST_CASE("a queue runner is read as it was written") {
  tensorflow::QueueRunnerDef proto = full_runner();
  auto runners = must(read(proto.SerializeAsString()));
  REQUIRE(runners.size() == 1);
  CHECK(runners[0].queue == "q");
  CHECK(runners[0].enqueue_ops == std::vector<std::string>{"put", "put"});
  CHECK(runners[0].close_op == "close");
  CHECK(runners[0].cancel_op == "cancel");
  // What older files mean.
  CHECK(runners[0].closed_codes == std::vector<Code>{Code::kOutOfRange});
  proto.add_queue_closed_exception_types(1);
  proto.add_queue_closed_exception_types(11);
  runners = must(read(proto.SerializeAsString()));
  CHECK(runners[0].closed_codes ==
        std::vector<Code>{Code::kCancelled, Code::kOutOfRange});
}

TEST_CASE("a queue runner that cannot be is refused") {
  tensorflow::QueueRunnerDef proto = full_runner();
  SUBCASE("of bytes that are none") {
    CHECK(contains(message_of(read("\xff\xff").status(), Code::kDataLoss),
                   "QueueRunnerDef"));
  }
  SUBCASE("with an error that there is not") {
    for (const int code : {-1, 0, 17}) {
      proto.clear_queue_closed_exception_types();
      proto.add_queue_closed_exception_types(code);
      CHECK(contains(
          message_of(read(proto.SerializeAsString()).status(), Code::kDataLoss),
          fmt::format("the queue runner of \"q\" names {} as an error code",
                      code)));
    }
  }
  SUBCASE("with more threads than there should be") {
    for (int i = 0; i < 1024; ++i) proto.add_enqueue_op_name("put");
    CHECK(contains(
        message_of(read(proto.SerializeAsString()).status(),
                   Code::kResourceExhausted),
        "the queue runner of \"q\" asks for 1026 threads, at most 1024 are "
        "possible"));
  }
}

TEST_CASE("a collection of another kind has no queue runners") {
  tensorflow::MetaGraphDef meta;
  (*meta.mutable_collection_def())["queue_runners"]
      .mutable_node_list()
      ->add_value("q");
  const std::filesystem::path path =
      tagflow::testing::temp_path("no_queue_runner.meta");
  std::ofstream(path, std::ios::binary) << meta.SerializeAsString();
  CHECK(must(load_file(path)).queue_runners.empty());
  std::filesystem::remove(path);
}

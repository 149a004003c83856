// Datasets and iterators, against what record_datasets.py recorded with
// TensorFlow.
#include <doctest/doctest.h>

#include "tests/actors/recorded_pipelines.h"

namespace tagflow::actors {

TEST_CASE("datasets: recorded pipelines, each of them twice") {
  const graph::Graph graph = recorded_graph("datasets");
  const auto cases = recorded_pipelines();
  REQUIRE(cases.size() == 160);
  for (const int workers : {1, 3}) {
    SessionOptions options;
    options.workers = workers;
    const auto session = make_session(options, graph);
    for (const RecordedPipeline& recorded : cases) {
      check_pipeline(*session, recorded);
      // An initializer begins again, whatever the iterator has given.
      if (!recorded.init.empty() && recorded.name != "resources")
        check_pipeline(*session, recorded);
    }
  }
}

TEST_CASE("datasets: the graph of the page about them") {
  const auto session = make_session(
      {},
      must(graph::load_graph(source_path("tests/apps/graphs/dataset.pbtxt"))));
  const auto values = must_run(*session, {}, {"squares", "sum"});
  CHECK(identical(values[0], Tensor::vector<int64_t>({0, 9, 36})));
  CHECK(identical(values[1], Tensor::scalar(int64_t{18})));
}

}  // namespace tagflow::actors

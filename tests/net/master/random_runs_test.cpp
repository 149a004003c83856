// Random numbers over workers: each process counts the runs of its own nodes.
#include <doctest/doctest.h>

#include "tests/actors/program.h"
#include "tests/net/local_worker.h"

namespace tagflow::net {
namespace {

using namespace tagflow::graph;  // NOLINT: for tests
using graph::testing::must;

}  // namespace

TEST_CASE("a random op goes on with its numbers for a node of another worker") {
  actors::Program p;
  const Output noise = ops::random_uniform(
      p.s.named("noise"), ops::constant(p.s, Tensor::vector<int>({3})),
      DataType::kFloat);
  for (const std::string task : {"0", "1"})
    ops::neg(p.s.with_device("/job:worker/task:" + task).named("at" + task),
             noise);
  must(p.s.status());
  actors::SessionOptions options;
  options.seed = 7;
  options.soft_placement = true;
  const auto here = actors::make_session(options, p.graph);
  ClusterOptions cluster = local_cluster();
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint32_t task = 0; task < 2; ++task) {
    workers.push_back(must(Worker::start(local_worker(task))));
    cluster.members.push_back(
        {{"worker", task}, {"localhost", workers.back()->port()}});
  }
  options.backend = must(Cluster::connect(cluster));
  const auto there = actors::make_session(options, p.graph);
  // The second one would run the op itself, and begin anew.
  for (const std::string fetch : {"at0", "at0", "at1", "at0", "at1"})
    CHECK(identical(actors::must_run(*here, {}, {fetch})[0],
                    actors::must_run(*there, {}, {fetch})[0]));
}

}  // namespace tagflow::net

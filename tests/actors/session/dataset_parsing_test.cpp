// Pipelines that parse Examples, when they fail or are ended.
#include <doctest/doctest.h>

#include "graph/fault.h"
#include "graph/proto/example.pb.h"
#include "tests/actors/session/pipeline_graph.h"
#include "tests/failing_new.h"

namespace tagflow::actors {

namespace {

using graph::testing::contains;

std::string example(int64_t value) {
  tensorflow::Example made;
  auto& x = (*made.mutable_features()->mutable_feature())["x"];
  x.mutable_int64_list()->add_value(value);
  return made.SerializeAsString();
}

// The numbers "x" of Examples, one by one.
PipelineGraph parsing(const std::vector<std::string>& examples) {
  PipelineGraph g;
  const AttrMap texts = {{"Toutput_types", std::vector{DataType::kString}},
                         {"output_shapes", std::vector<PartialShape>(1)}};
  g.add({body_const("texts", Tensor::of<std::string>({int64_t(examples.size())},
                                                     examples)),
         body_node("slices", "TensorSliceDataset", {"texts"}, texts)});
  g.number("two", 2);
  g.add({body_const("none", Tensor::vector<int64_t>({})),
         body_node("parsed", "ParseExampleDatasetV2", {"slices", "two", "none"},
                   with_spec({{"dense_keys", std::vector<std::string>{"x"}},
                              {"Tdense", std::vector{kLong}},
                              {"sparse_keys", std::vector<std::string>()},
                              {"sparse_types", std::vector<DataType>()},
                              {"dense_shapes",
                               std::vector{PartialShape::scalar()}}}))});
  g.iterate("parsed");
  return g;
}

}  // namespace

TEST_CASE("datasets: an Example that cannot be parsed is one error") {
  const PipelineGraph g = parsing({example(1), "damaged", example(3)});
  const auto session = g.session({});
  initialise(*session);
  CHECK(must(next_number(*session)) == 1);
  const auto failed = next_number(*session);
  CHECK(failed.status().code() == Code::kInvalidArgument);
  for (const char* part :
       {"ParseExampleDatasetV2 \"parsed\"", "example 0", "cannot be parsed"})
    CHECK(contains(failed.status().to_string(), part));
  CHECK(must(next_number(*session)) == 3);
  CHECK(next_number(*session).status().code() == Code::kOutOfRange);
}

TEST_CASE("datasets: an iterator that parses may begin again at any time") {
  std::vector<std::string> examples;
  for (int64_t i = 0; i < 100; ++i) examples.push_back(example(i));
  const PipelineGraph g = parsing(examples);
  SessionOptions options;
  options.workers = 4;
  const auto session = g.session(options);
  for (int64_t taken = 0; taken < 20; ++taken) {
    initialise(*session);
    for (int64_t i = 0; i < taken; ++i) CHECK(must(next_number(*session)) == i);
  }
}

TEST_CASE("datasets: parsing without memory is an error of its element") {
  std::vector<std::string> examples;
  for (int64_t i = 0; i < 1000; ++i) examples.push_back(example(i));
  const PipelineGraph g = parsing(examples);
  const auto session = g.session({});
  const Callable next = must(session->make_callable({}, {"next"}));
  for (int64_t k = 1; k < 300; ++k) {
    initialise(*session);
    must(next({}, within_a_minute()));
    Status answers[3];
    FailAllocation fail(k);
    for (Status& answer : answers)
      answer =
          guarded("test", [&] { return next({}, within_a_minute()).status(); });
    fail.stop();
    // A run that the time-out has answered has waited in vain.
    for (const Status& answer : answers)
      CHECK(answer.code() != Code::kDeadlineExceeded);
    if (!fail.failed()) break;
  }
}

}  // namespace tagflow::actors

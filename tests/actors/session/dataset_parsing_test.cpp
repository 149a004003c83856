// Pipelines that parse Examples: over files, and when they fail or are ended.
#include <doctest/doctest.h>

#include <fstream>

#include "devices/files/record_file.h"
#include "graph/proto/example.pb.h"
#include "tests/actors/session/pipeline_graph.h"
#include "tests/actors/session/pipeline_memory.h"
#include "tests/temp_folder.h"

namespace tagflow::actors {

namespace {

using graph::testing::contains;

std::string example(int64_t value) {
  tensorflow::Example made;
  auto& x = (*made.mutable_features()->mutable_feature())["x"];
  x.mutable_int64_list()->add_value(value);
  return made.SerializeAsString();
}

// "some" of numbered(i).
std::vector<float> some_of(int64_t i) {
  if (i == 0) return {9.5f};
  std::vector<float> values;
  for (int64_t k = 0; k < i; ++k) values.push_back(0.5f * float(k));
  return values;
}

// An Example of tests/actors/example_pipelines.py, as far as the pipeline over
// files reads it.
std::string numbered(int64_t i) {
  tensorflow::Example made;
  auto& features = *made.mutable_features()->mutable_feature();
  for (const int64_t value : {i, i + 1})
    features["dense"].mutable_int64_list()->add_value(value);
  for (const float value : some_of(i))
    features["some"].mutable_float_list()->add_value(value);
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
  check_without_memory(*session);
}

TEST_CASE("datasets: a pipeline of batched features over files") {
  const testing::TempFolder folder("dataset_parsing");
  for (const int64_t first : {0, 5}) {
    std::string records;
    for (int64_t i = first; i < first + 5; ++i)
      checkpoint::append_record(records, numbered(i));
    std::ofstream(folder.path() / fmt::format("{}.records", first)) << records;
  }
  const auto session = make_session({}, recorded_graph("datasets"));
  must(session->run({{"batched_features/pattern",
                      Tensor::scalar((folder.path() / "*.records").string())}},
                    {}, {"batched_features/MakeIterator"}, within_a_minute()));
  const std::vector<std::string> fetches = {"batched_features/labels",
                                            "batched_features/indices",
                                            "batched_features/values"};
  // The order of TensorFlow 2.21, which reads two files in turn.
  const std::vector<std::vector<int64_t>> batches = {
      {0, 5, 1, 6}, {2, 7, 3, 8}, {4, 9}};
  for (const std::vector<int64_t>& batch : batches) {
    std::vector<int64_t> labels, indices;
    std::vector<float> values;
    for (size_t row = 0; row < batch.size(); ++row) {
      labels.insert(labels.end(), {batch[row], batch[row] + 1});
      int64_t column = 0;
      for (const float value : some_of(batch[row])) {
        indices.insert(indices.end(), {int64_t(row), column++});
        values.push_back(value);
      }
    }
    const auto got = must(session->run({}, fetches, {}, within_a_minute()));
    const auto rows = int64_t(batch.size()), count = int64_t(values.size());
    CHECK(identical(got[0], Tensor::of<int64_t>({rows, 2}, labels)));
    CHECK(identical(got[1], Tensor::of<int64_t>({count, 2}, indices)));
    CHECK(identical(got[2], Tensor::of<float>({count}, values)));
  }
  CHECK(session->run({}, fetches, {}, within_a_minute()).status().code() ==
        Code::kOutOfRange);
}

}  // namespace tagflow::actors

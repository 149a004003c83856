// Graphs with a pipeline of datasets, for tests.
#pragma once

#include <string>
#include <vector>

#include "tests/actors/function_graph.h"

namespace tagflow::actors {

using graph::testing::must;

inline constexpr DataType kLong = DataType::kInt64;

// The types and shapes of numbers, or of texts.
inline AttrMap with_spec(AttrMap attrs = {}, DataType type = kLong) {
  attrs["output_types"] = std::vector<DataType>{type};
  attrs["output_shapes"] = std::vector<PartialShape>{PartialShape()};
  return attrs;
}

inline AttrMap with_types(std::vector<DataType> types, const char* attr) {
  return {{attr, types},
          {"output_shapes",
           std::vector<PartialShape>(types.size(), PartialShape())}};
}

inline AttrMap calling(const std::string& function, size_t captured = 0) {
  return with_spec(
      {{"f", call_of(function)},
       {"Targuments", std::vector<DataType>(captured, DataType::kResource)}});
}

// A graph with the iterator "it", its initializer "init" and "next".
struct PipelineGraph : FunctionGraph {
  explicit PipelineGraph(DataType type = kLong) : type_(type) {}

  void number(const std::string& name, int64_t value) {
    add({body_const(name, Tensor::scalar(value))});
  }
  void range(const std::string& name, int64_t stop) {
    number(name + "/0", 0);
    number(name + "/stop", stop);
    number(name + "/1", 1);
    add({body_node(name, "RangeDataset",
                   {name + "/0", name + "/stop", name + "/1"}, with_spec())});
  }
  void iterate(const std::string& dataset) {
    const AttrMap named = with_spec(
        {{"shared_name", std::string()}, {"container", std::string()}}, type_);
    add({body_node("it", "IteratorV2", {}, named),
         body_node("init", "MakeIterator", {dataset, "it"}),
         body_node("next", "IteratorGetNext", {"it"}, with_spec({}, type_))});
  }

 private:
  DataType type_;
};

inline Result<int64_t> next_number(
    Session& session, const RunOptions& options = within_a_minute()) {
  auto values = session.run({}, {"next"}, {}, options);
  if (!values.ok()) return std::move(values).status();
  return (*values)[0].item<int64_t>();
}

inline void initialise(Session& session) {
  must(session.run({}, {}, {"init"}, within_a_minute()));
}

// The error of the first element, or of the initialisation.
inline std::string first_error(const PipelineGraph& g) {
  const auto session = g.session({});
  const auto made = session->run({}, {}, {"init"}, within_a_minute());
  if (!made.ok()) return made.status().to_string();
  return session->run({}, {"next"}, {}, within_a_minute()).status().to_string();
}

inline bool says(const std::string& text, std::string_view part) {
  CHECK_MESSAGE(text.find(part) != std::string::npos, text);
  return text.find(part) != std::string::npos;
}

// "waiting" has a hundred numbers from 10 on, each of which waits for one run
// of "put". The function "wait" adds the 10 that it puts into "queue".
inline void add_waiting(PipelineGraph& g) {
  const AttrMap types = {{"component_types", std::vector<DataType>{kLong}}};
  g.define(graph::function(
      "wait", {"x: int64", "queue: resource"}, {"y: int64"},
      {body_node("take", "QueueDequeueV2", {"queue"}, types),
       body_node("sum", "AddV2", {"x", "take:components:0"}, {{"T", kLong}})},
      {{"y", "sum:z:0"}}));
  g.range("numbers", 100);
  g.number("ten", 10);
  g.add({body_node("queue", "FIFOQueueV2", {}, types),
         body_node("put", "QueueEnqueueV2", {"queue", "ten"},
                   {{"Tcomponents", std::vector<DataType>{kLong}}}),
         body_node("waiting", "MapDataset", {"numbers", "queue"},
                   calling("wait", 1))});
}

// "it" gives the elements of "waiting".
inline PipelineGraph waiting_graph() {
  PipelineGraph g;
  add_waiting(g);
  g.iterate("waiting");
  return g;
}

}  // namespace tagflow::actors

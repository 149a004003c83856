// Pipelines of datasets with what TensorFlow gave, as record_datasets.py
// recorded it.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <iomanip>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include "graph/dtype_visit.h"
#include "tests/actors/sessions.h"

namespace tagflow::actors {

using graph::testing::must;

// What one run of the fetches gives.
struct RecordedAnswer {
  std::string error;  // the name of its code; empty: `values`
  std::vector<Tensor> values;
};

struct RecordedPipeline {
  std::string name;
  std::string init;  // a node; empty: none
  std::vector<std::string> fetches;
  std::vector<RecordedAnswer> answers;
};

// "int64 [2] 1 2"; strings stand in double quotes.
inline Tensor recorded_value(std::istringstream& words) {
  std::string type, dims;
  words >> type >> dims;
  Shape shape;
  std::istringstream list(dims.substr(1));
  for (int64_t dim = 0; list >> dim; list.ignore(1)) shape.add_dim(dim);
  Tensor tensor = Tensor::make(must(dtype_from_name(type)), shape);
  visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) {
    for (T& element : tensor.mutable_flat<T>()) {
      if constexpr (std::is_same_v<T, std::string>) {
        REQUIRE(bool(words >> std::quoted(element)));
      } else if constexpr (std::is_arithmetic_v<T>) {
        double value = 0;
        REQUIRE(bool(words >> value));
        element = T(value);
      }
    }
  });
  return tensor;
}

inline std::vector<RecordedPipeline> recorded_pipelines() {
  std::ifstream file(source_path("tests/actors/data/datasets.txt"));
  REQUIRE(file);
  std::vector<RecordedPipeline> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string kind, name;
    words >> kind;
    if (kind == "case") {
      words >> cases.emplace_back().name;
    } else if (kind == "init") {
      words >> cases.back().init;
    } else if (kind == "fetch") {
      words >> cases.back().fetches.emplace_back();
    } else if (kind == "element") {
      cases.back().answers.emplace_back();
    } else if (kind == "error") {
      words >> cases.back().answers.emplace_back().error;
    } else {
      REQUIRE(kind == "value");
      cases.back().answers.back().values.push_back(recorded_value(words));
    }
  }
  return cases;
}

inline void check_pipeline(Session& session, const RecordedPipeline& recorded) {
  INFO(recorded.name);
  if (!recorded.init.empty())
    must(session.run({}, {}, {recorded.init}, within_a_minute()));
  for (size_t i = 0; i < recorded.answers.size(); ++i) {
    INFO("element ", i);
    const RecordedAnswer& wanted = recorded.answers[i];
    const auto got = session.run({}, recorded.fetches, {}, within_a_minute());
    if (!wanted.error.empty()) {
      CHECK_MESSAGE(code_name(got.status().code()) == wanted.error,
                    got.status().to_string());
      continue;
    }
    REQUIRE_MESSAGE(got.ok(), got.status().to_string());
    REQUIRE(got->size() == wanted.values.size());
    for (size_t v = 0; v < got->size(); ++v)
      CHECK_MESSAGE(identical((*got)[v], wanted.values[v]),
                    (*got)[v].to_string(), " instead of ",
                    wanted.values[v].to_string());
  }
}

}  // namespace tagflow::actors

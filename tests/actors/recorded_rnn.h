// Reads the recurrent networks that record_rnn.py recorded with TensorFlow.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "tests/source_path.h"

namespace tagflow::actors {

// Of one case, by name: inputs, variables ("rnn/gru_cell/gates/kernel") and
// results. All are floats.
using RecordedRnn = std::map<std::string, Tensor>;

// "[2,3] 1 2 3 4 5 6"
inline Tensor parse_recorded(std::istringstream& words) {
  std::string dims;
  words >> dims;
  Shape shape;
  std::istringstream list(dims.substr(1));
  for (int64_t dim = 0; list >> dim; list.ignore(1)) shape.add_dim(dim);
  std::vector<float> values;
  for (float value = 0; words >> value;) values.push_back(value);
  REQUIRE(int64_t(values.size()) == shape.num_elements());
  return Tensor::of<float>(shape, std::span<const float>(values));
}

// By the names of the cases.
inline std::map<std::string, RecordedRnn> read_recorded_rnns() {
  std::ifstream file(source_path("tests/actors/data/rnn.txt"));
  REQUIRE(file);
  std::map<std::string, RecordedRnn> cases;
  RecordedRnn* current = nullptr;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "case") {
      words >> name;
      current = &cases[name];
    } else {
      REQUIRE(current != nullptr);
      (*current)[name] = parse_recorded(words);
    }
  }
  return cases;
}

}  // namespace tagflow::actors

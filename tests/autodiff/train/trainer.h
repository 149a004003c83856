// Shared by tests of training: a session that keeps its variables.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "graph/builder/builder.h"
#include "tests/autodiff/evaluate.h"

namespace tagflow::autodiff::testing {

// The elements of a tensor of any type of numbers or bools.
inline Doubles doubles_of(const Tensor& tensor) {
  const auto copy = [&]<class T>(T) {
    const auto flat = tensor.flat<T>();
    return Doubles(flat.begin(), flat.end());
  };
  switch (tensor.dtype()) {
    case DataType::kDouble:
      return copy(double());
    case DataType::kFloat:
      return copy(float());
    case DataType::kInt32:
      return copy(int32_t());
    case DataType::kInt64:
      return copy(int64_t());
    case DataType::kBool:
      return copy(bool());
    default:
      FAIL("no numbers: ", tensor.describe());
      return {};
  }
}

inline void check_close(const Doubles& found, const Doubles& wanted,
                        double tolerance = 1e-9) {
  REQUIRE(found.size() == wanted.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CAPTURE(found[i]);
    CAPTURE(wanted[i]);
    CHECK(std::abs(found[i] - wanted[i]) <=
          tolerance * (1 + std::abs(wanted[i])));
  }
}

using Names = std::vector<std::string>;

// A graph and its variables.
struct Program {
  graph::Graph graph;
  graph::Scope s{graph};
  graph::VariableScope vars;

  // A scalar variable of double.
  graph::ScopedVariable number(const char* name, double initial) {
    return vars.get(s, name, {},
                    {.dtype = DataType::kDouble,
                     .initializer = graph::initializers::constant(initial)});
  }
  // Of all variables.
  Names names() const {
    Names all;
    for (const graph::ScopedVariable& variable : vars.variables())
      all.push_back(variable.name());
    return all;
  }
  bool fails_with(const char* text) const {
    return s.status().to_string().find(text) != std::string::npos;
  }
};

// Runs what was built, after all variables got their initial values. Fails the
// test if that is an error.
class Trainer {
 public:
  Trainer(const graph::Scope& s, const graph::VariableScope& vars) {
    const graph::Output init = vars.initialize(s);
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    auto session = actors::Session::create({});
    REQUIRE_MESSAGE(session.ok(), session.status().to_string());
    session_ = std::move(session).value();
    const Status extended = session_->extend(s.graph());
    REQUIRE_MESSAGE(extended.ok(), extended.to_string());
    run(init);
  }

  void run(const graph::Output& operation,
           const std::vector<actors::Feed>& feeds = {}) {
    fetch({}, {operation}, feeds);
  }
  // The elements of all fetched tensors, one after the other.
  Doubles fetch(const graph::Outputs& tensors,
                const graph::Outputs& operations = {},
                const std::vector<actors::Feed>& feeds = {}) {
    auto results = session_->run(feeds, names(tensors), names(operations));
    REQUIRE_MESSAGE(results.ok(), results.status().to_string());
    Doubles all;
    for (const Tensor& result : *results)
      for (const double value : doubles_of(result)) all.push_back(value);
    return all;
  }

 private:
  static std::vector<std::string> names(const graph::Outputs& outputs) {
    std::vector<std::string> all;
    for (const graph::Output& output : outputs) all.push_back(output.name());
    return all;
  }

  std::unique_ptr<actors::Session> session_;
};

}  // namespace tagflow::autodiff::testing

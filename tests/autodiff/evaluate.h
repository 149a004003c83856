// Shared by tests of gradients: a graph that is run at once.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "actors/session/session.h"
#include "autodiff/gradients.h"
#include "graph/builder/builder.h"

namespace tagflow::autodiff::testing {

using Doubles = std::vector<double>;

// The tensors, after `init` has run if it is valid. Fails the test if
// that is an error.
inline std::vector<Tensor> evaluate(const graph::Scope& s,
                                    const graph::Outputs& outputs,
                                    const std::vector<actors::Feed>& feeds = {},
                                    actors::SessionOptions options = {},
                                    const graph::Output& init = {}) {
  REQUIRE_MESSAGE(s.ok(), s.status().to_string());
  auto session = actors::Session::create(std::move(options));
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  const Status extended = (*session)->extend(s.graph());
  REQUIRE_MESSAGE(extended.ok(), extended.to_string());
  if (init.valid()) {
    const auto made = (*session)->run({}, {}, {init.name()});
    REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  }
  std::vector<std::string> names;
  for (const graph::Output& output : outputs) names.push_back(output.name());
  auto results = (*session)->run(feeds, names);
  REQUIRE_MESSAGE(results.ok(), results.status().to_string());
  return *std::move(results);
}

// The values of scalars of double.
inline Doubles numbers(const graph::Scope& s, const graph::Outputs& outputs,
                       const std::vector<actors::Feed>& feeds = {},
                       actors::SessionOptions options = {},
                       const graph::Output& init = {}) {
  Doubles values;
  for (const Tensor& tensor :
       evaluate(s, outputs, feeds, std::move(options), init))
    values.push_back(tensor.item<double>().value());
  return values;
}

}  // namespace tagflow::autodiff::testing

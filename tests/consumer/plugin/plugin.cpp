// Counts to `limit` in a loop; returns -1 on any error.
#include <cstdint>

#include "actors/session/session.h"
#include "graph/builder/builder.h"

using namespace tagflow;         // NOLINT: a plug-in
using namespace tagflow::graph;  // NOLINT

extern "C" int64_t count_to(int64_t limit) {
  Graph graph;
  const Scope s(graph);
  const Output end = ops::placeholder(s.named("end"), DataType::kInt64,
                                      PartialShape::scalar());
  const Outputs last = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], end);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return ops::add(in, v[0], 1);
      },
      {Tensor::scalar<int64_t>(0)});
  ops::identity(s.named("count"), last[0]);
  auto session = actors::Session::create({});
  if (!s.ok() || !session.ok() || !(*session)->extend(graph).ok()) return -1;
  const auto result =
      (*session)->run({{"end", Tensor::scalar(limit)}}, {"count"});
  return result.ok() ? (*result)[0].scalar_value<int64_t>() : -1;
}

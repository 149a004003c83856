// Runs a graph with an op of this project: parse TEXT prints twice the number.
#include <cstdio>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "graph/builder/builder.h"
#include "own_ops.h"

using namespace tagflow;         // NOLINT: a program
using namespace tagflow::graph;  // NOLINT

namespace {

Result<double> parse_twice(const std::string& text) {
  TAGFLOW_RETURN_IF_ERROR(add_parse_number());
  Graph graph;
  const Scope s(graph);
  const Output input = ops::placeholder(s.named("text"), DataType::kString);
  const Output number = s.named("number").op("ParseNumber", {input});
  const Output twice = ops::mul(s.named("twice"), number, 2);
  TAGFLOW_RETURN_IF_ERROR(s.status());

  TAGFLOW_ASSIGN(const auto session, actors::Session::create({}));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  TAGFLOW_ASSIGN(
      const std::vector<Tensor> results,
      session->run({{"text", Tensor::scalar(text)}}, {twice.name()}));
  return results[0].item<double>();
}

}  // namespace

int main(int argc, char** argv) {
  const auto result = parse_twice(argc > 1 ? argv[1] : "");
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().to_string().c_str());
    return 1;
  }
  std::printf("%g\n", *result);
  return 0;
}

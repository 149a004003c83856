// Runs a graph with ops that it loads: host X LIBRARY... prints a polynomial of
// the number X, and its derivative.
#include <cstdio>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "autodiff/gradients.h"
#include "graph/builder/builder.h"
#include "graph/op_library.h"

using namespace tagflow;         // NOLINT: a program
using namespace tagflow::graph;  // NOLINT

namespace {

Result<std::vector<Tensor>> differentiate(const std::string& text) {
  Graph graph;
  const Scope s(graph);
  const Output input = ops::placeholder(s.named("text"), DataType::kString);
  const Output x = s.op("ParseNumber", {input});
  const Output y =
      s.op("Polynomial", {x}, {{"coefficients", std::vector<float>{1, 2, 3}}});
  const Output slope = autodiff::dense_gradients(s, {y}, {x})[0];
  TAGFLOW_RETURN_IF_ERROR(s.status());

  TAGFLOW_ASSIGN(const auto session, actors::Session::create({}));
  TAGFLOW_RETURN_IF_ERROR(session->extend(graph));
  return session->run({{"text", Tensor::scalar(text)}},
                      {y.name(), slope.name()});
}

Status run(const std::string& text, const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries)
    TAGFLOW_RETURN_IF_ERROR(load_op_library(library));
  TAGFLOW_ASSIGN(const std::vector<Tensor> results, differentiate(text));
  std::printf("y = %g, dy/dx = %g\n", results[0].scalar_value<double>(),
              results[1].scalar_value<double>());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const Status status = run(argv[1], {argv + 2, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.to_string().c_str());
  return 1;
}

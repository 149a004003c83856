// Gradients of graphs that contain TensorFlow's own gradients of loops,
// recorded by record_gradients.py.
#include <doctest/doctest.h>

#include <cmath>

#include "graph/file/graphdef.h"
#include "tests/autodiff/evaluate.h"
#include "tests/source_path.h"

using namespace tagflow;            // NOLINT: tests
using namespace tagflow::autodiff;  // NOLINT
using namespace tagflow::graph;     // NOLINT
using tagflow::autodiff::testing::evaluate;

namespace {

Graph recorded(const std::string& name) {
  auto graph =
      load_graph(source_path(fmt::format("tests/autodiff/data/{}.pb", name)));
  REQUIRE_MESSAGE(graph.ok(), graph.status().to_string());
  return *std::move(graph);
}

Outputs find(const Graph& graph, const std::vector<const char*>& names) {
  Outputs found;
  for (const char* name : names)
    found.push_back(Output(graph.endpoint(name).value()));
  return found;
}

std::vector<Tensor> run(const Scope& s, const Outputs& outputs, int32_t n) {
  return evaluate(s, outputs,
                  {{"x", Tensor::of<double>({2}, {0.5, 1.2})},
                   {"w", Tensor::scalar(0.7)},
                   {"n", Tensor::scalar(n)}});
}

void check_close(const std::vector<Tensor>& a, const std::vector<Tensor>& b,
                 double tolerance) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].shape() == b[i].shape());
    for (int64_t k = 0; k < a[i].num_elements(); ++k) {
      const double x = a[i].flat<double>()[size_t(k)];
      const double y = b[i].flat<double>()[size_t(k)];
      CHECK_MESSAGE(std::abs(x - y) <= tolerance * (1 + std::abs(y)), "tensor ",
                    i, ", element ", k, ": ", x, " and ", y);
    }
  }
}

}  // namespace

TEST_CASE("the gradient of a gradient that TensorFlow made is the second one") {
  for (const char* name :
       {"two_loops", "nested", "growing", "scan", "arrays"}) {
    CAPTURE(name);
    Graph imported = recorded(name), plain = recorded(name);
    const Scope s(imported), t(plain);
    const Outputs xs = find(imported, {"x", "w"});
    const Outputs forward = find(imported, {"y", "g_x", "g_w"});
    const auto before = run(s, forward, 4);
    const Outputs second =
        dense_gradients(s, find(imported, {"g_x", "g_w"}), xs);
    const Outputs third = dense_gradients(s, second, xs);

    const Outputs own_xs = find(plain, {"x", "w"});
    const Outputs first = dense_gradients(t, find(plain, {"y"}), own_xs);
    const Outputs own_second = dense_gradients(t, first, own_xs);
    const Outputs own_third = dense_gradients(t, own_second, own_xs);
    for (const int32_t n : {1, 4}) {
      check_close(run(s, second, n), run(t, own_second, n), 1e-11);
      check_close(run(s, third, n), run(t, own_third, n), 1e-11);
    }
    // What was there gives what it gave.
    check_close(run(s, forward, 4), before, 0);
    check_close(run(t, first, 4), {before[1], before[2]}, 1e-11);
  }
}

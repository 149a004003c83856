// Merges in every configuration: when they wait, are dead, or fire.
#include "actors/runtime/iteration_state.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <mutex>

#include "devices/kernel_registry.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"
#include "tests/actors/counting_loop.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using tagflow::graph::testing::const_def;
using tagflow::graph::testing::contains;
using tagflow::graph::testing::def;

namespace {

// TestLate answers when TestRelease of the same key has seen an input of at
// least 1.
struct Gate {
  std::mutex mutex;
  bool is_open = false;
  std::vector<devices::Completion> waiting;
};
std::array<Gate, 2> gates;

void set_gates(bool open) {
  for (Gate& gate : gates) gate.is_open = open;
}

Gate& gate_of(const devices::KernelInfo& info) {
  return gates.at(size_t(info.attr<int64_t>("key").value()));
}

class LateKernel : public devices::AsyncKernel {
 public:
  explicit LateKernel(const devices::KernelInfo& info) : gate_(gate_of(info)) {}
  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    context.set_output(0, context.input(0));
    {
      std::lock_guard lock(gate_.mutex);
      if (!gate_.is_open) {
        gate_.waiting.push_back(std::move(done));
        return;
      }
    }
    done({});
  }

 private:
  Gate& gate_;
};

class ReleaseKernel : public devices::Kernel {
 public:
  explicit ReleaseKernel(const devices::KernelInfo& info)
      : gate_(gate_of(info)) {}
  Status compute(devices::KernelContext& context) const override {
    context.set_output(0, context.input(0));
    if (context.input(0).scalar_value<int32_t>() < 1) return {};
    std::vector<devices::Completion> waiting;
    {
      std::lock_guard lock(gate_.mutex);
      gate_.is_open = true;
      waiting.swap(gate_.waiting);
    }
    for (const devices::Completion& done : waiting) done({});
    return {};
  }

 private:
  Gate& gate_;
};

void register_late_ops() {
  static const bool once = [] {
    for (const char* name : {"TestLate", "TestRelease"})
      OpRegistry::global().add(OpDefBuilder(name)
                                   .input("x: int32")
                                   .output("y: int32")
                                   .attr("key: int = 0")
                                   .stateful()
                                   .shape(unchanged_shape));
    devices::KernelRegistry::global().add<LateKernel>("TestLate");
    devices::KernelRegistry::global().add<ReleaseKernel>("TestRelease");
    return true;
  }();
  CHECK(once);
}

// In all configurations, with each value: what is late is so in each run.
void for_each_late_run(const Graph& graph, std::initializer_list<int> values,
                       const std::function<void(Session&, int)>& check) {
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    for (const int value : values) {
      CAPTURE(value);
      set_gates(false);
      check(*session, value);
    }
  }
}

Graph graph_of(const std::vector<NodeDef>& nodes) {
  Graph graph;
  graph::testing::must(graph.extend(nodes));
  return graph;
}

}  // namespace

// In each iteration the Merge gets a dead token and then the constant, which
// does not come before iteration 1 runs: until then it must wait.
TEST_CASE("a Merge waits for a late loop constant, though its rest is dead") {
  register_late_ops();
  const Graph graph = counting_loop(
      {const_def("seven", Tensor::scalar(7)),
       placeholder_def("no", DataType::kBool),
       def("late", "TestLate", {"seven"}),
       def("never", "Enter", {"no"}, into_loop(true)),
       def("constant", "Enter", {"late"}, into_loop(true)),
       def("branch", "Switch", {"merge", "never"}),
       def("either", "Merge", {"constant", "branch:1"}),
       def("told", "TestRelease", {"switch:1"}),
       def("seven_more", "AddV2", {"sum_switch:1", "either", "^told"})},
      loop_variable("sum", "zero", "seven_more", DataType::kInt32));
  for_each_late_run(graph, {2, 5}, [&](Session& session, int trips) {
    const auto out = must_run(
        session, {{"n", Tensor::scalar(trips)}, {"no", Tensor::scalar(false)}},
        {"exit", "sum_exit"});
    CHECK(out[0].scalar_value<int32_t>() == trips);
    CHECK(out[1].scalar_value<int32_t>() == 7 * trips);
  });
}

// Iteration 0 is not done before iteration 1 has the constant.
TEST_CASE("a late loop constant reaches all iterations that run") {
  register_late_ops();
  const Graph graph =
      counting_loop({const_def("seven", Tensor::scalar(7)),
                     def("late", "TestLate", {"seven"}),
                     def("constant", "Enter", {"late"}, into_loop(true)),
                     def("told", "TestRelease", {"switch:1"}),
                     def("held", "TestLate", {"switch:1"}, {{"key", 1}}),
                     def("product", "Mul", {"switch:1", "constant", "^told"}),
                     def("let_go", "TestRelease", {"product"}, {{"key", 1}}),
                     def("both", "AddV2", {"let_go", "held"}),
                     def("more", "AddV2", {"sum_switch:1", "both"})},
                    loop_variable("sum", "zero", "more", DataType::kInt32));
  for_each_late_run(graph, {2, 4}, [&](Session& session, int trips) {
    const auto out =
        must_run(session, {{"n", Tensor::scalar(trips)}}, {"sum_exit"});
    CHECK(out[0].scalar_value<int32_t>() == 8 * trips * (trips - 1) / 2);
  });
}

// Every second one comes late, and each on its own. None leads to a slot.
TEST_CASE("each of many loop constants comes to its own Merges") {
  register_late_ops();
  constexpr int kConstants = 40;
  std::vector<NodeDef> nodes{
      placeholder_def("no", DataType::kBool),
      def("never", "Enter", {"no"}, into_loop(true)),
      def("branch", "Switch", {"merge", "never"}),
      def("told", "TestRelease", {"switch:1"}),
      def("more0", "AddV2", {"sum_switch:1", "told"}),
  };
  int sum = 0;
  for (int i = 0; i < kConstants; ++i) {
    const auto named = [i](const char* name) {
      return fmt::format("{}{}", name, i);
    };
    nodes.push_back(const_def(named("value"), Tensor::scalar(i * i)));
    nodes.push_back(def(named("late"), i % 2 == 0 ? "Identity" : "TestLate",
                        {named("value")}));
    nodes.push_back(
        def(named("constant"), "Enter", {named("late")}, into_loop(true)));
    nodes.push_back(
        def(named("either"), "Merge", {"branch:1", named("constant")}));
    // Told apart: the second factor is the place.
    nodes.push_back(const_def(named("place"), Tensor::scalar(i)));
    nodes.push_back(
        def(named("there"), "Enter", {named("place")}, into_loop(true)));
    nodes.push_back(
        def(named("product"), "Mul", {named("either"), named("there")}));
    nodes.push_back(def(fmt::format("more{}", i + 1), "AddV2",
                        {named("more"), named("product")}));
    sum += i * i * i;
  }
  const Graph graph = counting_loop(
      nodes, loop_variable("sum", "zero", fmt::format("more{}", kConstants),
                           DataType::kInt32));
  for_each_late_run(graph, {2, 5}, [&](Session& session, int trips) {
    const auto out = must_run(
        session, {{"n", Tensor::scalar(trips)}, {"no", Tensor::scalar(false)}},
        {"sum_exit"});
    CHECK(out[0].scalar_value<int32_t>() ==
          trips * sum + trips * (trips - 1) / 2);
  });
}

// It comes with the other tokens in one run, and after them in the next.
TEST_CASE("a loop constant that came in the last run is awaited in this one") {
  register_late_ops();
  const Graph graph = counting_loop(
      {placeholder_def("x", DataType::kInt32),
       placeholder_def("p", DataType::kBool),
       def("branch", "Switch", {"x", "p"}),
       def("late", "TestLate", {"branch:1"}),
       def("chosen", "Merge", {"branch", "late"}),
       def("constant", "Enter", {"chosen"}, into_loop(true)),
       def("told", "TestRelease", {"switch:1"}),
       def("more", "AddV2", {"sum_switch:1", "constant", "^told"})},
      loop_variable("sum", "zero", "more", DataType::kInt32));
  for_each_late_run(graph, {3, 4, 5, 6}, [&](Session& session, int x) {
    const auto out = must_run(session,
                              {{"n", Tensor::scalar(3)},
                               {"x", Tensor::scalar(x)},
                               {"p", Tensor::scalar(x % 2 == 0)}},
                              {"sum_exit"});
    CHECK(out[0].scalar_value<int32_t>() == 3 * x);
  });
}

TEST_CASE("a dead control input kills an ordinary op, a Merge only waits") {
  const Graph graph =
      graph_of({placeholder_def("x", DataType::kInt32),
                placeholder_def("p", DataType::kBool),
                def("branch", "Switch", {"x", "p"}),
                def("no", "Neg", {"branch"}), def("yes", "Neg", {"branch:1"}),
                def("merge", "Merge", {"no", "x", "^yes"}),
                def("value", "Neg", {"merge"}),
                def("only_dead", "Merge", {"yes", "branch:1", "^x"}),
                def("op", "Neg", {"x", "^yes"}),
                def("trigger", "ControlTrigger", {"^yes"}),
                def("after", "Neg", {"x", "^trigger"})});
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    const std::vector<Feed> dead = {{"x", Tensor::scalar(3)},
                                    {"p", Tensor::scalar(false)}};
    const auto out = must_run(*session, dead, {"value", "after"});
    // Either input may be the first.
    CHECK(std::abs(out[0].scalar_value<int32_t>()) == 3);
    CHECK(out[1].scalar_value<int32_t>() == -3);
    for (const char* fetch : {"op", "only_dead"}) {
      const auto none = session->run(dead, {fetch}, {}, within_a_minute());
      CHECK(none.status().code() == Code::kInvalidArgument);
      CHECK(contains(none.status().message(), "Switch \"branch\""));
    }
  }
}

// The first live input wins, and a dead one after it changes nothing.
TEST_CASE("a Merge that has its live input stays live when the rest dies") {
  const Graph graph = graph_of(
      {placeholder_def("x", DataType::kInt32),
       placeholder_def("p", DataType::kBool),
       def("branch", "Switch", {"x", "p"}),
       // Comes last: a chain is longer than an edge.
       def("a", "Neg", {"branch:1"}), def("b", "Neg", {"a"}),
       def("c", "Neg", {"b"}), def("wait", "NoOp", {"^x"}),
       def("merge", "Merge", {"c", "x", "^wait"}),
       def("value", "Neg", {"merge"}), def("index", "Neg", {"merge:1"})});
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    const auto out = must_run(
        *session, {{"x", Tensor::scalar(3)}, {"p", Tensor::scalar(false)}},
        {"value", "index"});
    CHECK(out[0].scalar_value<int32_t>() == -3);
    CHECK(out[1].scalar_value<int32_t>() == -1);
  }
}

// Both are there before the Merge runs, since that waits for a third node.
TEST_CASE("a Merge passes on the first of two live inputs") {
  const Graph graph = graph_of(
      {placeholder_def("x", DataType::kInt32), def("second", "Neg", {"x"}),
       def("third", "Neg", {"second"}),
       def("merge", "Merge", {"second", "x", "^third"}),
       def("value", "Neg", {"merge"}), def("index", "Neg", {"merge:1"})});
  for (const SessionOptions& options : configurations()) {
    CAPTURE(describe(options));
    auto session = make_session(options, graph);
    const auto out =
        must_run(*session, {{"x", Tensor::scalar(3)}}, {"value", "index"});
    CHECK(out[0].scalar_value<int32_t>() == -3);
    CHECK(out[1].scalar_value<int32_t>() == -1);
  }
}

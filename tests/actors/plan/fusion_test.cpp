// Element-wise ops with and without fusion: the same bits, the same deadness,
// the same errors.
#include <random>

#include "graph/float16.h"
#include "graph/op_registry.h"
#include "tests/actors/program.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

constexpr int64_t kSize = 5000;

Tensor some_numbers(DataType dtype, const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> values(-3, 3);
  Tensor made = *Tensor::allocate(dtype, shape);
  for (int64_t i = 0; i < made.num_elements(); ++i) {
    const auto value = float(values(random));
    switch (dtype) {
      case DataType::kFloat:
        made.mutable_data<float>()[i] = value;
        break;
      case DataType::kDouble:
        made.mutable_data<double>()[i] = value;
        break;
      case DataType::kHalf:
        made.mutable_data<Half>()[i] = Half(value);
        break;
      default:
        made.mutable_data<BFloat16>()[i] = BFloat16(value);
    }
  }
  return made;
}

// What fusion may do; the other passes stay out of the way.
std::vector<SessionOptions> fused_configurations() {
  std::vector<SessionOptions> all;
  for (const int workers : {1, 2})
    for (const bool inplace : {true, false}) {
      SessionOptions options;
      options.workers = workers;
      options.passes = inplace ? PassSet() : PassSet::only(Pass::kFuse);
      all.push_back(options);
    }
  return all;
}

SessionOptions unfused() {
  SessionOptions options;
  options.passes = PassSet::none();
  return options;
}

void expect_same(const Result<std::vector<Tensor>>& fused,
                 const Result<std::vector<Tensor>>& plain) {
  INFO(fused.status().to_string(), " and ", plain.status().to_string());
  REQUIRE(fused.ok() == plain.ok());
  CHECK(fused.status().code() == plain.status().code());
  if (!plain.ok()) return;
  for (size_t i = 0; i < plain->size(); ++i)
    CHECK(identical((*fused)[i], (*plain)[i]));
}

// Of those that may be fused.
constexpr const char* kUnary[] = {
    "Abs",      "Ceil",  "Elu",    "Exp",     "Expm1",     "Floor",
    "Inv",      "Log",   "Log1p",  "Neg",     "Relu",      "Relu6",
    "Rint",     "Round", "Rsqrt",  "Sigmoid", "Sign",      "Softplus",
    "Softsign", "Sqrt",  "Square", "Tanh",    "Reciprocal"};
constexpr const char* kBinary[] = {
    "Add",     "AddV2", "Div",     "Maximum",
    "Minimum", "Mul",   "RealDiv", "SquaredDifference",
    "Sub"};

}  // namespace

TEST_CASE("every op that is fused gives the bits that it gives alone") {
  for (const DataType dtype : {DataType::kFloat, DataType::kDouble,
                               DataType::kHalf, DataType::kBFloat16}) {
    Graph graph;
    Node* x = add(graph, "x", "Placeholder", {}, {{"dtype", dtype}});
    Node* y = add(graph, "y", "Placeholder", {}, {{"dtype", dtype}});
    std::vector<std::string> fetches;
    const auto finish = [&](Node* node) {
      fetches.push_back(node->name() + "_root:0");
      add(graph, node->name() + "_root", "Neg", {{node, 0}});
    };
    const OpRegistry& ops = OpRegistry::global();
    for (const std::string& op : ops.names()) {
      const OpDef& def = *ops.find_or_null(op);
      if (!def.is_fusible) continue;
      const auto& types = def.attrs[0].allowed_types;
      if (std::ranges::find(types, dtype) == types.end()) continue;
      std::vector<Endpoint> inputs = {{x, 0}, {y, 0}};
      inputs.resize(def.inputs.size());
      finish(add(graph, op, op, inputs));
    }
    const std::vector<Feed> feeds = {{"x", some_numbers(dtype, {kSize}, 1)},
                                     {"y", some_numbers(dtype, {kSize}, 2)}};
    const auto run = [&](const SessionOptions& options) {
      auto session = must(Session::create(options));
      must(session->extend(graph));
      return session->run(feeds, fetches);
    };
    const auto plain = run(unfused());
    REQUIRE_MESSAGE(plain.ok(), plain.status().to_string());
    for (const SessionOptions& options : fused_configurations())
      expect_same(run(options), plain);
  }
}

TEST_CASE("random graphs of element-wise ops are the same fused and unfused") {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t n) { return size_t(random() % n); };
    Graph graph;
    std::vector<Feed> feeds;
    std::vector<Node*> nodes;
    // A known shape, or none; now and then a scalar, a row or a bad fit.
    const Shape shapes[] = {{50, 100}, {50, 100}, {50, 100}, {50, 100}, {},
                            {},        {1},       {100},     {7}};
    for (int i = 0; i < 4; ++i) {
      const Shape& shape = shapes[below(seed % 4 == 0 ? 9 : 7)];
      const std::string name = fmt::format("x{}", i);
      AttrMap attrs = {{"dtype", DataType::kFloat}};
      if (below(2) == 0) attrs["shape"] = PartialShape(shape);
      nodes.push_back(add(graph, name, "Placeholder", {}, attrs));
      feeds.emplace_back(name, some_numbers(DataType::kFloat, shape, seed + i));
    }
    Node* p = constant(graph, "p", Tensor::scalar(below(2) == 0));
    Node* branch = add(graph, "branch", "Switch", {{nodes[0], 0}, {p, 0}});
    std::vector<std::string> fetches;
    for (int i = 0; i < 30; ++i) {
      // Mostly the newest: chains rather than bushes.
      const auto pick = [&]() -> Endpoint {
        if (below(25) == 0) return {branch, int(below(2))};
        const size_t back = below(3) == 0 ? below(nodes.size()) : below(2);
        return {nodes[nodes.size() - 1 - back], 0};
      };
      const bool is_unary = below(3) == 0;
      std::vector<Endpoint> inputs = {pick()};
      if (!is_unary) inputs.push_back(pick());
      std::vector<Node*> controls;
      if (below(6) == 0) controls.push_back(nodes[below(nodes.size())]);
      const char* op = is_unary ? kUnary[below(std::size(kUnary))]
                                : kBinary[below(std::size(kBinary))];
      auto made = graph.add(fmt::format("n{}", i), op, inputs, {}, controls);
      if (!made.ok()) continue;  // shapes that do not fit
      nodes.push_back(*made);
      if (below(8) == 0) fetches.push_back((*made)->name());
    }
    fetches.push_back(nodes.back()->name());
    const auto run = [&](const SessionOptions& options,
                         const std::string& fetch) {
      auto session = must(Session::create(options));
      must(session->extend(graph));
      return session->run(feeds, {fetch});
    };
    // One by one: a dead one fails the run.
    for (const std::string& fetch : fetches) {
      CAPTURE(fetch);
      const auto plain = run(unfused(), fetch);
      for (const SessionOptions& options : fused_configurations())
        expect_same(run(options, fetch), plain);
    }
  }
}

TEST_CASE("ops in a loop are fused, and the loop still ends where it did") {
  actors::Program program;
  const Scope& s = program.s;
  const Output x = program.input("x", DataType::kFloat, {kSize});
  const Outputs last = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 5); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output next =
            ops::add(in, ops::mul(in, ops::tanh(in, v[1]), x), 0.25);
        return {ops::add(in, v[0], 1), next};
      },
      {0, x});
  const std::vector<Feed> feeds = {
      {"x", some_numbers(DataType::kFloat, {kSize}, 3)}};
  const auto plain = program.try_run(feeds, {last[0], last[1]}, unfused());
  for (const SessionOptions& options : fused_configurations())
    expect_same(program.try_run(feeds, {last[0], last[1]}, options), plain);
}

TEST_CASE("an error among fused ops names the op that failed") {
  actors::Program program;
  const Scope& s = program.s;
  const Output x = program.input("x", DataType::kFloat);
  const Output y = program.input("y", DataType::kFloat);
  const Output product = ops::mul(s.named("product"), x, y);
  const Output z = ops::tanh(s.named("z"), product);
  const std::string message =
      program.error({{"x", some_numbers(DataType::kFloat, {3}, 1)},
                     {"y", some_numbers(DataType::kFloat, {4}, 1)}},
                    {z});
  CHECK(contains(message, "[Mul] "));
  CHECK(contains(message, ", in \"product\" (node \"z_1\""));
}

// Convolutions and products by constants with the ops on their results: layers
// give the same results, absorbed or not, except for rounding.
#include <cmath>
#include <random>

#include "tests/actors/program.h"
#include "tests/graph/hand_made.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Ints = std::vector<int64_t>;

// A random part of a network that sees pictures, which grows node by node.
class Network {
 public:
  explicit Network(uint32_t seed) : random_(seed) {
    const int64_t channels = 1 + below(12);
    shape_ = {1 + below(3), 6 + below(20), 6 + below(20), channels};
    const bool is_known = below(2) == 0;
    AttrMap attrs = {{"dtype", DataType::kFloat}};
    attrs["shape"] = PartialShape(
        {is_known ? shape_[0] : -1, shape_[1], shape_[2], shape_[3]});
    last_ = add("Placeholder", {}, attrs);
    feeds_.emplace_back(last_->name(), numbers(Shape(shape_)));
    for (int i = 0; i < 12; ++i) grow();
    fetches_.push_back(last_->name());
  }

  const Graph& graph() const { return graph_; }
  const std::vector<Feed>& feeds() const { return feeds_; }
  const std::vector<std::string>& fetches() const { return fetches_; }

 private:
  int64_t below(int64_t n) { return int64_t(random_() % uint64_t(n)); }

  Tensor numbers(const Shape& shape, float least = -1, float most = 1) {
    Tensor tensor = *Tensor::allocate(DataType::kFloat, shape);
    std::uniform_real_distribution<float> any(least, most);
    for (float& value : tensor.mutable_flat<float>()) value = any(random_);
    return tensor;
  }

  Node* add(const char* op, std::vector<Endpoint> inputs, AttrMap attrs = {}) {
    std::vector<Node*> controls;
    // Now and then something waits, which must not be lost.
    if (last_ != nullptr && below(12) == 0) controls.push_back(last_);
    return testing::add(graph_, graph_.unique_name(op), op, std::move(inputs),
                        std::move(attrs), std::move(controls));
  }
  Node* constant(Tensor value) {
    const DataType dtype = value.dtype();
    return add("Const", {}, {{"value", std::move(value)}, {"dtype", dtype}});
  }
  void follow(const char* op, Node* other, bool first, AttrMap attrs = {}) {
    std::vector<Endpoint> inputs = {{last_, 0}, {other, 0}};
    if (!first) std::swap(inputs[0], inputs[1]);
    last_ = add(op, std::move(inputs), std::move(attrs));
  }

  // A vector for the channels in one of the forms that broadcast, or a scalar.
  Tensor by_channel(float least = -1) {
    const int64_t channels = shape_[3];
    switch (below(4)) {
      case 0:
        return numbers({}, least);
      case 1:
        return numbers({1, 1, 1, channels}, least);
      default:
        return numbers({channels}, least);
    }
  }

  void grow() {
    if (below(8) == 0) fetches_.push_back(last_->name());
    switch (below(11)) {
      case 0:
      case 1:
        return convolve();
      case 2:
        return follow("Mul", constant(by_channel()), below(2) == 0);
      case 3:
        return follow(below(2) == 0 ? "AddV2" : "Sub", constant(by_channel()),
                      below(2) == 0);
      case 4:
        return follow("BiasAdd", constant(numbers({shape_[3]})), true);
      case 5:
        return follow("RealDiv", constant(by_channel(0.5f)), true);
      case 6:
        return normalise();
      case 7:
        last_ = add(below(2) == 0 ? "Relu" : "Relu6", {{last_, 0}});
        return;
      case 8: {
        // As Keras writes swish.
        Node* one = constant(Tensor::scalar(1.0f));
        Node* x = last_;
        Node* scaled = add("Mul", {{one, 0}, {x, 0}});
        Node* gate = add("Sigmoid", {{scaled, 0}});
        Node* product = add("Mul", {{x, 0}, {gate, 0}});
        last_ = add("IdentityN", {{product, 0}, {x, 0}, {one, 0}});
        return;
      }
      case 9: {
        // A branch that comes back.
        Node* const before = last_;
        const Ints shape = shape_;
        convolve();
        if (shape_ == shape) follow("AddV2", before, below(2) == 0);
        return;
      }
      default:
        return pad();
    }
  }

  void convolve() {
    const bool depthwise = below(3) == 0;
    const int64_t stride = 1 + below(2);
    const int64_t height = 1 + below(3), width = 1 + below(3);
    if (shape_[1] < height || shape_[2] < width) return;
    const bool same = below(2) == 0;
    const int64_t outputs = depthwise ? 1 + below(2) : 1 + below(12);
    Node* weights =
        constant(numbers({height, width, shape_[3], outputs}, -0.5f, 0.5f));
    follow(depthwise ? "DepthwiseConv2dNative" : "Conv2D", weights, true,
           {{"strides", Ints{1, stride, stride, 1}},
            {"padding", std::string(same ? "SAME" : "VALID")}});
    shape_[1] = (shape_[1] - (same ? 1 : height)) / stride + 1;
    shape_[2] = (shape_[2] - (same ? 1 : width)) / stride + 1;
    shape_[3] = depthwise ? shape_[3] * outputs : outputs;
  }

  void normalise() {
    const int64_t channels = shape_[3];
    std::vector<Endpoint> inputs = {{last_, 0}};
    for (int i = 0; i < 4; ++i)
      inputs.push_back({constant(numbers({channels}, i == 3 ? 0.5f : -1)), 0});
    last_ = add("FusedBatchNormV3", inputs, {{"is_training", false}});
  }

  void pad() {
    const auto top = int32_t(below(3)), left = int32_t(below(3));
    last_ = add(
        "Pad",
        {{last_, 0},
         {constant(Tensor::of<int32_t>({4, 2}, {0, 0, top, 1, left, 0, 0, 0})),
          0}});
    shape_[1] += top + 1;
    shape_[2] += left;
  }

  std::mt19937 random_;
  Graph graph_;
  Ints shape_;
  Node* last_ = nullptr;
  std::vector<Feed> feeds_;
  std::vector<std::string> fetches_;
};

// Of the largest element.
double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  double most = 0, largest = 1e-3;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double off =
        std::abs(double(a.data<float>()[i]) - b.data<float>()[i]);
    if (!(off <= most)) most = off;
    largest = std::max(largest, std::abs(double(b.data<float>()[i])));
  }
  return most / largest;
}

std::vector<SessionOptions> layer_configurations() {
  std::vector<SessionOptions> all;
  for (const int workers : {1, 2})
    for (const PassSet& passes :
         {PassSet(), PassSet::only(Pass::kAbsorb), PassSet::only(Pass::kLayer),
          PassSet().without(Pass::kInplace).without(Pass::kEdges)}) {
      SessionOptions options;
      options.workers = workers;
      options.passes = passes;
      all.push_back(options);
    }
  SessionOptions two;
  two.devices = "cpu:2";
  two.scatter = 7;
  all.push_back(two);
  return all;
}

Result<std::vector<Tensor>> run(const Graph& graph,
                                const SessionOptions& options,
                                const std::vector<Feed>& feeds,
                                const std::vector<std::string>& fetches) {
  auto session = must(Session::create(options));
  must(session->extend(graph));
  return session->run(feeds, fetches, {}, within_a_minute());
}

}  // namespace

TEST_CASE("random networks are the same with and without layers") {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    const Network network(seed);
    SessionOptions plain;
    plain.passes = PassSet::none();
    const auto expected =
        must(run(network.graph(), plain, network.feeds(), network.fetches()));
    for (const SessionOptions& options : layer_configurations()) {
      CAPTURE(options.passes.to_string());
      const auto actual = must(
          run(network.graph(), options, network.feeds(), network.fetches()));
      for (size_t i = 0; i < expected.size(); ++i)
        CHECK(difference(actual[i], expected[i]) < 1e-4);
    }
  }
}

TEST_CASE("a recurrent layer in a loop computes what its ops compute") {
  constexpr int64_t kUnits = 40;
  std::mt19937 random(3);
  std::uniform_real_distribution<float> any(-0.2f, 0.2f);
  Tensor weights = *Tensor::allocate(DataType::kFloat, {kUnits, kUnits});
  for (float& value : weights.mutable_flat<float>()) value = any(random);
  Tensor bias = *Tensor::allocate(DataType::kFloat, {kUnits});
  for (float& value : bias.mutable_flat<float>()) value = any(random);
  Tensor start = *Tensor::allocate(DataType::kFloat, {9, kUnits});
  for (float& value : start.mutable_flat<float>()) value = any(random);

  const Program p;
  const Output x = p.input("x", DataType::kFloat, {-1, kUnits});
  const Output w = ops::constant(p.s, weights);
  const Output b = ops::constant(p.s, bias);
  const Outputs last = while_loop(
      p.s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 9); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output product = ops::matmul(in, v[1], w);
        return {ops::add(in, v[0], 1), ops::tanh(in, ops::add(in, product, b))};
      },
      {0, x});
  SessionOptions plain;
  plain.passes = PassSet::none();
  const auto expected = p.run({{"x", start}}, {last[1]}, plain);
  for (const SessionOptions& options : layer_configurations())
    CHECK(difference(p.run({{"x", start}}, {last[1]}, options)[0],
                     expected[0]) < 1e-5);
}

TEST_CASE("a product by a constant computes only the columns that are read") {
  constexpr int64_t kUnits = 40;
  std::mt19937 random(4);
  std::uniform_real_distribution<float> any(-0.2f, 0.2f);
  Tensor weights = *Tensor::allocate(DataType::kFloat, {3 * kUnits, kUnits});
  for (float& value : weights.mutable_flat<float>()) value = any(random);
  Tensor start = *Tensor::allocate(DataType::kFloat, {9, kUnits});
  for (float& value : start.mutable_flat<float>()) value = any(random);

  for (int part = 0; part < 3; ++part) {
    CAPTURE(part);
    const Program p;
    const Output x = p.input("x", DataType::kFloat, {9, kUnits});
    const Output w = ops::constant(p.s, weights);
    const Outputs last = while_loop(
        p.s,
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 9);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Output all = ops::matmul(in, v[1], w, {.transpose_b = true});
          return {ops::add(in, v[0], 1),
                  ops::split(in, 1, all, 3)[size_t(part)]};
        },
        {0, x});
    SessionOptions plain;
    plain.passes = PassSet::none();
    const auto expected = p.run({{"x", start}}, {last[1]}, plain);
    for (const PassSet& passes : {PassSet(), PassSet::only(Pass::kPack),
                                  PassSet().without(Pass::kLayer)}) {
      SessionOptions options;
      options.passes = passes;
      CHECK(difference(p.run({{"x", start}}, {last[1]}, options)[0],
                       expected[0]) < 1e-5);
    }
  }
}

TEST_CASE("a layer on the side that is not taken is dead as its ops are") {
  Graph graph;
  Node* x =
      add(graph, "x", "Placeholder", {},
          {{"dtype", DataType::kFloat}, {"shape", PartialShape({4, 32})}});
  Node* p = add(graph, "p", "Placeholder", {}, {{"dtype", DataType::kBool}});
  Node* branch = add(graph, "branch", "Switch", {{x, 0}, {p, 0}});
  Tensor weights = Tensor::make(DataType::kFloat, {32, 32});
  for (float& value : weights.mutable_flat<float>()) value = 0.5f;
  Node* w = constant(graph, "w", weights);
  Node* two = constant(graph, "two", Tensor::scalar(2.0f));
  Node* product = add(graph, "product", "MatMul", {{branch, 1}, {w, 0}});
  Node* scaled = add(graph, "scaled", "Mul", {{product, 0}, {two, 0}});
  Node* relu = add(graph, "relu", "Relu", {{scaled, 0}});
  add(graph, "merge", "Merge", {{branch, 0}, {relu, 0}});
  Tensor ones = Tensor::make(DataType::kFloat, {4, 32});
  for (float& value : ones.mutable_flat<float>()) value = 1;
  for (const SessionOptions& options : layer_configurations()) {
    const auto taken = [&](bool side) {
      return run(graph, options, {{"x", ones}, {"p", Tensor::scalar(side)}},
                 {"merge"});
    };
    CHECK(must(taken(true))[0].data<float>()[0] == 32);
    CHECK(must(taken(false))[0].data<float>()[0] == 1);
    const auto dead = run(
        graph, options, {{"x", ones}, {"p", Tensor::scalar(false)}}, {"relu"});
    CHECK(dead.status().code() == Code::kInvalidArgument);
  }
}

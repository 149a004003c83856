// Random recurrent programs, some of which wait for themselves without an edge
// that shows it. They end, and give the same results with and without groups,
// and, except for rounding, with and without packed weights.
#include <cmath>
#include <random>

#include "tests/actors/program.h"
#include "tests/graph/hand_made.h"
#include "tests/repeats.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

Tensor numbers(const Shape& shape, uint32_t seed, float scale = 1) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(-scale, scale);
  Tensor tensor = *Tensor::allocate(DataType::kFloat, shape);
  for (float& value : tensor.mutable_flat<float>()) value = any(random);
  return tensor;
}

// A loop over some tensors of one shape, whose body is a random graph: of
// element-wise ops, of products that are split into columns, of columns that
// are joined again, of conditionals, and of a loop inside.
class Recurrent : public actors::Program {
 public:
  explicit Recurrent(uint32_t seed) : random_(seed) {
    rows_ = below(2) == 0 ? 3 : 9;
    columns_ = below(3) == 0 ? 40 : 32;
    const int64_t known = below(2) == 0 ? rows_ : -1;
    const size_t count = 2 + below(3);
    Outputs start = {ops::constant(s, 0)};
    for (size_t i = 0; i < count; ++i)
      start.push_back(
          fed(fmt::format("x{}", i), {rows_, columns_}, {known, columns_}));
    // A variable's value, as far as a loop knows.
    for (const int64_t gates : {1, 2, 4}) {
      const Shape shape = {columns_, gates * columns_};
      weights_[gates] =
          fed(fmt::format("w{}", gates), shape, PartialShape(shape), 0.15f);
      turned_[gates] =
          fed(fmt::format("t{}", gates), {gates * columns_, columns_},
              {gates * columns_, columns_}, 0.15f);
      biases_[gates] = fed(fmt::format("b{}", gates), {gates * columns_},
                           {gates * columns_}, 0.5f);
    }
    outside_ = start[1];
    const Outputs last = while_loop(
        s.named("loop"),
        [](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 4);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          return next(in, v[0], {v.begin() + 1, v.end()}, 14);
        },
        start);
    must(s.status());
    // What comes out is used on.
    Pool pool(last.begin() + 1, last.end());
    for (int i = 0; i < 4; ++i) pool.push_back(elements_of(s, pool));
    for (size_t i = 0; i < pool.size(); ++i)
      if (i < 2 || below(2) == 0) fetches_.push_back(pool[i]);
    must(s.status());
  }

  const std::vector<Feed>& feeds() const { return feeds_; }
  const Outputs& fetches() const { return fetches_; }

 private:
  // What there is to read.
  using Pool = std::vector<Output>;

  size_t below(size_t n) { return size_t(random_() % n); }

  Output fed(const std::string& name, const Shape& shape, PartialShape known,
             float scale = 1) {
    feeds_.emplace_back(name, numbers(shape, uint32_t(random_()), scale));
    return input(name.c_str(), DataType::kFloat, std::move(known));
  }

  // The loop variables of the next iteration.
  Outputs next(const Scope& in, const Output& i, const Pool& before,
               int steps) {
    Pool pool = before;
    for (int step = 0; step < steps; ++step) grow(in, i, pool);
    Outputs after = {ops::add(in, i, 1)};
    for (size_t k = 0; k < before.size(); ++k)
      after.push_back(ops::tanh(
          in, ops::add(in, before[k], pool[pool.size() - 1 - below(5)])));
    return after;
  }

  Output pick(const Pool& pool) {
    const size_t back = below(2) == 0 ? below(pool.size()) : below(2);
    return pool[pool.size() - 1 - back];
  }

  Output elements_of(const Scope& in, const Pool& pool) {
    static constexpr const char* kUnary[] = {"Tanh", "Sigmoid", "Neg", "Relu",
                                             "Softsign"};
    static constexpr const char* kBinary[] = {"Maximum", "Minimum", "Sub",
                                              "Mul",     "AddV2",   "TanhGrad"};
    switch (below(3)) {
      case 0:
        return in.op(kUnary[below(std::size(kUnary))], {pick(pool)});
      case 1:
        return ops::mul(in, pick(pool), 0.5f);
      default: {
        const Output made =
            in.op(kBinary[below(std::size(kBinary))], {pick(pool), pick(pool)});
        return below(2) == 0 ? made : Output(ops::tanh(in, made));
      }
    }
  }

  // Columns of a product, or of several tensors side by side.
  Outputs columns_of(const Scope& in, const Pool& pool) {
    const int gates = int(1) << below(3);
    Output whole;
    if (gates > 1 && below(3) == 0) {
      Pool values;
      for (int gate = 0; gate < gates; ++gate) values.push_back(pick(pool));
      whole = ops::concat(in, values, 1);
    } else {
      const bool is_turned = below(2) == 0;
      whole = ops::matmul(in, pick(pool),
                          is_turned ? turned_.at(gates) : weights_.at(gates),
                          {.transpose_b = is_turned});
      if (below(2) == 0) whole = ops::bias_add(in, whole, biases_.at(gates));
    }
    if (gates == 1) return {ops::tanh(in, whole)};
    const Outputs parts = ops::split(in, 1, whole, gates);
    Outputs seen;
    const bool is_one = below(3) == 0;
    for (const Output& part : parts)
      if (!is_one || seen.empty()) seen.push_back(ops::tanh(in, part));
    return seen;
  }

  void grow(const Scope& in, const Output& i, Pool& pool) {
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        for (const Output& column : columns_of(in, pool))
          pool.push_back(column);
        return;
      case 3: {
        // As of the gradients of gates: columns, side by side, and a product.
        Pool values;
        const int gates = below(2) == 0 ? 2 : 4;
        for (int gate = 0; gate < gates; ++gate)
          values.push_back(elements_of(in, pool));
        const Output all = ops::concat(in, values, 1);
        pool.push_back(ops::tanh(in, ops::matmul(in, all, weights_.at(gates),
                                                 {.transpose_b = true})));
        return;
      }
      case 4: {
        if (is_inside_) break;
        is_inside_ = true;
        const Outputs made = cond(
            in, ops::less(in, i, 2),
            [&](const Scope& then) -> Outputs {
              Pool own = pool;
              for (int k = 0; k < 5; ++k) grow(then, i, own);
              return {elements_of(then, own), elements_of(then, own)};
            },
            [&](const Scope& other) -> Outputs {
              return {elements_of(other, pool), elements_of(other, pool)};
            });
        is_inside_ = false;
        pool.insert(pool.end(), made.begin(), made.end());
        return;
      }
      case 5: {
        if (is_inside_) break;
        is_inside_ = true;
        // Of what is made outside, but of no loop variable.
        const Output product = ops::matmul(in, pick(pool), weights_.at(1));
        const Output shared = below(2) == 0 ? product : pick(pool);
        const Output last = while_loop(
            in.named("inner"),
            [](const Scope& deep, const Outputs& v) {
              return ops::less(deep, v[0], 3);
            },
            [&](const Scope& deep, const Outputs& v) -> Outputs {
              return next(deep, v[0], {v[1], ops::tanh(deep, shared)}, 5);
            },
            {0, pick(pool), pick(pool)})[1];
        is_inside_ = false;
        pool.push_back(last);
        return;
      }
      case 6:
        pool.push_back(ops::mul(in.with_control_dependencies({pick(pool)}),
                                pick(pool), outside_));
        return;
      case 7:
        pool.push_back(ops::softmax(in, pick(pool)));
        return;
      default:
        break;
    }
    pool.push_back(elements_of(in, pool));
  }

  std::mt19937 random_;
  int64_t rows_ = 0, columns_ = 0;
  std::map<int64_t, Output> weights_, turned_, biases_;
  Output outside_;
  bool is_inside_ = false;
  std::vector<Feed> feeds_;
  Outputs fetches_;
};

PassSet without_rounding() {
  return PassSet()
      .without(Pass::kLayer)
      .without(Pass::kPack)
      .without(Pass::kSums);
}

struct Way {
  SessionOptions options;
  bool is_exact = false;
};

std::vector<Way> ways(uint32_t seed, int window) {
  std::vector<Way> all;
  const std::pair<PassSet, bool> sets[] = {
      {PassSet(), false},
      {PassSet().without(Pass::kGroup), false},
      {PassSet().without(Pass::kPack), false},
      {without_rounding(), true},
      {PassSet::only(Pass::kGroup), true},
      {PassSet::only(Pass::kFuse).with(Pass::kGroup), true}};
  for (const auto& [passes, is_exact] : sets)
    for (const char* devices : {"cpu:1", "cpu:3"}) {
      Way& way = all.emplace_back();
      way.options.passes = passes;
      way.options.devices = devices;
      way.options.window = window;
      way.options.workers = 1 + int(all.size() + seed) % 2;
      if (devices == std::string_view("cpu:3")) way.options.scatter = seed;
      way.is_exact = is_exact;
    }
  return all;
}

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

// Runs what the fetches need in every way, which all must end, and agree.
void compare_ways(const actors::Program& program,
                  const std::vector<Feed>& feeds, const Outputs& fetches,
                  uint32_t seed = 0, int window = 8) {
  SessionOptions plain;
  plain.passes = PassSet::none();
  const auto expected = program.run(feeds, fetches, plain);
  for (const Way& way : ways(seed, window)) {
    CAPTURE(describe(way.options));
    const auto actual = program.try_run(feeds, fetches, way.options);
    REQUIRE_MESSAGE(actual.ok(), actual.status().to_string());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (way.is_exact)
        CHECK(identical((*actual)[i], expected[i]));
      else
        CHECK(difference((*actual)[i], expected[i]) < 1e-5);
    }
  }
}

}  // namespace

TEST_CASE("random recurrent programs end, the same in groups and packed") {
  for (int seed = 0; seed < tagflow::testing::repeats(60); ++seed) {
    CAPTURE(seed);
    const Recurrent program(seed);
    compare_ways(program, program.feeds(), program.fetches(), seed,
                 seed % 3 == 0 ? 1 : 8);
  }
}

namespace {

const Shape kShape = {8, 32};

struct Square : actors::Program {
  Output x = input("x", DataType::kFloat, PartialShape(kShape));
  Output w = input("w", DataType::kFloat, {32, 32});
  std::vector<Feed> feeds = {{"x", numbers(kShape, 1)},
                             {"w", numbers({32, 32}, 2, 0.2f)}};
  ops::Queue queue =
      ops::fifo_queue(s.named("queue"), {DataType::kFloat},
                      {.capacity = 1, .shapes = {PartialShape(kShape)}});

  // An element, whose shape is known.
  Output take(const Scope& in) const {
    const Output shape = ops::constant(in, {8, 32});
    return in.op("Reshape", {ops::dequeue(in, queue)[0], shape});
  }
};

}  // namespace

TEST_CASE(
    "a step takes from a queue what it puts there, with ops around both") {
  Square p;
  const Output a = ops::tanh(p.s, p.x);
  const Output put = ops::enqueue(p.s, p.queue, {ops::neg(p.s, a)});
  const Output b = ops::mul(p.s, a, p.take(p.s));
  const Output c = ops::add(p.s, ops::sigmoid(p.s, b), a);
  compare_ways(p, p.feeds, {b, c, put});
}

TEST_CASE("a loop passes its results through a queue, one in each iteration") {
  Square p;
  const Outputs last = while_loop(
      p.s.named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 5); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const Output a = ops::tanh(in, v[1]);
        const Output put = ops::enqueue(in, p.queue, {ops::neg(in, a)});
        const Output taken = p.take(in);
        const Output b =
            ops::mul(in.with_control_dependencies({put}), a, taken);
        return {ops::add(in, v[0], 1), ops::add(in, a, b)};
      },
      {0, p.x});
  compare_ways(p, p.feeds, {last[1]});
}

TEST_CASE("a group does not wait for a loop that waits for it") {
  Square p;
  const Output a = ops::tanh(p.s, p.x);
  const Output product = ops::matmul(p.s, a, p.w);
  const Output out = while_loop(
      p.s.named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 5); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::add(in, v[1], product)};
      },
      {0, p.x})[1];
  compare_ways(p, p.feeds, {ops::add(p.s, a, out), a});
}

TEST_CASE("a group does not wait for a loop that takes what is made of it") {
  Square p;
  const Output a = ops::tanh(p.s, p.x);
  const Output put = ops::enqueue(p.s, p.queue, {a});
  // Nothing of what is taken is in the second result, but an iteration begins
  // when another one is over.
  const Outputs last = while_loop(
      p.s.named("loop"),
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 1); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::neg(in, v[1]), p.take(in)};
      },
      {0, p.x, p.x});
  for (const int window : {1, 8})
    compare_ways(p, p.feeds, {ops::add(p.s, a, last[1]), last[2], put}, 0,
                 window);
}

TEST_CASE("a group gives right results if shapes differ when the graph runs") {
  for (const int64_t rows : {1, 6, 9})
    for (const int64_t others : {1, 9}) {
      if (rows == 6 && others == 9) continue;
      CAPTURE(rows);
      CAPTURE(others);
      actors::Program p;
      const Output x = p.input("x", DataType::kFloat, {-1, 32});
      const Output y = p.input("y", DataType::kFloat, {-1, 32});
      const Output w = ops::constant(p.s, numbers({32, 128}, 3, 0.2f));
      const Outputs gates = ops::split(p.s, 1, ops::matmul(p.s, x, w), 4);
      const Output i = ops::sigmoid(p.s, gates[0]);
      const Output f = ops::tanh(p.s, gates[1]);
      const Output c = ops::add(p.s, ops::mul(p.s, f, y), i);
      const Output h = ops::mul(p.s, ops::sigmoid(p.s, gates[3]), c);
      const Output plain =
          ops::matmul(p.s, x, ops::constant(p.s, numbers({32, 32}, 4)));
      const Output sum = ops::add(p.s, plain, y);
      const Output gate = ops::tanh(p.s, sum);
      const std::vector<Feed> feeds = {{"x", numbers({rows, 32}, 5)},
                                       {"y", numbers({others, 32}, 6)}};
      compare_ways(p, feeds, {i, f, c, h, sum, gate});
    }
}

TEST_CASE(
    "a dead token from another device kills no more than without groups") {
  Square p;
  const Output taken = p.input("taken", DataType::kBool);
  const Scope here = p.s.with_device("/cpu:0");
  const Scope there = p.s.with_device("/cpu:1");
  const OpResult choice = here.op("Switch", {p.x, taken});
  const Output chosen = ops::neg(here, choice[1]);
  const Output z = ops::tanh(there, p.x);
  const Output w = ops::mul(there, z, chosen);
  Inputs sides;
  sides.add(ops::neg(there, choice[0]));
  sides.add(w);
  const Output merged = there.op("Merge", sides)[0];
  for (const bool side : {true, false}) {
    std::vector<Feed> feeds = p.feeds;
    feeds.emplace_back("taken", Tensor::scalar(side));
    SessionOptions options;
    options.devices = "cpu:2";
    const auto grouped = p.run(feeds, {z, merged}, options);
    options.passes = PassSet::none();
    const auto apart = p.run(feeds, {z, merged}, options);
    CHECK(identical(grouped[0], apart[0]));
    CHECK(identical(grouped[1], apart[1]));
  }
}

TEST_CASE("a group fails like ConcatV2 if its outputs cannot be joined") {
  actors::Program p;
  const Output x = p.input("x", DataType::kFloat, {-1, 32});
  const Output y = p.input("y", DataType::kFloat, {-1, 32});
  const Output a = ops::tanh(p.s, x);
  const Output b = ops::add(p.s, a, y);
  const Output joined =
      ops::concat(p.s, {ops::neg(p.s, a), ops::neg(p.s, b)}, 1);
  const auto run = [&](int64_t rows, const PassSet& passes) {
    SessionOptions options;
    options.passes = passes;
    return p.try_run(
        {{"x", numbers({rows, 32}, 1)}, {"y", numbers({9, 32}, 2)}}, {joined},
        options);
  };
  const auto good = run(9, PassSet());
  REQUIRE(good.ok());
  CHECK(identical((*good)[0], must(run(9, PassSet::none()))[0]));
  for (const PassSet passes : {PassSet(), PassSet::none()})
    CHECK(run(1, passes).status().code() == Code::kInvalidArgument);
}

TEST_CASE("an error in a group names the op that failed") {
  actors::Program p;
  const Output x = p.input("x", DataType::kFloat, {-1, 32});
  const Output y = p.input("y", DataType::kFloat, {-1, 32});
  const Output first = ops::tanh(p.s.named("first"), x);
  const Output product = ops::mul(p.s.named("product"), first, y);
  const Output shared = ops::neg(p.s.named("shared"), product);
  const std::vector<Feed> feeds = {{"x", numbers({3, 32}, 1)},
                                   {"y", numbers({4, 32}, 2)}};
  const std::string message = p.error(feeds, {first, product, shared});
  CHECK(contains(message, "[Mul] "));
  CHECK(contains(message, "in \"product\""));
}

TEST_CASE("a group on the side that is not taken is dead as its ops are") {
  Square p;
  const Output taken = p.input("taken", DataType::kBool);
  const Output a = ops::tanh(p.s, p.x);
  const Outputs results = cond(
      p.s, taken,
      [&](const Scope& in) -> Outputs {
        const Output b = ops::mul(in, a, p.x);
        const Output c = ops::sub(in, b, a);
        return {ops::concat(in, {ops::neg(in, b), ops::tanh(in, c)}, 1), c};
      },
      [&](const Scope& in) -> Outputs {
        return {ops::concat(in, {a, p.x}, 1), ops::neg(in, a)};
      });
  for (const bool side : {true, false}) {
    std::vector<Feed> feeds = p.feeds;
    feeds.emplace_back("taken", Tensor::scalar(side));
    compare_ways(p, feeds, {results[0], results[1], a});
  }
}

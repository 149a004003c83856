// Random loops over lists, in random configurations, compared with results that
// are computed here: turns (Note [Readers first] in
// graph/partition/readers_first.h) change no result and cause no deadlock.
#include <doctest/doctest.h>

#include <random>

#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"
#include "tests/repeats.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

constexpr int kSize = 4;       // of each list
constexpr int kVariables = 2;  // of either kind
constexpr int kOps = 9;
constexpr int kTrips = 6;

enum class Do : uint8_t { kGet, kSet, kGetIf, kSetIf, kSum, kFill, kAdd };

// Reads from, and adds to, what there is of numbers and of lists.
struct Op {
  Do what = Do::kAdd;
  size_t list = 0;
  size_t a = 0, b = 0;  // numbers
};

// What goes around: by number into the numbers and lists of a trip.
struct Body {
  std::vector<Op> ops;
  std::vector<size_t> next_numbers, next_lists;
};

Body make_body(std::mt19937_64& random) {
  const auto below = [&](size_t end) { return size_t(random() % end); };
  Body body;
  size_t numbers = kVariables;
  size_t lists = kVariables;
  for (int i = 0; i < kOps; ++i) {
    Op& op = body.ops.emplace_back();
    op.what = Do(below(7));
    op.list = below(lists);
    op.a = below(numbers);
    op.b = below(numbers);
    const bool makes_list =
        op.what == Do::kSet || op.what == Do::kSetIf || op.what == Do::kFill;
    ++(makes_list ? lists : numbers);
  }
  for (int i = 0; i < kVariables; ++i) {
    body.next_numbers.push_back(below(numbers));
    body.next_lists.push_back(below(lists));
  }
  return body;
}

using List = std::vector<int32_t>;

int32_t place_of(int32_t number) { return number & (kSize - 1); }
int32_t wrapped_sum(int32_t a, int32_t b) {
  return int32_t(uint32_t(a) + uint32_t(b));
}

// The numbers and the sums of the lists, after all trips.
std::vector<int32_t> expected_of(const Body& body) {
  List variables(kVariables);
  std::vector<List> list_variables(kVariables, List(kSize));
  for (int trip = 0; trip < kTrips; ++trip) {
    List numbers = variables;
    numbers[0] = trip;
    std::vector<List> lists = list_variables;
    for (const Op& op : body.ops) {
      const int32_t a = numbers[op.a];
      const int32_t b = numbers[op.b];
      List list = lists[op.list];
      const bool is_odd = (b & 1) != 0;
      switch (op.what) {
        case Do::kGet:
          numbers.push_back(list[size_t(place_of(a))]);
          break;
        case Do::kGetIf:
          numbers.push_back(is_odd ? list[size_t(place_of(a))] : a);
          break;
        case Do::kSetIf:
          if (is_odd) list[size_t(place_of(a))] = b;
          lists.push_back(list);
          break;
        case Do::kSet:
          list[size_t(place_of(a))] = b;
          lists.push_back(list);
          break;
        case Do::kSum:
          for (int32_t i = 0; i < kSize; ++i)
            numbers.push_back(
                wrapped_sum(i == 0 ? a : numbers.back(), list[size_t(i)]));
          numbers.erase(numbers.end() - kSize, numbers.end() - 1);
          break;
        case Do::kFill:
          for (int32_t i = 0; i < kSize; ++i)
            list[size_t(i)] = wrapped_sum(a, list[size_t(i)]);
          lists.push_back(list);
          break;
        case Do::kAdd:
          numbers.push_back(wrapped_sum(a, b));
          break;
      }
    }
    for (int i = 0; i < kVariables; ++i) {
      variables[size_t(i)] = numbers[body.next_numbers[size_t(i)]];
      list_variables[size_t(i)] = lists[body.next_lists[size_t(i)]];
    }
  }
  List results = variables;
  for (const List& list : list_variables) {
    int32_t sum = 0;
    for (const int32_t element : list) sum = wrapped_sum(sum, element);
    results.push_back(sum);
  }
  return results;
}

const AttrMap kInts{{"element_dtype", DataType::kInt32}};

Output scalar_shape_of(const Scope& s) {
  return s.constant(Tensor::make(DataType::kInt32, {0}));
}
Output get(const Scope& s, const Output& list, const Input& index) {
  const Output read =
      s.op("TensorListGetItem", {list, index, scalar_shape_of(s)}, kInts);
  return s.op("EnsureShape", {read}, {{"shape", PartialShape::scalar()}});
}
Output set(const Scope& s, const Output& list, const Input& index,
           const Input& item) {
  return s.op("TensorListSetItem", {list, index, item});
}
Output place_of(const Scope& s, const Output& number) {
  return s.op("BitwiseAnd", {number, kSize - 1});
}

// for (i = 0; i < kSize; ++i) state = body(i, state)
using Trip =
    std::function<Output(const Scope&, const Output& i, const Output& state)>;
Output for_all(const Scope& s, const Output& state, const Trip& trip) {
  return while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], kSize);
      },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), trip(in, v[0], v[1])};
      },
      {0, state})[1];
}

void build_op(const Scope& s, const Op& op, std::vector<Output>& numbers,
              std::vector<Output>& lists) {
  const Output a = numbers[op.a];
  const Output b = numbers[op.b];
  const Output list = lists[op.list];
  const auto is_odd = [&] {
    return ops::equal(s, s.op("BitwiseAnd", {b, 1}), 1);
  };
  switch (op.what) {
    case Do::kGet:
      numbers.push_back(get(s, list, place_of(s, a)));
      break;
    case Do::kGetIf:
      numbers.push_back(cond(
          s, is_odd(),
          [&](const Scope& in) -> Outputs {
            return {get(in, list, place_of(in, a))};
          },
          [&](const Scope&) -> Outputs { return {a}; })[0]);
      break;
    case Do::kSetIf:
      lists.push_back(cond(
          s, is_odd(),
          [&](const Scope& in) -> Outputs {
            return {set(in, list, place_of(in, a), b)};
          },
          [&](const Scope&) -> Outputs { return {list}; })[0]);
      break;
    case Do::kSet:
      lists.push_back(set(s, list, place_of(s, a), b));
      break;
    case Do::kSum:
      numbers.push_back(for_all(
          s, a, [&](const Scope& in, const Output& i, const Output& sum) {
            return ops::add(in, sum, get(in, list, i));
          }));
      break;
    case Do::kFill:
      lists.push_back(for_all(
          s, list, [&](const Scope& in, const Output& i, const Output& filled) {
            return set(in, filled, i, ops::add(in, a, get(in, list, i)));
          }));
      break;
    case Do::kAdd:
      numbers.push_back(ops::add(s, a, b));
      break;
  }
}

void build(const Body& body, Graph& graph) {
  Scope s(graph);
  Inputs variables{0};
  for (int i = 0; i < kVariables; ++i) variables.add(Input(0));
  for (int i = 0; i < kVariables; ++i)
    variables.add(
        s.op("TensorListReserve", {scalar_shape_of(s), kSize}, kInts));
  const Outputs loop = while_loop(
      s,
      [](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], kTrips);
      },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        std::vector<Output> numbers(v.begin() + 1, v.begin() + 1 + kVariables);
        numbers[0] = v[0];
        std::vector<Output> lists(v.begin() + 1 + kVariables, v.end());
        for (const Op& op : body.ops) build_op(in, op, numbers, lists);
        Outputs next{ops::add(in, v[0], 1)};
        for (const size_t i : body.next_numbers) next.push_back(numbers[i]);
        for (const size_t i : body.next_lists) next.push_back(lists[i]);
        return next;
      },
      variables);
  for (int i = 0; i < kVariables; ++i)
    ops::identity(s.named("result" + std::to_string(i)), loop[size_t(1 + i)]);
  for (int i = 0; i < kVariables; ++i) {
    const Output list = loop[size_t(1 + kVariables + i)];
    ops::identity(
        s.named("result" + std::to_string(kVariables + i)),
        for_all(s, s.constant(Tensor::scalar(0)),
                [&](const Scope& in, const Output& k, const Output& sum) {
                  return ops::add(in, sum, get(in, list, k));
                }));
  }
  INFO(s.status().to_string());
  REQUIRE(s.ok());
}

}  // namespace

TEST_CASE("random loops over lists give right results, however they run") {
  std::mt19937_64 random(1);
  for (int program = 0; program < tagflow::testing::repeats(150); ++program) {
    CAPTURE(program);
    const Body body = make_body(random);
    const std::vector<int32_t> expected = expected_of(body);
    Graph graph;
    build(body, graph);
    std::vector<std::string> fetches;
    for (size_t i = 0; i < expected.size(); ++i)
      fetches.push_back(fmt::format("result{}:0", i));
    for (int run = 0; run < 4; ++run) {
      const SessionOptions options = configuration(random() % kConfigurations);
      INFO(describe(options));
      auto session = make_session(options, graph);
      const auto fetched = must_run(*session, {}, fetches);
      for (size_t i = 0; i < expected.size(); ++i)
        CHECK(fetched[i].scalar_value<int32_t>() == expected[i]);
    }
  }
}

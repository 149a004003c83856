// Loops over lists, in every configuration of the engine: the number of
// elements that they copy, which determines their time. Note [Readers first] in
// graph/partition/readers_first.h.
#include <doctest/doctest.h>

#include <mutex>
#include <optional>

#include "devices/kernel.h"
#include "devices/kernels/containers/tensor_list.h"
#include "graph/builder/builder.h"
#include "graph/shape_context.h"
#include "tests/actors/sessions.h"
#include "tests/actors/test_op.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

const AttrMap kInts{{"element_dtype", DataType::kInt32}};

Output scalar_shape_of(const Scope& s) {
  return s.constant(Tensor::make(DataType::kInt32, {0}));
}
// A list of that many zeros.
Output reserve(const Scope& s, const Input& count) {
  return s.op("TensorListReserve", {scalar_shape_of(s), count}, kInts);
}
Output empty_list(const Scope& s) {
  return s.op("EmptyTensorList", {scalar_shape_of(s), -1}, kInts);
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
Output length(const Scope& s, const Output& list) {
  return s.op("TensorListLength", {list});
}

// while i < n: list, sum = body(i, list, sum); sums wrap around.
struct Trip {
  Output list, sum;
};
using Body = std::function<Trip(const Scope&, const Output& i,
                                const Output& list, const Output& sum)>;

// Fetches "sum" and "length" of the loop, fed with n, over a list of n + 1
// zeros.
struct ListLoop {
  explicit ListLoop(const Body& body, bool starts_empty = false) {
    Scope s(graph);
    const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
    const Output list =
        starts_empty ? empty_list(s) : reserve(s, ops::add(s, n, 1));
    const Outputs loop = while_loop(
        s,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], n);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Trip next = body(in, v[0], v[1], v[2]);
          return {ops::add(in, v[0], 1), next.list, next.sum};
        },
        {0, list, 0});
    ops::identity(s.named("sum"), loop[2]);
    ops::identity(s.named("length"), length(s, loop[1]));
    INFO(s.status().to_string());
    REQUIRE(s.ok());
  }

  // Elements copied in a loop of n trips; the sum must be the expected one.
  int64_t copied(Session& session, int n, std::optional<int32_t> sum) const {
    const int64_t before = devices::TensorList::elements_copied();
    const auto fetched =
        must_run(session, {{"n:0", Tensor::scalar(n)}}, {"sum:0", "length:0"});
    if (sum) CHECK(fetched[0].scalar_value<int32_t>() == *sum);
    return devices::TensorList::elements_copied() - before;
  }

  Graph graph;
};

// By hand-off, workers, passes and window; and a device that is not used.
std::vector<SessionOptions> list_configurations() {
  std::vector<SessionOptions> all;
  for (SessionOptions options : configurations())
    for (const int window : {1, 32}) {
      options.window = window;
      all.push_back(options);
    }
  return all;
}

// A square would be hundreds of thousands.
constexpr int kTrips = 1000;

// The elements of a list that is read one behind where i is written to i + 1.
constexpr int32_t sum_below(int n) {
  return n < 2 ? 0 : int32_t(int64_t(n - 1) * (n - 2) / 2);
}

void check_none_copied(const Body& body, std::optional<int32_t> sum,
                       bool starts_empty = false) {
  const ListLoop loop(body, starts_empty);
  for (const SessionOptions& options : list_configurations()) {
    INFO(describe(options));
    auto session = make_session(options, loop.graph);
    CHECK(loop.copied(*session, kTrips, sum) == 0);
    CHECK(loop.copied(*session, 0, 0) == 0);
  }
}

// --- Ops for tests ----------------------------------------------------------

// Costs enough, as it says, to be put behind all that is cheap.
class HeavyKernel : public devices::Kernel {
 public:
  explicit HeavyKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    context.set_output(0, context.input(0));
    return {};
  }
  double cost(const devices::KernelContext&) const override { return 1e6; }
};

// Answers when the step's TestTell has run.
std::mutex told_mutex;
bool is_told = false;
std::vector<std::function<void()>> untold;

class AwaitKernel : public devices::AsyncKernel {
 public:
  explicit AwaitKernel(const devices::KernelInfo&) {}
  void compute_async(devices::KernelContext& context,
                     devices::Completion done) const override {
    const auto answer = [&context, done = std::move(done)] {
      context.set_output(0, context.input(0));
      done({});
    };
    {
      std::lock_guard lock(told_mutex);
      if (!is_told) {
        untold.push_back(answer);
        return;
      }
    }
    answer();
  }
};

class TellKernel : public devices::Kernel {
 public:
  explicit TellKernel(const devices::KernelInfo&) {}
  Status compute(devices::KernelContext& context) const override {
    std::vector<std::function<void()>> waiting;
    {
      std::lock_guard lock(told_mutex);
      is_told = true;
      waiting.swap(untold);
    }
    for (const auto& answer : waiting) answer();
    context.set_output(0, context.input(0));
    return {};
  }
};

void register_list_test_ops() {
  static const bool registered = [] {
    add_test_op<HeavyKernel>("TestListHeavy");
    add_test_op<AwaitKernel>("TestListAwait");
    add_test_op<TellKernel>("TestListTell");
    return true;
  }();
  CHECK(registered);
}

}  // namespace

TEST_CASE("a loop that reads its list and then writes to it copies nothing") {
  check_none_copied(
      [](const Scope& s, const Output& i, const Output& list,
         const Output& sum) -> Trip {
        const Output read = get(s, list, i);
        return {set(s, list, ops::add(s, i, 1), i), ops::add(s, sum, read)};
      },
      sum_below(kTrips));
}

TEST_CASE("a loop copies no list if its writer comes first in the graph") {
  check_none_copied(
      [](const Scope& s, const Output& i, const Output& list,
         const Output& sum) -> Trip {
        const Output written = set(s, list, ops::add(s, i, 1), i);
        return {written, ops::add(s, sum, get(s, list, i))};
      },
      sum_below(kTrips));
}

TEST_CASE("a loop copies no list that it writes before it reads it") {
  check_none_copied(
      [](const Scope& s, const Output& i, const Output& list,
         const Output& sum) -> Trip {
        return {set(s, list, i, i), sum};
      },
      0);
  check_none_copied(
      [](const Scope& s, const Output& i, const Output& list,
         const Output& sum) -> Trip {
        const Output written = set(s, list, i, 1);
        return {written, ops::add(s, sum, get(s, written, i))};
      },
      kTrips);
}

TEST_CASE("several readers go before the writer of a list") {
  check_none_copied(
      [](const Scope& s, const Output& i, const Output& list,
         const Output& sum) -> Trip {
        const Output written = set(s, list, ops::add(s, i, 1), i);
        // Two elements, and none of a list that is as long as at first.
        const Output two = ops::add(s, get(s, list, i), get(s, list, 0));
        const Output none = ops::sub(s, length(s, list), length(s, written));
        return {written, ops::add(s, sum, ops::add(s, two, none))};
      },
      sum_below(kTrips));
}

TEST_CASE("a reader whose index takes long goes before the writer of a list") {
  register_list_test_ops();
  check_none_copied(
      [](const Scope& s, const Output& i, const Output& list,
         const Output& sum) -> Trip {
        const Output late = s.op("TestListHeavy", {i});
        return {set(s, list, ops::add(s, i, 1), i),
                ops::add(s, sum, get(s, list, late))};
      },
      sum_below(kTrips));
}

TEST_CASE("a reader in a branch, taken or not, goes before the writer") {
  // Of the trips, all, none, or every second one.
  for (const int period : {1, 1 << 30, 2}) {
    CAPTURE(period);
    int32_t expected = 0;
    for (int i = 1; i < kTrips; ++i)
      if (i % period == 0) expected += i - 1;
    check_none_copied(
        [&](const Scope& s, const Output& i, const Output& list,
            const Output& sum) -> Trip {
          const Output taken = ops::equal(s, s.op("FloorMod", {i, period}), 0);
          const Output written = set(s, list, ops::add(s, i, 1), i);
          const Outputs read = cond(
              s, taken,
              [&](const Scope& in) -> Outputs { return {get(in, list, i)}; },
              [&](const Scope& in) -> Outputs {
                return {in.constant(Tensor::scalar(0))};
              });
          return {written, ops::add(s, sum, read[0])};
        },
        expected);
  }
}

TEST_CASE("a writer in a branch goes after the readers around it") {
  for (const int period : {1, 2}) {
    CAPTURE(period);
    int32_t expected = 0;
    for (int i = 1; i < kTrips; ++i)
      if ((i - 1) % period == 0) expected += i - 1;
    check_none_copied(
        [&](const Scope& s, const Output& i, const Output& list,
            const Output& sum) -> Trip {
          const Output taken = ops::equal(s, s.op("FloorMod", {i, period}), 0);
          const Outputs next = cond(
              s, taken,
              [&](const Scope& in) -> Outputs {
                return {set(in, list, ops::add(in, i, 1), i)};
              },
              [&](const Scope&) -> Outputs { return {list}; });
          return {next[0], ops::add(s, sum, get(s, list, i))};
        },
        expected);
  }
}

TEST_CASE("pushing, popping, growing and joining in a loop copy no list") {
  const auto beside_length =
      [](const std::function<Output(const Scope&, const Output&,
                                    const Output&)>& change,
         std::optional<int32_t> sum) {
        check_none_copied(
            [&](const Scope& s, const Output& i, const Output& list,
                const Output& lengths) -> Trip {
              const Output changed = change(s, i, list);
              return {changed, ops::add(s, lengths, length(s, list))};
            },
            sum, true);
      };
  constexpr int32_t kTriangle = kTrips * (kTrips - 1) / 2;
  const auto push = [](const Scope& s, const Output& list, const Input& item) {
    return Output(s.op("TensorListPushBack", {list, item}));
  };
  beside_length([&](const Scope& s, const Output& i,
                    const Output& list) { return push(s, list, i); },
                kTriangle);
  // Two are pushed, and one of them is popped.
  beside_length(
      [&](const Scope& s, const Output& i, const Output& list) {
        return s.op("TensorListPopBack",
                    {push(s, push(s, list, i), i), scalar_shape_of(s)},
                    kInts)[0];
      },
      kTriangle);
  beside_length(
      [&](const Scope& s, const Output& i, const Output& list) {
        return Output(s.op("TensorListResize", {list, ops::add(s, i, 1)}));
      },
      kTriangle);
  beside_length(
      [&](const Scope& s, const Output& i, const Output& list) {
        return Output(s.op("TensorListConcatLists",
                           {list, push(s, empty_list(s), i)}, kInts));
      },
      kTriangle);
}

TEST_CASE("a loop in a loop lets go of a list before the writer around it") {
  // The list is read in the inner loop, and written to beside it.
  const ListLoop beside([](const Scope& s, const Output& i, const Output& list,
                           const Output& sum) -> Trip {
    const Output written = set(s, list, ops::add(s, i, 1), i);
    const Outputs inner = while_loop(
        s,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 3);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          return {ops::add(in, v[0], 1), ops::add(in, v[1], get(in, list, i))};
        },
        {0, sum});
    return {written, inner[1]};
  });
  // It is read beside an inner loop that writes to it.
  const ListLoop inside([](const Scope& s, const Output& i, const Output& list,
                           const Output& sum) -> Trip {
    const Outputs inner = while_loop(
        s,
        [&](const Scope& in, const Outputs& v) {
          return ops::less(in, v[0], 3);
        },
        [&](const Scope& in, const Outputs& v) -> Outputs {
          const Output read = get(in, v[1], i);
          return {ops::add(in, v[0], 1), set(in, v[1], ops::add(in, i, 1), i),
                  ops::add(in, v[2], read)};
        },
        {0, list, sum});
    return {inner[1], inner[2]};
  });
  for (const ListLoop* loop : {&beside, &inside})
    for (const SessionOptions& options : list_configurations()) {
      INFO(describe(options));
      auto session = make_session(options, loop->graph);
      CHECK(loop->copied(*session, kTrips, 3 * sum_below(kTrips)) == 0);
    }
}

TEST_CASE("a loop cut over two devices copies no list") {
  register_list_test_ops();
  const ListLoop loop([](const Scope& s, const Output& i, const Output& list,
                         const Output& sum) -> Trip {
    const Scope there = s.with_device("/cpu:1");
    const Scope here = s.with_device("/cpu:0");
    // The index comes from there, and the sum is there.
    const Output index = there.op("TestListHeavy", {i});
    const Output written = set(here, list, ops::add(here, i, 1), i);
    return {written, ops::add(there, sum, get(here, list, index))};
  });
  for (SessionOptions options : list_configurations()) {
    INFO(describe(options));
    options.devices = "cpu:2";
    auto session = make_session(options, loop.graph);
    CHECK(loop.copied(*session, kTrips, sum_below(kTrips)) == 0);
  }
}

TEST_CASE("a loop copies a list once if the old value is needed, too") {
  // The list that enters the loop is fetched, too.
  Graph graph;
  Scope s(graph);
  const Output n = ops::placeholder(s.named("n"), DataType::kInt32, {});
  const Output list = reserve(s, n);
  const Outputs loop = while_loop(
      s,
      [&](const Scope& in, const Outputs& v) { return ops::less(in, v[0], n); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), set(in, v[1], v[0], 1)};
      },
      {0, list});
  const auto stack = [&](const char* name, const Output& of) {
    s.named(name).op("TensorListStack", {of, scalar_shape_of(s)}, kInts);
  };
  stack("after", loop[1]);
  // It is read when the loop is over.
  const Scope late = s.with_control_dependencies({loop[0]});
  late.named("before").op("TensorListStack", {list, scalar_shape_of(late)},
                          kInts);
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  for (const SessionOptions& options : list_configurations()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    const int64_t before = devices::TensorList::elements_copied();
    const auto fetched = must_run(*session, {{"n:0", Tensor::scalar(kTrips)}},
                                  {"before:0", "after:0"});
    CHECK(devices::TensorList::elements_copied() - before == kTrips);
    CHECK(fetched[0].data<int32_t>()[kTrips - 1] == 0);
    CHECK(fetched[1].data<int32_t>()[kTrips - 1] == 1);
  }
}

TEST_CASE("a writer does not wait for a reader that waits for it unseen") {
  register_list_test_ops();
  const ListLoop loop([](const Scope& s, const Output& i, const Output& list,
                         const Output& sum) -> Trip {
    const Output written = set(s, list, ops::add(s, i, 1), i);
    const Output told = s.op("TestListTell", {length(s, written)});
    // Which is there when the writer has told; nothing in the graph says so.
    const Output index = s.op("TestListAwait", {i});
    const Output none = ops::sub(s, told, told);
    return {written, ops::add(s, sum, ops::add(s, get(s, list, index), none))};
  });
  for (const SessionOptions& options : list_configurations()) {
    INFO(describe(options));
    auto session = make_session(options, loop.graph);
    {
      std::lock_guard lock(told_mutex);
      is_told = false;
    }
    loop.copied(*session, 20, sum_below(20));
  }
}

TEST_CASE("a loop copies one of two lists if reads wait for both writers") {
  // a is written, b read where a's new length says; b is written, a read where
  // b's says: one of the two has to be copied.
  const ListLoop loop([](const Scope& s, const Output& i, const Output& a,
                         const Output& sum) -> Trip {
    const Output b = reserve(s, 4);
    const Output new_a = set(s, a, ops::add(s, i, 1), i);
    const Output new_b = set(s, b, 0, 7);
    const Output zero_a = ops::sub(s, length(s, new_a), length(s, new_a));
    const Output zero_b = ops::sub(s, length(s, new_b), length(s, new_b));
    const Output of_b = get(s, b, zero_a);
    const Output of_a = get(s, a, ops::add(s, i, zero_b));
    const Output all = ops::add(s, of_a, of_b);
    return {new_a, ops::add(s, sum, all)};
  });
  for (const SessionOptions& options : list_configurations()) {
    INFO(describe(options));
    auto session = make_session(options, loop.graph);
    loop.copied(*session, 50, sum_below(50));
  }
}

TEST_CASE("a writer is not said to be dead of a reader") {
  Graph graph;
  Scope s(graph);
  const Output list = reserve(s, 2);
  const auto not_taken = [&](const char* predicate) {
    const Output p = ops::placeholder(s.named(predicate), DataType::kBool, {});
    return Output(s.op("Switch", {s.constant(Tensor::scalar(0)), p})[1]);
  };
  const Output written = set(s, list, not_taken("of_writer"), 1);
  ops::identity(s.named("length"), length(s, written));
  ops::identity(s.named("read"), get(s, list, not_taken("of_reader")));
  INFO(s.status().to_string());
  REQUIRE(s.ok());
  for (const SessionOptions& options : configurations()) {
    INFO(describe(options));
    auto session = make_session(options, graph);
    const Tensor no = Tensor::scalar(false);
    const auto result = session->run({{"of_writer:0", no}, {"of_reader:0", no}},
                                     {"length:0"}, {"read"});
    const std::string message(result.status().message());
    CHECK_MESSAGE(message.find("of_writer") != message.npos, message);
  }
}

// Sessions whose signatures are compiled for the shapes of their feeds.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <thread>

#include "actors/session/forms.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::contains;
using graph::testing::message_of;
using graph::testing::must;

namespace {

Tensor rows(int64_t count) {
  return Tensor::make(DataType::kFloat, {count, 3});
}

constexpr float kRow[] = {1, 2, 3};

// Of x, a float of [?,3], what a loop and its gradient do with shapes: three
// times the row is added to what was x, and that put onto a list, and its shape
// onto another.
//   same      2 x, as a vector and in its shape again
//   columns   the sums of the columns of all that was put there
//   whole     the sum of all that was put there
Graph shapes_of_x() {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({-1, 3}));
  const Output twice = ops::mul(s, x, 2.0f);
  ops::identity(s.named("same"), ops::reshape(s, ops::reshape(s, twice, {-1}),
                                              ops::shape(s, x)));
  const Output row = ops::constant(s, {kRow[0], kRow[1], kRow[2]});
  const auto empty = [&](DataType type) -> Output {
    return s.op("EmptyTensorList", {-1, -1}, {{"element_dtype", type}});
  };
  const auto push = [](const Scope& in, const Output& list,
                       const Output& value) -> Output {
    return in.op("TensorListPushBack", {list, value});
  };
  const auto less_than_3 = [](const Scope& in, const Outputs& v) {
    return ops::less(in, v[0], 3);
  };
  const Outputs filled =
      while_loop(s, less_than_3,
                 [&](const Scope& in, const Outputs& v) -> Outputs {
                   const Output next = ops::add(in, v[1], row);
                   return {ops::add(in, v[0], 1), next, push(in, v[2], next),
                           push(in, v[3], ops::shape(in, next))};
                 },
                 {0, x, empty(DataType::kFloat), empty(DataType::kInt32)});
  WhileOptions options;
  options.shape_invariants = {PartialShape::scalar(), PartialShape(),
                              PartialShape(), PartialShape::scalar(),
                              PartialShape::scalar()};
  const Outputs drained = while_loop(
      s, less_than_3,
      [&](const Scope& in, const Outputs& v) -> Outputs {
        const auto pop = [&](const Output& list, DataType type) {
          return in.op("TensorListPopBack", {list, -1},
                       {{"element_dtype", type}});
        };
        const OpResult value = pop(v[3], DataType::kFloat);
        const OpResult shape = pop(v[4], DataType::kInt32);
        const auto [mine, rows] =
            ops::broadcast_gradient_args(in, shape[1], ops::shape(in, row));
        const auto sum = [&](const Output& axes, const Input& to) {
          return ops::reshape(in, ops::reduce_sum(in, value[1], axes), to);
        };
        return {ops::add(in, v[0], 1),
                ops::add(in, v[1], sum(rows, ops::shape(in, row))),
                ops::add(in, v[2], sum(mine, shape[1])), value[0], shape[0]};
      },
      {0, {0.0f, 0.0f, 0.0f}, ops::zeros_like(s, x), filled[2], filled[3]},
      options);
  ops::identity(s.named("columns"), drained[1]);
  ops::identity(s.named("whole"), drained[2]);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

const std::vector<std::string> kFetches = {"same", "columns", "whole"};

Tensor counted(int64_t count) {
  Tensor x = rows(count);
  for (int64_t i = 0; i < x.num_elements(); ++i)
    x.mutable_data<float>()[i] = float(i % 7);
  return x;
}

bool has_values(const Tensor& tensor, const Shape& shape,
                const std::function<float(int64_t)>& value) {
  if (tensor.shape() != shape) return false;
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    if (tensor.data<float>()[i] != value(i)) return false;
  return true;
}

// Whether these are the fetches for such an x.
bool are_right(const Tensor& x, const std::vector<Tensor>& fetched) {
  const auto* of_x = x.data<float>();
  const auto whole = [&](int64_t i) { return 3 * of_x[i] + 6 * kRow[i % 3]; };
  return has_values(fetched[0], x.shape(),
                    [&](int64_t i) { return 2 * of_x[i]; }) &&
         has_values(fetched[1], {3},
                    [&](int64_t column) {
                      float sum = 0;
                      for (int64_t row = 0; row < x.dim(0); ++row)
                        sum += whole(3 * row + column);
                      return sum;
                    }) &&
         has_values(fetched[2], x.shape(), whole);
}

using Call = std::function<std::vector<Tensor>(const Tensor& x)>;

// The ways to run the graph, of which each has its own signature or shares it.
std::vector<std::pair<const char*, Call>> calls_of(Session& session) {
  const auto callable =
      std::make_shared<Callable>(must(session.make_callable({"x"}, kFetches)));
  const auto answer = [](const auto& start) {
    std::promise<Result<std::vector<Tensor>>> promise;
    start([&](Result<std::vector<Tensor>> result, const RunStats&) {
      promise.set_value(std::move(result));
    });
    return must(promise.get_future().get());
  };
  return {{"run",
           [&session](const Tensor& x) {
             return must_run(session, {{"x", x}}, kFetches);
           }},
          {"callable",
           [callable](const Tensor& x) {
             return must((*callable)({&x, 1}, within_a_minute()));
           }},
          {"run_async",
           [&session, answer](const Tensor& x) {
             return answer([&](Done done) {
               session.run_async({{"x", x}}, kFetches, {}, within_a_minute(),
                                 std::move(done));
             });
           }},
          {"callable.run_async", [callable, answer](const Tensor& x) {
             return answer([&](Done done) {
               callable->run_async({&x, 1}, within_a_minute(), std::move(done));
             });
           }}};
}

// What the first run fired, and one after enough others.
std::pair<uint64_t, uint64_t> fired_by(const SessionOptions& options,
                                       const Graph& graph,
                                       const std::vector<std::string>& fetches,
                                       const Tensor& x) {
  const auto session = make_session(options, graph);
  RunStats first, last;
  const auto expected = must_run(*session, {{"x", x}}, fetches, &first);
  for (int run = 0; run < kEnough; ++run) {
    const auto fetched = must_run(*session, {{"x", x}}, fetches, &last);
    for (size_t i = 0; i < fetches.size(); ++i)
      CHECK(identical(fetched[i], expected[i]));
  }
  return {first.fired, last.fired};
}

}  // namespace

TEST_CASE(
    "runs of the same shape fire less, by and by, with the same results") {
  const Graph graph = shapes_of_x();
  for (SessionOptions options : hand_offs_by_workers())
    for (const std::string& fetch : kFetches) {
      INFO(describe(options) << ", " << fetch);
      const auto [usual, form] = fired_by(options, graph, {fetch}, counted(2));
      CHECK(form < usual);
      options.passes = PassSet().without(Pass::kShapes);
      const auto [first, last] = fired_by(options, graph, {fetch}, counted(2));
      CHECK(first == last);
      CHECK(first == usual);
      options.passes = PassSet();
    }
}

TEST_CASE("a shape that the graph knows makes no other form") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({2, 3}));
  ops::reshape(s.named("y"), ops::square(s, x), {3, 2});
  REQUIRE(s.status().ok());
  const auto [first, last] = fired_by({}, graph, {"y"}, counted(2));
  CHECK(first == last);
}

TEST_CASE("session forms: each kind of run is right if shapes take turns") {
  const Graph graph = shapes_of_x();
  const std::vector<std::vector<int64_t>> turns = {
      {2}, {2, 5}, {1, 2, 3, 4}, {0, 1, 2, 3, 4, 5, 6}};
  for (const int workers : {1, 2})
    for (const auto& turn : turns) {
      SessionOptions options;
      options.workers = workers;
      const auto session = make_session(options, graph);
      for (const auto& way : calls_of(*session)) {
        CAPTURE(workers);
        CAPTURE(way.first);
        CAPTURE(turn.size());
        for (int run = 0; run < 2 * kEnough; ++run)
          for (const int64_t count : turn) {
            const Tensor x = counted(count);
            REQUIRE(are_right(x, way.second(x)));
          }
        // Long enough for each to have a form, in place of those before.
        for (const int64_t count : turn)
          for (int run = 0; run < kEnough; ++run) {
            const Tensor x = counted(count);
            REQUIRE(are_right(x, way.second(x)));
          }
      }
    }
}

TEST_CASE("session forms: runs are right without passes, and scattered") {
  const Graph graph = shapes_of_x();
  std::vector<SessionOptions> all(3);
  all[0].passes = PassSet::none();
  all[1].passes = PassSet::only(Pass::kShapes);
  all[2].devices = "cpu:3";
  all[2].scatter = 7;
  for (const SessionOptions& options : all) {
    INFO(describe(options));
    const auto session = make_session(options, graph);
    for (int run = 0; run < 2 * kEnough; ++run)
      for (const int64_t count : {2, 0, 5}) {
        const Tensor x = counted(count);
        REQUIRE(are_right(x, must_run(*session, {{"x", x}}, kFetches)));
      }
  }
}

TEST_CASE("session forms: several threads run several shapes at once") {
  const Graph graph = shapes_of_x();
  for (const int workers : {1, 2}) {
    SessionOptions options;
    options.workers = workers;
    const auto session = make_session(options, graph);
    const auto calls = calls_of(*session);
    std::atomic<int> faults{0};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 6; ++i)
      threads.emplace_back([&, i] {
        for (int run = 0; run < 100; ++run) {
          // Each of its own at first, then all of all.
          const Tensor x = counted(run < 50 ? int64_t(i) : int64_t(run % 5));
          if (!are_right(x, calls[i % calls.size()].second(x))) ++faults;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(faults == 0);
  }
}

TEST_CASE("session forms: a `done` may run the next shape") {
  const Graph graph = shapes_of_x();
  SessionOptions options;
  options.workers = 1;
  const auto session = make_session(options, graph);
  const Callable callable = must(session->make_callable({"x"}, kFetches));
  constexpr int kRuns = 10 * kEnough;
  std::promise<int> faults;
  int found = 0;
  std::function<void(int)> start = [&](int run) {
    const Tensor x = counted(run / 20 % 3);
    callable.run_async(
        {&x, 1}, within_a_minute(),
        [&, x, run](Result<std::vector<Tensor>> fetched, const RunStats&) {
          if (!fetched.ok() || !are_right(x, *fetched)) ++found;
          if (run + 1 == kRuns) {
            faults.set_value(found);
          } else {
            start(run + 1);
          }
        });
  };
  start(0);
  CHECK(faults.get_future().get() == 0);
}

TEST_CASE("session forms: ranks may take turns, and there may be two feeds") {
  Graph graph;
  const Scope s(graph);
  const Output x = ops::placeholder(s.named("x"), DataType::kFloat);
  const Output y = ops::placeholder(s.named("y"), DataType::kFloat);
  const Output shape =
      ops::shape(s, ops::reshape(s, ops::add(s, x, y), ops::shape(s, x)));
  ops::identity(s.named("shape"), shape);
  ops::identity(s.named("sum"),
                ops::reduce_sum(s, ops::mul(s, x, y), ops::all_axes(s, x)));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  const auto ones = [](const Shape& of) {
    Tensor tensor = Tensor::make(DataType::kFloat, of);
    std::ranges::fill(tensor.mutable_flat<float>(), 1.0f);
    return tensor;
  };
  for (int run = 0; run < 2 * kEnough; ++run)
    for (const Shape& of_x : {Shape{2, 3}, Shape{3}, Shape{4, 2, 3}})
      for (const Shape& of_y : {Shape{}, Shape{3}}) {
        const auto fetched = must_run(
            *session, {{"x", ones(of_x)}, {"y", ones(of_y)}}, {"shape", "sum"});
        REQUIRE(fetched[0].num_elements() == of_x.rank());
        for (int i = 0; i < of_x.rank(); ++i)
          REQUIRE(fetched[0].data<int32_t>()[i] == of_x.dim(i));
        REQUIRE(fetched[1].scalar_value<float>() == float(of_x.num_elements()));
      }
}

TEST_CASE("session forms: feeds may be unneeded, or replace other tensors") {
  Graph graph;
  const Scope s(graph);
  const auto input = [&](const char* name, const PartialShape& shape) {
    return ops::placeholder(s.named(name), DataType::kFloat, shape);
  };
  const Output x = input("x", {-1, 3});
  input("unneeded", {});
  const Output negative = ops::neg(s.named("negative"), x);
  const Outputs halves = ops::split(s.named("halves"), 0, input("z", {}), 2);
  ops::reshape(s.named("flat"), ops::add(s, negative, halves[1]), {-1});
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  const auto session = make_session({}, graph);
  for (int run = 0; run < 2 * kEnough; ++run)
    for (const int64_t count : {2, 5}) {
      const Tensor fed = counted(count);
      const auto fetched = must_run(
          *session, {{"negative", fed}, {"halves:1", fed}, {"unneeded", fed}},
          {"flat", "negative"});
      const auto twice = [&](int64_t i) { return 2 * fed.data<float>()[i]; };
      REQUIRE(has_values(fetched[0], {3 * count}, twice));
      REQUIRE(identical(fetched[1], fed));
    }
}

TEST_CASE("a run that updates a variable does so once, in whatever form") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({-1, 3}));
  const auto variable = [&](const char* name) {
    return ops::variable(s.named(name), DataType::kFloat,
                         PartialShape::scalar());
  };
  const ops::Variable runs = variable("runs"), total = variable("total");
  ops::group(s.named("init"),
             {ops::assign(s, runs, 0.0f), ops::assign(s, total, 0.0f)});
  const Output same = ops::reshape(s, x, ops::shape(s, x));
  const Outputs updated = {
      ops::assign_add(s, runs, 1.0f),
      ops::assign_add(s, total, ops::reduce_sum(s, same, {0, 1}))};
  const Scope after = s.with_control_dependencies(updated);
  ops::identity(s.named("runs_now"), ops::read(after, runs));
  ops::identity(s.named("total_now"), ops::read(after, total));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  for (const SessionOptions& options : hand_offs_by_workers())
    for (const int shapes : {1, 3}) {
      INFO(describe(options) << ", shapes " << shapes);
      const auto session = make_session(options, graph);
      must(session->run({}, {}, {"init"}, within_a_minute()));
      float sum = 0;
      RunStats first, last;
      for (int run = 0; run < shapes * 2 * kEnough; ++run) {
        const Tensor x_now = counted(1 + run % shapes);
        for (const float element : x_now.flat<float>()) sum += element;
        const auto fetched =
            must_run(*session, {{"x", x_now}}, {"runs_now", "total_now"},
                     run == 0 ? &first : &last);
        REQUIRE(fetched[0].scalar_value<float>() == float(run + 1));
        REQUIRE(fetched[1].scalar_value<float>() == sum);
      }
      CHECK(last.fired < first.fired);
    }
}

TEST_CASE("a queue and random numbers go on where they were") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({-1, 3}));
  const std::vector<DataType> types = {DataType::kFloat};
  const Output queue = s.named("queue").op(
      "FIFOQueueV2", {}, {{"component_types", types}, {"capacity", 1000}});
  const Output sum =
      ops::reduce_sum(s, ops::reshape(s, x, ops::shape(s, x)), {0, 1});
  s.named("put").op("QueueEnqueueV2", {queue, sum});
  s.named("taken").op("QueueDequeueV2", {queue}, {{"component_types", types}});
  ops::identity(s.named("random"),
                ops::random_uniform(s, ops::shape(s, x), DataType::kFloat));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  SessionOptions options;
  options.seed = 7;
  const auto session = make_session(options, graph);
  options.passes = PassSet().without(Pass::kShapes);
  const auto plain = make_session(options, graph);
  for (int run = 0; run < 2 * kEnough; ++run) {
    Tensor one = rows(1);
    std::ranges::fill(one.mutable_flat<float>(), float(run));
    must(session->run({{"x", one}}, {}, {"put"}, within_a_minute()));
    CHECK(identical(must_run(*session, {{"x", one}}, {"random"})[0],
                    must_run(*plain, {{"x", one}}, {"random"})[0]));
  }
  for (int run = 0; run < 2 * kEnough; ++run)
    CHECK(must_run(*session, {}, {"taken"})[0].scalar_value<float>() ==
          3 * float(run));
}

TEST_CASE("session forms: a shape that fails does so in every run") {
  Graph graph;
  const Scope s(graph);
  const Output x =
      ops::placeholder(s.named("x"), DataType::kFloat, PartialShape({-1, -1}));
  const Output two_by_three = ops::constant(s, counted(2));
  ops::matmul(s.named("product"), x, ops::transpose(s, two_by_three, {1, 0}));
  ops::reshape(s.named("reshaped"), x, {6});
  ops::add(s.named("sum"), x, two_by_three);
  ops::concat(s.named("joined"), {x, two_by_three}, 0);
  s.named("ensured").op("EnsureShape", {x}, {{"shape", PartialShape{-1, 3}}});
  ops::gather(s.named("row"), x, 1);
  ops::squeeze(s.named("squeezed"), ops::slice(s, x, {0, 2}, {-1, -1}), {1});
  const Output list = s.op("EmptyTensorList", {{-1, 3}, -1},
                           {{"element_dtype", DataType::kFloat}});
  ops::identity(
      s.named("listed"),
      s.op("TensorListPopBack", {s.op("TensorListPushBack", {list, x}), -1},
           {{"element_dtype", DataType::kFloat}})[1]);
  const Outputs loop = while_loop(
      s,
      [](const Scope& in, const Outputs& v) { return ops::less(in, v[0], 2); },
      [&](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1),
                ops::add(in, v[1], ops::reshape(in, x, {6}))};
      },
      {0, {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}});
  ops::identity(s.named("looped"), loop[1]);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  const Tensor good = counted(2);
  const Tensor one_row = counted(1);
  const Tensor wide = Tensor::make(DataType::kFloat, {5, 4});
  struct Case {
    const char* fetch;
    Tensor bad;
  };
  for (const Case& one :
       {Case{"product", wide}, Case{"reshaped", wide}, Case{"sum", wide},
        Case{"joined", wide}, Case{"ensured", wide}, Case{"row", one_row},
        Case{"squeezed", wide}, Case{"listed", wide}, Case{"looped", wide}}) {
    CAPTURE(one.fetch);
    const auto session = make_session({}, graph);
    const auto run = [&](const Tensor& x_now) {
      return session->run({{"x", x_now}}, {one.fetch}, {}, within_a_minute());
    };
    const auto expected = must(run(good));
    for (int i = 0; i < 3 * kEnough; ++i) {
      message_of(run(one.bad).status(), Code::kInvalidArgument);
      if (i % 3 != 0) continue;
      CHECK(identical(must(run(good))[0], expected[0]));
    }
  }
}

TEST_CASE("a feed that is wrong is refused as before") {
  const auto session = make_session({}, shapes_of_x());
  const Callable callable = must(session->make_callable({"x"}, kFetches));
  const Tensor x = counted(2);
  const auto refused = [&](std::span<const Tensor> feeds) {
    return message_of(callable(feeds, within_a_minute()).status(),
                      Code::kInvalidArgument);
  };
  const Tensor wide = Tensor::make(DataType::kFloat, {2, 4});
  const Tensor flat = Tensor::make(DataType::kFloat, {6});
  const Tensor ints = Tensor::make(DataType::kInt32, {2, 3});
  const Tensor two[] = {x, x};
  for (int run = 0; run < 2 * kEnough; ++run) {
    CHECK(are_right(x, must(callable({&x, 1}, within_a_minute()))));
    CHECK(contains(refused({&wide, 1}), "needs shape [?,3]"));
    CHECK(contains(refused({&flat, 1}), "needs shape [?,3]"));
    CHECK(contains(refused({&ints, 1}), "needs float"));
    CHECK(contains(refused(two), "2 feeds"));
    CHECK(contains(refused({}), "0 feeds"));
  }
}

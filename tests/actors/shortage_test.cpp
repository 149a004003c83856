// Each allocation of a run fails once: the run ends with an error or with its
// result, and the session lives on.
#include <doctest/doctest.h>

#include <future>
#include <thread>

#include "tests/actors/sessions.h"
#include "tests/actors/test_queue.h"
#include "tests/failing_new.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;

namespace {

using Answer = Result<std::vector<Tensor>>;

struct Case {
  const char* name;
  std::function<Output(const Scope&)> build;
  const char* devices = "";
};

Output counting_loop(const Scope& s, const Input& limit, int window) {
  return while_loop(
      s,
      [&](const Scope& in, const Outputs& v) {
        return ops::less(in, v[0], limit);
      },
      [](const Scope& in, const Outputs& v) -> Outputs {
        return {ops::add(in, v[0], 1), ops::mul(in, v[1], v[0])};
      },
      {0, 1}, {.parallel_iterations = window})[1];
}

std::vector<Case> cases() {
  return {
      {"a chain",
       [](const Scope& s) { return ops::add(s, ops::add(s, 1, 2), 3); }},
      {"a loop", [](const Scope& s) { return counting_loop(s, 5, 1); }},
      {"a loop with a window",
       [](const Scope& s) { return counting_loop(s, 5, 8); }},
      {"a loop in a loop",
       [](const Scope& s) {
         return while_loop(
             s,
             [](const Scope& in, const Outputs& v) {
               return ops::less(in, v[0], 3);
             },
             [](const Scope& in, const Outputs& v) -> Outputs {
               return {ops::add(in, v[0], 1),
                       ops::add(in, v[1], counting_loop(in, v[0], 4))};
             },
             {0, 0})[1];
       }},
      {"a conditional",
       [](const Scope& s) {
         return cond(
             s, ops::less(s, 1, 2),
             [](const Scope& in) -> Outputs { return ops::add(in, 1, 2); },
             [](const Scope& in) -> Outputs { return ops::add(in, 3, 4); })[0];
       }},
      {"a wait",
       [](const Scope& s) {
         const Output put = test_put(s, 5);
         return ops::add(s, test_take(s), put);
       }},
      {"two devices",
       [](const Scope& s) {
         const Output a = ops::add(s.with_device("/device:CPU:1"), 1, 2);
         return ops::add(s.with_device("/device:CPU:0"), a, 3);
       },
       "cpu:2"},
      {"a loop over two devices",
       [](const Scope& s) {
         return while_loop(
             s,
             [](const Scope& in, const Outputs& v) {
               return ops::less(in, v[0], 4);
             },
             [](const Scope& in, const Outputs& v) -> Outputs {
               return {ops::add(in, v[0], 1),
                       ops::add(in.with_device("/device:CPU:1"), v[1], v[0])};
             },
             {0, 0})[1];
       },
       "cpu:2"},
      {"products on lanes",
       [](const Scope& s) {
         const std::vector<float> values(128 * 128, 1.f);
         const Tensor ones =
             Tensor::of<float>({128, 128}, std::span<const float>(values));
         Inputs all;
         for (int i = 0; i < 3; ++i)
           all.add(ops::matmul(s, s.constant(ones), s.constant(ones)));
         return ops::add_n(s, all);
       }},
      {"an accelerator",
       [](const Scope& s) {
         const Tensor x = Tensor::of<float>({64}, std::vector<float>(64, 2.f));
         const Scope on = s.with_device("/device:STREAM:0");
         return ops::add(on, ops::mul(on, on.constant(x), on.constant(x)),
                         on.constant(x));
       },
       "cpu:1,stream:1"},
  };
}

// A call, whose arguments are made before memory is short: these are the
// test's.
class Call {
 public:
  Call(Session& session, bool async) : session_(session), async_(async) {}

  Answer operator()() {
    if (!async_) return session_.run({}, fetches_, {}, options_);
    session_.run_async({}, fetches_, {}, options_, std::move(done_));
    return answer_.get();
  }

 private:
  Session& session_;
  const bool async_;
  const std::vector<std::string> fetches_{"y"};
  const RunOptions options_ = within_a_minute();
  std::promise<Answer> promise_;
  std::future<Answer> answer_ = promise_.get_future();
  Done done_ = [this](Answer given, RunStats) {
    promise_.set_value(std::move(given));
  };
};

// Whether all allocations were tried: `k` is beyond the last.
bool try_failing(const Case& each, const Graph& graph, bool async,
                 bool is_first, int64_t k) {
  SessionOptions options{.workers = 2, .devices = each.devices};
  options.passes = PassSet::none();
  auto session = make_session(options, graph);
  if (!is_first) must_run(*session, {}, {"y"});
  bool failed = false;
  {
    Call call(*session, async);
    FailAllocation fail(k);
    const Answer answer = call();
    fail.stop();
    failed = fail.failed();
    if (!answer.ok()) {
      CAPTURE(answer.status().to_string());
      CHECK(failed);
      CHECK(answer.status().code() == Code::kResourceExhausted);
    }
  }
  TestQueue::global().clear();
  const Answer next = Call(*session, async)();
  CHECK(next.status().to_string() == Status().to_string());
  CHECK(session->close().ok());
  TestQueue::global().clear();
  return !failed;
}

}  // namespace

TEST_CASE("a run survives that any one of its allocations fails") {
  for (const Case& each : cases()) {
    Graph graph;
    const Scope s(graph);
    ops::identity(s.named("y"), each.build(s));
    REQUIRE(s.status().to_string() == Status().to_string());
    for (const bool async : {false, true})
      for (const bool is_first : {true, false}) {
        const std::string what =
            fmt::format("{}{}{}", each.name, async ? ", asynchronous" : "",
                        is_first ? ", first run" : "");
        int64_t k = 0;
        do {
          ++k;
          INFO(what, ", allocation ", k);
          if (try_failing(each, graph, async, is_first, k)) break;
        } while (k < 5000);
        CHECK(k < 5000);
        CHECK(k > 1);
      }
  }
}

TEST_CASE("to make a session may fail for lack of memory, and no more") {
  for (int64_t k = 1;; ++k) {
    CAPTURE(k);
    FailAllocation fail(k);
    const auto session = Session::create({.devices = "cpu:2,stream:1"});
    fail.stop();
    if (!session.ok())
      CHECK(session.status().code() == Code::kResourceExhausted);
    if (!fail.failed()) break;
  }
}

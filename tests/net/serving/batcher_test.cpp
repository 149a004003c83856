#include "net/serving/batcher.h"

#include <doctest/doctest.h>

#include <atomic>
#include <deque>
#include <future>

#include "net/serving/batch_rows.h"
#include "tests/net/serving/served.h"

namespace tagflow::net::serving {
namespace {

using Clock = std::chrono::steady_clock;

Tensors rows_of(std::initializer_list<float> values) {
  return {{"x", Tensor::vector<float>(values)}};
}

// Runs of batches that a test ends, one after another.
class Runs {
 public:
  struct One {
    Batcher::Run run;
    Batcher::Done done;
    const Tensor& x() const { return run.inputs.at("x"); }
    // y = x
    void finish() { done(Tensors{{"y", x()}}); }
  };

  Batcher::Runner runner() {
    return [this](Batcher::Run run, Batcher::Done done) {
      const std::lock_guard lock(mutex_);
      runs_.push_back({std::move(run), std::move(done)});
      changed_.notify_all();
    };
  }
  One take() {
    std::unique_lock lock(mutex_);
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(120),
                              [this] { return !runs_.empty(); }));
    One first = std::move(runs_.front());
    runs_.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<One> runs_;
};

struct Answer {
  std::shared_ptr<Awaited<Tensors>> value =
      std::make_shared<Awaited<Tensors>>();
  std::shared_ptr<CallEnd> end = std::make_shared<CallEnd>();
  Result<Tensors> take() const { return value->take(); }
};

struct Fixture {
  explicit Fixture(BatchOptions options = {}) {
    options.num_batch_threads = 1;
    batcher = Batcher::create(options).value();
  }
  Answer add(Tensors inputs, const std::string& key = "k",
             Clock::time_point deadline = Clock::time_point::max(),
             const void* owner = nullptr) {
    Answer answer;
    Batcher::Task task;
    task.owner = owner;
    task.key = key;
    task.rows = count_rows(inputs).value();
    task.inputs = std::move(inputs);
    task.deadline = deadline;
    task.end = answer.end;
    task.runner = runs.runner();
    task.done = [value = answer.value](Result<Tensors> outputs) {
      value->put(std::move(outputs));
    };
    batcher->add(std::move(task));
    return answer;
  }
  // The only place for a batch that runs is taken.
  Runs::One block() {
    add(rows_of({0}), "block");
    return runs.take();
  }

  Runs runs;
  std::unique_ptr<Batcher> batcher;
};

TEST_CASE("requests that wait are one run, and get their rows of it") {
  Fixture f;
  auto blocking = f.block();
  const Answer a = f.add(rows_of({1, 2}));
  const Answer b = f.add(rows_of({3}));
  blocking.finish();
  auto run = f.runs.take();
  CHECK(identical(run.x(), Tensor::vector<float>({1, 2, 3})));
  CHECK(run.run.rows == 3);
  run.finish();
  CHECK(identical(a.take().value().at("y"), Tensor::vector<float>({1, 2})));
  CHECK(identical(b.take().value().at("y"), Tensor::vector<float>({3})));
}

TEST_CASE("requests of different keys are different runs") {
  Fixture f;
  auto blocking = f.block();
  const Answer a = f.add(rows_of({1}), "a");
  const Answer b = f.add(rows_of({2}), "b");
  blocking.finish();
  for (int i = 0; i < 2; ++i) {
    auto run = f.runs.take();
    CHECK(run.x().num_elements() == 1);
    run.finish();
  }
  CHECK(a.take().ok());
  CHECK(b.take().ok());
}

TEST_CASE(
    "a batch has so many rows at most, and is padded to what is allowed") {
  Fixture f({.max_batch_size = 4, .allowed_batch_sizes = {2, 4}});
  auto blocking = f.block();
  CHECK(blocking.x().num_elements() == 2);  // padded
  const Answer a = f.add(rows_of({1, 2}));
  const Answer b = f.add(rows_of({3}));
  const Answer c = f.add(rows_of({4, 5}));
  blocking.finish();
  auto first = f.runs.take();
  CHECK(identical(first.x(), Tensor::vector<float>({1, 2, 3, 3})));
  first.finish();
  CHECK(identical(b.take().value().at("y"), Tensor::vector<float>({3})));
  auto second = f.runs.take();
  CHECK(identical(second.x(), Tensor::vector<float>({4, 5})));
  second.finish();
  CHECK(a.take().ok());
  CHECK(c.take().ok());
  CHECK(f.add(rows_of({1, 2, 3, 4, 5})).take().status().code() ==
        Code::kInvalidArgument);
  CHECK(f.batcher->figures().padding == 2);
}

TEST_CASE("a batch waits for others until its time is over, or it is full") {
  Fixture f({.max_batch_size = 2, .batch_timeout = std::chrono::hours(1)});
  const Answer a = f.add(rows_of({1}));
  CHECK(f.batcher->figures().waiting_tasks == 1);
  const Answer b = f.add(rows_of({2}));
  f.runs.take().finish();
  CHECK(a.take().ok());
  CHECK(b.take().ok());
}

TEST_CASE("requests beyond the queue are refused at once") {
  Fixture f({.max_batch_size = 1, .max_enqueued_batches = 2});
  auto blocking = f.block();
  const int owner = 0;
  const Answer a = f.add(rows_of({1}), "k", Clock::time_point::max(), &owner);
  const Answer b = f.add(rows_of({2}), "k", Clock::time_point::max(), &owner);
  const Answer c = f.add(rows_of({3}), "k", Clock::time_point::max(), &owner);
  const Status refused = c.take().status();
  CHECK(refused.code() == Code::kResourceExhausted);
  CHECK(says(refused,
             "no room for 1 more batch beside the 2 that wait "
             "(max_enqueued_batches is 2)"));
  // Another owner has a queue of its own.
  const Answer d = f.add(rows_of({4}));
  blocking.finish();
  for (int i = 0; i < 3; ++i) f.runs.take().finish();
  CHECK(a.take().ok());
  CHECK(b.take().ok());
  CHECK(d.take().ok());
}

TEST_CASE("a client that goes leaves its queue, and others stay") {
  Fixture f;
  auto blocking = f.block();
  const Answer a = f.add(rows_of({1}));
  const Answer b = f.add(rows_of({2}));
  a.end->cancel();
  CHECK(a.take().status().code() == Code::kCancelled);
  while (f.batcher->figures().waiting_tasks != 1) std::this_thread::yield();
  blocking.finish();
  auto run = f.runs.take();
  CHECK(identical(run.x(), Tensor::vector<float>({2})));
  run.finish();
  CHECK(b.take().ok());
}

TEST_CASE("a run ends early when all of its clients have gone") {
  Fixture f;
  auto blocking = f.block();
  const Answer a = f.add(rows_of({1}));
  const Answer b = f.add(rows_of({2}));
  blocking.finish();
  auto run = f.runs.take();
  std::atomic<bool> is_ended{false};
  REQUIRE(run.run.end->on_cancel([&] { is_ended = true; }));
  a.end->cancel();
  CHECK_FALSE(is_ended);
  CHECK(a.take().status().code() == Code::kCancelled);
  b.end->cancel();
  CHECK(is_ended);
  run.done(error(Code::kCancelled, "x"));
  CHECK(b.take().status().code() == Code::kCancelled);
}

TEST_CASE("a deadline that passes in the queue answers the request") {
  Fixture f;
  auto blocking = f.block();
  const Answer late = f.add(rows_of({1}), "k", Clock::now());
  CHECK(late.take().status().code() == Code::kDeadlineExceeded);
  const Answer soon =
      f.add(rows_of({1}), "k", Clock::now() + std::chrono::milliseconds(5));
  CHECK(soon.take().status().code() == Code::kDeadlineExceeded);
  blocking.finish();
}

TEST_CASE("a deadline that passes while the batch runs answers the request") {
  Fixture f;
  auto blocking = f.block();
  const Answer late =
      f.add(rows_of({1}), "k", Clock::now() + std::chrono::milliseconds(50));
  const Answer other = f.add(rows_of({2, 3}));
  blocking.finish();
  auto run = f.runs.take();
  CHECK(late.take().status().code() == Code::kDeadlineExceeded);
  CHECK_FALSE(run.run.end->is_cancelled());
  CHECK_FALSE(other.value->is_there());
  run.finish();
  if (run.x().num_elements() == 3)  // it was not late in the queue
    CHECK(
        identical(other.take().value().at("y"), Tensor::vector<float>({2, 3})));
}

TEST_CASE("a run ends early when the deadlines of all its requests pass") {
  Fixture f;
  const Answer late =
      f.add(rows_of({1}), "k", Clock::now() + std::chrono::milliseconds(500));
  auto run = f.runs.take();
  std::promise<void> ended;
  if (!run.run.end->on_cancel([&] { ended.set_value(); })) ended.set_value();
  CHECK(late.take().status().code() == Code::kDeadlineExceeded);
  ended.get_future().wait();
  run.done(error(Code::kCancelled, "x"));
}

TEST_CASE("a batch whose first client goes in the queue serves the next one") {
  Fixture f;
  auto blocking = f.block();
  const Answer gone = f.add(rows_of({1}));
  gone.end->cancel();
  const Answer next = f.add(rows_of({2}));
  blocking.finish();
  auto run = f.runs.take();
  CHECK_FALSE(run.run.end->is_cancelled());
  run.finish();
  CHECK(identical(next.take().value().at("y"), Tensor::vector<float>({2})));
}

TEST_CASE("a request with more rows than a run is cut, if that is wanted") {
  Fixture f({.max_batch_size = 2, .splits_large = true});
  const Answer large = f.add(rows_of({1, 2, 3, 4, 5}));
  for (const std::initializer_list<float> rows :
       {std::initializer_list<float>{1, 2}, {5}, {3, 4}}) {
    CHECK_FALSE(large.value->is_there());
    auto run = f.runs.take();
    CHECK(identical(run.x(), Tensor::vector<float>(rows)));
    run.finish();
  }
  CHECK(identical(large.take().value().at("y"),
                  Tensor::vector<float>({1, 2, 3, 4, 5})));
  // More rows than could wait.
  CHECK(
      says(f.add({{"x", Tensor::make(DataType::kFloat, {21})}}).take().status(),
           "the request has 21 rows, and a batch has 20 at most"));
}

TEST_CASE("a request may have more rows than a run, and a limit of its own") {
  Fixture f({.max_batch_size = 4,
             .splits_large = true,
             .max_execution_batch_size = 3});
  const Answer large = f.add(rows_of({1, 2, 3, 4}));
  auto run = f.runs.take();
  CHECK(run.run.rows == 3);
  run.finish();
  f.runs.take().finish();
  CHECK(large.take().ok());
  CHECK(f.add(rows_of({1, 2, 3, 4, 5})).take().status().code() ==
        Code::kInvalidArgument);
}

TEST_CASE("a small request waits for one piece of a large one, not for all") {
  Fixture f({.max_batch_size = 2, .splits_large = true});
  const Answer large = f.add(rows_of({1, 2, 3, 4, 5, 6, 7, 8}));
  auto first = f.runs.take();
  const Answer same = f.add(rows_of({9}));
  const Answer other = f.add(rows_of({10}), "other");
  const std::initializer_list<float> turns[] = {{1, 2}, {3, 4}, {9},
                                                {10},   {5, 6}, {7, 8}};
  for (size_t i = 0; i < std::size(turns); ++i) {
    auto run = i == 0 ? std::move(first) : f.runs.take();
    CHECK(identical(run.x(), Tensor::vector<float>(turns[i])));
    run.finish();
  }
  CHECK(same.take().ok());
  CHECK(other.take().ok());
  CHECK(identical(large.take().value().at("y"),
                  Tensor::vector<float>({1, 2, 3, 4, 5, 6, 7, 8})));
}

TEST_CASE("large requests take turns with each other") {
  Fixture f({.max_batch_size = 1, .splits_large = true});
  auto blocking = f.block();
  const Answer a = f.add(rows_of({1, 2, 3}));
  const Answer b = f.add(rows_of({11, 12, 13}));
  blocking.finish();
  for (const float x : {1, 11, 2, 12, 3, 13}) {
    auto run = f.runs.take();
    CHECK(identical(run.x(), Tensor::vector<float>({x})));
    run.finish();
  }
  CHECK(a.take().ok());
  CHECK(b.take().ok());
}

TEST_CASE("full batches of one queue do not starve another queue") {
  Fixture f({.max_batch_size = 2});
  auto running = f.block();
  std::vector<Answer> full{f.add(rows_of({1, 2}))};
  const Answer small = f.add(rows_of({9}), "other");
  // There always is a full one that waits.
  for (int i = 0; i < 3 && !small.value->is_there(); ++i) {
    full.push_back(f.add(rows_of({1, 2})));
    running.finish();
    running = f.runs.take();
    if (running.x().num_elements() == 1) break;
  }
  REQUIRE(identical(running.x(), Tensor::vector<float>({9})));
  running.finish();
  CHECK(small.take().ok());
  for (const Answer& answer : full) {
    if (!answer.value->is_there()) f.runs.take().finish();
    CHECK(answer.take().ok());
  }
}

TEST_CASE("a request with more pieces than may ever wait is refused for good") {
  Fixture f({.max_batch_size = 8,
             .max_enqueued_batches = 2,
             .splits_large = true,
             .max_execution_batch_size = 2});
  const Status refused = f.add(rows_of({1, 2, 3, 4, 5})).take().status();
  CHECK(refused.code() == Code::kInvalidArgument);
  CHECK(says(refused, "has 5 rows, and a batch has 4 at most"));
}

TEST_CASE("all pieces of a large request count for the limit of the queue") {
  Fixture f(
      {.max_batch_size = 1, .max_enqueued_batches = 4, .splits_large = true});
  auto blocking = f.block();
  const Answer large = f.add(rows_of({1, 2, 3}));
  CHECK(f.batcher->figures().waiting_batches == 3);
  CHECK(f.batcher->figures().waiting_tasks == 3);
  CHECK(says(f.add(rows_of({4, 5})).take().status(),
             "no room for 2 more batches beside the 3 that wait "
             "(max_enqueued_batches is 4)"));
  const Answer small = f.add(rows_of({6}));
  CHECK(f.add(rows_of({7})).take().status().code() == Code::kResourceExhausted);
  large.end->cancel();
  CHECK(large.take().status().code() == Code::kCancelled);
  while (f.batcher->figures().waiting_batches != 1) std::this_thread::yield();
  // Its pieces have made room.
  const Answer next = f.add(rows_of({8, 9, 10}));
  blocking.finish();
  for (const float x : {6, 8, 9, 10}) {
    auto run = f.runs.take();
    CHECK(identical(run.x(), Tensor::vector<float>({x})));
    run.finish();
  }
  CHECK(small.take().ok());
  CHECK(next.take().ok());
  CHECK(f.batcher->figures().waiting_batches == 0);
}

TEST_CASE("a deadline ends a large request, whatever its pieces do") {
  Fixture f({.max_batch_size = 1, .splits_large = true});
  auto blocking = f.block();
  const Answer late = f.add(rows_of({1, 2, 3}), "k", Clock::now());
  CHECK(late.take().status().code() == Code::kDeadlineExceeded);
  while (f.batcher->figures().waiting_tasks != 0) std::this_thread::yield();
  CHECK(f.batcher->figures().waiting_batches == 0);
  const Answer next = f.add(rows_of({4}));
  blocking.finish();
  auto run = f.runs.take();
  CHECK(identical(run.x(), Tensor::vector<float>({4})));
  run.finish();
  CHECK(next.take().ok());
}

TEST_CASE("a batcher that ends answers a large request, too") {
  Fixture f({.max_batch_size = 1, .splits_large = true});
  auto blocking = f.block();
  const Answer large = f.add(rows_of({1, 2, 3}));
  f.batcher.reset();
  CHECK(large.take().status().code() == Code::kCancelled);
  blocking.finish();
}

TEST_CASE("an error of a piece is that of the request, and ends the others") {
  Fixture f({.max_batch_size = 1, .splits_large = true});
  auto blocking = f.block();
  const Answer large = f.add(rows_of({1, 2, 3}));
  blocking.finish();
  f.runs.take().done(invalid_argument("bad"));
  CHECK(large.take().status().message() == "bad");
  while (f.batcher->figures().waiting_tasks != 0) {
    // A piece may have begun before the error.
    if (f.batcher->figures().running_batches > 0) f.runs.take().finish();
    std::this_thread::yield();
  }
}

TEST_CASE("a client that goes ends all pieces of its request") {
  Fixture f({.max_batch_size = 1, .splits_large = true});
  auto blocking = f.block();
  const Answer large = f.add(rows_of({1, 2, 3}));
  large.end->cancel();
  CHECK(large.take().status().code() == Code::kCancelled);
  while (f.batcher->figures().waiting_tasks != 0) std::this_thread::yield();
  blocking.finish();
}

TEST_CASE("an error of a run is that of all its requests") {
  Fixture f;
  auto blocking = f.block();
  const Answer a = f.add(rows_of({1}));
  blocking.finish();
  f.runs.take().done(invalid_argument("bad"));
  CHECK(a.take().status().message() == "bad");
}

TEST_CASE("an output without the rows of the batch is an error") {
  Fixture f;
  const Answer a = f.add(rows_of({1, 2}));
  f.runs.take().done(Tensors{{"y", Tensor::vector<float>({1})}});
  CHECK(says(a.take().status(), "output \"y\" is float[1]"));
}

TEST_CASE("a batcher that ends answers what waits") {
  Fixture f;
  auto blocking = f.block();
  const Answer a = f.add(rows_of({1}));
  f.batcher.reset();
  CHECK(a.take().status().code() == Code::kCancelled);
  blocking.finish();  // after its end, too
}

TEST_CASE("rows of strings are joined and cut, too") {
  const Tensors a{{"s", Tensor::of<std::string>({1, 2}, {"a", "b"})}};
  const Tensors b{{"s", Tensor::of<std::string>({2, 2}, {"c", "d", "e", "f"})}};
  const Tensors* const parts[] = {&a, &b};
  const auto joined = join_rows(parts, 4);
  REQUIRE(joined.ok());
  CHECK(identical(joined->at("s"),
                  Tensor::of<std::string>(
                      {4, 2}, {"a", "b", "c", "d", "e", "f", "e", "f"})));
  CHECK(identical(cut_rows(*joined, 4, 1, 2).value().at("s"), b.at("s")));
  CHECK(row_types(a) == row_types(b));
}

TEST_CASE("what has no rows cannot be batched") {
  CHECK_FALSE(count_rows({{"x", Tensor::scalar<float>(1)}}).ok());
  CHECK_FALSE(count_rows({}).ok());
  CHECK(says(count_rows({{"a", Tensor::vector<float>({1})},
                         {"b", Tensor::vector<float>({1, 2})}})
                 .status(),
             "input \"a\" has 1 rows, but \"b\" has 2"));
}

}  // namespace
}  // namespace tagflow::net::serving

#include "apps/shared/training/trainer.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "actors/checkpoint/saver.h"
#include "apps/shared/io/file.h"
#include "autodiff/train/loss.h"
#include "autodiff/train/optimizers.h"
#include "graph/builder/builder.h"
#include "tests/temp_path.h"

namespace tagflow::training {
namespace {

namespace fs = std::filesystem;
using namespace graph;  // NOLINT: the builder's vocabulary

constexpr int64_t kStepsPerEpoch = 5;

// A folder that goes with the test.
struct TempFolder {
  fs::path path = testing::temp_path("trainer");
  TempFolder() { fs::remove_all(path); }
  ~TempFolder() { fs::remove_all(path); }
};

// y = w x + noise that is drawn in each step, by momentum: what a checkpoint
// has to have to go on.
struct Line {
  apps::OwnedSession session;
  Trainee trainee;
  int64_t interrupted_step = 0;  // before which a signal comes

  explicit Line(double rate = 0.05) {
    Graph graph;
    const Scope s(graph);
    const VariableScope vars;
    const Output x =
        ops::placeholder(s.named("x"), DataType::kFloat, PartialShape{-1});
    const Output w = vars.get(s, "w", {}).read(s);
    const Output noise = ops::mul(
        s, 0.1, ops::random_normal(s, ops::shape(s, x), DataType::kFloat));
    const Output target = ops::add(s, ops::mul(s, x, 3), noise);
    const Output loss = autodiff::losses::mean_squared_error(
        s.named("loss"), ops::mul(s, x, w), target);
    const Output update =
        autodiff::optimizers::momentum(vars, rate, {.momentum = 0.5})
            .minimize(s.named("train"), loss, vars.trainable_variables());
    // A step that waits for what a run beside it gives.
    const ops::Queue queue = ops::fifo_queue(
        s, {DataType::kFloat}, {.capacity = 2, .shapes = {PartialShape({1})}});
    ops::enqueue(s.named("give"), queue, {x});
    ops::group(s.named("empty"),
               ops::dequeue_many(s, queue, ops::queue_size(s, queue)));
    ops::group(s.named("take"), {update, ops::dequeue(s, queue)[0]});
    const Output error = ops::abs(s, ops::sub(s, w, 3));
    vars.initialize(s.named("init"));
    REQUIRE_MESSAGE(s.ok(), s.status().to_string());
    actors::SessionOptions options;
    options.seed = 5;
    auto made = actors::Session::create(options);
    REQUIRE(made.ok());
    session = apps::OwnedSession(std::move(made).value());
    REQUIRE(session->extend(graph).ok());

    Phase phase{
        .feeds = {"x"},
        .metrics = {{"loss", loss.name()}, {"error", error.name()}},
        .batch = [](int64_t index) -> Result<std::vector<Tensor>> {
          return std::vector{Tensor::vector<float>({1, float(index % 3)})};
        }};
    trainee = {.init = "init",
               .train = "train",
               .step = phase,
               .evaluation = phase,
               .evaluation_batches = 2,
               .steps_per_epoch = kStepsPerEpoch};
    trainee.step.batch = [this, batch = phase.batch](int64_t step) {
      if (step == interrupted_step) std::raise(SIGINT);
      return batch(step);
    };
  }

  Outcome train(const fs::path& folder, int64_t epochs, int64_t stop_at = 0) {
    TrainerOptions options;
    options.checkpoints.save = folder.string();
    options.epochs = epochs;
    options.report_every = 3;
    options.stop_at = stop_at;
    return training::train(session, trainee, options);
  }
};

void check_ok(const Outcome& outcome) {
  CHECK_MESSAGE(outcome.failure.exit_code == apps::ExitCode::kOk,
                outcome.failure.status.to_string());
}

std::string history_of(const fs::path& folder) {
  auto text = io::read_file(folder / "history.csv");
  REQUIRE(text.ok());
  return std::move(text).value();
}

TEST_CASE("no other model or data goes on in the folder of a training") {
  const TempFolder folder;
  Line first;
  first.trainee.subject = {{"model", "a line"}, {"data", "2 points"}};
  check_ok(first.train(folder.path, 4, /*stop_at=*/3));
  const std::string history = history_of(folder.path);

  Line other;
  other.trainee.subject = {{"model", "a line"}, {"data", "3 points"}};
  const Outcome refused = other.train(folder.path, 4);
  CHECK(refused.failure.status.code() == Code::kFailedPrecondition);
  CHECK(refused.failure.status.message() ==
        fmt::format(
            "[--save] \"{}\" is of a training whose data is 2 points, not "
            "3 points; --save DIR names another folder, and --fresh "
            "begins anew in this one",
            folder.path.string()));
  CHECK(history_of(folder.path) == history);

  Line same;
  same.trainee.subject = first.trainee.subject;
  const Outcome resumed = same.train(folder.path, 1);
  check_ok(resumed);
  CHECK(resumed.step == kStepsPerEpoch);

  // What an earlier version has left says nothing of its subject.
  fs::remove(subject_file(folder.path));
  check_ok(other.train(folder.path, 2));
  CHECK(check_subject(folder.path, other.trainee.subject).ok());
  CHECK(check_subject(folder.path, same.trainee.subject).code() ==
        Code::kFailedPrecondition);

  // Anew, everything of the old one goes.
  TrainerOptions fresh;
  fresh.checkpoints.save = folder.path.string();
  fresh.is_fresh = true;
  check_ok(train(same.session, same.trainee, fresh));
  CHECK(check_subject(folder.path, same.trainee.subject).ok());
}

TEST_CASE("a training that was stopped goes on to the same bits") {
  const TempFolder folder;
  const fs::path whole = folder.path / "whole", part = folder.path / "part";
  const Outcome expected = Line().train(whole, 4);
  check_ok(expected);
  CHECK(expected.step == 20);
  CHECK(expected.test[1] < 0.2f);
  for (const int64_t stop : {1, 5, 8, 17}) {
    const Outcome stopped = Line().train(part, 4, stop);
    check_ok(stopped);
    CHECK(stopped.step == stop);
  }
  const Outcome actual = Line().train(part, 4);
  check_ok(actual);
  CHECK(actual.test == expected.test);
  CHECK(history_of(part) == history_of(whole));
  CHECK(fs::exists(part / "loss.svg"));
}

TEST_CASE("training: a signal ends it after the current step, and saves") {
  const TempFolder folder;
  Line line;
  line.interrupted_step = 7;
  const Outcome outcome = line.train(folder.path, 4);
  CHECK(outcome.failure.exit_code == apps::exit_code_of_signal(SIGINT));
  CHECK(outcome.failure.status.message() ==
        "[SIGINT] [train] it ended after step 7 of 20, which is saved");
  const Outcome again = Line().train(folder.path, 4);
  check_ok(again);
  const fs::path whole = folder.path / "whole";
  check_ok(Line().train(whole, 4));
  CHECK(history_of(folder.path) == history_of(whole));
}

TEST_CASE("runs beside the steps of a training begin with its next step") {
  const TempFolder folder;
  for (const int64_t first : {1, 6}) {
    Line line;
    line.trainee.train = "take";
    line.trainee.begin = "empty";
    std::vector<int64_t> indices;
    line.trainee.beside = {{{"x"}, {"give"}, [&](int64_t index) {
                              indices.push_back(index);
                              return std::vector{Tensor::vector<float>({1})};
                            }}};
    check_ok(line.train(folder.path, 2, first + 4));
    REQUIRE(indices.size() >= 5);
    for (size_t i = 0; i < indices.size(); ++i)
      CHECK(indices[i] == first + int64_t(i));
  }
}

TEST_CASE("an error of a run beside its steps ends a training") {
  const TempFolder folder;
  Line line;
  line.trainee.train = "take";
  line.trainee.beside = {
      {{"x"}, {"give"}, [](int64_t index) -> Result<std::vector<Tensor>> {
         if (index > 3) return invalid_argument("there are no more batches");
         return std::vector{Tensor::vector<float>({1})};
       }}};
  const Outcome outcome = line.train(folder.path, 4);
  // Batch 4 is asked for when the queue has room for it.
  CHECK(outcome.step >= 1);
  CHECK(outcome.step <= 3);
  CHECK(outcome.failure.exit_code == apps::ExitCode::kRunTimeError);
  CHECK(outcome.failure.status.message() == "there are no more batches");
}

TEST_CASE("what a batch of a run beside the steps throws ends a training") {
  const TempFolder folder;
  Line line;
  line.trainee.train = "take";
  line.trainee.beside = {
      {{"x"}, {"give"}, [](int64_t) -> Result<std::vector<Tensor>> {
         throw std::bad_alloc();
       }}};
  const Outcome outcome = line.train(folder.path, 4);
  CHECK(outcome.failure.exit_code == apps::ExitCode::kRunTimeError);
  CHECK(outcome.failure.status.code() == Code::kResourceExhausted);
}

TEST_CASE("checkpoints are made after so many steps, reports or not") {
  const TempFolder folder;
  Line line;
  TrainerOptions options;
  options.checkpoints.save = folder.path.string();
  options.checkpoints.save_every = "2";
  options.checkpoints.keep = 0;
  check_ok(train(line.session, line.trainee, options));
  for (const int64_t step : {0, 2, 4, 5})
    CHECK(fs::exists(folder.path / fmt::format("model.ckpt-{}.index", step)));
  CHECK_FALSE(fs::exists(folder.path / "model.ckpt-3.index"));
  options.checkpoints.save_every = "often";
  const Outcome refused = train(line.session, line.trainee, options);
  CHECK(refused.failure.exit_code == apps::ExitCode::kUsage);
}

TEST_CASE("a training that is over is evaluated, and nothing else") {
  const TempFolder folder;
  check_ok(Line().train(folder.path, 2));
  const std::string before = history_of(folder.path);
  const Outcome outcome = Line().train(folder.path, 2);
  check_ok(outcome);
  CHECK(outcome.step == 10);
  CHECK(outcome.test.size() == 2);
  CHECK(history_of(folder.path) == before);
}

TEST_CASE("training: a fresh start removes its own files only") {
  const TempFolder folder;
  check_ok(Line().train(folder.path, 2));
  REQUIRE(io::write_file(folder.path / "notes.txt", "mine").ok());
  Line line;
  TrainerOptions options;
  options.checkpoints.save = folder.path.string();
  options.stop_at = 2;
  options.is_fresh = true;
  const Outcome outcome = train(line.session, line.trainee, options);
  check_ok(outcome);
  CHECK(outcome.step == 2);
  CHECK(fs::exists(folder.path / "notes.txt"));
  CHECK_FALSE(fs::exists(folder.path / "model.ckpt-10.index"));
}

TEST_CASE("a folder that another training has is left alone") {
  const TempFolder folder;
  check_ok(Line().train(folder.path, 1));
  Line line;
  TrainerOptions options;
  options.checkpoints.save = folder.path.string();
  {
    const auto other =
        actors::Saver::create(*line.session, {.folder = folder.path.string()});
    REQUIRE(other.ok());
    for (const bool is_fresh : {false, true}) {
      options.is_fresh = is_fresh;
      const Outcome outcome = train(line.session, line.trainee, options);
      CHECK(outcome.failure.status.code() == Code::kFailedPrecondition);
    }
  }
  CHECK(fs::exists(folder.path / "model.ckpt-5.index"));
  options.is_fresh = true;
  check_ok(train(line.session, line.trainee, options));
}

TEST_CASE("training: a loss that is not a number ends it at a named step") {
  const TempFolder folder;
  const Outcome outcome = Line(1e30).train(folder.path, 4);
  CHECK(outcome.failure.exit_code == apps::ExitCode::kRunTimeError);
  const std::string message(outcome.failure.status.message());
  CHECK_MESSAGE(message.starts_with("[step "), message);
  CHECK_MESSAGE(
      message.find("a smaller learning rate may help") != std::string::npos,
      message);
}

TEST_CASE("training: an evaluation weights each batch by its examples") {
  Line line;
  int64_t batches = 0;
  line.trainee.evaluation.batch =
      [&](int64_t index) -> Result<std::vector<Tensor>> {
    ++batches;
    if (index == 0) return std::vector{Tensor::vector<float>({0, 0, 0})};
    return std::vector{Tensor::vector<float>({100})};
  };
  REQUIRE(line.session->run({}, {}, {"init"}).ok());
  const auto means = evaluate(*line.session, line.trainee);
  REQUIRE_MESSAGE(means.ok(), means.status().to_string());
  CHECK(batches == 2);
  // The loss of the zeros is that of the noise, next to nothing.
  const float error = (*means)[1];
  const float expected = error * error * 100 * 100 / 4;
  CHECK((*means)[0] == doctest::Approx(expected).epsilon(0.05));
}

}  // namespace
}  // namespace tagflow::training

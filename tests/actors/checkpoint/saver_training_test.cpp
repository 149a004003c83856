// Trainings that are saved: all variables of a checkpoint are of one step, and
// a resumed training computes the same as one without interruption.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <thread>
#include <vector>

#include "actors/checkpoint/saver.h"
#include "actors/checkpoint/snapshot.h"
#include "devices/files/tensor_file.h"
#include "graph/builder/builder.h"
#include "tests/actors/sessions.h"
#include "tests/temp_path.h"

using namespace tagflow;
using namespace tagflow::actors;
using namespace tagflow::graph;
using graph::testing::must;

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(tagflow::testing::temp_path("training_" + name)) {
    fs::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }
  std::string path() const { return path_.string(); }

 private:
  const fs::path path_;
};

Tensor numbers(int64_t count, float first, float step) {
  Tensor tensor = Tensor::make(DataType::kFloat, {count});
  for (int64_t i = 0; i < count; ++i)
    tensor.mutable_data<float>()[i] = first + step * float(i);
  return tensor;
}

// "init", and "step": Adam on two weights, one a resource and one a reference,
// rows of a table, and "count".
Graph adam() {
  constexpr int64_t kSize = 256;
  Graph graph;
  const Scope s(graph);
  Outputs inits, steps;
  const Inputs rates = {0.9f, 0.999f, 0.01f, 0.9f, 0.999f, 1e-7f};
  const auto inputs = [&](Inputs variables, float sign) {
    return variables.add(rates).add(numbers(kSize, sign, sign * 0.01f));
  };
  const PartialShape shape({kSize});
  Inputs resources, references;
  for (const std::string name : {"w", "w/m", "w/v"}) {
    const auto v = ops::variable(s.named(name), DataType::kFloat, shape);
    const auto r =
        ops::reference_variable(s.named("r" + name), DataType::kFloat, shape);
    inits.push_back(ops::assign(s, v, numbers(kSize, 0, 0)));
    inits.push_back(ops::assign(s, r, numbers(kSize, 0, 0)));
    resources.add(v.handle);
    references.add(r);
  }
  steps.push_back(
      s.op("ResourceApplyAdam", inputs(resources, 1), {{"use_locking", true}}));
  steps.push_back(
      s.op("ApplyAdam", inputs(references, -1), {{"use_locking", true}}));

  const auto table =
      ops::variable(s.named("table"), DataType::kFloat, {64, 16});
  inits.push_back(ops::assign(
      s, table,
      ops::fill(s, Tensor::vector<int64_t>({64, 16}), Tensor::scalar(0.0f))));
  const Output ones =
      ops::fill(s, Tensor::vector<int64_t>({2, 16}), Tensor::scalar(1.0f));
  steps.push_back(s.op("ResourceScatterAdd",
                       {table.handle, Tensor::vector<int32_t>({5, 60}), ones}));

  const auto count =
      ops::variable(s.named("count"), DataType::kInt64, PartialShape::scalar());
  inits.push_back(ops::assign(s, count, Tensor::scalar<int64_t>(0)));
  steps.push_back(ops::assign_add(s, count, Tensor::scalar<int64_t>(1)));
  ops::group(s.named("init"), inits);
  ops::group(s.named("step"), steps);
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

// "step" fetches what it adds to a variable: of a random op in a function,
// which is called twice, of one in a loop, and of one beside. "evaluate" reads
// the variable, with numbers of its own.
Graph drawing() {
  Graph graph;
  const Scope s(graph);
  const auto uniform = [](const Scope& in) {
    return in.op("RandomUniform", {in.constant(Tensor::vector<int64_t>({3}))},
                 {{"dtype", DataType::kFloat}});
  };
  define_function(
      s, {.name = "noise",
          .args = {{"x", DataType::kFloat, {}}},
          .results = {{DataType::kFloat, {}}},
          .body = [&](const Scope& in, const Outputs& args) -> Outputs {
            return {ops::add(in, args[0], uniform(in.named("draw")))};
          }});
  const auto v =
      ops::variable(s.named("v"), DataType::kFloat, PartialShape({3}));
  ops::assign(s.named("init"), v, numbers(3, 0, 0));
  const Outputs loop = while_loop(
      s,
      [&](const Scope& in, const Outputs& i) { return ops::less(in, i[0], 3); },
      [&](const Scope& in, const Outputs& i) -> Outputs {
        const Scope drawn = in.with_control_dependencies({i[0]});
        return {ops::add(in, i[0], 1),
                ops::add(in, i[1], uniform(drawn.named("drawn")))};
      },
      {0, uniform(s.named("beside"))});
  const Output sum = call(s, "noise", {call(s, "noise", {loop[1]})[0]})[0];
  const Output added = ops::assign_add(s, v, sum);
  ops::identity(s.with_control_dependencies({added}).named("step"), sum);
  ops::add(s.named("evaluate"), ops::read(s, v), uniform(s.named("apart")));
  INFO(s.status().to_string());
  REQUIRE(s.status().ok());
  return graph;
}

std::unique_ptr<Saver> make_saver(const Session& session,
                                  SaverOptions options) {
  return must(Saver::create(session, std::move(options)));
}

}  // namespace

TEST_CASE("Adam is saved at every step, while four train") {
  constexpr int kTrainers = 4, kSteps = 12;
  const Graph graph = adam();
  std::vector<Snapshot> expected;  // by the number of steps
  {
    const auto session = make_session({}, graph);
    must(session->run({}, {}, {"init"}));
    const auto snapshots = must(Snapshots::create(*session));
    for (int step = 0; step <= kTrainers * kSteps; ++step) {
      expected.push_back(must(snapshots->take()));
      must(session->run({}, {}, {"step"}));
    }
  }
  for (const std::string devices : {"", "cpu:2"}) {
    INFO(devices);
    const Folder folder("adam");
    SessionOptions options;
    options.workers = 3;
    options.devices = devices;
    if (!devices.empty()) options.scatter = 5;
    options.on_warning = [](const std::string&) {};
    const auto session = make_session(options, graph);
    must(session->run({}, {}, {"init"}));
    const auto saver = make_saver(
        *session, {.folder = folder.path(), .keep = 0, .sync = false});
    std::atomic<int> number{0};
    std::vector<Status> failed(kTrainers);
    const auto train = [&]() -> Status {
      for (int step = 0; step < kSteps; ++step) {
        TAGFLOW_RETURN_IF_ERROR(
            session->run({}, {}, {"step"}, within_a_minute()).status());
        TAGFLOW_RETURN_IF_ERROR(saver->save(++number));
      }
      return {};
    };
    std::vector<std::thread> trainers;
    for (Status& status : failed)
      trainers.emplace_back([&] { status = train(); });
    for (std::thread& trainer : trainers) trainer.join();
    must(saver->close());
    for (const Status& status : failed)
      CHECK_MESSAGE(status.ok(), status.to_string());
    for (int k = 1; k <= kTrainers * kSteps; ++k) {
      INFO("checkpoint ", k);
      const auto file = must(checkpoint::open_tensor_file(
          folder.path() + "/model.ckpt-" + std::to_string(k)));
      const auto count = must(must(file->read("count")).item<int64_t>());
      REQUIRE(count >= 1);
      REQUIRE(count <= kTrainers * kSteps);
      for (const auto& entry : expected[size_t(count)].variables) {
        INFO(entry.first, " of step ", count);
        CHECK(identical(must(file->read(entry.first)), entry.second));
      }
    }
  }
}

TEST_CASE("a training that is resumed draws the numbers that would have come") {
  constexpr int64_t kSteps = 6;
  const Graph graph = drawing();
  std::vector<Tensor> expected;
  const auto step = [](Session& session) {
    return must_run(session, {}, {"step"})[0];
  };
  for (const graph::PassSet& passes :
       {graph::PassSet(), graph::PassSet::none()}) {
    SessionOptions options;
    options.passes = passes;
    options.seed = 7;
    const auto plain = make_session(options, graph);
    must(plain->run({}, {}, {"init"}));
    for (size_t k = 0; k < size_t(kSteps); ++k) {
      const Tensor drawn = step(*plain);
      if (expected.size() <= k) expected.push_back(drawn);
      CHECK(identical(drawn, expected[k]));
    }

    // Of a seed that the checkpoint alone knows.
    const Folder folder("drawing");
    std::vector<Tensor> seen;
    Tensor last;
    for (const bool is_interrupted : {false, true}) {
      options.seed.reset();
      fs::remove_all(folder.path());
      auto session = make_session(options, graph);
      auto saver = make_saver(
          *session, {.folder = folder.path(), .every_steps = 1, .sync = false});
      if (seen.empty()) {
        must(session->run({}, {}, {"init"}));
      } else {
        // The same seed as before.
        must(restore_checkpoint(*session, folder.path() + "_first"));
      }
      must(saver->save(0));
      must(saver->wait());
      if (seen.empty()) fs::copy(folder.path(), folder.path() + "_first");
      for (int64_t k = 1; k <= kSteps; ++k) {
        const Tensor drawn = step(*session);
        if (!is_interrupted) {
          seen.push_back(drawn);
        } else {
          CHECK(identical(drawn, seen[size_t(k - 1)]));
          must_run(*session, {}, {"evaluate"});
        }
        must(saver->save_if_due(k));
        if (!is_interrupted || k != 3) continue;
        must(saver->close());
        session = make_session(options, graph);
        saver = make_saver(
            *session,
            {.folder = folder.path(), .every_steps = 1, .sync = false});
        const auto restored = must(saver->restore());
        REQUIRE(restored.has_value());
        CHECK(restored->step == 3);
      }
      must(saver->close());
      const auto snapshot = must(must(Snapshots::create(*session))->take());
      if (!is_interrupted) last = snapshot.variables.at("v");
      CHECK(identical(snapshot.variables.at("v"), last));
    }
    fs::remove_all(folder.path() + "_first");
  }
}

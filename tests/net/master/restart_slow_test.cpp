// A training over three workers that are killed while it runs has the weights
// of a training that nobody disturbs, bit for bit.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "actors/checkpoint/training_loop.h"
#include "tests/net/master/works.h"
#include "tests/repeats.h"
#include "tests/temp_path.h"

namespace tagflow::net {
namespace {

using namespace works;  // NOLINT: for tests
using std::chrono::milliseconds;

constexpr int64_t kSteps = 400;

// Each step moves a weight of each worker by a row that comes from a queue that
// shuffles, on the second one, and by noise of the weight's worker. The first
// step fills the queue; each puts back a row that it has changed.
struct Training : actors::Program {
  explicit Training(bool is_pinned = true) {
    const auto at = [&](uint32_t task) {
      return is_pinned ? on_task(s, task) : s;
    };
    const ops::Queue rows = ops::random_shuffle_queue(
        at(1).named("rows"), {DataType::kFloat}, 0,
        {.shapes = {PartialShape({4})}}, {.seed = 3, .seed2 = 5});
    Outputs inits = {ops::enqueue_many(
        at(1), rows,
        {ops::constant(at(1), Tensor::of<float>({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8,
                                                         9, 10, 11, 12}))})};
    const Output row = ops::dequeue(at(1), rows)[0];
    Outputs steps = {ops::enqueue(
        at(1), rows, {ops::mul(at(1), row, ops::constant(at(1), -1.f))})};
    Output last = row;
    for (uint32_t task = 0; task < 3; ++task) {
      const Scope there = at(task);
      const ops::Variable weight =
          ops::variable(there.named("w" + std::to_string(task)),
                        DataType::kFloat, PartialShape({4}));
      inits.push_back(ops::assign(
          there, weight,
          ops::constant(there, Tensor::vector<float>({1, 1, 1, 1}))));
      const Output noise = ops::random_uniform(
          there.named("noise" + std::to_string(task)),
          ops::constant(there, Tensor::vector<int>({4})), DataType::kFloat);
      ops::read(there.named("read" + std::to_string(task)), weight);
      last = ops::add(there, ops::mul(there, last, noise),
                      ops::mul(there, ops::read(there, weight),
                               ops::constant(there, 0.5f)));
      steps.push_back(ops::assign(there, weight, last));
    }
    ops::group(s.named("init"), inits);
    ops::group(s.named("step"), steps);
    must(s.status());
  }
};

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(tagflow::testing::temp_path("restart_" + name)) {
    std::filesystem::remove_all(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path() const { return path_.string(); }

 private:
  const std::filesystem::path path_;
};

actors::TrainingOptions options_of(const Folder& folder) {
  actors::TrainingOptions options;
  options.init = [](actors::Session& session) {
    return session.run({}, {}, {"init"}, patient()).status();
  };
  options.make_step =
      [](actors::Session& session) -> Result<actors::TrainingOptions::Step> {
    TAGFLOW_ASSIGN(auto made, session.make_callable({}, {}, {"step"}));
    return actors::TrainingOptions::Step(
        [call = std::make_shared<actors::Callable>(std::move(made))](int64_t) {
          return (*call)({}, patient()).status();
        });
  };
  options.saver.folder = folder.path();
  options.saver.every_steps = 20;
  options.saver.sync = false;
  options.steps = kSteps;
  return options;
}

// Calls the hook before each step, with its number.
void call_before_steps(actors::TrainingOptions& options,
                       const std::function<void(int64_t)>& hook) {
  using Step = actors::TrainingOptions::Step;
  options.make_step = [make = options.make_step,
                       hook](actors::Session& session) -> Result<Step> {
    TAGFLOW_ASSIGN(auto step, make(session));
    return Step([hook, step](int64_t number) {
      hook(number);
      return step(number);
    });
  };
}

Result<std::unique_ptr<actors::Session>> session_on(
    const Training& training, std::shared_ptr<actors::Backend> backend,
    bool is_soft = false) {
  actors::SessionOptions options;
  options.backend = std::move(backend);
  options.seed = 11;
  options.soft_placement = is_soft;
  TAGFLOW_ASSIGN(auto session, actors::Session::create(std::move(options)));
  TAGFLOW_RETURN_IF_ERROR(session->extend(training.graph));
  return session;
}

// The weights of the folder's last checkpoint, by a session in this process.
std::string weights_in(const Folder& folder) {
  const Training here(/*is_pinned=*/false);
  const auto session = actors::make_session({}, here.graph);
  const auto restored =
      must(actors::restore_checkpoint(*session, folder.path()));
  CHECK(restored.step == kSteps);
  std::string text;
  for (const Tensor& weight :
       must(session->run({}, {"read0", "read1", "read2"})))
    text += weight.to_string();
  return text;
}

// Of a training in this process, which loses nobody.
const std::string& undisturbed() {
  static const std::string weights = [] {
    const Training training(/*is_pinned=*/false);
    const Folder folder("undisturbed");
    actors::TrainingOptions options = options_of(folder);
    options.make_session = [&] { return session_on(training, nullptr); };
    must(actors::run_training(options));
    return weights_in(folder);
  }();
  return weights;
}

// Kills workers, each some microseconds after the step that is under way has
// begun.
class Killer {
 public:
  explicit Killer(WorkerProcesses& processes) : processes_(processes) {}
  ~Killer() { wait(); }
  void kill(uint32_t victim, int after_us) {
    wait();
    victims_.insert(victim);
    thread_ = std::thread([this, victim, after_us] {
      std::this_thread::sleep_for(std::chrono::microseconds(after_us));
      processes_.workers[victim]->signal(SIGKILL);
    });
  }
  // Another process follows each.
  void restart_all() {
    wait();
    for (const uint32_t victim : std::exchange(victims_, {}))
      processes_.restart(victim);
  }

 private:
  void wait() {
    if (thread_.joinable()) thread_.join();
  }

  WorkerProcesses& processes_;
  std::set<uint32_t> victims_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("workers that are killed at random leave a training's result as is") {
  const Training training;
  // How many schedules, and the seed of the first one.
  uint32_t count = uint32_t(tagflow::testing::repeats(4)), first = 1;
  if (const char* const told = std::getenv("TAGFLOW_RESTARTS"))
    std::istringstream(told) >> count >> first;
  for (uint32_t seed = first; seed < first + count; ++seed) {
    CAPTURE(seed);
    std::mt19937 random{seed};
    const Folder folder("killed");
    WorkerProcesses processes(3);
    ClusterOptions cluster = processes.options;
    cluster.patience = milliseconds(10'000);
    processes.cluster.reset();
    Killer killer(processes);
    int losses = 0;
    actors::TrainingOptions options = options_of(folder);
    options.restarts = 6;
    options.saver.writers = seed % 2 == 0 ? actors::ShardWriters::kMaster
                                          : actors::ShardWriters::kWorkers;
    options.make_session = [&]() -> Result<std::unique_ptr<actors::Session>> {
      TAGFLOW_ASSIGN(auto connected, Cluster::connect(cluster));
      return session_on(training, std::move(connected));
    };
    options.on_restart = [&](int, const Status& loss) {
      CHECK_MESSAGE(contains(loss.message(), "/job:worker/task:"),
                    loss.to_string());
      ++losses;
      killer.restart_all();
    };
    // Until the next kill, of steps that are run for the first time.
    int64_t next_kill = random() % 60 + 1;
    call_before_steps(options, [&](int64_t number) {
      if (number != next_kill || losses >= 5) return;
      killer.kill(random() % 3, int(random() % 400));
      next_kill += random() % 80 + 1;
    });
    options.on_failed_save = [](const Status& failure) {
      CHECK(failure.code() == Code::kUnavailable);
    };
    const Status status = actors::run_training(options);
    CHECK_MESSAGE(status.ok(), status.to_string());
    CHECK(losses > 0);
    CHECK(weights_in(folder) == undisturbed());
  }
}

TEST_CASE("no checkpoint is without what a lost worker has had") {
  const Training training;
  const Folder folder("without");
  WorkerProcesses processes(3);
  const auto session = must(session_on(training, processes.cluster));
  must(session->run({}, {}, {"init"}, patient()));
  const auto saver =
      must(actors::Saver::create(*session, {.folder = folder.path()}));
  must(saver->save(1));
  must(saver->wait());
  processes.workers[1]->kill();
  processes.restart(1);
  // The process that has followed it answers, and has no variable.
  for (int64_t step = 2; step < 20; ++step) {
    CHECK(saver->save(step).code() == Code::kUnavailable);
    std::this_thread::sleep_for(milliseconds(20));
  }
  CHECK(saver->saved_step() == 1);
}

TEST_CASE("a training goes on without a worker that does not come back") {
  const Training training;
  const Folder folder("left_out");
  WorkerProcesses processes(3);
  ClusterOptions cluster = processes.options;
  cluster.patience = milliseconds(2000);
  processes.cluster.reset();
  std::vector<Task> left_out;
  actors::TrainingOptions options = options_of(folder);
  options.restarts = 1;
  options.make_session = [&]() -> Result<std::unique_ptr<actors::Session>> {
    TAGFLOW_ASSIGN(auto connected, Cluster::connect(cluster));
    left_out = connected->left_out();
    return session_on(training, std::move(connected), /*is_soft=*/true);
  };
  options.on_restart = [&](int, const Status&) {
    cluster.patience = milliseconds(100);
    cluster.leaves_out_lost = true;
  };
  call_before_steps(options, [&](int64_t number) {
    if (number == 55) processes.workers[1]->kill();
  });
  const Status status = actors::run_training(options);
  CHECK_MESSAGE(status.ok(), status.to_string());
  REQUIRE(left_out.size() == 1);
  CHECK(left_out[0] == Task{"worker", 1});
  CHECK(weights_in(folder) == undisturbed());
}

TEST_CASE(
    "a training with no restarts left fails with the name of the worker") {
  const Training training;
  const Folder folder("none_left");
  WorkerProcesses processes(3);
  actors::TrainingOptions options = options_of(folder);
  options.make_session = [&] {
    return session_on(training, processes.cluster);
  };
  call_before_steps(options, [&](int64_t number) {
    if (number == 25) processes.workers[2]->kill();
  });
  check_lost(actors::run_training(options), 2);
}

}  // namespace tagflow::net

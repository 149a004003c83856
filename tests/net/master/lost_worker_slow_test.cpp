// Workers that are killed or stopped in every phase of a step: the step fails
// with Unavailable naming the worker, and the others go on.
#include <doctest/doctest.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "net/worker/worker.h"
#include "tests/net/master/works.h"

namespace tagflow::net {
namespace {

using namespace works;  // NOLINT: for tests
using std::chrono::milliseconds;

// Three workers, and a session that has run a short step over them.
struct ShortStep {
  ShortStep() { must(session->run({}, {work->out}, {}, patient())); }

  WorkerProcesses processes{3};
  const std::unique_ptr<Work> work = short_step({0, 1, 2});
  std::unique_ptr<actors::Session> session = work->session(processes);
};

}  // namespace

TEST_CASE("a worker for other test cases" * doctest::skip()) {
  const char* const told = std::getenv(kWorkerVariable);
  if (told == nullptr) return;
  REQUIRE(::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  int descriptor = -1;
  WorkerOptions options;
  options.task.job = "worker";
  std::istringstream(told) >> options.task.index >> options.port >>
      options.host >> descriptor;
  options.beyond_loopback = options.host != "localhost";
  options.cluster = "processes";
  options.secret = kProcessSecret;
  options.devices = "cpu:1";
  options.workers = 1;
  options.checkpoints = std::filesystem::temp_directory_path();
  options.on_event = [](const Event&) {};
  const auto worker = Worker::start(options);
  INFO(worker.status().to_string());
  REQUIRE(worker.ok());
  const uint16_t port = (*worker)->port();
  REQUIRE(::write(descriptor, &port, sizeof(port)) == ssize_t(sizeof(port)));
  ::close(descriptor);
  for (;;) ::pause();
}

TEST_CASE("a worker that is killed before a step fails it at once") {
  const ShortStep step;
  step.processes.workers[1]->kill();
  check_lost(run(*step.session, *step.work), 1);
  check_lost(run(*step.session, *step.work), 1);
  // Nor does it register anything.
  const auto other = short_step({1, 0});
  check_lost(run(*other->session(step.processes), *other), 1);
  check_survivors(step.processes, 1);
}

TEST_CASE("a worker that is killed in any phase of a step is named") {
  for (const auto& make : {endless_loop, empty_queue, large_tensors})
    for (const uint32_t victim : {0, 1, 2}) {
      WorkerProcesses processes(3);
      const auto work = make();
      CAPTURE(work->name);
      CAPTURE(victim);
      const auto session = work->session(processes);
      const auto [status, took] =
          harmed([&] { return run(*session, *work); },
                 milliseconds(work->ends() ? 15 : 100),
                 [&] { processes.workers[victim]->kill(); });
      if (!work->ends() || !status.ok()) check_lost(status, victim);
      MESSAGE(work->name << ", task " << victim
                         << " is killed: the answer comes after " << took
                         << " ms");
      check_survivors(processes, victim);
    }
}

TEST_CASE("a session whose worker was killed releases what it had") {
  ShortStep step;
  step.processes.workers[2]->kill();
  step.session.reset();
  check_survivors(step.processes, 2);
}

TEST_CASE("a process that follows a killed worker is used by new steps") {
  ShortStep step;
  step.processes.workers[1]->kill();
  check_lost(run(*step.session, *step.work), 1);
  step.processes.restart(1);
  check_return(step.processes);
  const Status again = run(*step.session, *step.work);
  CHECK_MESSAGE(again.ok(), again.to_string());
}

TEST_CASE("a worker that is stopped is named, and commits nothing afterwards") {
  WorkerProcesses processes(3);
  actors::Program p;
  const Scope there = on_task(p.s, 1);
  const ops::Variable v =
      ops::variable(there.named("v"), DataType::kInt32, PartialShape({}));
  ops::assign(there.named("init"), v, ops::constant(there, 0));
  ops::identity(on_task(p.s, 0).named("read"), ops::read(there, v));
  must(p.s.status());
  actors::SessionOptions options;
  options.backend = processes.cluster;
  const auto variables = actors::make_session(options, p.graph);
  must(variables->run({}, {}, {"init"}, patient()));

  const auto work = endless_loop();
  const auto session = work->session(processes);
  const auto [status, took] =
      harmed([&] { return run(*session, *work); }, milliseconds(100),
             [&] { processes.workers[1]->signal(SIGSTOP); });
  check_lost(status, 1);
  MESSAGE("task 1 is stopped: the answer comes after " << took << " ms");
  check_survivors(processes, 1);
  processes.workers[1]->signal(SIGCONT);
  check_return(processes);
  // Its state has gone with the incarnation.
  const auto again = actors::make_session(options, p.graph);
  CHECK_FALSE(again->run({}, {"read"}, {}, patient()).ok());
}

}  // namespace tagflow::net

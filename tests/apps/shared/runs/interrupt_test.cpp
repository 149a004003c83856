#include "apps/shared/runs/interrupt.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include "devices/files/atomic_file.h"
#include "tests/temp_path.h"

namespace tagflow::apps {
namespace {

// The wait status of a process that does this.
int status_of(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  return status;
}

}  // namespace

TEST_CASE("the first signal cancels, and its error says which it was") {
  for (const auto& [signal, name] : {std::pair(SIGINT, "[SIGINT] so far"),
                                     std::pair(SIGTERM, "[SIGTERM] so far")}) {
    Interruptible interruptible;
    CHECK(interruptible.signal() == 0);
    CHECK(!interruptible.token().cancelled());
    raise(signal);
    CHECK(interruptible.signal() == signal);
    while (!interruptible.token().cancelled()) std::this_thread::yield();
    const Failure failure =
        interruptible.failure_of(error(Code::kCancelled, "so far"));
    CHECK(int(failure.exit_code) == 128 + signal);
    CHECK(failure.status.message() == name);
    // What went wrong before is told as it is.
    CHECK(interruptible.failure_of(invalid_argument("x")).exit_code ==
          ExitCode::kRunTimeError);
    CHECK(interruptible.failure_of({}).exit_code == ExitCode::kOk);
  }
}

TEST_CASE("interrupts: a cancellation without a signal is a plain error") {
  const Interruptible interruptible;
  const Failure failure =
      interruptible.failure_of(error(Code::kCancelled, "so far"));
  CHECK(failure.exit_code == ExitCode::kRunTimeError);
  CHECK(failure.status.message() == "so far");
}

TEST_CASE("interrupts: a patient program ends by itself after a signal") {
  {
    const Interruptible interruptible{std::chrono::hours(1)};
    raise(SIGTERM);
    CHECK(interruptible.signal() == SIGTERM);
    CHECK(!interruptible.token().cancelled());
  }
  const Interruptible interruptible{std::chrono::seconds(1)};
  raise(SIGINT);
  while (!interruptible.token().cancelled()) std::this_thread::yield();
  CHECK(interruptible.signal() == SIGINT);
}

TEST_CASE("the second signal ends the process") {
  for (const int second : {SIGINT, SIGTERM}) {
    const int status = status_of([second] {
      const Interruptible interruptible;
      raise(SIGINT);
      raise(second);
    });
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + second);
  }
}

TEST_CASE("the second signal leaves no file that is half written") {
  const std::string path = testing::temp_path("interrupted").string();
  const int status = status_of([&] {
    const Interruptible interruptible;
    const auto file = checkpoint::AtomicFile::create(path, {});
    raise(SIGINT);
    raise(SIGINT);
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 128 + SIGINT);
  for (const auto& entry :
       std::filesystem::directory_iterator(checkpoint::folder_of(path)))
    CHECK(!entry.path().string().starts_with(path));
}

TEST_CASE("interrupts: signals have their old handlers afterwards") {
  const int status = status_of([] {
    std::signal(SIGINT, SIG_DFL);
    { const Interruptible interruptible; }
    raise(SIGINT);
  });
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGINT);
}

TEST_CASE("a signal that was ignored cancels all the same") {
  std::signal(SIGINT, SIG_IGN);
  {
    const Interruptible interruptible;
    raise(SIGINT);
    while (!interruptible.token().cancelled()) std::this_thread::yield();
  }
  const bool is_ignored_again = std::signal(SIGINT, SIG_DFL) == SIG_IGN;
  CHECK(is_ignored_again);
}

}  // namespace tagflow::apps

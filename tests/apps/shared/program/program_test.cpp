#include "apps/shared/program/program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "apps/shared/io/file.h"
#include "devices/files/atomic_file.h"
#include "tests/temp_path.h"

namespace tagflow::apps {
namespace {

namespace fs = std::filesystem;

std::string target() { return testing::temp_path("program").string(); }

// The wait status of a program with this body; `said` receives its stderr.
int status_of(ExitCode (*body)(int, char**), std::string* said = nullptr) {
  const fs::path errors = testing::temp_path("program_stderr");
  const pid_t pid = fork();
  if (pid == 0) {
    const int file = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(file, STDERR_FILENO);
    // What this process has not written yet is not written twice.
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    for (const int signal : {SIGHUP, SIGINT, SIGTERM})
      std::signal(signal, SIG_DFL);
    _exit(run_program(0, nullptr, body));
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, 0) == pid);
  const Result<std::string> text = io::read_file(errors);
  if (said != nullptr && text.ok()) *said = *text;
  fs::remove(errors);
  return status;
}

bool is_nothing_left() {
  for (const auto& entry :
       fs::directory_iterator(checkpoint::folder_of(target())))
    if (entry.path().string().starts_with(target())) return false;
  return true;
}

template <int kSignal>
ExitCode raise_in_mid_write(int, char**) {
  const auto file = checkpoint::AtomicFile::create(target(), {});
  if (file.ok() && !is_nothing_left()) raise(kSignal);
  return ExitCode::kOk;
}

}  // namespace

TEST_CASE("a signal that ends a program leaves no file half written") {
  const std::pair<int, ExitCode (*)(int, char**)> cases[] = {
      {SIGHUP, raise_in_mid_write<SIGHUP>},
      {SIGINT, raise_in_mid_write<SIGINT>},
      {SIGTERM, raise_in_mid_write<SIGTERM>},
  };
  for (const auto& [signal, body] : cases) {
    const int status = status_of(body);
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    CHECK(is_nothing_left());
  }
}

TEST_CASE("a signal that the caller ignores does not end a program") {
  const int status = status_of([](int, char**) {
    // As run_program() would find it.
    std::signal(SIGHUP, SIG_IGN);
    _exit(run_program(0, nullptr, [](int, char**) {
      raise(SIGHUP);
      return ExitCode::kMissingData;
    }));
    return ExitCode::kOk;
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == int(ExitCode::kMissingData));
}

TEST_CASE("a program that something ends by exit() has not succeeded") {
  std::string said;
  int status = status_of(
      [](int, char**) {
        const EndingSuspect suspect("the op library \"x.so\"");
        std::exit(0);
        return ExitCode::kOk;
      },
      &said);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == int(ExitCode::kRunTimeError));
  CHECK(said ==
        "error: Aborted: [program] the op library \"x.so\" ended the process "
        "by exit(), before it was done\n");
  // Also from another thread, and with nobody to suspect.
  status = status_of(
      [](int, char**) {
        { const EndingSuspect suspect("another"); }
        std::thread([] { std::exit(0); }).join();
        return ExitCode::kOk;
      },
      &said);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == int(ExitCode::kRunTimeError));
  CHECK(said.find("an op, or another part of a library, ended") != said.npos);
}

}  // namespace tagflow::apps

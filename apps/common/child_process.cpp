#include "apps/common/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

extern char** environ;

namespace tagflow::apps {
namespace {

struct Pipe {
  int read = -1, write = -1;
};

// Both ends close themselves when a program is started.
Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return error(Code::kResourceExhausted, "[process] no pipe: {}",
                 std::strerror(errno));
  }
  return Pipe{ends[0], ends[1]};
}

}  // namespace

Result<ChildProcess> ChildProcess::start(
    const std::vector<std::string>& command) {
  // A child that dies early must be an error of write_line(), not our end.
  std::signal(SIGPIPE, SIG_IGN);
  TAGFLOW_ASSIGN(const Pipe in, make_pipe());
  TAGFLOW_ASSIGN(const Pipe out, make_pipe());
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.read, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out.write, STDOUT_FILENO);
  pid_t pid = 0;
  const int code = posix_spawnp(&pid, arguments[0], &actions, nullptr,
                                arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in.read);
  close(out.write);
  if (code != 0) {
    close(in.write);
    close(out.read);
    return error(Code::kNotFound, "[process] cannot start \"{}\": {}",
                 command[0], std::strerror(code));
  }
  return ChildProcess(pid, fdopen(in.write, "w"), fdopen(out.read, "r"));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      input_(std::exchange(other.input_, nullptr)),
      output_(std::exchange(other.output_, nullptr)) {}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) wait();
  if (output_ != nullptr) std::fclose(output_);
}

Status ChildProcess::write_line(const std::string& line) {
  const bool sent = input_ != nullptr &&
                    std::fprintf(input_, "%s\n", line.c_str()) >= 0 &&
                    std::fflush(input_) == 0;
  if (sent) return {};
  return error(Code::kUnavailable, "[process] the child does not listen");
}

Result<std::string> ChildProcess::read_line() {
  std::string line;
  for (int c = std::fgetc(output_); c != EOF; c = std::fgetc(output_)) {
    if (c == '\n') return line;
    line += char(c);
  }
  return error(Code::kUnavailable, "[process] the child has ended");
}

int ChildProcess::wait() {
  if (input_ != nullptr) std::fclose(std::exchange(input_, nullptr));
  int status = 0;
  const pid_t pid = std::exchange(pid_, -1);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tagflow::apps

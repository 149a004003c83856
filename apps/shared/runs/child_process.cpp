#include "apps/shared/runs/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

extern char** environ;

namespace tagflow::apps {
namespace {

struct Pipe {
  int read = -1, write = -1;
};

// Both ends are closed on exec.
Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return error(Code::kResourceExhausted, "[process] cannot create a pipe: {}",
                 std::strerror(errno));
  }
  return Pipe{ends[0], ends[1]};
}

struct Spawned {
  pid_t pid = -1;
  int input = -1;   // its stdin
  int output = -1;  // its stdout
};

Result<Spawned> spawn(const std::vector<std::string>& command) {
  // If the child dies early, a write must fail, and not end this process.
  std::signal(SIGPIPE, SIG_IGN);
  TAGFLOW_ASSIGN(const Pipe in, make_pipe());
  const Result<Pipe> made = make_pipe();
  if (!made.ok()) {
    close(in.read);
    close(in.write);
    return made.status();
  }
  const Pipe& out = *made;
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
  return Spawned{pid, in.write, out.read};
}

// The exit status, or 128 + the signal's number.
int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Waits for the end of a child; returns false at the deadline.
bool has_ended_by(pid_t pid, std::chrono::steady_clock::time_point deadline) {
  for (auto pause = std::chrono::milliseconds(1);; pause *= 2) {
    siginfo_t info{};
    // Leaves it waitable.
    const int code =
        waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    if (code != 0 || info.si_pid != 0) return true;
    const auto left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) return false;
    std::this_thread::sleep_for(std::min<decltype(left)>(
        left, std::min(pause, std::chrono::milliseconds(50))));
  }
}

// Writes to a child and reads from it at the same time, so that full pipes
// cannot deadlock.
class Filter {
 public:
  Filter(const Spawned& child, std::string_view input)
      : child_(child), input_(input) {
    fcntl(child_.input, F_SETFL, O_NONBLOCK);
    fcntl(child_.output, F_SETFL, O_NONBLOCK);
  }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  ~Filter() {
    close_input();
    close(child_.output);
  }

  Status run(std::chrono::steady_clock::time_point deadline) {
    while (!is_done_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(
          deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return late();
      if (output_.size() > kMaxOutput) {
        return error(Code::kResourceExhausted, "wrote more than {} bytes",
                     kMaxOutput);
      }
      if (input_.empty()) close_input();
      pollfd ends[2] = {{child_.output, POLLIN, 0}, {child_.input, POLLOUT, 0}};
      poll(ends, child_.input < 0 ? 1 : 2,
           int(std::min<int64_t>(left.count(), kMaxWait)));
      if (ends[0].revents != 0) read_some();
      if (ends[1].revents != 0) write_some();
    }
    close_input();
    return has_ended_by(child_.pid, deadline) ? Status() : late();
  }

  std::string take_output() { return std::move(output_); }

 private:
  static Status late() {
    return error(Code::kDeadlineExceeded, "took too long");
  }

  static constexpr size_t kMaxOutput = size_t{1} << 28;
  static constexpr int64_t kMaxWait = 1000;  // ms

  void close_input() {
    if (child_.input >= 0) close(std::exchange(child_.input, -1));
  }

  void read_some() {
    char block[1 << 16];
    const ssize_t count = read(child_.output, block, sizeof(block));
    if (count > 0) output_.append(block, size_t(count));
    is_done_ = count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
  }

  void write_some() {
    const ssize_t count = write(child_.input, input_.data(), input_.size());
    if (count >= 0) {
      input_.remove_prefix(size_t(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      input_ = {};  // the child closed stdin, but may still answer
    }
  }

  Spawned child_;
  std::string_view input_;
  std::string output_;
  bool is_done_ = false;
};

}  // namespace

Result<ChildProcess> ChildProcess::start(
    const std::vector<std::string>& command) {
  TAGFLOW_ASSIGN(const Spawned child, spawn(command));
  return ChildProcess(child.pid, fdopen(child.input, "w"),
                      fdopen(child.output, "r"));
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
  return error(Code::kAborted, "[process] the child does not read its input");
}

Result<std::string> ChildProcess::read_line() {
  std::string line;
  for (int c = std::fgetc(output_); c != EOF; c = std::fgetc(output_)) {
    if (c == '\n') return line;
    line += char(c);
  }
  return error(Code::kAborted, "[process] the child has ended");
}

int ChildProcess::wait() {
  if (input_ != nullptr) std::fclose(std::exchange(input_, nullptr));
  return wait_for(std::exchange(pid_, -1));
}

Result<std::string> run_filter(const std::vector<std::string>& command,
                               std::string_view input,
                               std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  TAGFLOW_ASSIGN(const Spawned child, spawn(command));
  Filter filter(child, input);
  Status status = filter.run(deadline);
  if (!status.ok()) kill(child.pid, SIGKILL);
  const int exit_status = wait_for(child.pid);
  TAGFLOW_RETURN_IF_ERROR(std::move(status).with_prefix(
      fmt::format("[process] \"{}\" ", command[0])));
  if (exit_status != 0) {
    return error(Code::kUnknown, "[process] \"{}\" ended with status {}",
                 command[0], exit_status);
  }
  return filter.take_output();
}

}  // namespace tagflow::apps

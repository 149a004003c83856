#include "apps/shared/runs/local_workers.h"

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
#include <string_view>
#include <thread>
#include <utility>

extern char** environ;

namespace tagflow::apps {
namespace {

constexpr std::chrono::minutes kStartTime{1};
constexpr std::chrono::seconds kEndTime{5};
constexpr std::string_view kReady = "ready: ";

// Starts this program with other arguments. Its stdout is a pipe, whose other
// end `output` receives. A Ctrl-C in the terminal is for this process alone.
Result<pid_t> start_self(const std::vector<std::string>& arguments,
                         int& output) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return error(Code::kResourceExhausted, "[cluster] cannot make a pipe: {}",
                 std::strerror(errno));
  std::vector<char*> words;
  for (const std::string& argument : arguments)
    words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                   O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP})
    sigaddset(&signals, signal);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  pid_t pid = -1;
  const int code = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes,
                               words.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (code == 0) {
    output = ends[0];
    return pid;
  }
  close(ends[0]);
  return error(Code::kResourceExhausted, "[cluster] cannot start a worker: {}",
               std::strerror(code));
}

// "ended with exit code 1"; the process cannot be waited for any more.
std::string describe_end(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status))
    return fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return fmt::format("was ended by signal {} ({})", WTERMSIG(status),
                     strsignal(WTERMSIG(status)));
}

}  // namespace

Result<std::unique_ptr<LocalWorkers>> LocalWorkers::start(
    const LocalWorkersOptions& options, const EndSignals* signals) {
  if (signals != nullptr && signals->descriptor() < 0)
    return error(Code::kResourceExhausted,
                 "[cluster] there is no descriptor for signals");
  std::unique_ptr<LocalWorkers> workers(new LocalWorkers(options, signals));
  TAGFLOW_RETURN_IF_ERROR(workers->start_all());
  const auto deadline = Clock::now() + kStartTime;
  while (!std::ranges::all_of(workers->processes_, &Process::is_ready)) {
    std::vector<End> ended;
    const Woken woken = workers->wait_for_change(deadline, &ended);
    if (woken == Woken::kBySignal)
      return error(Code::kCancelled, "[cluster] a signal ended the start");
    if (!ended.empty())
      return error(Code::kUnavailable, "[cluster] {} before it was ready",
                   ended.front().sentence);
    if (woken == Woken::kByTime)
      return error(Code::kDeadlineExceeded,
                   "[cluster] not all workers were ready in time");
  }
  return workers;
}

Status LocalWorkers::start_all() {
  for (int i = 0; i < options_.count; ++i) {
    processes_.emplace_back();
    tasks_.push_back({{"worker", uint32_t(i)}, {}, options_.devices});
    TAGFLOW_RETURN_IF_ERROR(start_one(size_t(i)));
  }
  return {};
}

Status LocalWorkers::start_one(size_t index) {
  // Each would start a thread for every core, and they would get into each
  // other's way: two matrix products at a time took 1.5 times as long.
  const int share =
      std::max(1, int(std::thread::hardware_concurrency()) / options_.count);
  const int threads = options_.threads > 0 ? options_.threads : share;
  const net::Task& task = tasks_[index].task;
  std::vector<std::string> arguments = {
      "tagflow",       "worker",
      "--parent",      std::to_string(getpid()),
      "--job",         task.job,
      "--task",        std::to_string(task.index),
      "--name",        options_.cluster,
      "--secret-file", options_.secret_file.string(),
      "--workers",     std::to_string(threads),
      "--drain-time",  fmt::to_string(options_.drain_time)};
  if (!options_.devices.empty())
    arguments.insert(arguments.end(), {"--devices", options_.devices});
  if (!options_.tls.empty())
    arguments.insert(arguments.end(),
                     {"--tls-ca", options_.tls.ca.string(), "--tls-cert",
                      options_.tls.certificate.string(), "--tls-key",
                      options_.tls.key.string()});
  // One that has ended is followed at its address.
  if (const net::Address& address = tasks_[index].address; address.port != 0)
    arguments.insert(
        arguments.end(),
        {"--listen", fmt::format("{}:{}", address.host, address.port)});
  arguments.insert(arguments.end(), options_.arguments.begin(),
                   options_.arguments.end());
  Process process;
  TAGFLOW_ASSIGN(process.pid, start_self(arguments, process.output));
  processes_[index] = std::move(process);
  return {};
}

LocalWorkers::~LocalWorkers() {
  for (const Process& process : processes_)
    if (process.pid > 0) kill(process.pid, SIGTERM);
  const auto deadline =
      Clock::now() + kEndTime +
      std::chrono::milliseconds(int64_t(options_.drain_time * 1000));
  while (is_any_left() &&
         wait_for_change(deadline, nullptr) == Woken::kByOutput) {
  }
  for (const Process& process : processes_) {
    if (process.pid <= 0) continue;
    kill(process.pid, SIGKILL);
    describe_end(process.pid);
    close(process.output);
  }
}

void LocalWorkers::wait(
    const std::function<void(const std::string&, bool)>& on_end) {
  while (is_any_left()) {
    std::vector<End> ended;
    const Woken woken = wait_for_change(Clock::time_point::max(), &ended);
    for (const End& end : ended) {
      const bool is_followed = options_.respawns && end.was_ready &&
                               woken != Woken::kBySignal &&
                               start_one(end.index).ok();
      on_end(end.sentence, is_followed);
    }
    if (woken == Woken::kBySignal) return;
  }
}

bool LocalWorkers::is_any_left() const {
  return std::ranges::any_of(
      processes_, [](const Process& process) { return process.pid > 0; });
}

LocalWorkers::Woken LocalWorkers::wait_for_change(Clock::time_point deadline,
                                                  std::vector<End>* ended) {
  std::vector<pollfd> ends;
  for (const Process& process : processes_)
    ends.push_back({process.pid > 0 ? process.output : -1, POLLIN, 0});
  ends.push_back(
      {signals_ == nullptr ? -1 : signals_->descriptor(), POLLIN, 0});
  constexpr std::chrono::milliseconds kLongest{1000};
  for (int count = 0; count == 0;) {
    const auto left = deadline - Clock::now();
    if (left.count() <= 0) return Woken::kByTime;
    const auto wait = std::min<Clock::duration>(left, kLongest);
    count =
        poll(ends.data(), ends.size(),
             int(std::chrono::ceil<std::chrono::milliseconds>(wait).count()));
  }
  for (size_t i = 0; i < processes_.size(); ++i)
    if (ends[i].revents != 0) read_output(i, ended);
  if (ends.back().revents == 0) return Woken::kByOutput;
  signals_->take();
  return Woken::kBySignal;
}

void LocalWorkers::read_output(size_t index, std::vector<End>* ended) {
  Process& process = processes_[index];
  char bytes[512];
  const ssize_t count = read(process.output, bytes, sizeof(bytes));
  if (count < 0 && errno == EINTR) return;
  if (count > 0) {
    // After the one line, nothing is expected.
    if (process.is_ready) return;
    process.line.append(bytes, size_t(count));
    return take_line(index);
  }
  close(process.output);
  const pid_t pid = std::exchange(process.pid, -1);
  const std::string end = describe_end(pid);
  if (ended != nullptr)
    ended->push_back({fmt::format("{} (process {}) {}",
                                  tasks_[index].task.to_string(), pid, end),
                      index, process.is_ready});
}

void LocalWorkers::take_line(size_t index) {
  Process& process = processes_[index];
  const size_t end = process.line.find('\n');
  if (end == std::string::npos) return;
  const std::string_view line(process.line.data(), end);
  if (!line.starts_with(kReady)) return;
  auto address = net::parse_address(line.substr(kReady.size()));
  if (!address.ok()) return;
  tasks_[index].address = *std::move(address);
  process.is_ready = true;
}

}  // namespace tagflow::apps

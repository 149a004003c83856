#include "apps/chaos/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

namespace tagflow::chaos {
namespace {

// In a process that was forked: it takes no memory.
bool shift_clock(std::string_view offset) {
  if (::unshare(CLONE_NEWTIME) != 0) return false;
  const int offsets = ::open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  const int space =
      ::open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
  return offsets >= 0 && space >= 0 &&
         ::write(offsets, offset.data(), offset.size()) ==
             ssize_t(offset.size()) &&
         ::setns(space, CLONE_NEWTIME) == 0;
}

}  // namespace

Result<Process> Process::start(const ProcessOptions& options) {
  std::array<std::array<int, 2>, 2> pipes;
  for (auto& pipe : pipes)
    if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
      return error(Code::kResourceExhausted, "[chaos] there is no pipe: {}",
                   std::strerror(errno));
  std::vector<char*> words;
  for (const std::string& word : options.command)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const std::string offset = fmt::format("monotonic {} 0\n", options.ahead);
  const pid_t parent = ::getpid();
  Process made;
  made.pid_ = ::fork();
  if (made.pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
    // Not those that this program has been told to ignore.
    for (const int number : {SIGPIPE, SIGXFSZ}) ::signal(number, SIG_DFL);
    const int null = ::open("/dev/null", O_RDONLY);
    if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(pipes[0][1], 1) < 0 ||
        ::dup2(pipes[1][1], 2) < 0 || ::chdir(options.folder.c_str()) != 0)
      ::_exit(126);
    if (options.network >= 0 && ::setns(options.network, CLONE_NEWNET) != 0)
      ::_exit(126);
    if (options.ahead != 0 && !shift_clock(offset)) ::_exit(126);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  const int why = errno;
  for (size_t k = 0; k < pipes.size(); ++k) {
    ::close(pipes[k][1]);
    ::fcntl(pipes[k][0], F_SETFL, O_NONBLOCK);
    made.streams_[k].descriptor = pipes[k][0];
  }
  if (made.pid_ < 0)
    return error(Code::kNotFound, "[chaos] cannot start {:?}: {}",
                 options.command[0], std::strerror(why));
  return made;
}

Process::Process(Process&& other) noexcept { *this = std::move(other); }

Process& Process::operator=(Process&& other) noexcept {
  kill();
  close_streams();
  pid_ = std::exchange(other.pid_, -1);
  for (size_t k = 0; k < 2; ++k)
    streams_[k] = std::exchange(other.streams_[k], Stream());
  return *this;
}

Process::~Process() {
  kill();
  close_streams();
}

void Process::close_streams() {
  for (Stream& stream : streams_)
    if (const int open = std::exchange(stream.descriptor, -1); open >= 0)
      ::close(open);
}

void Process::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

void Process::kill() {
  signal(SIGKILL);
  if (pid_ > 0) ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

bool Process::has_ended(int& code) {
  int status = 0;
  if (pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    pid_ = -1;
    code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
  }
  return false;
}

void Process::read_lines(
    const std::function<void(const std::string&)>& on_output,
    const std::function<void(const std::string&)>& on_error) {
  read_stream(streams_[0], on_output);
  read_stream(streams_[1], on_error);
}

void Process::read_stream(
    Stream& stream, const std::function<void(const std::string&)>& on_line) {
  std::array<char, 4096> bytes;
  while (stream.descriptor >= 0) {
    const ssize_t size = ::read(stream.descriptor, bytes.data(), bytes.size());
    if (size == 0) {
      ::close(std::exchange(stream.descriptor, -1));
      break;
    }
    if (size < 0) break;
    stream.rest.append(bytes.data(), size_t(size));
    size_t begin = 0;
    for (size_t end; (end = stream.rest.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      on_line(stream.rest.substr(begin, end - begin));
    stream.rest.erase(0, begin);
  }
}

}  // namespace tagflow::chaos

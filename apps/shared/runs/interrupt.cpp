#include "apps/shared/runs/interrupt.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <iterator>
#include <system_error>
#include <utility>

#include "graph/unfinished_file.h"

namespace tagflow::apps {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};

// The state that the handler may access; there is one Interruptible at a time.
std::atomic<int> first_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);
sem_t wake;
struct sigaction before[std::size(kSignals)];
bool is_installed = false;

extern "C" void on_interrupt(int signal) {
  const int code = errno;
  int none = 0;
  if (!first_signal.compare_exchange_strong(none, signal)) {
    remove_unfinished_files();
    _exit(int(exit_code_of_signal(signal)));
  }
  sem_post(&wake);
  errno = code;
}

// Waits, and returns whether the time passed before this ended.
bool is_patience_over(std::chrono::seconds patience) {
  if (patience.count() == 0) return true;
  timespec deadline{};
  clock_gettime(CLOCK_MONOTONIC, &deadline);
  deadline.tv_sec += patience.count();
  int result = 0;
  do {
    result = sem_clockwait(&wake, CLOCK_MONOTONIC, &deadline);
  } while (result != 0 && errno == EINTR);
  return result != 0;
}

}  // namespace

Interruptible::Interruptible(std::chrono::seconds patience)
    : patience_(patience) {
  first_signal = 0;
  sem_init(&wake, 0, 0);
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {
    return;  // restores the old handlers
  }
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kSignals); ++i)
    sigaction(kSignals[i], &action, &before[i]);
  is_installed = true;
  // Shows others that a signal is caught from now on.
  pthread_setname_np(watcher_.native_handle(), "interruptible");
}

Interruptible::~Interruptible() {
  if (std::exchange(is_installed, false))
    for (size_t i = 0; i < std::size(kSignals); ++i)
      sigaction(kSignals[i], &before[i], nullptr);
  if (!watcher_.joinable()) return;
  sem_post(&wake);
  watcher_.join();
}

int Interruptible::signal() const { return first_signal; }

Failure Interruptible::failure_of(Status status) const {
  if (signal() == 0 || status.code() != Code::kCancelled)
    return run_time_error(std::move(status));
  return {exit_code_of_signal(signal()),
          std::move(status).with_prefix(signal() == SIGINT ? "[SIGINT] "
                                                           : "[SIGTERM] ")};
}

// Only this thread acts, since a signal handler may do very little.
void Interruptible::watch() {
  while (sem_wait(&wake) != 0 && errno == EINTR) {
  }
  if (first_signal == 0 || !is_patience_over(patience_)) return;
  // The engine's message has the progress of the run.
  token_.cancel();
}

}  // namespace tagflow::apps

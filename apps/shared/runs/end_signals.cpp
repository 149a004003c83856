#include "apps/shared/runs/end_signals.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

namespace tagflow::apps {

EndSignals::EndSignals() {
  ::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  struct sigaction hang_up {};
  sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  descriptor_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
}

EndSignals::~EndSignals() {
  if (descriptor_ >= 0) close(descriptor_);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int EndSignals::take(int event) const {
  int signal = 0;
  if (event >= 0) {
    pollfd ends[] = {{descriptor_, POLLIN, 0}, {event, POLLIN, 0}};
    while (poll(ends, std::size(ends), -1) < 0 && errno == EINTR) {
    }
    if (ends[0].revents == 0) return 0;
  }
  while (sigwait(&signals_, &signal) == EINTR) {
  }
  return signal;
}

}  // namespace tagflow::apps

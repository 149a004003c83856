// The signals that ask a process to end, for one that only waits for them.
#pragma once

#include <signal.h>

namespace tagflow::apps {

// While it lives, SIGINT, SIGTERM, and SIGHUP unless that was ignored, act on
// no thread that is started: they wait until somebody takes them here. SIGPIPE
// is ignored from then on: others need the process when nobody reads what it
// says any more.
// REQUIRES: made before other threads are. Thread-compatible.
class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;
  // From now on they act as before; those that were not taken act at once.
  ~EndSignals();

  // Readable if there is one; -1 if the system gives none.
  int descriptor() const { return descriptor_; }
  // Waits for a signal, and returns its number; or 0 if `event`, which is
  // another descriptor, or -1 for none, is readable before. REQUIRES: there is
  // a descriptor() if there is an event
  int take(int event = -1) const;

 private:
  sigset_t signals_;
  sigset_t before_;
  int descriptor_ = -1;
};

}  // namespace tagflow::apps

// A session whose end does not block forever.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "actors/session/session.h"
#include "apps/shared/program/exit_code.h"

namespace tagflow::apps {

// How long a program waits for the remaining work of a cancelled run.
inline constexpr std::chrono::milliseconds kPatience{100};
// How long it waits if output of the run is still to be written.
inline constexpr std::chrono::seconds kLongPatience{2};

// Owns a session. If a run was cancelled in a kernel that cannot be
// interrupted, the session's destructor would wait for the kernel. Here the
// wait is bounded: after it, the session and all objects that its runs refer to
// are left to a separate thread. Thread-compatible.
class OwnedSession {
 public:
  OwnedSession() = default;
  OwnedSession(std::unique_ptr<actors::Session> session)  // NOLINT: is one
      : session_(std::move(session)) {}
  OwnedSession(OwnedSession&&) = default;
  OwnedSession& operator=(OwnedSession&& other) noexcept;
  ~OwnedSession() { end(kPatience); }

  bool is_open() const { return session_ != nullptr; }
  actors::Session* operator->() const { return session_.get(); }
  actors::Session& operator*() const { return *session_; }

  // Keeps an object that runs refer to, such as a trace, as long as the
  // session.
  void keep(std::shared_ptr<void> witness) {
    kept_.push_back(std::move(witness));
  }
  // Ends the session; returns false if that takes longer, and true if
  // there is no session. REQUIRES: all of its callables are destroyed.
  bool end(std::chrono::milliseconds patience);

 private:
  std::unique_ptr<actors::Session> session_;
  std::vector<std::shared_ptr<void>> kept_;
};

// Makes a session with the graph. Returns errors of Session::create() and
// extend(), all of them run-time errors.
Failure open_session(const graph::Graph& graph,
                     const actors::SessionOptions& options,
                     OwnedSession& session);

// Whether a session was left, and may be busy. Then the program must end by
// std::_Exit(), since the session uses static objects. Thread-safe.
bool is_session_left();

}  // namespace tagflow::apps

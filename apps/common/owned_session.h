// A session that a program lets go of without waiting for ever.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "actors/session/session.h"
#include "apps/common/exit_code.h"

namespace tagflow::apps {

// How long a program waits for what a run that was cut short still does.
inline constexpr std::chrono::milliseconds kPatience{100};
// The same, where what the run left behind is to be written.
inline constexpr std::chrono::seconds kLongPatience{2};

// Owns a session. Where a run was cut short in a kernel that cannot be
// interrupted, the session's end waits for that: here the wait is bounded, and
// what has not ended then is left to a thread of its own, with all that its
// runs refer to. Thread-compatible.
class OwnedSession {
 public:
  OwnedSession() = default;
  OwnedSession(std::unique_ptr<actors::Session> session)  // NOLINT: is one
      : session_(std::move(session)) {}
  OwnedSession(OwnedSession&&) = default;
  OwnedSession& operator=(OwnedSession&& other) noexcept;
  ~OwnedSession() { end(kPatience); }

  actors::Session* operator->() const { return session_.get(); }
  actors::Session& operator*() const { return *session_; }

  // Keeps what runs refer to, such as a trace, for as long as the session.
  void keep(std::shared_ptr<void> witness) {
    kept_.push_back(std::move(witness));
  }
  // Ends the session, with all callables of it gone; false where that takes
  // longer. True where there is none.
  bool end(std::chrono::milliseconds patience);

 private:
  std::unique_ptr<actors::Session> session_;
  std::vector<std::shared_ptr<void>> kept_;
};

// Makes a session that has the graph. Errors of Session::create() and extend(),
// all of them run-time errors.
Failure open_session(const graph::Graph& graph,
                     const actors::SessionOptions& options,
                     OwnedSession& session);

// Some session was left, and may be busy: the program must end by
// std::_Exit(), since static objects that it uses must not go. Thread-safe.
bool is_session_left();

}  // namespace tagflow::apps

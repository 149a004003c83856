// tagflow._native.Session, the class of Python.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "actors/session/session.h"

namespace tagflow::python {

// A session until it is closed. Other threads may be in a call of it when it is
// closed: each call keeps the engine's session alive. All functions REQUIRE
// that the GIL is held.
class SessionObject {
 public:
  ~SessionObject();  // closes it

  void set(std::unique_ptr<actors::Session> session) {
    session_ = std::move(session);
  }
  // Raises FailedPreconditionError if it is closed.
  std::shared_ptr<actors::Session> shared() const;
  actors::Session& session() const;
  // Later calls find it closed. Null if it was.
  std::shared_ptr<actors::Session> leave() { return std::move(session_); }
  bool is_closed() const { return session_ == nullptr; }

  // Taken without the GIL, while the graph grows or names of it are read.
  std::mutex extension;

 private:
  std::shared_ptr<actors::Session> session_;
};

}  // namespace tagflow::python

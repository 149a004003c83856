// An error as an exception.
#pragma once

#include <stdexcept>
#include <utility>

#include "graph/status.h"

namespace tagflow {

// Thrown by functions that return nothing, if a caller of theirs is guarded:
// current_fault() (graph/fault.h) returns the status. what() is its text.
class StatusException : public std::invalid_argument {
 public:
  // REQUIRES: !status.ok().
  explicit StatusException(Status status)
      : std::invalid_argument(status.to_string()), status_(std::move(status)) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

}  // namespace tagflow

// Freezing: when a signature is compiled for the values of variables.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "actors/frozen_variables.h"
#include "actors/signature_cache.h"

namespace tagflow::actors {

// A form of a signature, and the versions that it is for.
struct Frozen {
  std::shared_ptr<const Prepared> form;  // null: there is nothing to freeze
  FrozenVariables variables;
};

// Of one signature, which has a frozen form by and by: Note [Frozen variables].
// A form costs as much as to compile the signature. So it is made after some
// runs only, and each that was hardly used doubles the number of these.
// Thread-safe.
class Freezing {
 public:
  explicit Freezing(Signature signature) : signature_(std::move(signature)) {}

  // The form for a run that starts now; null where that is the usual one. Calls
  // `freeze` where a form is due, unless that is null, on this thread and no
  // other at the same time.
  std::shared_ptr<const Prepared> pick(
      const std::function<Result<Frozen>(const Signature&)>& freeze);

 private:
  // One more run has the usual form. Whether it is the one to make another.
  bool count_run();

  static constexpr int kFewestRuns = 4;
  static constexpr int kMostRuns = 4096;

  const Signature signature_;
  std::mutex mutex_;  // guards the below
  Frozen frozen_;
  bool is_freezing_ = false;
  int runs_ = 0;            // with this form, or since there is none
  int wait_ = kFewestRuns;  // so many before a form is made
};

}  // namespace tagflow::actors

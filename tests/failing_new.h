// A shortage of memory on demand: operator new of every test binary, including
// its libraries, fails when a test requests that. Otherwise it costs one load.
#pragma once

#include <cstdint>

namespace tagflow {

// From its making on, the k-th call of operator new, in any form, of any
// thread, fails, with std::bad_alloc (null if that is the form), and with it
// the next ones, up to `count`. What comes from malloc itself does not count.
// One at a time.
//
//   for (int64_t k = 1;; ++k) {
//     FailAllocation fail(k);
//     ... what must survive it ...
//     if (!fail.failed()) break;  // all of them were tried
//   }
class FailAllocation {
 public:
  // REQUIRES: both >= 1.
  explicit FailAllocation(int64_t k, int64_t count = 1);
  // None fails after this.
  ~FailAllocation();
  FailAllocation(const FailAllocation&) = delete;
  FailAllocation& operator=(const FailAllocation&) = delete;

  // Whether one has failed. Thread-safe.
  bool failed() const;
  // Ends the failures, as the end of its life does, so that a test may check in
  // peace.
  void stop();

 private:
  bool failed_ = false;
};

}  // namespace tagflow

// Job: a function that a worker calls, outside of all actors.
#pragma once

#include <caf/ref_counted.hpp>
#include <caf/resumable.hpp>
#include <functional>
#include <utility>

#include "actors/runtime/scheduler.h"

namespace tagflow::actors {

// Created with one reference, which the scheduler releases.
class Job : public caf::resumable, public caf::ref_counted {
 public:
  explicit Job(std::function<void()> work) : work_(std::move(work)) {}
  subtype_t subtype() const override { return function_object; }
  resume_result resume(caf::execution_unit*, size_t) override {
    work_();
    return done;
  }
  void intrusive_ptr_add_ref_impl() override { ref(); }
  void intrusive_ptr_release_impl() override { deref(); }

  Ready ready{this};

 private:
  const std::function<void()> work_;
};

// Calls `work` once, on a worker. `work` must not throw. The engine must
// outlive the call. Throws std::bad_alloc if there is no memory for the job.
// Thread-safe.
inline void run_on_worker(Scheduler& scheduler, std::function<void()> work) {
  scheduler.enqueue((new Job(std::move(work)))->ready);
}

}  // namespace tagflow::actors

// Job: a function that some worker calls, outside of all actors.
#pragma once

#include <caf/ref_counted.hpp>
#include <caf/resumable.hpp>
#include <functional>
#include <utility>

#include "actors/annotated_actor.h"

namespace tagflow::actors {

// For the scheduler's enqueue(); born with its reference.
class Job : public caf::resumable, public caf::ref_counted {
 public:
  explicit Job(std::function<void()> work) : work_(std::move(work)) {
    tsan_release(this);
  }
  subtype_t subtype() const override { return function_object; }
  resume_result resume(caf::execution_unit*, size_t) override {
    tsan_acquire(this);
    work_();
    return done;
  }
  void intrusive_ptr_add_ref_impl() override { ref(); }
  void intrusive_ptr_release_impl() override { deref(); }

 private:
  const std::function<void()> work_;
};

}  // namespace tagflow::actors

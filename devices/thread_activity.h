// What threads are doing, for the message of a step that does not end.
#pragma once

#include <string>

#include "devices/kernel.h"

namespace tagflow::devices {

// While it exists, the calling thread works for a step: it computes a kernel,
// or frees what the step has left. A thread has one at a time.
class StepWork {
 public:
  // Frees what the step has left.
  explicit StepWork(const StepInfo& step);
  // Computes the kernel of `node`, of an executable that the step keeps, on the
  // device of that name, which also outlive the step. Looks at the clock, so it
  // is for kernels that may take long.
  StepWork(const StepInfo& step, const graph::Node& node,
           const std::string& device);
  ~StepWork();
  StepWork(const StepWork&) = delete;
  StepWork& operator=(const StepWork&) = delete;
};

// While it exists, the calling thread destroys the elements of a container. So
// many that it may take long: a shorter container costs nothing.
class FreedElements {
 public:
  // `kind` is a literal such as "stack".
  FreedElements(const char* kind, size_t count);
  ~FreedElements();
  FreedElements(const FreedElements&) = delete;
  FreedElements& operator=(const FreedElements&) = delete;

 private:
  const bool are_many_;
};

// 'RegexReplace "y" has run on /cpu:0 for 1.25 s', 'a stack of 10000000
// elements is being freed': what threads do for the step, some of it, or "" if
// they do nothing of the kind. REQUIRES: the step is alive. Thread-safe.
std::string describe_work(const StepInfo& step);

}  // namespace tagflow::devices

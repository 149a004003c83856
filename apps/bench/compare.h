// tagflow bench compare: the same GraphDef files here and in TensorFlow. Of
// gradients and train steps TensorFlow runs programs that compare.py builds;
// what these compute must agree with ours.
//
// TensorFlow runs each in several ways - as it comes, in the thread of the
// caller, and both without its optimisers - of which the fastest counts.
// tagflow runs each as it comes and, in a column of its own, with every token
// as a message in a CAF mailbox.
#pragma once

#include <string>

#include "apps/bench/workload.h"
#include "apps/common/exit_code.h"

namespace tagflow::apps {

struct CompareOptions {
  std::string python;  // one that can import tensorflow
  std::string only;    // a workload's name; empty: all
  int rounds = 3;      // in which both sides take turns
  bool json = false;
  BenchOptions bench;
};

// Prints a Markdown table as the README has it, or one JSON object a line, with
// the medians over the rounds. Unavailable where TensorFlow does not answer.
Failure compare_with_tensorflow(const CompareOptions& options);

}  // namespace tagflow::apps

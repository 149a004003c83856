// tagflow bench compare: the same GraphDef files here and in TensorFlow.
#pragma once

#include <string>

#include "apps/bench/workload.h"
#include "apps/common/exit_code.h"

namespace tagflow::apps {

struct CompareOptions {
  std::string python;  // one that can import tensorflow
  std::string only;    // a workload's name; empty: all
  int rounds = 3;      // in which both sides take turns
  int threads = 2;     // TensorFlow's threads between ops
  int batch = 0;       // of a model; 0: its own
  bool json = false;
  BenchOptions bench;
};

// Prints a Markdown table, or one JSON object a line, with the median over
// the rounds. Unavailable where TensorFlow does not answer.
Failure compare_with_tensorflow(const CompareOptions& options);

}  // namespace tagflow::apps

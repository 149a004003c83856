// tagflow bench compare: runs the same GraphDef files here and in TensorFlow.
// For gradients and train steps TensorFlow runs programs that compare.py
// builds; their results must agree with ours.
//
// TensorFlow runs each graph in several ways (with its defaults, in the
// caller's thread, and both without its optimisers), and the fastest counts.
// tagflow runs each graph with its defaults and, in a separate column, with
// every token as a message in a CAF mailbox.
//
// tagflow bench cluster does the same over two worker processes on this
// machine, which are gRPC servers on TensorFlow's side. They begin with the
// first graph, and each graph has workers of its own here.
#pragma once

#include <string>

#include "apps/bench/workload.h"
#include "apps/shared/program/exit_code.h"

namespace tagflow::apps {

struct CompareOptions {
  std::string python;  // one that can import tensorflow
  std::string only;    // a workload's name; empty: all
  int rounds = 3;      // both sides take turns
  bool json = false;
  bool over_workers = false;  // the workloads of two workers instead of others
  BenchOptions bench;
};

// Prints a Markdown table as in docs/speed.md, or one JSON object a line, with
// the medians over the rounds. Fails with Aborted if TensorFlow does not
// answer.
Failure compare_with_tensorflow(const CompareOptions& options);

}  // namespace tagflow::apps

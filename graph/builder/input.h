// Input pipelines of queues, as TensorFlow 1 has them: names of files, from
// which readers read, and batches of what is read.
//
//   const FileNames files = string_input_producer(s, {"a.csv", "b.csv"});
//   const Output reader = s.op("TextLineReaderV2", {});
//   const Output line =
//       s.op("ReaderReadV2", {reader, files.queue.handle}).output(1);
//   const Batches lines = batch(s, {line}, {.batch_size = 32});
//   lines.components[0]   // of one batch: string[32]
//
// The queues are filled while the runners of all parts run:
// actors/session/queue_runners.h starts them. If the input ends, so do the
// batches, with OutOfRange.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/builder/control_flow.h"
#include "graph/builder/ops_queue.h"
#include "graph/builder/ops_random.h"
#include "graph/file/queue_runner.h"

namespace tagflow::graph {

struct ProducerOptions {
  int64_t epochs = 0;   // how often each element is given; 0: without an end
  bool shuffle = true;  // anew in each epoch
  ops::Seeds seeds = {};
  int64_t capacity = 32;  // elements; positive
};

// A queue of file names, to be read by readers.
struct FileNames {
  ops::Queue queue;
  // An operation that must run once before the runners, which sets the variable
  // that counts the epochs; not valid if these have no end.
  Output initializer;
  std::vector<QueueRunnerDef> runners;
};

// Puts names into a queue, again and again. `names` is a vector of strings,
// such as the result of match_filenames_once(); without any, the runner ends
// with InvalidArgument. The scope fails with InvalidArgument if an option, a
// type or a shape is invalid; then nothing in the result is valid, as for all
// below. Thread-compatible together with the graph.
FileNames string_input_producer(const Scope& s, const Input& names,
                                const ProducerOptions& options = {});

// The names that match patterns when `initializer` ran, which must be before
// they are used: a vector of strings.
struct MatchedNames {
  Output names;
  Output initializer;  // an operation
};
MatchedNames match_filenames_once(const Scope& s, const Input& pattern);

// One slice of each component, to be computed for each element of a batch.
struct Slices {
  Outputs components;  // without their first dimension
  Output initializer;  // as that of FileNames
  std::vector<QueueRunnerDef> runners;
};
// Gives slices of tensors, which have the same first dimension, whose size must
// be known.
Slices slice_input_producer(const Scope& s, const Outputs& tensors,
                            const ProducerOptions& options = {});

struct BatchOptions {
  int64_t batch_size = 1;  // positive
  int64_t capacity = 32;   // of the queue; at least batch_size
  int64_t threads = 1;     // that compute elements: from 1 to 1024
  // The components have a first dimension: each row is an element.
  bool enqueue_many = false;
  // Pads unknown dimensions with zeros. Otherwise shapes must be known.
  bool dynamic_pad = false;  // not for shuffle_batch()
  // Whether the rest at the end makes a smaller batch.
  bool allow_smaller_final_batch = false;
};

// One batch, to be fetched.
struct Batches {
  Outputs components;
  std::vector<QueueRunnerDef> runners;
};
Batches batch(const Scope& s, const Outputs& components,
              const BatchOptions& options);
// In random order: `min_after_dequeue`, less than the capacity, elements remain
// to choose from.
Batches shuffle_batch(const Scope& s, const Outputs& components,
                      int64_t min_after_dequeue, const BatchOptions& options,
                      ops::Seeds seeds = {});

}  // namespace tagflow::graph

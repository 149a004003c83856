// Stage: the state of one dataset while it is iterated.
//
// Note [Pipelines]
// A *dataset* is an immutable value, a description: what its op computes of its
// inputs, which are datasets, too (dataset.h). An iterator is a resource that
// owns a *pipeline*: a tree of *stages*, one for each dataset, each with the
// state of that dataset's iteration. The root is asked for the next element,
// and asks its inputs.
//
// No stage ever blocks a thread, and none is called by two threads at once.
// next() returns what it has: an element, the end, an error, or that it must
// wait. In the last case the stage has made sure that its segment is woken when
// it is worth to ask again; then the root is asked once more, and the stages
// continue from their state. So stages need no locks, and a pipeline that
// nobody asks does nothing.
//
// A *segment* (segment.h) is the actor that asks. It is a part of a pipeline
// from its own root down to the next borders, and is run by one worker at a
// time. The borders are the stages that prefetch: what is below such a border
// is a segment of its own, which works ahead until its bounded buffer is full.
// The root segment works as long as some IteratorGetNext waits for an element.
//
// Functions of datasets run in the engine, as steps of their own that share its
// workers (devices/function_host.h). A stage starts a call, returns that it
// waits, and the answer wakes its segment. Several calls may be open: the
// parallel stages keep them in the order in which their results are due, so the
// order of elements never depends on the schedule.
//
// The end of a pipeline - its iterator was deleted, initialised again, or lost
// with its session - cancels the open calls and stops its segments. Each
// segment drops its stages as soon as no worker is inside. A step that is
// cancelled while it waits for an element leaves the line, and nothing else
// happens: the element that was being made is for the next one that asks.
//
// Errors of an element - its function failed, or it cannot be batched - are the
// answer to one IteratorGetNext. The next one gets the element after it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::devices {

class Segment;

// The components of one element of a dataset.
using Element = std::vector<Tensor>;

enum class Progress : uint8_t {
  kElement,  // Pull::element is set
  kEnd,      // there is no further element, now and later
  kWait,     // the segment will be woken
  kFailed,   // Pull::error is set; the next call gives what follows
};

// The answer of a stage.
struct Pull {
  Element element;
  Status error;

  Progress fail(Status status) {
    error = std::move(status);
    return Progress::kFailed;
  }
  Progress give(Element value) {
    element = std::move(value);
    return Progress::kElement;
  }
};

// Thread-compatible: only the worker inside of its segment calls it.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual Progress next(Pull& pull) = 0;
};

using StagePtr = std::unique_ptr<Stage>;

}  // namespace tagflow::devices

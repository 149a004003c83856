// tagflow.Callable, the class of Python: a prepared signature.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "actors/session/session.h"
#include "graph/dtype.h"

namespace tagflow::python {

// What a call returns: the value of a single fetch, or all of them.
enum class ResultForm : uint8_t { kSingle, kTuple, kList, kDict };

struct CallableParts {
  struct FeedSlot {
    std::string tensor;          // its name in the graph
    nanobind::object parameter;  // an interned str: the name in a call
    DataType dtype = DataType::kInvalid;
  };

  std::shared_ptr<actors::Session> session;
  actors::Callable callable;
  std::vector<FeedSlot> feeds;
  size_t num_fetches = 0;
  ResultForm form = ResultForm::kTuple;
  std::vector<nanobind::object> keys;  // of a dict: interned, one per fetch
  // Of calls on the main thread, which Ctrl-C ends, and on others.
  actors::RunOptions on_main, elsewhere;
};

// A new object of Python, which owns the parts.
nanobind::object make_callable_object(std::unique_ptr<CallableParts> parts);

// Asks Python's signal handlers whether a run goes on; false if one of them
// raised. REQUIRES: the thread has released the GIL.
bool no_signal();
// Whether the calling thread is the one that handles signals.
bool is_main_thread();

}  // namespace tagflow::python

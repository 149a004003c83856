// Writes a recording as text, as JSON, or as a page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/shared/draw/layout.h"
#include "apps/tagflow/stepper/plan_listing.h"
#include "apps/tagflow/stepper/recording.h"

namespace tagflow::apps::stepper {

// Facts about a run besides its steps.
struct Frontispiece {
  std::string title;               // the graph's file
  std::vector<std::string> notes;  // how it ran, what was omitted
  std::string result;              // the fetches, or nothing
  std::string error;               // why the run failed, or nothing
  PlanListing plans;               // if requested
};

// The whole tag of each scope, "outer/2/inner/3": each frame and the iteration
// of it, from the outermost loop on; "root/0" outside of loops. A call that is
// not the first of its function in an iteration has its number, as in
// "fib#2/0". REQUIRES: a scope comes after those that have called its frame.
std::vector<std::string> scope_names(const Recording& recording);

// Selects the steps that are written; they keep their numbers.
struct StepFilter {
  std::string nodes = "*";   // shell patterns: that a node fires or gets a
  std::string frames = "*";  // token; that it happens in an iteration of; or
                             // in "FRAME/ITERATION", as scope_names() has it
  size_t first = 1;
  size_t last = SIZE_MAX;
  bool is_brief = false;  // only events, without the state after them

  bool operator==(const StepFilter&) const = default;
};

// A few lines for each step: the event, and the state of that iteration
// afterwards. The last step of a failed run is the node that failed.
std::string to_text(const Recording& recording, const Frontispiece& front,
                    const StepFilter& filter = {});

// The whole recording as one JSON object; all text in it is UTF-8.
std::string to_json(const Recording& recording, const Frontispiece& front);

// A self-contained page: the graph, a slider, the engine's state.
// `layout` is that of the recording's drawing.
std::string to_page(const Recording& recording, const Frontispiece& front,
                    const draw::Layout& layout);

}  // namespace tagflow::apps::stepper

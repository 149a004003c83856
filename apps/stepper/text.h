// A recording for people and scripts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/draw/layout.h"
#include "apps/stepper/plan_listing.h"
#include "apps/stepper/recording.h"

namespace tagflow::apps::stepper {

// What is said of a run beside its steps.
struct Frontispiece {
  std::string title;               // the graph's file
  std::vector<std::string> notes;  // how it was run, what was left out
  std::string result;              // what was fetched, or nothing
  std::string error;               // why the run failed, or nothing
  PlanListing plans;               // where they were asked for
};

// The whole tag, "outer/2/inner/3": each frame and the iteration of it, from
// the outermost loop on; "root/0" outside of loops. A call that is not the
// first of its function in an iteration has its number, as in "fib#2/0".
std::string scope_name(const Recording& recording, int scope);

// Which steps are written; they keep their numbers.
struct StepFilter {
  std::string nodes = "*";   // shell patterns: that a node fires or gets a
  std::string frames = "*";  // token; that it happens in an iteration of
  size_t first = 1;
  size_t last = SIZE_MAX;
  bool is_brief = false;  // only what happens, not how things stand then
};

// Some lines a step: what happened; and how that iteration stands then. The
// node that a run failed at is the last one.
std::string to_text(const Recording& recording, const Frontispiece& front,
                    const StepFilter& filter = {});

// All of it as one JSON object; any text in it is UTF-8.
std::string to_json(const Recording& recording, const Frontispiece& front);

// A page that needs nothing else: the graph, a slider, the engine's state.
// The layout is of the recording's drawing.
std::string to_page(const Recording& recording, const Frontispiece& front,
                    const draw::Layout& layout);

}  // namespace tagflow::apps::stepper

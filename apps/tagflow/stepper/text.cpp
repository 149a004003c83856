#include "apps/tagflow/stepper/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>

#include "actors/plan/tag.h"
#include "graph/counted.h"

namespace tagflow::apps::stepper {
namespace {

constexpr size_t kMaxListed = 10;

// Joins words; `more` others are not listed.
std::string join_some(const std::vector<std::string>& words, size_t more = 0) {
  const size_t shown = std::min(words.size(), kMaxListed);
  more += words.size() - shown;
  std::string text = fmt::format(
      "{}", fmt::join(words.begin(), words.begin() + ptrdiff_t(shown), ", "));
  if (more > 0) text += fmt::format(", ... {} more", more);
  return text;
}

bool matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// Whether the filter selects the steps in the scope of this name. In names of
// iterations an asterisk is part of one level: so "while/*" does not select the
// frames in these iterations.
bool is_in_frames(const Recording& recording, const StepFilter& filter,
                  int scope, const std::string& name) {
  const size_t instance = size_t(recording.scopes[size_t(scope)].instance);
  const std::string& frame = recording.instances[instance].frame;
  return matches(filter.frames, actors::frame_label(frame)) ||
         (filter.frames.find('/') != filter.frames.npos &&
          fnmatch(filter.frames.c_str(), name.c_str(), FNM_PATHNAME) == 0);
}

// Follows the steps: the places of tokens and the pending counts.
class TextWriter {
 public:
  TextWriter(const Recording& recording, const StepFilter& filter)
      : recording_(recording),
        filter_(filter),
        scope_names_(scope_names(recording)),
        pending_(recording.scopes.size()) {}

  std::string write() {
    for (size_t i = 0; i < recording_.steps.size(); ++i) add_step(i);
    return std::move(text_);
  }

 private:
  const std::string& name(int node) const {
    return recording_.drawing.nodes[size_t(node)].name;
  }
  const std::string& op(int node) const {
    return recording_.drawing.nodes[size_t(node)].op;
  }
  std::string value(int index) const {
    if (index == kDead) return "dead";
    if (index == kControl) return "done";
    return recording_.values[size_t(index)].text;
  }
  bool is_chosen(size_t i) const {
    const Step& step = recording_.steps[i];
    if (i + 1 < filter_.first || i + 1 > filter_.last) return false;
    if (!is_in_frames(recording_, filter_, step.scope,
                      scope_names_[size_t(step.scope)]))
      return false;
    if (filter_.nodes == "*") return true;
    const auto matches_node = [&](int node) {
      return node >= 0 && matches(filter_.nodes, name(node));
    };
    return matches_node(step.node) ||
           std::ranges::any_of(step.arrivals, [&](const Arrival& arrival) {
             return matches_node(arrival.node);
           });
  }

  std::string frame_of(int scope) const {
    const std::string& name = scope_names_[size_t(scope)];
    return name.substr(0, name.rfind('/'));
  }

  std::string describe_fire(const Step& step) const {
    std::string what = fmt::format("{} \"{}\"", op(step.node), name(step.node));
    if (step.kind == StepKind::kSkip) {
      what += " is skipped: dead";
      if (step.kept > 0)
        what += fmt::format(", kept until frame {} ends", frame_of(step.scope));
      if (step.dropped > 0) what += ", dropped since it was live";
      return what;
    }
    if (step.kind == StepKind::kAnswer) what += " answers";
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      what += fmt::format("{} :{} {}", i == 0 ? " ->" : ",", i,
                          value(step.outputs[i]));
    }
    if (step.dropped > 0)
      what += fmt::format("; {} dropped",
                          counted(size_t(step.dropped), "dead token"));
    return what;
  }

  std::string describe(const Step& step) const {
    if (step.kind == StepKind::kEnd) {
      std::string what = "the iteration ends";
      if (step.ends_frame) {
        what += fmt::format(", and with it frame {}", frame_of(step.scope));
        std::vector<std::string> exits;
        for (const int exit : step.dead_exits) exits.push_back(name(exit));
        if (!exits.empty()) what += "; dead Exits leave: " + join_some(exits);
      }
      return what;
    }
    if (step.kind != StepKind::kArrive) return describe_fire(step);
    std::vector<std::string> arrivals;
    for (const Arrival& arrival : step.arrivals) {
      arrivals.push_back(
          fmt::format("{} = {}", name(arrival.node), value(arrival.value)));
    }
    std::string what;
    if (step.starts_frame) {
      what = fmt::format("frame {} starts with the iteration",
                         frame_of(step.scope));
    } else if (step.starts) {
      what = "the iteration starts";
    }
    if (!arrivals.empty()) {
      what +=
          (what.empty() ? "arrives: " : "; arrives: ") + join_some(arrivals);
    }
    return what;
  }

  void follow(const Step& step) {
    auto& pending = pending_[size_t(step.scope)];
    for (const PendingChange& change : step.pending) {
      pending[change.node] = change.count;
    }
    if (step.kind == StepKind::kEnd) pending.clear();
    for (const TokenChange& change : step.tokens) {
      const std::pair key(change.scope, change.place);
      if (change.value == kGone) {
        tokens_.erase(key);
      } else {
        tokens_[key] = change.value;
      }
    }
  }

  // Nodes that have some of their inputs, but not all.
  void add_state(const Step& step) {
    std::vector<std::string> ready, waiting, tokens;
    for (const int node : step.ready) ready.push_back(name(node));
    const auto& pending = pending_[size_t(step.scope)];
    std::map<int, bool> met;  // nodes with a token at an input
    for (auto it = tokens_.lower_bound({step.scope, INT32_MIN});
         it != tokens_.end() && it->first.first == step.scope; ++it) {
      const auto [place, token] = std::pair(it->first.second, it->second);
      const std::string shown =
          token >= 0 ? recording_.values[size_t(token)].brief : value(token);
      if (place < 0) {
        tokens.push_back(fmt::format("{}>{}", name(-1 - place), shown));
        continue;
      }
      const draw::DrawnEdge& edge = recording_.drawing.edges[size_t(place)];
      met[edge.to] = true;
      tokens.push_back(
          fmt::format("{}>{}>{}", name(edge.from), shown, name(edge.to)));
    }
    for (const auto& [node, has_token] : met) {
      const auto it = pending.find(node);
      if (it != pending.end() && it->second > 0) {
        waiting.push_back(fmt::format("{} for {}", name(node), it->second));
      }
    }
    add_line("ready", ready, step.more_ready);
    add_line("waits", waiting);
    add_line("tokens", tokens);
    std::vector<std::string> open;
    if (const size_t count = step.ready.size() + step.more_ready; count > 0)
      open.push_back(fmt::format("{} ready", count));
    if (step.running > 0)
      open.push_back(fmt::format("{} running", step.running));
    if (step.children > 0) open.push_back(counted(step.children, "frame"));
    add_line("open", open);
  }

  void add_line(std::string_view label, const std::vector<std::string>& words,
                size_t more = 0) {
    if (words.empty()) return;
    text_ += fmt::format("      {:<7} {}\n", label, join_some(words, more));
  }

  void add_step(size_t i) {
    const Step& step = recording_.steps[i];
    follow(step);
    if (!is_chosen(i)) return;
    text_ += fmt::format("{:>4}  {:<10}  {}\n", i + 1,
                         scope_names_[size_t(step.scope)], describe(step));
    if (step.kind != StepKind::kEnd && !filter_.is_brief) add_state(step);
  }

  const Recording& recording_;
  const StepFilter& filter_;
  const std::vector<std::string> scope_names_;
  std::string text_;
  std::vector<std::map<int, int>> pending_;    // by scope, by node
  std::map<std::pair<int, int>, int> tokens_;  // by scope and place
};

// Names of the nodes, each once, in the order of their first firings.
std::vector<std::string> fired(const Recording& recording) {
  std::vector<std::string> names;
  std::vector<bool> seen(recording.drawing.nodes.size());
  for (const Step& step : recording.steps) {
    if (step.kind != StepKind::kFire || seen[size_t(step.node)]) continue;
    seen[size_t(step.node)] = true;
    names.push_back(recording.drawing.nodes[size_t(step.node)].name);
  }
  return names;
}

// Names of the frames that ran, each once.
std::vector<std::string> frame_names(const Recording& recording) {
  std::vector<std::string> names;
  for (const Instance& instance : recording.instances) {
    std::string name = actors::frame_label(instance.frame);
    if (std::ranges::find(names, name) == names.end())
      names.push_back(std::move(name));
  }
  return names;
}

// What the run has in place of the first part of the filter that excludes all
// steps.
std::string alternatives(const Recording& recording, const StepFilter& filter) {
  const size_t last = std::min(filter.last, recording.steps.size());
  if (filter.first > last) return fmt::format("--from is {}", filter.first);
  const std::vector<std::string> scopes = scope_names(recording);
  bool is_in_run = false, is_in_range = false;
  for (size_t i = 0; i < recording.steps.size(); ++i) {
    const int scope = recording.steps[i].scope;
    if (!is_in_frames(recording, filter, scope, scopes[size_t(scope)]))
      continue;
    is_in_run = true;
    is_in_range = is_in_range || (i + 1 >= filter.first && i < last);
  }
  if (!is_in_run) return "the frames are: " + join_some(frame_names(recording));
  if (!is_in_range)
    return fmt::format("of the steps {} to {} none is in a frame of --frame",
                       filter.first, last);
  return "these fire: " + join_some(fired(recording));
}

}  // namespace

std::vector<std::string> scope_names(const Recording& recording) {
  // Of the levels around a frame that a scope calls, the outermost and the
  // innermost: in a deep recursion each scope has all of its callers' levels.
  constexpr size_t kKept = 2 * actors::kShownLevels + 1;
  std::vector<std::vector<std::string>> around;
  std::vector<std::string> names;
  for (const Scope& scope : recording.scopes) {
    const Instance& instance = recording.instances[size_t(scope.instance)];
    const auto level = [&](std::string_view device) {
      std::string frame = actors::frame_label(instance.frame);
      frame += device;
      if (instance.number > 1) frame += fmt::format("#{}", instance.number);
      return fmt::format("{}/{}", frame, scope.iteration);
    };
    // Names the root only if it is outermost, and the device once.
    std::vector<std::string> levels;
    if (instance.caller >= 0) levels = around[size_t(instance.caller)];
    levels.push_back(level(instance.device));
    names.push_back(actors::join_levels(levels));
    levels.back() = level("");
    if (instance.caller < 0) levels.clear();
    // With a further level they still are more than are shown.
    if (levels.size() > kKept)
      levels.erase(levels.begin() + ptrdiff_t(actors::kShownLevels));
    around.push_back(std::move(levels));
  }
  return names;
}

std::string to_text(const Recording& recording, const Frontispiece& front,
                    const StepFilter& filter) {
  std::string text = front.title + "\n";
  for (const std::string& note : front.notes) text += "note: " + note + "\n";
  text += to_text(front.plans);
  const std::string steps = TextWriter(recording, filter).write();
  if (steps.empty() && !recording.steps.empty()) {
    text += fmt::format(
        "note: none of the {} steps is one of those requested; {}\n",
        recording.steps.size(), alternatives(recording, filter));
  }
  text += steps;
  text += front.result;
  if (!front.error.empty()) text += "error: " + front.error + "\n";
  return text;
}

}  // namespace tagflow::apps::stepper

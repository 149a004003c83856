// The names of what a run has, for options and viewers that name a part of it.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "actors/session/session.h"
#include "graph/program.h"
#include "graph/status.h"

namespace tagflow::apps {

// The nodes and frames of signatures, as their passes leave them: loops that
// are made of functions have their nodes, and nodes that are merged are gone.
class RunNames {
 public:
  static Result<RunNames> of(actors::Session& session,
                             const std::vector<std::string>& feeds,
                             const std::vector<std::string>& fetches,
                             const std::vector<std::string>& targets);
  // Adds another signature of the session, by placing it, as a run does. Errors
  // of Session::explain().
  Status add(actors::Session& session, const std::vector<std::string>& feeds,
             const std::vector<std::string>& fetches,
             const std::vector<std::string>& targets);

  // NotFound, with the nearest name, for what is no loop's or body's frame.
  Status check_frame(const std::string& name) const;
  // NotFound, with the nearest name, for a node that does not run, and
  // InvalidArgument for an output that it does not have.
  Status check_tensor(const std::string& node, int port) const;

 private:
  Status add(const graph::Program& program);

  std::vector<std::string> frames_;
  std::unordered_map<std::string, int> outputs_;  // by node
  std::unordered_set<std::string> of_graph_;      // nodes
};

}  // namespace tagflow::apps

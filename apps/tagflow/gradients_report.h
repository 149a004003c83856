// What `tagflow gradients` says of what it has added to a graph.
#pragma once

#include <string>
#include <vector>

#include "apps/common/gradient_graph.h"
#include "apps/common/tangent_graph.h"

namespace tagflow::apps {

struct GradientsReport {
  const GradientRequest& request;
  std::vector<NamedGradient> gradients;
  size_t nodes_before = 0;  // of the graph
  size_t nodes = 0;
  bool explain = false;
  KeptValues kept;  // of loops
};

// The same of forward mode.
struct TangentsReport {
  const TangentRequest& request;
  NamedTangents tangents;
  size_t nodes_before = 0;
  size_t nodes = 0;
};

// For people, in lines.
std::string gradients_text(const GradientsReport& report);
std::string tangents_text(const TangentsReport& report);
// For scripts: one object.
std::string gradients_json(const GradientsReport& report);
std::string tangents_json(const TangentsReport& report);

}  // namespace tagflow::apps

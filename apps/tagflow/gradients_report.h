// The output of `tagflow gradients` about the nodes that it added.
#pragma once

#include <string>
#include <vector>

#include "apps/tagflow/model/gradient_graph.h"
#include "apps/tagflow/model/tangent_graph.h"

namespace tagflow::apps {

struct GradientsReport {
  const GradientRequest& request;
  std::vector<NamedGradient> gradients;
  size_t nodes_before = 0;  // of the graph
  size_t nodes = 0;
  bool explain = false;
  KeptValues kept;  // of loops
};

// What is reported of forward mode.
struct TangentsReport {
  const TangentRequest& request;
  NamedTangents tangents;
  size_t nodes_before = 0;
  size_t nodes = 0;
};

// Lines of text.
std::string gradients_text(const GradientsReport& report);
std::string tangents_text(const TangentsReport& report);
// One JSON object.
std::string gradients_json(const GradientsReport& report);
std::string tangents_json(const TangentsReport& report);

}  // namespace tagflow::apps

// Finds parts of a model that cannot run, beyond the checks of loading it.
#pragma once

#include <vector>

#include "apps/tagflow/model/model.h"
#include "apps/tagflow/model/summary.h"

namespace tagflow::apps {

using Nodes = std::vector<graph::Node*>;

// The nodes that the endpoints and targets need, in order.
Nodes needed_by(const graph::Graph& graph,
                const std::vector<graph::Endpoint>& endpoints,
                const Nodes& targets = {});

// Adds the signatures to the summary, and an error for each name that has no
// tensor. `chosen` is the one in use, or null.
void add_signatures(const Model& model, const NamedSignature* chosen,
                    GraphSummary& summary);

// Adds the errors in functions that the nodes call, since a run would fail
// there. If the nodes are the whole graph (`is_whole`), functions that no
// node calls are checked, too, and their errors are warnings. But if the model
// also has signatures, nodes that none of these needs are skipped, since they
// save and restore variables before and after all runs. `summary` is that of
// the nodes.
void check_functions(const Model& model, const Nodes& nodes, bool is_whole,
                     GraphSummary& summary);

}  // namespace tagflow::apps

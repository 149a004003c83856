// What of a model cannot run, beyond what loading it finds.
#pragma once

#include <vector>

#include "apps/common/model.h"
#include "apps/common/summary.h"

namespace tagflow::apps {

using Nodes = std::vector<graph::Node*>;

// Those that the endpoints need, in order.
Nodes needed_by(const graph::Graph& graph,
                const std::vector<graph::Endpoint>& endpoints,
                const Nodes& targets = {});

// Adds the signatures to the summary, and errors where their names are of no
// tensor. `chosen` is the one in use, or null.
void add_signatures(const Model& model, const NamedSignature* chosen,
                    GraphSummary& summary);

// Adds what is wrong with the functions that the nodes call: errors, since a
// run meets it. Where the nodes are all that there are (`is_whole`), functions
// that no node calls are looked at, too: what is wrong with them is a warning.
// But where the model has signatures, too, what none of these needs is left
// out: it saves and restores variables, before and after all runs. `summary` is
// of the nodes.
void check_functions(const Model& model, const Nodes& nodes, bool is_whole,
                     GraphSummary& summary);

}  // namespace tagflow::apps

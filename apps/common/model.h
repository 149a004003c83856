// A file as the commands use it: a graph, and names for what goes in and out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/common/results.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {

struct Model {
  graph::Graph graph;
  std::map<std::string, graph::Signature> signatures;
  graph::SavedState state;
  std::vector<graph::QueueRunnerDef> queue_runners;
};
// As graph::load_graph(), but an error names all ops that are unknown at once,
// with those in functions.
Result<Model> load_model(const std::string& path);

// Of the signatures that one would choose: names that begin with "__" are
// TensorFlow's own.
std::vector<std::string> names_of_signatures(const Model& model);

// The signature whose names can be used: the one that is `wanted`; where that
// is empty, "serving_default", else the only one of names_of_signatures(); null
// where these rules choose none. NotFound where there is none of the name.
using NamedSignature = std::pair<const std::string, graph::Signature>;
Result<const NamedSignature*> choose_signature(const Model& model,
                                               const std::string& wanted);

// A tensor as the user names it.
struct TensorName {
  FetchName name;      // "y", "y:0", or a signature's name for it
  std::string tensor;  // "node:port"
};

// What the text means: a name of the signature's inputs or outputs, `names`,
// goes before a node's. NotFound and InvalidArgument as Graph::endpoint(),
// with what the signature has, and with why a node inside of a function
// cannot be had. `signature` may be null.
Result<TensorName> find_tensor(
    const Model& model, const NamedSignature* signature,
    std::map<std::string, std::string> graph::Signature::*names,
    const std::string& text);
// All outputs of the signature.
Result<std::vector<TensorName>> outputs_of(const Model& model,
                                           const NamedSignature& signature);

// Why there is no node of this name, where it would be one of a function that
// a node of the graph calls, as traces and errors name them; else "".
std::string explain_inner_name(const graph::Graph& graph,
                               const std::string& name);

}  // namespace tagflow::apps

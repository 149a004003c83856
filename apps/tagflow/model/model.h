// A model file as the commands use it: a graph, and names for its inputs and
// outputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "apps/tagflow/model/results.h"
#include "graph/file/graphdef.h"

namespace tagflow::apps {

struct Model {
  graph::Graph graph;
  std::map<std::string, graph::Signature> signatures;
  graph::SavedState state;
  std::vector<graph::QueueRunnerDef> queue_runners;
};
// Like graph::load_graph(), but an error names all unknown ops at once,
// including those in functions. "-" is a GraphDef on stdin, binary or text.
Result<Model> load_model(const std::string& path,
                         const graph::Limits& limits = {});

// The names of the signatures for users: names that begin with "__" are
// internal to TensorFlow.
std::vector<std::string> names_of_signatures(const Model& model);

// The signature whose names can be used: `wanted`, or, if that is empty,
// "serving_default", or else the only one of names_of_signatures(). Null if
// these rules choose none. Returns NotFound if no signature is called
// `wanted`.
using NamedSignature = std::pair<const std::string, graph::Signature>;
Result<const NamedSignature*> choose_signature(const Model& model,
                                               const std::string& wanted);

// A tensor as the user names it.
struct TensorName {
  FetchName name;      // "y", "y:0", or a signature's name for it
  std::string tensor;  // "node:port"
};

// The tensor that the text names: a name of the signature's inputs or outputs,
// `names`, takes precedence over a node's. Returns NotFound and InvalidArgument
// like Graph::endpoint(); the message lists the signature's names, and explains
// why a node inside a function cannot be used. `signature` may be null.
Result<TensorName> find_tensor(
    const Model& model, const NamedSignature* signature,
    std::map<std::string, std::string> graph::Signature::*names,
    const std::string& text);
// All outputs of the signature.
Result<std::vector<TensorName>> outputs_of(const Model& model,
                                           const NamedSignature& signature);

// Why there is no node of this name, if it is the name of a node inside a
// called function, as in traces and errors; else "".
std::string explain_inner_name(const graph::Graph& graph,
                               const std::string& name);

}  // namespace tagflow::apps

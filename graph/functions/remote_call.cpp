#include "graph/functions/remote_call.h"

#include <string>
#include <utility>
#include <vector>

#include "graph/device_name.h"

namespace tagflow::graph {
namespace {

Result<std::string> target_of(const Graph& graph, const Node& call) {
  Endpoint source = call.inputs()[0];
  // Identities may be a cycle in a graph that was not validated.
  for (size_t i = 0; i < graph.size() && source.node->op() == "Identity"; ++i)
    source = source.node->inputs()[0];
  if (!source.node->is_const())
    return error(Code::kUnimplemented,
                 "the target {:?} is not a constant, so the call cannot be "
                 "placed before the graph runs",
                 call.inputs()[0].to_string());
  TAGFLOW_ASSIGN(const Tensor value, source.node->attr<Tensor>("value"));
  if (value.num_elements() != 1)
    return invalid_argument("the target is {}, not a scalar", value.describe());
  std::string target = value.flat<std::string>()[0];
  TAGFLOW_RETURN_IF_ERROR(DeviceName::parse(target).status());
  return target;
}

Status localize(Graph& graph, Node& call) {
  TAGFLOW_ASSIGN(std::string target, target_of(graph, call));
  const std::vector<Endpoint> args(call.inputs().begin() + 1,
                                   call.inputs().end());
  const std::vector<Node*> controls(call.control_inputs().begin(),
                                    call.control_inputs().end());
  TAGFLOW_RETURN_IF_ERROR(graph.become(&call, "StatefulPartitionedCall", args,
                                       call.attrs(), controls));
  if (!target.empty()) graph.set_device(&call, std::move(target));
  return {};
}

}  // namespace

Status localize_remote_calls(Graph& graph) {
  for (Node* const node : graph.nodes()) {
    if (node->op() != "RemoteCall") continue;
    if (Status status = localize(graph, *node); !status.ok())
      return std::move(status).with_prefix(
          fmt::format("[RemoteCall] node \"{}\": ", node->name()));
  }
  return {};
}

}  // namespace tagflow::graph

#include "autodiff/carrier.h"

namespace tagflow::autodiff {

Result<Node*> Carrier::add(std::string_view name, std::string_view op,
                           std::vector<Endpoint> inputs, AttrMap attrs,
                           FrameId frame, Conditions::Set live,
                           std::vector<Node*> controls) {
  Graph& graph = analysis_.graph();
  TAGFLOW_ASSIGN(
      Node * node,
      graph.add(graph.unique_name(fmt::format("{}/{}", prefix_, name)), op,
                inputs, std::move(attrs), controls));
  analysis_.add(*node, frame, live);
  return node;
}

Result<Node*> Carrier::enter(const std::string& name, const Loop& loop,
                             const Endpoint& initial) {
  const graph::StaticFrame& frame = analysis_.frame(loop.frame);
  TAGFLOW_ASSIGN(Node * enter,
                 add(name + "/Enter", "Enter", {initial},
                     {{"frame_name", frame.name},
                      {"is_constant", false},
                      {"parallel_iterations", frame.parallel_iterations}},
                     loop.frame));
  const DataType dtype = enter->output_dtypes()[0];
  TAGFLOW_ASSIGN(Node * merge,
                 add(name + "/Merge", "Merge", {{enter, 0}, Endpoint()},
                     {{"N", 2}, {"T", dtype}}, loop.frame));
  analysis_.graph().set_output_shape(merge, 0, PartialShape::scalar());
  return merge;
}

Result<Carrier::Variable> Carrier::split(const std::string& name,
                                         const Loop& loop, Node* merge,
                                         const Endpoint& now) {
  TAGFLOW_ASSIGN(Node * by_predicate,
                 add(name + "/Switch", "Switch", {now, {loop.loop_cond, 0}}, {},
                     loop.frame));
  return Variable{merge, {by_predicate, 1}, {by_predicate, 0}};
}

Status Carrier::close(const Loop& loop, const Variable& variable,
                      const Endpoint& next) {
  TAGFLOW_ASSIGN(Node * back,
                 add("NextIteration", "NextIteration", {next}, {}, loop.frame));
  return analysis_.graph().set_input(variable.merge, 1, {back, 0});
}

Result<Node*> Carrier::leave(const std::string& name, const Loop& loop,
                             const Endpoint& last) {
  return add(name + "/Exit", "Exit", {last}, {}, analysis_.parent(loop.frame),
             analysis_.live(*loop.loop_cond));
}

Result<Node*> Carrier::branch(const std::string& name, const Endpoint& value,
                              const Guard& guard, FrameId frame) {
  if (guard.ports == 2)
    return add(name + "/Switch", "Switch", {value, guard.predicate}, {}, frame);
  return add(name + "/Switch", "_SwitchN", {value, guard.predicate},
             {{"num_outs", guard.ports}}, frame);
}

Result<std::vector<Endpoint>> Carrier::into(const std::string& name,
                                            const Endpoint& value,
                                            const std::vector<Guard>& guards,
                                            FrameId frame) {
  std::vector<Endpoint> branches{value};
  for (const Guard& guard : guards) {
    TAGFLOW_ASSIGN(Node * node, branch(name, branches.back(), guard, frame));
    branches.push_back({node, guard.port});
  }
  return branches;
}

Result<Endpoint> Carrier::out_of(const std::string& name,
                                 const std::vector<Endpoint>& branches,
                                 Endpoint made,
                                 const std::vector<Guard>& guards,
                                 FrameId frame) {
  for (size_t i = guards.size(); i-- > 0;) {
    std::vector<Endpoint> inputs;
    for (int port = 0; port < guards[i].ports; ++port)
      inputs.push_back(
          port == guards[i].port ? made : Endpoint{branches[i + 1].node, port});
    TAGFLOW_ASSIGN(Node * merge, add(name + "/Merge", "Merge", inputs,
                                     {{"N", guards[i].ports}}, frame));
    made = {merge, 0};
  }
  return made;
}

}  // namespace tagflow::autodiff

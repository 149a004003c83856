#include "autodiff/call_region.h"

#include "graph/builder/scope_access.h"

namespace tagflow::autodiff {

Output CallRegion::varying_value(const Endpoint& source) {
  const DataType dtype = source.node->output_dtypes()[size_t(source.port)];
  if (is_ref(dtype)) {
    scope().fail(error(Code::kUnimplemented,
                       "[gradients] \"{}\" is {}, which is not saved for the "
                       "gradient of a recursive function",
                       source.to_string(), dtype_name(dtype)));
    return {};
  }
  auto group = group_of(source);
  if (!group.ok()) {
    scope().fail(std::move(group).status());
    return {};
  }
  analysis().note(frame(), source, Kept::kSaved);
  const graph::Scope root = graph::ScopeAccess::root(scope());
  const Output made =
      root.named("recorded")
          .op("Placeholder", {},
              {{"dtype", dtype},
               {"shape", source.node->output_shape(source.port)}});
  if (!made.valid()) return {};
  (*group)->values.push_back(source);
  (*group)->stand_ins.push_back(made.node());
  return made;
}

// The predicates are values, too. They are requested first, and are live under
// fewer conditions.
Result<CallRegion::Group*> CallRegion::group_of(const Endpoint& tensor) {
  const Conditions::Set live = analysis().live(tensor);
  for (Group& group : groups_)
    if (group.live == live) return &group;
  TAGFLOW_ASSIGN(auto guards, guards_of(analysis(), frame(), live,
                                        Conditions::kNone, tensor));
  for (const Guard& guard : guards) value(guard.predicate);
  TAGFLOW_RETURN_IF_ERROR(scope().status());
  return &groups_.emplace_back(Group{live, std::move(guards)});
}

// --- The end ----------------------------------------------------------------

Result<Endpoint> CallRegion::pack(const std::vector<Endpoint>& values) {
  const std::string_view op =
      values.empty() ? "OptionalNone" : "OptionalFromValue";
  TAGFLOW_ASSIGN(Node * packed, carrier_.add(op, op, values, {}, frame()));
  return Endpoint{packed, 0};
}

// Leads them into and out of the branches in which the values are live.
Result<Endpoint> CallRegion::pack_guarded(const Group& group) {
  TAGFLOW_ASSIGN(const Endpoint none, pack({}));
  return carrier_.guarded("branch", none, group.guards, frame(),
                          [&](const Endpoint&) { return pack(group.values); });
}

graph::OpResult CallRegion::unpack(const Output& optional,
                                   const std::vector<Endpoint>& values) const {
  std::vector<DataType> types;
  std::vector<PartialShape> shapes;
  for (const Endpoint& value : values) {
    types.push_back(value.node->output_dtypes()[size_t(value.port)]);
    shapes.push_back(value.node->output_shape(value.port));
  }
  return graph::ScopeAccess::root(scope()).op(
      "OptionalGetValue", {optional},
      {{"output_types", std::move(types)},
       {"output_shapes", std::move(shapes)}});
}

Status CallRegion::take_out(const Group& group,
                            const graph::OpResult& values) const {
  TAGFLOW_RETURN_IF_ERROR(scope().status());
  for (size_t i = 0; i < group.stand_ins.size(); ++i) {
    const Endpoint value = Output(values[int(i)]).endpoint();
    TAGFLOW_RETURN_IF_ERROR(scope().graph().become(
        group.stand_ins[i], "Identity", {&value, 1}, {}, {}));
  }
  return {};
}

Result<Endpoint> CallRegion::finish(const Output& record) {
  Group always{Conditions::kNone, {}};
  std::vector<const Group*> guarded;
  for (const Group& group : groups_) {
    if (group.guards.empty())
      always = group;
    else
      guarded.push_back(&group);
  }
  const size_t first = always.values.size();
  for (const Group* group : guarded) {
    TAGFLOW_ASSIGN(const Endpoint packed, pack_guarded(*group));
    always.values.push_back(packed);
  }
  TAGFLOW_ASSIGN(const Endpoint whole, pack(always.values));
  if (always.values.empty()) return whole;
  const graph::OpResult values = unpack(record, always.values);
  TAGFLOW_RETURN_IF_ERROR(take_out(always, values));
  for (size_t i = 0; i < guarded.size(); ++i) {
    Output inside = values[int(first + i)];
    for (const Guard& guard : guarded[i]->guards)
      inside = switch_by(graph::ScopeAccess::root(scope()), inside,
                         value(guard.predicate), guard.ports)[guard.port];
    TAGFLOW_RETURN_IF_ERROR(
        take_out(*guarded[i], unpack(inside, guarded[i]->values)));
  }
  return whole;
}

}  // namespace tagflow::autodiff

#include "autodiff/recursive_calls.h"

#include <algorithm>

#include "autodiff/body_shapes.h"
#include "autodiff/function_body.h"
#include "autodiff/recorded_function.h"
#include "graph/functions/extended.h"

namespace tagflow::autodiff {

namespace {

// The type of the variable that the handle `given` refers to: the type that
// some node reads, or kInvalid if none does.
DataType variable_type(Analysis& analysis, const CallTable& table,
                       const Endpoint& handle) {
  std::vector<Endpoint> open{handle};
  Paths::Set known{handle};
  while (!open.empty()) {
    const Endpoint from = open.back();
    open.pop_back();
    for (const Use& use : analysis.uses(*from.node)) {
      Node& node = *use.node;
      if (node.inputs()[use.index] != from) continue;
      if (const CalledFunction* called = table.find(node)) {
        if (called->types[use.index] != DataType::kInvalid)
          return called->types[use.index];
        continue;
      }
      if (const auto type = node.attr<DataType>("dtype"); type.ok())
        return *type;
      for (int port = 0; port < node.num_outputs(); ++port)
        if (node.output_dtypes()[size_t(port)] == DataType::kResource &&
            (node.op() != "IdentityN" || size_t(port) == use.index) &&
            known.insert({&node, port}).second)
          open.push_back({&node, port});
    }
  }
  return DataType::kInvalid;
}

// Those of `all` that are true in `chosen`.
std::vector<Endpoint> chosen_of(const std::vector<Endpoint>& all,
                                const std::vector<bool>& chosen) {
  std::vector<Endpoint> list;
  for (size_t i = 0; i < all.size(); ++i)
    if (chosen[i]) list.push_back(all[i]);
  return list;
}

class CallExtension {
 public:
  CallExtension(Analysis& main, CallTable& table, const graph::Limits& limits)
      : main_(main), table_(table), limits_(limits) {}

  Status run(FrameId frame, std::span<const Endpoint> xs,
             std::span<const Endpoint> ys, const Paths::Set& stops) {
    std::vector<const Node*> calls;
    for (const Node* node : main_.graph().nodes())
      if (graph::has_own_frame(*node)) calls.push_back(node);
    if (calls.empty()) return {};
    TAGFLOW_RETURN_IF_ERROR(load(calls));
    while (find_paths()) {
    }
    const Paths paths(main_, frame, xs, ys, stops);
    ask_for(main_, paths);
    while (ask_in_bodies()) {
    }
    name_functions();
    for (size_t i = 0; i < bodies_.size(); ++i) {
      if (!table_.functions[i].is_wanted()) continue;
      Status status = build(i);
      if (!status.ok())
        return std::move(status).with_prefix(fmt::format(
            "[gradients] function \"{}\": ", bodies_[i].function.name));
    }
    for (Node* node : main_.graph().nodes())
      TAGFLOW_RETURN_IF_ERROR(extend_call(main_, paths, *node));
    return {};
  }

 private:
  Status load(std::span<const Node* const> calls) {
    TAGFLOW_ASSIGN(bodies_,
                   load_bodies(main_.graph().library(), calls, limits_));
    for (FunctionBody& body : bodies_) {
      const std::vector<bool> no_results(body.results.size());
      const std::vector<bool> no_args(body.args.size());
      std::vector<DataType> types;
      for (const Endpoint& arg : body.args) {
        const DataType type = arg.node->output_dtypes()[0];
        const bool is_value = has_gradient(type) && type != DataType::kResource;
        types.push_back(is_value ? type : DataType::kInvalid);
      }
      table_.functions.push_back({.function = body.function,
                                  .reaches = {body.args.size(), no_results},
                                  .types = std::move(types),
                                  .xs = no_args,
                                  .ys = no_results});
    }
    TAGFLOW_RETURN_IF_ERROR(infer_body_shapes(main_.graph(), table_, bodies_));
    for (FunctionBody& body : bodies_) {
      TAGFLOW_ASSIGN(auto analysis,
                     Analysis::make(body.graph, &table_, body.function.name));
      analyses_.push_back(std::move(analysis));
    }
    return {};
  }

  // One round of the first fixed point; returns whether anything changed.
  bool find_paths() {
    bool is_new = false;
    for (size_t k = 0; k < bodies_.size(); ++k) {
      CalledFunction& called = table_.functions[k];
      const FunctionBody& body = bodies_[k];
      for (size_t i = 0; i < body.args.size(); ++i) {
        const DataType type = body.args[i].node->output_dtypes()[0];
        if (type == DataType::kResource &&
            called.types[i] == DataType::kInvalid) {
          called.types[i] = variable_type(*analyses_[k], table_, body.args[i]);
          is_new = is_new || called.types[i] != DataType::kInvalid;
        }
        if (called.types[i] == DataType::kInvalid) continue;
        const Paths paths(*analyses_[k], FrameId::kRoot, {&body.args[i], 1}, {},
                          {});
        for (size_t j = 0; j < body.results.size(); ++j) {
          const Endpoint& result = body.results[j];
          if (called.reaches[i][j] || !paths.depends(result) ||
              !has_gradient(result.node->output_dtypes()[size_t(result.port)]))
            continue;
          is_new = called.reaches[i][j] = true;
        }
      }
    }
    return is_new;
  }

  // Whether a path leads through that input and output of the call.
  static bool is_between(const Paths& paths, const CalledFunction& called,
                         Node& call, size_t input, size_t port) {
    return called.has_path(input, port) && paths.has(call.inputs()[input]) &&
           paths.has({&call, int(port)});
  }

  // One round of the second one.
  bool ask_for(Analysis& analysis, const Paths& paths) {
    bool is_new = false;
    for (Node* node : analysis.graph().nodes()) {
      CalledFunction* called = table_.find(*node);
      if (called == nullptr) continue;
      for (size_t i = 0; i < called->xs.size(); ++i)
        for (size_t j = 0; j < called->ys.size(); ++j) {
          if ((called->xs[i] && called->ys[j]) ||
              !is_between(paths, *called, *node, i, j))
            continue;
          is_new = called->xs[i] = called->ys[j] = true;
        }
    }
    return is_new;
  }

  Paths paths_of(size_t k) {
    const CalledFunction& called = table_.functions[k];
    return Paths(*analyses_[k], FrameId::kRoot,
                 chosen_of(bodies_[k].args, called.xs),
                 chosen_of(bodies_[k].results, called.ys), {});
  }

  bool ask_in_bodies() {
    bool is_new = false;
    for (size_t k = 0; k < bodies_.size(); ++k)
      is_new |= ask_for(*analyses_[k], paths_of(k));
    return is_new;
  }

  void name_functions() {
    const graph::FunctionLibrary& library = main_.graph().library();
    std::vector<std::string> taken;
    const auto free_name = [&](std::string_view name, std::string_view what) {
      return taken.emplace_back(graph::free_function_name(
          library, fmt::format("{}_{}", name, what), taken));
    };
    for (CalledFunction& called : table_.functions) {
      if (std::ranges::find(called.ys, true) == called.ys.end()) continue;
      const std::string_view name =
          graph::name_of_body(library, *library.find(called.function.name));
      called.extended = free_name(name, "recorded");
      called.gradient = free_name(called.function.name, "gradient");
    }
  }

  // Makes the node a call of f', if it is on a path.
  Status extend_call(Analysis& analysis, const Paths& paths, Node& node) {
    const CalledFunction* called = table_.find(node);
    if (called == nullptr || !called->is_wanted()) return {};
    bool is_on_path = false;
    for (size_t i = 0; i < called->xs.size(); ++i)
      for (size_t j = 0; j < called->ys.size(); ++j)
        is_on_path = is_on_path || is_between(paths, *called, node, i, j);
    if (!is_on_path) return {};
    for (const Endpoint& input : node.inputs())
      if (paths.has(input) && analysis.is_container(input) &&
          input.node->output_dtypes()[size_t(input.port)] != DataType::kVariant)
        return error(Code::kUnimplemented,
                     "[gradients] node \"{}\" hands the TensorArray of \"{}\" "
                     "to the recursive function \"{}\": a list "
                     "(TensorListReserve) has gradients there",
                     node.name(), input.to_string(), called->function.name);
    return add_record(analysis.graph(), node, called->extended);
  }

  static Status add_record(graph::Graph& graph, Node& call,
                           const std::string& extended) {
    std::vector<DataType> types(call.output_dtypes().begin(),
                                call.output_dtypes().end());
    std::vector<PartialShape> shapes;
    for (int port = 0; port < call.num_outputs(); ++port)
      shapes.push_back(call.output_shape(port));
    types.push_back(DataType::kVariant);
    shapes.push_back(PartialShape::scalar());
    AttrMap attrs = call.attrs();
    attrs.insert_or_assign("f", FunctionRef{extended, {}});
    attrs.insert_or_assign("Tout", std::move(types));
    const std::vector<Endpoint> inputs(call.inputs().begin(),
                                       call.inputs().end());
    const std::vector<Node*> controls(call.control_inputs().begin(),
                                      call.control_inputs().end());
    const std::string op = call.op();
    TAGFLOW_RETURN_IF_ERROR(
        graph.become(&call, op, inputs, std::move(attrs), controls));
    for (size_t port = 0; port < shapes.size(); ++port)
      graph.set_output_shape(&call, int(port), std::move(shapes[port]));
    return {};
  }

  Status build(size_t k) {
    Analysis& analysis = *analyses_[k];
    const Paths paths = paths_of(k);
    for (Node* node : bodies_[k].graph.nodes())
      TAGFLOW_RETURN_IF_ERROR(extend_call(analysis, paths, *node));
    TAGFLOW_RETURN_IF_ERROR(add_recorded_function(main_.graph().library(),
                                                  bodies_[k], analysis, paths,
                                                  table_.functions[k]));
    main_.take_notes_of(analysis);
    return {};
  }

  Analysis& main_;
  CallTable& table_;
  const graph::Limits& limits_;
  // By number in the table.
  std::vector<FunctionBody> bodies_;
  std::vector<std::unique_ptr<Analysis>> analyses_;
};

}  // namespace

Status extend_calls(Analysis& analysis, CallTable& table, FrameId frame,
                    std::span<const Endpoint> xs, std::span<const Endpoint> ys,
                    const Paths::Set& stops, const graph::Limits& limits) {
  return CallExtension(analysis, table, limits).run(frame, xs, ys, stops);
}

}  // namespace tagflow::autodiff

#include "autodiff/recorded_function.h"

#include "autodiff/backprop.h"
#include "autodiff/call_region.h"
#include "graph/functions/extended.h"
#include "graph/functions/make_function.h"

namespace tagflow::autodiff {

using graph::FunctionDef;
using graph::Scope;

namespace {

class RecordedFunction {
 public:
  RecordedFunction(graph::FunctionLibrary& library, const FunctionBody& body,
                   Analysis& analysis, const Paths& paths,
                   const CalledFunction& called)
      : library_(library),
        body_(body),
        analysis_(analysis),
        paths_(paths),
        called_(called) {}

  Status add() {
    TAGFLOW_RETURN_IF_ERROR(check_results());
    TAGFLOW_RETURN_IF_ERROR(add_gradient());
    return add_extended();
  }

 private:
  // Callers assume that its results are as live as the call.
  Status check_results() {
    for (size_t i = 0; i < body_.results.size(); ++i)
      if (analysis_.live(body_.results[i]) != Conditions::kNone)
        return error(Code::kUnimplemented,
                     "its result {} may be dead, which is not known where it "
                     "is called: such recursions have no gradient",
                     i);
    return {};
  }

  Status add_gradient() {
    graph::Graph graph;
    const Scope s(graph);
    const auto argument = [&](std::string_view name, DataType type,
                              const PartialShape& shape) {
      const Output made = s.named(name).op("Placeholder", {},
                                           {{"dtype", type}, {"shape", shape}});
      if (made.valid()) args_.push_back(made.endpoint());
      return made;
    };
    const Output record =
        argument("record", DataType::kVariant, PartialShape::scalar());
    const std::vector<Endpoint> xs(body_.args.begin(), body_.args.end());
    TAGFLOW_ASSIGN(const Blocks blocks,
                   Blocks::find(analysis_, paths_, xs, body_.results));
    const Paths::Set stops;
    Differentiation all{analysis_, paths_, blocks, stops, "gradients"};
    CallRegion region(analysis_, s);
    Backprop walk(all, region);
    for (size_t i = 0; i < body_.results.size(); ++i) {
      if (!called_.ys[i]) continue;
      const Endpoint& result = body_.results[i];
      const Output given =
          argument(fmt::format("gradient_of_{}", i),
                   result.node->output_dtypes()[size_t(result.port)],
                   result.node->output_shape(result.port));
      if (paths_.has(result)) walk.seed(result, {given});
    }
    walk.run();
    std::vector<Endpoint> results;
    for (size_t i = 0; i < body_.args.size(); ++i) {
      if (!called_.xs[i]) continue;
      const Endpoint& arg = body_.args[i];
      const Gradient total = walk.total(arg);
      const Output result = total.valid() ? walk.dense(arg, total)
                                          : region.zeros(arg, called_.types[i]);
      TAGFLOW_RETURN_IF_ERROR(s.status());
      results.push_back(result.endpoint());
    }
    TAGFLOW_RETURN_IF_ERROR(s.status());
    TAGFLOW_ASSIGN(record_, region.finish(record));
    TAGFLOW_ASSIGN(
        FunctionDef function,
        graph::make_function(called_.gradient, graph, args_, results));
    return library_.add(std::move(function));
  }

  Status add_extended() {
    std::vector<Endpoint> results = body_.results;
    results.push_back(record_);
    TAGFLOW_ASSIGN(FunctionDef function,
                   graph::make_function(called_.extended, body_.graph,
                                        body_.args, results));
    function.attrs.insert_or_assign(std::string(graph::kExtendsAttr),
                                    called_.function);
    for (const Node* effect : body_.effects) {
      const std::string name =
          fmt::format("effect_{}", function.control_outputs.size());
      function.control_outputs.push_back(name);
      function.control_ret[name] = effect->name();
    }
    return library_.add(std::move(function));
  }

  graph::FunctionLibrary& library_;
  const FunctionBody& body_;
  Analysis& analysis_;
  const Paths& paths_;
  const CalledFunction& called_;
  std::vector<Endpoint> args_;  // of the gradient
  Endpoint record_;
};

}  // namespace

Status add_recorded_function(graph::FunctionLibrary& library,
                             const FunctionBody& body, Analysis& analysis,
                             const Paths& paths, const CalledFunction& called) {
  return RecordedFunction(library, body, analysis, paths, called).add();
}

}  // namespace tagflow::autodiff

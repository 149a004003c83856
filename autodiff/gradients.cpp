#include "autodiff/gradients.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "autodiff/backprop.h"
#include "autodiff/gradient_arrays.h"
#include "autodiff/liveness_check.h"
#include "autodiff/lower_calls.h"
#include "autodiff/mutable_stacks.h"
#include "autodiff/recursive_calls.h"
#include "autodiff/symbolic_gradient.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/scope_access.h"
#include "graph/dereference.h"
#include "graph/loop_shapes.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;
using graph::Endpoint;
using graph::Outputs;
using graph::Scope;

namespace {

// Whether a loop is still being built, and this is called in its body.
bool has_open_loop(const graph::Graph& graph) {
  for (const Node* node : graph.nodes())
    for (const Endpoint& input : node->inputs())
      if (input.node == nullptr) return true;
  return false;
}

// One call of gradients().
class Gradients {
 public:
  Gradients(const Scope& scope, const Outputs& ys, const Outputs& xs,
            const GradientOptions& options, bool are_dense)
      : scope_(scope),
        ys_(ys),
        xs_(xs),
        options_(options),
        are_dense_(are_dense) {}

  Result<std::vector<Gradient>> run() {
    TAGFLOW_RETURN_IF_ERROR(check());
    CallTable calls;
    TAGFLOW_ASSIGN(const Prepared prepared, prepare(calls));
    const auto& [analysis, frame, xs, paths] = prepared;
    const graph::NodeId first = graph::NodeId(scope_.graph().end_id());
    Differentiation all{*analysis, paths, graph::ScopeAccess::name(scope_)};
    std::vector<GradientPair> pairs;
    std::vector<Gradient> results = walk(all, frame, xs, pairs);
    if (options_.kept != nullptr)
      for (KeptValue& kept : analysis->take_notes())
        options_.kept->push_back(std::move(kept));
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    if (options_.check_liveness)
      TAGFLOW_RETURN_IF_ERROR(check_liveness(scope_.graph(), first, pairs));
    return results;
  }

  static std::vector<Endpoint> endpoints(const Outputs& outputs) {
    std::vector<Endpoint> list;
    for (const Output& output : outputs) list.push_back(output.endpoint());
    return list;
  }

 private:
  struct Prepared {
    std::unique_ptr<Analysis> analysis;
    FrameId frame;
    std::vector<Endpoint> xs;
    Paths paths;
  };

  // Makes of the graph between xs and ys one of ops that have rules, and loops.
  // `calls` gets what is known of those that are left, and outlives the result.
  Result<Prepared> prepare(CallTable& calls) const {
    graph::Graph& graph = scope_.graph();
    const auto ys = endpoints(ys_);
    for (;;) {
      TAGFLOW_RETURN_IF_ERROR(lower_calls(graph, endpoints(xs_), ys));
      if (!has_open_loop(graph))
        TAGFLOW_RETURN_IF_ERROR(graph::infer_loop_shapes(graph));
      TAGFLOW_ASSIGN(auto analysis, Analysis::make(graph, &calls));
      std::vector<Endpoint> xs;
      for (const Endpoint& x : endpoints(xs_)) xs.push_back(lowered_output(x));
      const FrameId frame = analysis->output_frame(*ys_[0].node());
      TAGFLOW_RETURN_IF_ERROR(check_frames(*analysis, frame, xs));
      Paths::Set stops;
      for (const Endpoint& stop : endpoints(options_.stop_gradients))
        stops.insert(lowered_output(stop));
      const Paths before(*analysis, frame, xs, ys, stops);
      // What is replaced may show more that is to be.
      if (const auto pops = before.hidden_pops(ys); !pops.empty()) {
        TAGFLOW_RETURN_IF_ERROR(make_stacks_persistent(*analysis, pops));
        continue;
      }
      if (const auto readers = readers_of_references(before);
          !readers.empty()) {
        TAGFLOW_RETURN_IF_ERROR(graph::dereference(graph, readers));
        continue;
      }
      TAGFLOW_RETURN_IF_ERROR(check_gradient_arrays(*analysis, before, ys));
      TAGFLOW_RETURN_IF_ERROR(
          extend_calls(*analysis, calls, frame, xs, ys, stops));
      Paths paths(*analysis, frame, xs, ys, stops);
      return Prepared{std::move(analysis), frame, std::move(xs),
                      std::move(paths)};
    }
  }

  // The nodes whose gradients may need what they read of a reference, as it was
  // when they ran: for a later read may give another version. What an Identity
  // has read is what it gives.
  std::vector<Node*> readers_of_references(const Paths& paths) const {
    std::vector<Node*> readers;
    for (Node* node : scope_.graph().nodes()) {
      bool is_needed = node->is_switch();
      for (int port = 0; port < node->num_outputs(); ++port)
        is_needed = is_needed || paths.has({node, port});
      if (!is_needed || node->is_identity()) continue;
      for (size_t i = 0; i < node->inputs().size(); ++i)
        if (graph::reads_reference(*node, i)) {
          readers.push_back(node);
          break;
        }
    }
    return readers;
  }

  Status check() const {
    if (ys_.empty()) return invalid_argument("[gradients] there are no ys");
    for (const auto& [list, what] :
         {std::pair(&ys_, "y"), std::pair(&xs_, "x"),
          std::pair(&options_.stop_gradients, "stop_gradient")})
      for (size_t i = 0; i < list->size(); ++i)
        TAGFLOW_RETURN_IF_ERROR(check_tensor((*list)[i], what, i));
    for (size_t i = 0; i < ys_.size(); ++i)
      if (!is_floating(remove_ref(ys_[i].dtype())) &&
          !is_complex(remove_ref(ys_[i].dtype())))
        return invalid_argument(
            "[gradients] y {} (\"{}\") is {}, which has no "
            "derivative",
            i, ys_[i].name(), dtype_name(ys_[i].dtype()));
    for (size_t i = 0; i < xs_.size(); ++i)
      if (!has_gradient(xs_[i].dtype()))
        return invalid_argument(
            "[gradients] x {} (\"{}\") is {}, by which "
            "nothing has a derivative",
            i, xs_[i].name(), dtype_name(xs_[i].dtype()));
    if (options_.grad_ys.size() > ys_.size())
      return invalid_argument("[gradients] there are {} grad_ys for {} ys",
                              options_.grad_ys.size(), ys_.size());
    return {};
  }

  Status check_tensor(const Output& output, const char* what, size_t i) const {
    if (!output.has_tensor())
      return invalid_argument("[gradients] {} {} is no tensor", what, i);
    if (!scope_.graph().owns(output.node()))
      return invalid_argument("[gradients] {} {} (\"{}\") is of another graph",
                              what, i, output.name());
    return {};
  }

  // All ys are in one frame, each x there or around it.
  Status check_frames(const Analysis& analysis, FrameId frame,
                      const std::vector<Endpoint>& xs) const {
    const auto name = [&](FrameId id) {
      return id == FrameId::kRoot ? std::string("outside of all loops")
                                  : fmt::format("in the loop of frame \"{}\"",
                                                analysis.frame(id).name);
    };
    const auto refuse = [&](const char* what, const Endpoint& tensor,
                            FrameId own) {
      return invalid_argument("[gradients] y \"{}\" is {}, but {} \"{}\" is {}",
                              ys_[0].name(), name(frame), what,
                              tensor.to_string(), name(own));
    };
    for (const Endpoint& y : endpoints(ys_))
      if (const FrameId own = analysis.output_frame(*y.node); own != frame)
        return refuse("y", y, own);
    for (const Endpoint& x : xs)
      if (const FrameId own = analysis.output_frame(*x.node);
          own != frame && own != FrameId::kRoot &&
          analysis.child_towards(own, frame) == FrameId::kRoot)
        return refuse("x", x, own);
    return {};
  }

  // From the frame of ys outwards, to those of xs. What is the same in all
  // iterations of a loop leads out of it, by what it enters as; its gradient is
  // that of the iteration, and is computed there.
  std::vector<Gradient> walk(Differentiation& all, FrameId frame,
                             const std::vector<Endpoint>& xs,
                             std::vector<GradientPair>& pairs) const {
    std::vector<Gradient> results(xs.size());
    std::unique_ptr<Backprop> inner;
    std::deque<PlainRegion> regions;
    for (FrameId at = frame, inside = frame;;
         inside = at, at = all.analysis.parent(at)) {
      PlainRegion& region = regions.emplace_back(all.analysis, at, scope_);
      auto walk = std::make_unique<Backprop>(all, region);
      if (inner == nullptr) {
        for (size_t i = 0; i < ys_.size(); ++i)
          if (all.paths.has(ys_[i].endpoint()))
            walk->seed(ys_[i].endpoint(), {grad_of(i)});
      } else {
        for (Node* enter : all.analysis.frame(inside).enters)
          if (const Gradient grad = inner->total({enter, 0}); grad.valid())
            walk->seed(enter->inputs()[0], grad);
      }
      walk->run();
      if (options_.grad_ys.empty())  // those may be live where they please
        for (const auto& [tensor, gradient] : walk->totals())
          pairs.emplace_back(tensor, gradient.values.endpoint());
      for (size_t i = 0; i < xs.size(); ++i) {
        if (all.analysis.output_frame(*xs[i].node) != at) continue;
        results[i] = walk->total(xs[i]);
        if (!results[i].valid() && options_.zeros_if_unconnected)
          results[i] = {region.zeros(xs[i])};
        if (are_dense_) results[i] = {walk->dense(xs[i], results[i])};
      }
      if (at == FrameId::kRoot) return results;
      inner = std::move(walk);
    }
  }

  // Ones where none is given: of y itself, so that they are as live as y.
  Output grad_of(size_t i) const {
    const Output y = ys_[i];
    const Output given =
        i < options_.grad_ys.size() ? options_.grad_ys[i] : Output();
    if (!given.valid())
      return ops::ones_like(scope_.with_device(y.node()->device()), y);
    if (remove_ref(given.dtype()) != remove_ref(y.dtype()) ||
        !given.shape().compatible(y.shape()))
      scope_.fail(invalid_argument(
          "[gradients] grad_y {} (\"{}\") is {}{}, but y \"{}\" is {}{}", i,
          given.name(), dtype_name(given.dtype()), given.shape().to_string(),
          y.name(), dtype_name(y.dtype()), y.shape().to_string()));
    return given;
  }

  const Scope scope_;
  const Outputs ys_;
  const Outputs xs_;
  const GradientOptions& options_;
  const bool are_dense_;
};

std::vector<Gradient> make_gradients(const Scope& scope, const Outputs& ys,
                                     const Outputs& xs,
                                     const GradientOptions& options,
                                     bool are_dense) {
  enable_symbolic_gradients();
  if (scope.ok()) {
    const Scope inside = graph::ScopeAccess::construct_scope(
        scope.without_control_dependencies(), "gradients");
    auto made = Gradients(inside, ys, xs, options, are_dense).run();
    if (made.ok()) return *std::move(made);
    scope.fail(std::move(made).status());
  }
  return std::vector<Gradient>(xs.size());
}

}  // namespace

std::vector<Gradient> gradients(const Scope& scope, const Outputs& ys,
                                const Outputs& xs,
                                const GradientOptions& options) {
  return make_gradients(scope, ys, xs, options, false);
}

Outputs dense_gradients(const Scope& scope, const Outputs& ys,
                        const Outputs& xs, const GradientOptions& options) {
  Outputs results;
  for (const Gradient& gradient : make_gradients(scope, ys, xs, options, true))
    results.push_back(gradient.values);
  return results;
}

}  // namespace tagflow::autodiff

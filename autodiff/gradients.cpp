#include "autodiff/gradients.h"

#include <algorithm>

#include "autodiff/backprop.h"
#include "autodiff/gradient_arrays.h"
#include "autodiff/liveness_check.h"
#include "autodiff/lower_calls.h"
#include "autodiff/mutable_stacks.h"
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
    TAGFLOW_ASSIGN(const Prepared prepared, prepare());
    const auto& [analysis, frame, paths] = prepared;
    const graph::NodeId first = graph::NodeId(scope_.graph().end_id());
    Differentiation all{*analysis, paths, graph::ScopeAccess::name(scope_)};
    PlainRegion region(*analysis, frame, scope_);
    Backprop walk(all, region);
    for (size_t i = 0; i < ys_.size(); ++i)
      if (paths.has(ys_[i].endpoint()))
        walk.seed(ys_[i].endpoint(), {grad_of(i)});
    walk.run();
    std::vector<Gradient> results;
    for (const Output& x : xs_) {
      Gradient result = walk.total(x.endpoint());
      if (!result.valid() && options_.zeros_if_unconnected)
        result = {region.zeros(x.endpoint())};
      if (are_dense_) result = {walk.dense(x.endpoint(), result)};
      results.push_back(result);
    }
    if (options_.kept != nullptr)
      for (KeptValue& kept : analysis->take_notes())
        options_.kept->push_back(std::move(kept));
    TAGFLOW_RETURN_IF_ERROR(scope_.status());
    if (options_.check_liveness) TAGFLOW_RETURN_IF_ERROR(check(walk, first));
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
    Paths paths;
  };

  // Makes of the graph between xs and ys one of ops that have rules, and loops.
  Result<Prepared> prepare() const {
    const auto xs = endpoints(xs_), ys = endpoints(ys_);
    Paths::Set stops;
    for (const Endpoint& stop : endpoints(options_.stop_gradients))
      stops.insert(stop);
    for (;;) {
      TAGFLOW_RETURN_IF_ERROR(lower_calls(scope_.graph(), xs, ys));
      if (!has_open_loop(scope_.graph()))
        TAGFLOW_RETURN_IF_ERROR(graph::infer_loop_shapes(scope_.graph()));
      TAGFLOW_ASSIGN(auto analysis, Analysis::make(scope_.graph()));
      TAGFLOW_ASSIGN(const FrameId frame, common_frame(*analysis));
      Paths paths(*analysis, frame, xs, ys, stops);
      // What is replaced may show more that is to be.
      if (const auto pops = paths.hidden_pops(ys); !pops.empty()) {
        TAGFLOW_RETURN_IF_ERROR(make_stacks_persistent(*analysis, pops));
        continue;
      }
      if (const auto readers = readers_of_references(paths); !readers.empty()) {
        TAGFLOW_RETURN_IF_ERROR(graph::dereference(scope_.graph(), readers));
        continue;
      }
      TAGFLOW_RETURN_IF_ERROR(check_gradient_arrays(*analysis, paths, ys));
      return Prepared{std::move(analysis), frame, std::move(paths)};
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

  Status check(const Backprop& walk, graph::NodeId first) const {
    std::vector<GradientPair> pairs;
    if (options_.grad_ys.empty())  // those may be live where they please
      for (const auto& [tensor, gradient] : walk.totals())
        pairs.emplace_back(tensor, gradient.values.endpoint());
    return autodiff::check_liveness(scope_.graph(), first, pairs);
  }

  Status check_tensor(const Output& output, const char* what, size_t i) const {
    if (!output.has_tensor())
      return invalid_argument("[gradients] {} {} is no tensor", what, i);
    if (!scope_.graph().owns(output.node()))
      return invalid_argument("[gradients] {} {} (\"{}\") is of another graph",
                              what, i, output.name());
    return {};
  }

  // Where xs and ys are.
  Result<FrameId> common_frame(const Analysis& analysis) const {
    const FrameId frame = analysis.output_frame(*ys_[0].node());
    const auto name = [&](FrameId id) {
      return id == FrameId::kRoot ? std::string("outside of all loops")
                                  : fmt::format("in the loop of frame \"{}\"",
                                                analysis.frame(id).name);
    };
    for (const auto& [list, what] :
         {std::pair(&ys_, "y"), std::pair(&xs_, "x")})
      for (const Output& output : *list)
        if (const FrameId own = analysis.output_frame(*output.node());
            own != frame)
          return invalid_argument(
              "[gradients] y \"{}\" is {}, but {} \"{}\" is {}", ys_[0].name(),
              name(frame), what, output.name(), name(own));
    return frame;
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

#include "graph/passes/passes.h"

#include <array>
#include <cassert>
#include <limits>

#include "graph/analysis/loop_shapes.h"
#include "graph/analysis/validate.h"
#include "graph/budget.h"

namespace tagflow::graph {
namespace {

constexpr std::array<PassItem, kNumPasses> kPasses = {{
    {Pass::kFold, "fold",
     "replaces nodes that only depend on constants and known shapes"},
    {Pass::kIdentity, "identity",
     "removes identities, reshapes, casts and waits without effect"},
    {Pass::kCse, "cse", "merges nodes that compute the same"},
    {Pass::kDead, "dead",
     "removes branches that are never taken, and unneeded nodes"},
    {Pass::kHoist, "hoist", "moves loop-invariant nodes out of loops"},
    {Pass::kFuse, "fuse",
     "computes trees of element-wise ops on large tensors tile by tile"},
    {Pass::kInplace, "inplace",
     "lets kernels overwrite inputs that nobody else needs"},
    {Pass::kEdges, "edges",
     "compiles constants, identities and control-flow nodes to edges"},
    {Pass::kAbsorb, "absorb",
     "moves constant scales and shifts into preceding weights"},
    {Pass::kLayer, "layer",
     "fuses products by constants with element-wise ops on the result"},
    {Pass::kFreeze, "freeze",
     "treats variables as constants while nobody changes them"},
    {Pass::kSums, "sums",
     "sums the products of a loop's iterations several at a time"},
    {Pass::kGroup, "group",
     "merges connected element-wise ops into a node with several outputs"},
    {Pass::kPack, "pack",
     "packs the weights of a loop's matrix products before the loop"},
    {Pass::kShapes, "shapes",
     "compiles a signature again for the shapes of its feeds"},
    {Pass::kAhead, "ahead",
     "reads variables that a loop does not change once, before it"},
    {Pass::kSaved, "saved",
     "reads saved constants of a loop directly instead of from lists"},
}};

constexpr auto kPipeline = std::to_array<PassStep>({
    {Stage::kForm, Pass::kShapes},
    {Stage::kForm, Pass::kFreeze},
    {Stage::kRounds, Pass::kIdentity, remove_identities},
    {Stage::kRounds, Pass::kFold, fold_constants},
    {Stage::kRounds, Pass::kDead, remove_dead_branches},
    {Stage::kWhole, Pass::kAbsorb, absorb_scales},
    {Stage::kWhole, Pass::kCse, share_subexpressions},
    {Stage::kWhole, Pass::kHoist, hoist_invariants},
    {Stage::kWhole, Pass::kFuse, fuse_elementwise},
    {Stage::kCut, Pass::kFold, fold_constants},
    {Stage::kCut, Pass::kCse, share_subexpressions},
    {Stage::kCpu, Pass::kSums, sum_products},
    {Stage::kCpu, Pass::kGroup, group_elementwise, Bodies::kExcluded},
    {Stage::kCpu, Pass::kAhead, read_ahead, Bodies::kExcluded},
    {Stage::kCpu, Pass::kSaved, read_saved_constants, Bodies::kExcluded},
    {Stage::kCpu, Pass::kPack, pack_weights},
    {Stage::kLast, Pass::kLayer, fuse_layers},
    {Stage::kPlan, Pass::kEdges},
    {Stage::kPlan, Pass::kInplace},
});

// A pass can enable earlier ones; few rounds find nearly everything.
constexpr int kMaxRounds = 3;

// One stage of a program or of a function's body.
class StageRun {
 public:
  StageRun(Stage stage, Program& program, bool is_body, const PassSet& set,
           const PassContext& context)
      : stage_(stage),
        program_(program),
        is_body_(is_body),
        set_(set),
        context_(context) {}

  Status run() {
    if (stage_ == Stage::kRounds || stage_ == Stage::kCut)
      TAGFLOW_RETURN_IF_ERROR(
          infer_loop_shapes(program_.graph, {}, context_.budget));
    if (stage_ == Stage::kRounds) return run_rounds();
    return run_once(set_).status();
  }

 private:
  Status run_rounds() {
    for (int round = 0; round < kMaxRounds; ++round) {
      TAGFLOW_ASSIGN(const PassSet changed, run_once(set_));
      if (changed.has(Pass::kDead)) continue;
      // Permutations or shapes may have become known.
      if (changed.has(Pass::kFold) && set_.has(Pass::kIdentity))
        return run_once(PassSet::only(Pass::kIdentity)).status();
      break;
    }
    return {};
  }

  // Returns the passes of the set that have changed the program.
  Result<PassSet> run_once(const PassSet& set) {
    PassSet changed = PassSet::none();
    for (const PassStep& step : kPipeline) {
      if (step.stage != stage_ || step.run == nullptr || !set.has(step.pass))
        continue;
      if (is_body_ && step.bodies == Bodies::kExcluded) continue;
      TAGFLOW_RETURN_IF_ERROR(begin(step));
      TAGFLOW_ASSIGN(const bool is_new, step.run(program_, context_));
      if (is_new) changed = changed.with(step.pass);
#ifndef NDEBUG
      // Passes may make a graph larger than the limit.
      const Limits limits{.max_nodes = std::numeric_limits<size_t>::max()};
      const Status valid = validate(program_.graph, limits);
      assert(valid.ok());
#endif
    }
    return changed;
  }

  // Since a pass takes time for each node, the budget is asked.
  Status begin(const PassStep& step) const {
    if (context_.budget == nullptr) return {};
    context_.budget->begin(
        fmt::format("the pass \"{}\" ran", kPasses[size_t(step.pass)].name));
    return context_.budget->look();
  }

  const Stage stage_;
  Program& program_;
  const bool is_body_;
  const PassSet& set_;
  const PassContext& context_;
};

}  // namespace

std::span<const PassItem> passes() { return kPasses; }
std::span<const PassStep> pass_steps() { return kPipeline; }

Status run_stage(Stage stage, Program& program, const PassSet& set,
                 const PassContext& context) {
  if (set == PassSet::none()) return {};
  for (const auto& body : program.bodies)
    TAGFLOW_RETURN_IF_ERROR(StageRun(stage, *body, true, set, context).run());
  return StageRun(stage, program, false, set, context).run();
}

Status optimize(Program& program, const PassSet& set,
                const PassContext& context) {
  for (const Stage stage : {Stage::kRounds, Stage::kWhole})
    TAGFLOW_RETURN_IF_ERROR(run_stage(stage, program, set, context));
  return {};
}

// --- PassSet ----------------------------------------------------------------

Result<PassSet> PassSet::parse(std::string_view text) {
  if (text.empty()) return PassSet();
  PassSet set = text.front() == '-' ? PassSet() : none();
  for (;;) {
    const size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    const bool take = !name.starts_with('-');
    if (!take) name.remove_prefix(1);
    PassSet named = none();
    for (const PassItem& item : kPasses)
      if (name == item.name || name == "all") named = named.with(item.pass);
    if (named == none() && (name != "none" || !take)) {
      std::string names;
      for (const PassItem& item : kPasses)
        names += fmt::format("\"{}\", ", item.name);
      return invalid_argument(
          "there is no pass \"{}\"; there is {}\"all\" and \"none\", and "
          "\"-NAME\" for all but that",
          name, names);
    }
    set.bits_ = take ? set.bits_ | named.bits_ : set.bits_ & ~named.bits_;
    if (comma == std::string_view::npos) return set;
    text.remove_prefix(comma + 1);
  }
}

std::string PassSet::to_string() const {
  if (*this == PassSet()) return "all";
  if (*this == none()) return "none";
  std::string text;
  for (const PassItem& item : kPasses)
    if (has(item.pass))
      text += (text.empty() ? "" : ",") + std::string(item.name);
  return text;
}

}  // namespace tagflow::graph

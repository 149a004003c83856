#include "graph/passes/passes.h"

#include <array>
#include <cassert>
#include <limits>

#include "graph/analysis/loop_shapes.h"
#include "graph/analysis/validate.h"

namespace tagflow::graph {
namespace {

constexpr std::array<PassItem, kNumPasses> kPasses = {{
    {Pass::kFold, "fold",
     "replaces nodes that only depend on constants and known shapes",
     fold_constants},
    {Pass::kIdentity, "identity",
     "removes identities, reshapes, casts and waits without effect",
     remove_identities},
    {Pass::kCse, "cse", "merges nodes that compute the same",
     share_subexpressions},
    {Pass::kDead, "dead",
     "removes branches that are never taken, and unneeded nodes",
     remove_dead_branches},
    {Pass::kHoist, "hoist", "moves loop-invariant nodes out of loops",
     hoist_invariants},
    {Pass::kFuse, "fuse",
     "computes trees of element-wise ops on large tensors tile by tile",
     fuse_elementwise},
    {Pass::kInplace, "inplace",
     "lets kernels overwrite inputs that nobody else needs", nullptr},
    {Pass::kEdges, "edges",
     "compiles constants, identities and control-flow nodes to edges", nullptr},
    {Pass::kAbsorb, "absorb",
     "moves constant scales and shifts into preceding weights", absorb_scales},
    {Pass::kLayer, "layer",
     "fuses products by constants with element-wise ops on the result",
     nullptr},
    {Pass::kFreeze, "freeze",
     "treats variables as constants while nobody changes them", nullptr},
    {Pass::kSums, "sums",
     "sums the products of a loop's iterations several at a time", nullptr},
    {Pass::kGroup, "group",
     "merges connected element-wise ops into a node with several outputs",
     nullptr},
    {Pass::kPack, "pack",
     "packs the weights of a loop's matrix products before the loop", nullptr},
    {Pass::kShapes, "shapes",
     "compiles a signature again for the shapes of its feeds", nullptr},
    {Pass::kAhead, "ahead",
     "reads variables that a loop does not change once, before it", nullptr},
    {Pass::kSaved, "saved",
     "reads saved constants of a loop directly instead of from lists", nullptr},
}};

// A pass can enable earlier ones; few rounds find nearly everything.
constexpr int kMaxRounds = 3;

Result<bool> run_pass(Pass pass, Program& program, const PassSet& set,
                      const Evaluator* evaluator) {
  const PassItem& item = kPasses[size_t(pass)];
  if (!set.has(pass) || item.run == nullptr) return false;
  TAGFLOW_ASSIGN(const bool changed, item.run(program, evaluator));
#ifndef NDEBUG
  // Passes may make a graph larger than the limit.
  const Limits limits{.max_nodes = std::numeric_limits<size_t>::max()};
  const Status valid = validate(program.graph, limits);
  assert(valid.ok());
#endif
  return changed;
}

}  // namespace

std::span<const PassItem> passes() { return kPasses; }

Status optimize(Program& program, const PassSet& set,
                const Evaluator* evaluator) {
  for (const auto& body : program.bodies)
    TAGFLOW_RETURN_IF_ERROR(optimize(*body, set, evaluator));
  if (set == PassSet::none()) return {};
  TAGFLOW_RETURN_IF_ERROR(infer_loop_shapes(program.graph));
  for (int round = 0; round < kMaxRounds; ++round) {
    TAGFLOW_RETURN_IF_ERROR(
        run_pass(Pass::kIdentity, program, set, evaluator).status());
    TAGFLOW_ASSIGN(const bool folded,
                   run_pass(Pass::kFold, program, set, evaluator));
    TAGFLOW_ASSIGN(const bool pruned,
                   run_pass(Pass::kDead, program, set, evaluator));
    if (pruned) continue;
    // Permutations or shapes may have become known.
    if (folded)
      TAGFLOW_RETURN_IF_ERROR(
          run_pass(Pass::kIdentity, program, set, evaluator).status());
    break;
  }
  for (const Pass pass : {Pass::kAbsorb, Pass::kCse, Pass::kHoist})
    TAGFLOW_RETURN_IF_ERROR(run_pass(pass, program, set, evaluator).status());
  return run_pass(Pass::kFuse, program, set, evaluator).status();
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

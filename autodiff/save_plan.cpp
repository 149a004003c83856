#include "autodiff/save_plan.h"

#include <charconv>

#include "graph/analysis/frames.h"

namespace tagflow::autodiff {
namespace {

constexpr std::string_view kEvery = "every";
constexpr std::string_view kEveryNumber = "every:";

// The marked Enter, whose input is the number.
Endpoint marked_number(const Loop& loop) {
  for (const Node* enter : loop.constants)
    if (const auto mark = enter->attr<bool>(graph::kSaveEveryAttr);
        enter->attrs().contains(graph::kSaveEveryAttr) && mark.ok() && *mark)
      return enter->inputs()[0];
  return {};
}

}  // namespace

Result<SavePlan> SavePlan::read(std::string_view text) {
  using Kind = graph::Save::Kind;
  if (text == "all") return SavePlan{};
  if (text == "log") return SavePlan{.kind = Kind::kLog};
  if (text == kEvery) return SavePlan{.kind = Kind::kEvery};
  if (text.starts_with(kEveryNumber)) {
    SavePlan plan{.kind = Kind::kEvery};
    const char* end = text.data() + text.size();
    const auto number =
        std::from_chars(text.data() + kEveryNumber.size(), end, plan.k);
    if (number.ec == std::errc() && number.ptr == end && plan.k > 0)
      return plan;
  }
  return invalid_argument(
      "\"{}\" is not a plan of what gradients of a loop keep: use \"all\", "
      "\"log\", or \"every:K\" with a positive K",
      text);
}

Result<SavePlan> SavePlan::of(const Loop& loop) {
  const Node& cond = *loop.loop_cond;
  if (!cond.attrs().contains(graph::kSaveAttr)) return SavePlan{};
  TAGFLOW_ASSIGN(const auto text, cond.attr<std::string>(graph::kSaveAttr));
  Result<SavePlan> plan = read(text);
  if (!plan.ok())
    return std::move(plan).status().with_prefix(
        fmt::format("[gradients] node \"{}\": ", cond.name()));
  if (plan->kind != graph::Save::Kind::kEvery || plan->k > 0) return plan;
  plan->k_outside = marked_number(loop);
  if (plan->k_outside.node != nullptr) return plan;
  return invalid_argument(
      "[gradients] node \"{}\": \"every\" without a number, and no Enter of "
      "the loop has the attribute {}",
      cond.name(), graph::kSaveEveryAttr);
}

Status set_save(graph::Graph& graph, const std::string& frame,
                const std::string& text) {
  const auto about = [&](Status status) {
    return std::move(status).with_prefix(
        fmt::format("[gradients] loop \"{}\": ", frame));
  };
  const auto plan = SavePlan::read(text);
  if (!plan.ok()) return about(plan.status());
  if (text == kEvery)
    return about(invalid_argument("\"every\" is without a number"));
  TAGFLOW_ASSIGN(const auto frames, graph::FrameMap::build(graph));
  // A frame of this name, or that of a While op, as lowering calls it.
  for (const std::string& name : {frame, frame + "/frame"})
    for (const graph::StaticFrame& known : frames.frames())
      if (!known.loop_conds.empty() && known.name == name) {
        graph.set_attr(known.loop_conds.front(), std::string(graph::kSaveAttr),
                       text);
        return {};
      }
  std::string names;
  for (const graph::StaticFrame& known : frames.frames())
    if (!known.loop_conds.empty())
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", known.name);
  return about(error(Code::kNotFound,
                     "no loop has a frame of this name; the graph has {}",
                     names.empty() ? "none" : names));
}

}  // namespace tagflow::autodiff

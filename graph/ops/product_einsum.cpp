#include "graph/ops/product_einsum.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "graph/counted.h"
#include "graph/op_registry.h"
#include "graph/ops/product_ops.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

constexpr std::string_view kDots = "...";

// If `rank` < 0, the ellipsis represents `ellipsis_rank` dimensions. Otherwise
// it represents the remaining ones, and ellipsis_rank becomes at least that.
Result<Labels> parse_labels(std::string_view text, int rank,
                            int& ellipsis_rank) {
  const size_t dots = text.find(kDots);
  const bool has_dots = dots != std::string_view::npos;
  const std::string_view before = text.substr(0, dots);
  const std::string_view after =
      has_dots ? text.substr(dots + kDots.size()) : std::string_view();
  const int named = int(before.size() + after.size());
  int dims = has_dots ? ellipsis_rank : 0;
  if (rank >= 0) {
    dims = rank - named;
    if (dims < 0 || (dims > 0 && !has_dots))
      return invalid_argument("\"{}\" does not fit an operand of rank {}", text,
                              rank);
    ellipsis_rank = std::max(ellipsis_rank, dims);
  }
  Labels labels;
  const auto add = [&](std::string_view letters) {
    for (char letter : letters) {
      if (std::isalpha(static_cast<unsigned char>(letter)) == 0) return false;
      labels.push_back(static_cast<unsigned char>(letter));
    }
    return true;
  };
  bool ok = add(before);
  for (int i = dims; i-- > 0;) labels.push_back(kEllipsis + i);
  ok = add(after) && ok;
  if (!ok)
    return invalid_argument(
        "\"{}\" contains what is neither a letter nor "
        "one ellipsis",
        text);
  return labels;
}

// The dimension of each label, from the known shapes.
Status einsum_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const std::string text, c.attr<std::string>("equation"));
  std::vector<int> ranks;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.input(i).has_rank()) return Status();
    ranks.push_back(c.input(i).rank());
  }
  Result<Equation> equation = parse_equation(text, ranks);
  if (!equation.ok()) return c.fail(equation.status().message());
  std::map<Label, int64_t> dims;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const Labels& labels = equation->inputs[size_t(i)];
    for (size_t d = 0; d < labels.size(); ++d) {
      const int64_t dim = c.input(i).dim(int(d));
      const auto [it, is_new] = dims.try_emplace(labels[d], dim);
      int64_t& known = it->second;
      const bool broadcasts = labels[d] >= kEllipsis;
      if (is_new || dim == known || (broadcasts && dim == 1)) continue;
      if (known == PartialShape::kUnknown || (broadcasts && known == 1)) {
        known = dim;
      } else if (dim != PartialShape::kUnknown) {
        return c.fail(fmt::format("dimensions {} and {} of one label in \"{}\"",
                                  known, dim, text));
      }
    }
  }
  PartialShape out = PartialShape::scalar();
  for (Label label : equation->output) out.add_dim(dims[label]);
  c.set_output(0, std::move(out));
  return Status();
}

}  // namespace

Result<Equation> parse_equation(std::string_view text,
                                const std::vector<int>& ranks) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos ||
      text.find("->", arrow + 2) != std::string_view::npos)
    return invalid_argument("\"{}\" does not contain \"->\" once", text);
  Equation equation;
  int ellipsis_rank = 0;
  std::string_view rest = text.substr(0, arrow);
  while (true) {
    const size_t comma = rest.find(',');
    const size_t i = equation.inputs.size();
    TAGFLOW_ASSIGN(Labels labels, parse_labels(rest.substr(0, comma),
                                               i < ranks.size() ? ranks[i] : -1,
                                               ellipsis_rank));
    equation.inputs.push_back(std::move(labels));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (equation.inputs.size() != ranks.size())
    return invalid_argument("\"{}\" has {} before \"->\", but the node has {}",
                            text, counted(equation.inputs.size(), "operand"),
                            counted(ranks.size(), "input"));
  if (ranks.size() > 2)
    return invalid_argument(
        "\"{}\" has {} operands, but an Einsum has one or two", text,
        ranks.size());
  const std::string_view output = text.substr(arrow + 2);
  if (ellipsis_rank > 0 && output.find(kDots) == std::string_view::npos)
    return invalid_argument("\"{}\" has no ellipsis in its output", text);
  TAGFLOW_ASSIGN(equation.output, parse_labels(output, -1, ellipsis_rank));
  for (Label label : equation.output) {
    const bool known =
        std::ranges::any_of(equation.inputs, [&](const Labels& labels) {
          return std::ranges::find(labels, label) != labels.end();
        });
    if (!known)
      return invalid_argument(
          "\"{}\" has a label in its output that no "
          "operand has",
          text);
  }
  return equation;
}

void register_product_einsum_ops(OpRegistry& registry) {
  registry.add(OpDefBuilder("Einsum")
                   .input("inputs: N * T")
                   .output("output: T")
                   .attrs({"equation: string", "N: int >= 1", "T: type"})
                   .shape(einsum_shape)
                   .work(Work::kProduct));
}

}  // namespace tagflow::graph

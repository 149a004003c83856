// FusedProgram: the lines of a _FusedElementwise, as passes write them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// Of inputs and segments together, and of lines: what kernels take.
inline constexpr size_t kMostFused = 64;

// A value, or so many columns of it from one on, as an op sees it.
struct FusedOperand {
  Endpoint value;
  int64_t first = 0, count = 0;  // columns; all where 0

  bool operator==(const FusedOperand&) const = default;
};

bool is_fused(const Node& node);
// What the node's op, or its program, sees of its inputs.
std::vector<FusedOperand> fused_operands(const Node& node);
// How the op is called in a line: an AddN of two is an AddV2. Empty where the
// node can be no line, whatever its operands are.
std::string_view fused_op_name(const Node& node);
// 1 where the node is no program.
size_t num_fused_lines(const Node& node);

// Operands are numbered: the inputs, then the results of the lines.
class FusedProgram {
 public:
  explicit FusedProgram(size_t num_inputs) : next_(num_inputs) {}

  // Adds the node's op, or its whole program. `operands` has the number of each
  // of its inputs. Returns these, and behind them the numbers of its results.
  std::vector<size_t> add(const Node& node, std::vector<size_t> operands);

  const std::vector<std::string>& lines() const { return lines_; }
  // Of the nodes, for messages.
  const std::vector<std::string>& names() const { return names_; }

 private:
  size_t add_line(std::string_view op, std::span<const size_t> operands);

  size_t next_;
  std::vector<std::string> lines_, names_;
};

}  // namespace tagflow::graph

// FusedProgram: builds the lines of a _FusedElementwise.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// The maximum of lines, and of inputs and segments together, for kernels.
inline constexpr size_t kMostFused = 64;

// An operand of an op: a value, or a range of its columns.
struct FusedOperand {
  Endpoint value;
  int64_t first = 0, count = 0;  // columns; all if count is 0

  bool operator==(const FusedOperand&) const = default;
};

bool is_fused(const Node& node);
// The operands of the node's op, or of its program.
std::vector<FusedOperand> fused_operands(const Node& node);
// The op's name in a line: an AddN of two becomes AddV2. Empty if the node
// cannot be a line with any operands.
std::string_view fused_op_name(const Node& node);
// 1 if the node is not a _FusedElementwise.
size_t num_fused_lines(const Node& node);

// Operands are numbered: the inputs, then the results of the lines.
class FusedProgram {
 public:
  explicit FusedProgram(size_t num_inputs) : next_(num_inputs) {}

  // Adds the node's op, or its whole program. `operands` has the number of each
  // of its inputs. Returns them, followed by the numbers of its results.
  std::vector<size_t> add(const Node& node, std::vector<size_t> operands);

  const std::vector<std::string>& lines() const { return lines_; }
  // The names of the nodes, for messages.
  const std::vector<std::string>& names() const { return names_; }

 private:
  size_t add_line(std::string_view op, std::span<const size_t> operands);

  size_t next_;
  std::vector<std::string> lines_, names_;
};

}  // namespace tagflow::graph

#include "graph/passes/fused_program.h"

#include <algorithm>

#include "graph/passes/rewriting.h"

namespace tagflow::graph {
namespace {

using Strings = std::vector<std::string>;

}  // namespace

bool is_fused(const Node& node) { return node.op() == "_FusedElementwise"; }

std::vector<FusedOperand> fused_operands(const Node& node) {
  std::vector<int64_t> columns;
  if (is_fused(node))
    columns = node.attr<std::vector<int64_t>>("columns").value();
  std::vector<FusedOperand> operands;
  for (const Endpoint& input : node.inputs()) {
    const size_t at = 2 * operands.size();
    operands.push_back({input});
    if (columns.empty()) continue;
    operands.back().first = columns[at];
    operands.back().count = columns[at + 1];
  }
  return operands;
}

std::string_view fused_op_name(const Node& node) {
  if (is_elementwise(node)) return node.op();
  // With equal shapes AddN cannot fail.
  const bool adds_two = node.op() == "AddN" && node.num_inputs() == 2 &&
                        is_pure(node) && has_one_known_shape(node);
  return adds_two ? "AddV2" : "";
}

size_t num_fused_lines(const Node& node) {
  return is_fused(node) ? node.attr<Strings>("program").value().size() : 1;
}

std::vector<size_t> FusedProgram::add(const Node& node,
                                      std::vector<size_t> operands) {
  std::vector<size_t> numbers = std::move(operands);
  if (!is_fused(node)) {
    numbers.push_back(add_line(fused_op_name(node), numbers));
    names_.push_back(node.name());
    return numbers;
  }
  const Strings lines = node.attr<Strings>("program").value();
  for (const std::string& line : lines) {
    const size_t op_end = std::min(line.find(' '), line.size());
    std::vector<size_t> of_line;
    for (size_t at = op_end; at < line.size();) {
      const size_t end = std::min(line.find(' ', at + 1), line.size());
      of_line.push_back(numbers[std::stoul(line.substr(at + 1, end - at - 1))]);
      at = end;
    }
    numbers.push_back(
        add_line(std::string_view(line).substr(0, op_end), of_line));
  }
  const Strings names = node.attr<Strings>("names").value();
  names_.insert(names_.end(), names.begin(), names.end());
  return numbers;
}

size_t FusedProgram::add_line(std::string_view op,
                              std::span<const size_t> operands) {
  std::string line(op);
  for (const size_t operand : operands) line += fmt::format(" {}", operand);
  lines_.push_back(std::move(line));
  return next_++;
}

}  // namespace tagflow::graph

#include "autodiff/rules/product_einsum.h"

#include <algorithm>

#include "autodiff/rules/broadcast.h"
#include "graph/builder/ops_array.h"
#include "graph/builder/ops_elementwise.h"
#include "graph/builder/ops_reduction.h"

namespace tagflow::autodiff {

namespace ops = graph::ops;

namespace {

// Note [The gradient of Einsum]
// Of C = einsum(A, B) the gradient of A is an einsum itself, of the gradient of
// C and of B, by the same labels. A label that is repeated in A or in C, where
// the op reads or writes a diagonal, then writes or reads it. One einsum does
// not cover two cases:
//   1. A label that only A has was summed over, and the gradient is constant
//      along it. A second factor, of ones, adds the label.
//   2. Dimensions of the ellipsis were broadcast. The gradient of A has those
//      of C, until it is summed over the repeated ones.

// The labels of an operand or of the result.
struct Term {
  std::string before, after;  // letters in front of the ellipsis, and behind
  bool has_ellipsis = false;

  std::string letters() const { return before + after; }
  std::string text() const {
    return before + (has_ellipsis ? "..." : "") + after;
  }
  bool has(char label) const {
    return letters().find(label) != std::string::npos;
  }
};

Term parse_term(std::string_view text) {
  const size_t dots = text.find("...");
  if (dots == std::string_view::npos) return {std::string(text), "", false};
  return {std::string(text.substr(0, dots)), std::string(text.substr(dots + 3)),
          true};
}

struct EinsumTerms {
  std::vector<Term> inputs;
  Term output;
};

EinsumTerms parse_terms(std::string_view equation) {
  const size_t arrow = std::min(equation.find("->"), equation.size());
  EinsumTerms terms;
  std::string_view rest = equation.substr(0, arrow);
  for (;;) {
    const size_t comma = std::min(rest.find(','), rest.size());
    terms.inputs.push_back(parse_term(rest.substr(0, comma)));
    if (comma == rest.size()) break;
    rest.remove_prefix(comma + 1);
  }
  terms.output =
      parse_term(equation.substr(std::min(arrow + 2, equation.size())));
  return terms;
}

Output einsum(const Scope& s, const graph::Inputs& inputs,
              std::string equation) {
  return s.op("Einsum", inputs, {{"equation", std::move(equation)}});
}

// The gradient of one operand.
class EinsumGradient {
 public:
  EinsumGradient(RuleContext& r, const EinsumTerms& terms, int input)
      : r_(r),
        s_(r.scope()),
        terms_(terms),
        input_(input),
        own_(terms.inputs[size_t(input)]) {}

  Output make() {
    // The labels of the gradient before it is summed.
    Term full = own_;
    if (!own_.has_ellipsis && terms_.output.has_ellipsis)
      full = {"", own_.letters(), true};
    Output gradient = times_ones(full);
    if (other() == nullptr) return gradient;
    if (!own_.has_ellipsis && full.has_ellipsis) return sum_leading(gradient);
    return own_.has_ellipsis && other()->has_ellipsis ? sum_repeated(gradient)
                                                      : gradient;
  }

 private:
  // Null if there is one operand only.
  const Term* other() const {
    return terms_.inputs.size() == 1 ? nullptr
                                     : &terms_.inputs[size_t(1 - input_)];
  }

  // The gradient with the labels of `full`, of which only the operand may have
  // some.
  Output times_ones(const Term& full) {
    std::string alone;
    for (char label : full.letters())
      if (!terms_.output.has(label) &&
          (other() == nullptr || !other()->has(label)) &&
          alone.find(label) == std::string::npos)
        alone += label;
    if (alone.empty()) return product(full);
    Term shared = {"", "", full.has_ellipsis};
    for (char label : full.letters())
      if (alone.find(label) == std::string::npos && !shared.has(label))
        shared.after += label;
    return einsum(s_, {product(shared), ones(alone)},
                  shared.text() + "," + alone + "->" + full.text());
  }

  // The gradient of the result, times the other operand if there is one.
  Output product(const Term& to) {
    const std::string from = terms_.output.text();
    if (other() != nullptr)
      return einsum(s_, {r_.grad(), r_.conj(r_.input(1 - input_))},
                    from + "," + other()->text() + "->" + to.text());
    if (from == to.text()) return r_.grad();
    return einsum(s_, {r_.grad()}, from + "->" + to.text());
  }

  // Ones of the sizes that these labels have in the operand.
  Output ones(const std::string& labels) {
    const Output shape = r_.input_shape(input_);
    graph::Inputs sizes;
    for (char label : labels) {
      auto at = int64_t(own_.before.find(label));
      if (at < 0)
        at = int64_t(own_.after.find(label)) - int64_t(own_.after.size());
      graph::ops::StridedSliceMasks masks;
      masks.end_mask = at == -1 ? 1 : 0;
      sizes.add(ops::strided_slice(s_, shape, r_.ints({at}), r_.ints({at + 1}),
                                   r_.ints({1}), masks));
    }
    const Output all =
        labels.size() == 1 ? sizes[0].output() : ops::concat(s_, sizes, 0);
    return ops::fill(s_, all, r_.scalar(1, r_.grad()));
  }

  // Sums over leading dimensions of an ellipsis that the operand lacks.
  Output sum_leading(const Output& gradient) {
    const auto kept = int64_t(own_.letters().size());
    if (!gradient.shape().has_rank()) {
      const Output count = ops::sub(s_, ops::rank(s_, gradient), kept);
      return ops::reduce_sum(s_, gradient, ops::range(s_, 0, count, 1));
    }
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < gradient.shape().rank() - kept; ++i)
      axes.push_back(i);
    return axes.empty() ? gradient
                        : ops::reduce_sum(s_, gradient, r_.ints(axes));
  }

  // Sums over dimensions of the ellipsis along which the operand was repeated.
  Output sum_repeated(const Output& gradient) {
    if (keeps_shape(known_ellipsis(input_), known_ellipsis(1 - input_)))
      return gradient;
    Output axes =
        ops::broadcast_gradient_args(s_, ellipsis(input_), ellipsis(1 - input_))
            .r0;
    if (!own_.before.empty())
      axes = ops::add(s_, axes, int64_t(own_.before.size()));
    return ops::reshape(s_, ops::reduce_sum(s_, gradient, axes),
                        r_.input_shape(input_));
  }

  // The part of an operand's shape for its ellipsis.
  Output ellipsis(int input) {
    const Term& term = terms_.inputs[size_t(input)];
    graph::ops::StridedSliceMasks masks;
    masks.end_mask = term.after.empty() ? 1 : 0;
    return ops::strided_slice(
        s_, r_.input_shape(input), r_.ints({int64_t(term.before.size())}),
        r_.ints({-int64_t(term.after.size())}), r_.ints({1}), masks);
  }

  PartialShape known_ellipsis(int input) const {
    const Term& term = terms_.inputs[size_t(input)];
    const PartialShape& shape = r_.known_input_shape(input);
    const size_t named = term.letters().size();
    if (!shape.has_rank() || size_t(shape.rank()) < named)
      return PartialShape();
    return PartialShape(
        shape.dims().subspan(term.before.size(), size_t(shape.rank()) - named));
  }

  RuleContext& r_;
  const Scope& s_;
  const EinsumTerms& terms_;
  const int input_;
  const Term& own_;
};

}  // namespace

void einsum_rule(RuleContext& r) {
  const auto equation = r.attr<std::string>("equation");
  const EinsumTerms terms = parse_terms(equation);
  if (int(terms.inputs.size()) != r.num_inputs() || r.num_inputs() > 2)
    return r.fail(
        fmt::format("\"{}\" is not an equation of its {} operands, "
                    "of which there may be two",
                    equation, r.num_inputs()));
  for (int i = 0; i < r.num_inputs(); ++i)
    if (r.wants(i)) r.set(i, EinsumGradient(r, terms, i).make());
}

}  // namespace tagflow::autodiff

// Losses: measure how far predictions are from their labels.
//
//   const Output loss = losses::sparse_softmax_cross_entropy(s, logits,
//   labels);
//
// Predictions and logits are of a floating-point type; labels are tensors or
// literals, and are cast to that type unless they are indices. The loss has
// that type, too. In formulas, x is a prediction or logit, z a label.
// Thread-compatible, like the graph. The scope or the run fails if shapes or
// types do not match.
#pragma once

#include "graph/builder/scope.h"

namespace tagflow::autodiff::losses {

using graph::Output;

// How the losses of elements, or rows, are reduced.
enum class Reduction : uint8_t {
  kMean,  // their mean, a scalar; NaN if there are none
  kSum,   // their sum, a scalar
  kNone,  // not reduced
};

// (x - z)^2 of each element. Labels have the shape of the predictions.
Output mean_squared_error(const graph::Scope& s, const Output& predictions,
                          const graph::Input& labels,
                          Reduction reduction = Reduction::kMean);

// -sum(z log softmax(x)) over the last dimension, of each row. Logits and
// labels are of [..., classes]; each row of labels is a distribution.
Output softmax_cross_entropy(const graph::Scope& s, const Output& logits,
                             const graph::Input& labels,
                             Reduction reduction = Reduction::kMean);

// -log softmax(x)[z] of each row. Logits are of [..., classes], labels int32 or
// int64 of [...], in [0, classes).
Output sparse_softmax_cross_entropy(const graph::Scope& s, const Output& logits,
                                    const graph::Input& labels,
                                    Reduction reduction = Reduction::kMean);

// -z log(sigmoid(x)) - (1 - z) log(1 - sigmoid(x)) of each element, as max(x,
// 0) - x z + log(1 + exp(-|x|)), which does not overflow. Labels have the shape
// of the logits and are probabilities.
Output sigmoid_cross_entropy(const graph::Scope& s, const Output& logits,
                             const graph::Input& labels,
                             Reduction reduction = Reduction::kMean);

// e^2 / 2 if |e| <= delta, else delta (|e| - delta / 2), of each e = x - z
// (Huber, "Robust estimation of a location parameter", 1964). Labels have the
// shape of the predictions; delta is positive.
Output huber(const graph::Scope& s, const Output& predictions,
             const graph::Input& labels, double delta = 1,
             Reduction reduction = Reduction::kMean);

// max(0, 1 - x (2 z - 1)) of each element. Labels have the shape of the logits
// and are 0 or 1.
Output hinge(const graph::Scope& s, const Output& logits,
             const graph::Input& labels,
             Reduction reduction = Reduction::kMean);

}  // namespace tagflow::autodiff::losses

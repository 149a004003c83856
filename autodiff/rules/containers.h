// Gradients of containers, which the rules of containers share.
#pragma once

#include "autodiff/rules/arithmetic.h"

namespace tagflow::autodiff {

// Note [Gradients of containers]
// The gradient of a container is a variant. It holds the gradients of elements;
// a missing one is zero, and an empty variant (ZeroVariant) is the gradient of
// a container whose elements all have zero gradients. AddN adds them.
//
//   of a PersistentStack     a PersistentStack, aligned at the top
//   of a list, an optional,  a GradientList: gradients by the index of the
//   the flow of an array     element
//
// So the gradient of an op that reads one element holds one element, and a loop
// over n elements takes time n: zeros are never made for a whole container. The
// ops on these variants have rules of the same kind. They form pairs in which
// each op is the derivative of the other: GradientListAdd and GradientListGet,
// Put and Take, Split and Join, Push and PopOrZero, PushZero and Drop.
//
// Invariant: the gradient of a list has no element at or beyond the list's
// length. The rule of an op that makes the list longer removes the elements
// that were added.

// The gradient of a container in which no element has a gradient yet.
inline Output no_gradients(const Scope& s) { return s.op("ZeroVariant", {}); }

// The shape of a row of input `i`.
Output input_row_shape(RuleContext& r, int i);
// 0, 1, ..., one for each row of input `i`, or of the gradient of output 0.
Output input_row_indices(RuleContext& r, int i);
Output gradient_row_indices(RuleContext& r);

// The gradient of a container in which only element `index`, or only the
// elements `indices`, have gradients.
Output one_gradient(RuleContext& r, const graph::Input& index,
                    const Output& value);
Output row_gradients(RuleContext& r, const Output& indices,
                     const Output& values);
// The gradient of a container in which parts of a tensor, of `lengths` rows
// each, have gradients.
Output part_gradients(RuleContext& r, const Output& values,
                      const Output& lengths);
// The gradients in `gradients` of such elements. Input `i` gives their type and
// shapes.
Output gradient_at(RuleContext& r, const Output& gradients,
                   const graph::Input& index, int i);
Output gradient_rows_at(RuleContext& r, const Output& gradients,
                        const Output& indices, int i);
Output gradient_parts(RuleContext& r, const Output& gradients,
                      const Output& lengths, int i);

// For a node that puts input `value` at an index of input `container`, where
// the gradient of output 0 is that of the container: sets the gradient of the
// value, and returns the gradient of the container without that element, or an
// invalid Output if it is not wanted. taken_gradient_rows() does the same
// for the rows of the value.
Output taken_gradient(RuleContext& r, const graph::Input& index, int value,
                      int container);
Output taken_gradient_rows(RuleContext& r, const Output& indices, int value,
                           int container,
                           const char* take = "GradientListTakeRows");

// Called by add_containers_rules().
void add_list_rules(RuleTable& table);
void add_array_container_rules(RuleTable& table);

}  // namespace tagflow::autodiff

// What the rules of containers share: gradients of containers.
#pragma once

#include "autodiff/rules/arithmetic.h"

namespace tagflow::autodiff {

// Note [Gradients of containers]
// The gradient of a container is a variant. It has a gradient for each element
// that has one; what is missing is zero, and an empty variant (ZeroVariant) is
// the gradient of a container of which no element matters. AddN adds them.
//
//   of a PersistentStack     a PersistentStack, aligned at the top
//   of a list, an optional,  a GradientList: gradients by the index of the
//   the flow of an array     element
//
// So the gradient of an op that reads one element holds one element, and a loop
// over n elements takes time n: nowhere are zeros made for a whole container.
// Their ops have rules of the same kind, in pairs: each is the derivative of
// the other, with GradientListAdd and GradientListGet, Put and Take, Split and
// Join, Push and PopOrZero, PushZero and Drop.
//
// Invariant: the gradient of a list has no element at or beyond the list's
// length. A rule of an op that makes the list longer takes what is there.

// The gradient of a container as it is before any element has one.
inline Output no_gradients(const Scope& s) { return s.op("ZeroVariant", {}); }

// The shape of a row of input `i`.
Output input_row_shape(RuleContext& r, int i);
// 0, 1, ..., as many as input `i` has rows, or the gradient of output 0.
Output input_row_indices(RuleContext& r, int i);
Output gradient_row_indices(RuleContext& r);

// A container whose gradient is only that of element `index`, or of as many
// elements as `indices` has.
Output one_gradient(RuleContext& r, const graph::Input& index,
                    const Output& value);
Output row_gradients(RuleContext& r, const Output& indices,
                     const Output& values);
// Of parts of a tensor, of `lengths` rows each.
Output part_gradients(RuleContext& r, const Output& values,
                      const Output& lengths);
// What `gradients` has for such elements, where input `i` says their type and
// shapes.
Output gradient_at(RuleContext& r, const Output& gradients,
                   const graph::Input& index, int i);
Output gradient_rows_at(RuleContext& r, const Output& gradients,
                        const Output& indices, int i);
Output gradient_parts(RuleContext& r, const Output& gradients,
                      const Output& lengths, int i);

// Of a node that puts input `value` at an index of input `container`, where the
// gradient of output 0 is that of the container: sets the gradient of the
// value, and gives what is left of the other, without that element; not valid
// where nobody wants it. The same of the rows of the value.
Output taken_gradient(RuleContext& r, const graph::Input& index, int value,
                      int container);
Output taken_gradient_rows(RuleContext& r, const Output& indices, int value,
                           int container,
                           const char* take = "GradientListTakeRows");

void add_list_rules(RuleTable& table);                // containers_list.cpp
void add_array_container_rules(RuleTable& table);     // containers_array.cpp
void add_container_gradient_rules(RuleTable& table);  // containers_gradient.cpp

}  // namespace tagflow::autodiff

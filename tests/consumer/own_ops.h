// The ops of this project: each function adds one to tagflow's tables, with its
// kernels. Called once, before the first graph has the op.
#pragma once

#include "graph/status.h"

// ParseNumber(text: string) -> number: double.
tagflow::Status add_parse_number();
// Polynomial(x: T) -> y: T of floats, coefficients: those of 1, x, x^2, ...
tagflow::Status add_polynomial();
// The rule by which Polynomial is differentiated, before the first gradients.
void add_polynomial_gradient();
// Take() -> value: double, which waits for one in the mailbox, and
// Put(value: double), which puts one there.
tagflow::Status add_mailbox_ops();

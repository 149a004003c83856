// Values as text, as Assert and Print show them.
#pragma once

#include <string>

#include "graph/tensor.h"

namespace tagflow::devices {

class KernelContext;

// Element `i`: floats with 6 digits if these are exact, else 9, doubles with
// 15 or 17; strings with escapes, without quotes. REQUIRES: it exists.
std::string element_text(const Tensor& tensor, int64_t i);

// The first `limit` elements, nested in brackets by dimension, with dots where
// a row or the tensor is cut: "[[1 2][3...]...]", "[1 2 3...]", "[7]" for a
// scalar. All elements if limit < 0. A kernel that gives its context is
// interrupted between elements: Note [Interruption] in devices/kernel.h.
std::string summarize(const Tensor& tensor, int64_t limit,
                      const KernelContext* context = nullptr);

}  // namespace tagflow::devices

// Elements as rows of batches.
#pragma once

#include <span>

#include "devices/kernels/dataset/pipeline.h"
#include "devices/kernels/dataset/stage.h"
#include "graph/allocator.h"

namespace tagflow::devices {

// Row `row` of each component. REQUIRES: they have that row.
Result<Element> row_of(const Element& components, int64_t row,
                       Allocator& allocator);
// The elements as rows of one element. InvalidArgument if they are not alike.
// REQUIRES: there is one at least.
Result<Element> batch_of(std::span<const Element> elements,
                         Allocator& allocator);

}  // namespace tagflow::devices

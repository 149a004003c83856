// Tensors of strings in a bundle's data:
//
//   the lengths, as varints | a checksum of them | the strings
//
// The checksum, and that of the entry, cover a length as 4 bytes, or as 8
// if it does not fit.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::checkpoint {

// Calls append(bytes) with the bytes, piece by piece. Returns the entry's
// checksum, not masked, or an error of append(). REQUIRES: a tensor of strings.
Result<uint32_t> write_string_elements(
    const Tensor& tensor,
    const std::function<Status(std::string_view)>& append);

// The tensor of that shape. `crc` is the entry's checksum, masked. DataLoss
// if the bytes are not those of such a tensor; allocations never exceed what
// they can fill. Thread-safe.
Result<Tensor> parse_string_elements(std::string_view bytes, uint32_t crc,
                                     const Shape& shape, Allocator& allocator);

}  // namespace tagflow::checkpoint

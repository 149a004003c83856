// Tensors as bytes: a header, and the elements. docs/wire.md has the format.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/tensor.h"
#include "net/wire/bytes.h"

namespace tagflow::net {

// What is known of a tensor before its elements arrive.
struct TensorInfo {
  DataType dtype = DataType::kInvalid;
  Shape shape;
  uint64_t bytes = 0;  // of the elements on the wire
};

// Unimplemented naming the tensor, if its elements mean nothing in another
// process: resources, variants and references. `name` is what users call the
// tensor. Thread-safe.
Status check_sendable(DataType dtype, std::string_view name);

// Of a tensor that is to be sent. REQUIRES: check_sendable() accepts its dtype.
TensorInfo info_of(const Tensor& tensor);

// The writer fails if check_sendable() does not accept the dtype.
void write_info(Writer& writer, const TensorInfo& info);
// Accepts what can be sent only; and of a plain dtype, exactly as many bytes as
// the shape needs.
TensorInfo read_info(Reader& reader);

// The elements alone, behind which anything may follow.
void write_elements(Writer& writer, const Tensor& tensor);
// The tensor whose elements are the next info.bytes of the reader. The empty
// tensor if the reader has failed. The reader fails with ResourceExhausted if
// the allocator has no memory.
Tensor read_elements(Reader& reader, const TensorInfo& info,
                     Allocator& allocator = host_allocator());
// Whether the elements that arrived in place may be used: every bool is 0 or 1.
// DataLoss otherwise.
Status check_elements(const Tensor& tensor);

// Both: the header and the elements.
void write_tensor(Writer& writer, const Tensor& tensor);
Tensor read_tensor(Reader& reader, Allocator& allocator = host_allocator());

}  // namespace tagflow::net

// Conversion of tensors to and from their file messages.
#pragma once

#include "graph/tensor.h"

namespace tensorflow {
class TensorProto;
class TensorShapeProto;
}  // namespace tensorflow

namespace tagflow::graph {

// Decodes the message. If there are fewer values than elements, the last value
// is repeated; without values, elements are zeros. The memory for the elements
// is subtracted from `*budget` before it is allocated, and that for repeated
// values also from `*repeated`, unless it is null: a few bytes of a file can
// ask for any number of them. InvalidArgument for an invalid shape, values
// outside the type's range, or more values than elements; DataLoss for
// tensor_content of the wrong length; ResourceExhausted beyond a budget;
// Unimplemented for handles.
Result<Tensor> tensor_from_proto(const tensorflow::TensorProto& proto,
                                 int64_t* budget, int64_t* repeated = nullptr);

// Unimplemented for a tensor of handles.
Status tensor_to_proto(const Tensor& tensor, tensorflow::TensorProto* proto);

// InvalidArgument for dimensions < -1 or a rank over kMaxRank.
Result<PartialShape> shape_from_proto(
    const tensorflow::TensorShapeProto& proto);
void shape_to_proto(const PartialShape& shape,
                    tensorflow::TensorShapeProto* proto);

// The type with that number in a file; unsupported types are accepted.
// InvalidArgument for numbers that the format does not define.
Result<DataType> dtype_from_proto(int number);

}  // namespace tagflow::graph

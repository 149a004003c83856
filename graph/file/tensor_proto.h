// Tensors to and from their message in files.
#pragma once

#include "graph/tensor.h"

namespace tensorflow {
class TensorProto;
class TensorShapeProto;
}  // namespace tensorflow

namespace tagflow::graph {

// Decodes the message. Fewer values than elements repeat the last one; none
// are zeros. What the elements need in memory is taken from `*budget` before
// it is allocated.
// InvalidArgument for a bad shape, values that do not fit the type, or more
// values than elements; DataLoss for tensor_content of the wrong length;
// ResourceExhausted beyond the budget; Unimplemented for handles.
Result<Tensor> tensor_from_proto(const tensorflow::TensorProto& proto,
                                 int64_t* budget);

// Unimplemented for a tensor of handles.
Status tensor_to_proto(const Tensor& tensor, tensorflow::TensorProto* proto);

// InvalidArgument for dimensions < -1 or a rank over kMaxRank.
Result<PartialShape> shape_from_proto(
    const tensorflow::TensorShapeProto& proto);
void shape_to_proto(const PartialShape& shape,
                    tensorflow::TensorShapeProto* proto);

// The type of that number in a file; numbers that we do not know are kept.
// InvalidArgument for what no file of the format has.
Result<DataType> dtype_from_proto(int number);

}  // namespace tagflow::graph

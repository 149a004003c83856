#include "net/tensorflow/client_words.h"

#include <doctest/doctest.h>

#include <string>

namespace tagflow::net {
namespace {

TEST_CASE("errors have the words that programs look for") {
  CHECK(client_words(invalid_argument(
            "[Placeholder] placeholder \"x\" was not fed: this run needs a "
            "value of type float and shape [] for it")) ==
        "You must feed a value for placeholder tensor 'x' with dtype float");
  CHECK(client_words(error(
            Code::kFailedPrecondition,
            "[state] variable \"v\" of int32[2] is not initialized: x")) ==
        "Attempting to use uninitialized value v");
  CHECK(client_words(
            error(Code::kCancelled, "[QueueDequeueV2] queue \"q\" is gone")) ==
        "Dequeue operation was cancelled");
  CHECK(client_words(invalid_argument("[GatherV2] indices[0] = 3 is outside "
                                      "[0, 2) (node \"g\", device d)")) ==
        "indices[0] = 3 is not in [0, 2)");
}

TEST_CASE("the words of tensor arrays and lists have their numbers") {
  CHECK(client_words(invalid_argument(
            "[TensorArrayWriteV3] tensor array \"a\": cannot write to index 2 "
            "a second time")) ==
        "TensorArray a_: Could not write to TensorArray index 2 because it has "
        "already been written to.");
  CHECK(client_words(invalid_argument("[TensorListGetItem] cannot get element "
                                      "-1 of TensorList[3] of float")) ==
        "Trying to access element -1 in a list with 3 elements.");
  CHECK(client_words(invalid_argument(
            "[QueueEnqueueManyV2] component 1 of queue \"q\" takes rows of "
            "int32[3,3], but those of int32[2,3,4] are of shape [3,4]")) ==
        "Shape mismatch in tuple component 1. Expected [2,3,3], got [2,3,4]");
}

TEST_CASE("the words of barriers and of splits say what is refused") {
  CHECK(client_words(invalid_argument(
            "[BarrierInsertMany] component 0 of barrier \"b\" must have "
            "elements, not be float[3,0]")) ==
        "Tensors with no elements are not supported: received shape [3,0]");
  CHECK(client_words(invalid_argument(
            "[Barrier] barrier \"b\" exists with components of types (float), "
            "but the node asks for (int32)")) == "The component types differ");
  CHECK(client_words(invalid_argument(
            "[Barrier] barrier \"b\" exists with components of shapes [2], but "
            "the node asks for any shapes")) == "The component shapes differ");
  CHECK(client_words(invalid_argument(
            "[TensorArraySplitV3] node \"s\": input 1 (\"v:0\") has shape [], "
            "of rank 0; at least rank 1 is wanted")) ==
        "Expected value to be at least a vector, but received shape: []");
  CHECK(client_words(invalid_argument(
            "[CTCLoss] row 0 of the batch has 3 labels, but 1 steps: "
            "ignore_longer_outputs_than_inputs would leave it out")) ==
        "Not enough time for target transition sequence (required: 3, "
        "available: 1) 0");
}

TEST_CASE("the words of lists say what does not fit") {
  CHECK(client_words(invalid_argument(
            "[TensorListStack] element 2 is float[2], others have the shape "
            "[1] (node \"s\")")) ==
        "Incompatible shapes during merge: [1] vs. [2]");
  CHECK(client_words(invalid_argument(
            "[TensorListGather] element 1 is float[2], others have the shape "
            "[]")) == "Incompatible ranks during merge: 0 vs. 1");
  CHECK(client_words(invalid_argument(
            "[TensorListSplit] lengths say 1 of the rows of float[2]")) ==
        "Unused values in tensor. Length of tensor: 2 Values used: 1");
  CHECK(client_words(invalid_argument("[TensorArraySplitV3] lengths say 1 of "
                                      "the rows of float[3]")) ==
        "Expected sum of lengths to be equal to values.shape[0], but sum of "
        "lengths is 1 and value's shape is: [3]");
  CHECK(client_words(invalid_argument(
            "[TensorListPushBackBatch] list 0: float[1] does not fit a list of "
            "elements of shape []")) ==
        "Tried to append a tensor with incompatible shape to a list at index "
        "0");
}

TEST_CASE("the words of lists say which elements are not there") {
  CHECK(client_words(invalid_argument(
            "[TensorListPopBack] elements have the shape [?,2], not [1,3] "
            "(node \"p\")")) ==
        "Incompatible shapes during merge: [1,3] vs. [?,2]");
  CHECK(client_words(invalid_argument(
            "[TensorListSplit] 3 rows from row 0 on are beyond the end of "
            "float[2]")) ==
        "Attempting to slice [0, 3] from tensor with length 2");
}

TEST_CASE("the words of batches of sparse tensors have their numbers") {
  CHECK(client_words(invalid_argument(
            "[DeserializeSparse] SparseTensor[0] has values of int32, not of "
            "int64")) ==
        "Requested SparseTensor of type int64 but SparseTensor[0].values"
        ".dtype() == int32");
  const std::string ranks =
      "SparseTensors of a batch must have one rank, but SparseTensor[1] is of "
      "rank 3, 4 in the batch, and those before it of 2, 3 (node \"n\")";
  CHECK(client_words(invalid_argument("[DeserializeSparse] {}", ranks)) ==
        "Inconsistent shape across SparseTensors: rank prior to "
        "SparseTensor[1] was: 2 but rank of SparseTensor[1] is: 3");
  CHECK(client_words(
            invalid_argument("[TakeManySparseFromTensorsMap] {}", ranks)) ==
        "Inconsistent rank across SparseTensors: rank prior to "
        "SparseTensor[1] was: 3 but rank of SparseTensor[1] is: 4");
}

TEST_CASE("other errors stay as they are") {
  CHECK(client_words(Status()).empty());
  CHECK(client_words(invalid_argument("something else")).empty());
  // The code counts, too.
  CHECK(client_words(error(Code::kInternal, "indices[0] = 3 is outside [0, 2)"))
            .empty());
}

}  // namespace
}  // namespace tagflow::net

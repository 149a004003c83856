#include "net/tensorflow/client_words.h"

#include <doctest/doctest.h>

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

TEST_CASE("other errors stay as they are") {
  CHECK(client_words(Status()).empty());
  CHECK(client_words(invalid_argument("something else")).empty());
  // The code counts, too.
  CHECK(client_words(error(Code::kInternal, "indices[0] = 3 is outside [0, 2)"))
            .empty());
}

}  // namespace
}  // namespace tagflow::net

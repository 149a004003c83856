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

TEST_CASE("other errors stay as they are") {
  CHECK(client_words(Status()).empty());
  CHECK(client_words(invalid_argument("something else")).empty());
  // The code counts, too.
  CHECK(client_words(error(Code::kInternal, "indices[0] = 3 is outside [0, 2)"))
            .empty());
}

}  // namespace
}  // namespace tagflow::net

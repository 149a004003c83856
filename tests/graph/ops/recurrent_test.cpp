// Shapes of sequences without alignment.
#include "tests/graph/ops/infer.h"

using namespace tagflow;
using namespace tagflow::graph;

namespace {

InferInput of_type(PartialShape shape, DataType type) {
  return InferInput(std::move(shape), type);
}

const InferInput kIndices = of_type({kAny, 2}, DataType::kInt64);
const InferInput kValues = of_type({kAny}, DataType::kInt32);

}  // namespace

TEST_CASE("a CTC loss has an element for each row of the batch") {
  const InferInput unknown = of_type({kAny}, DataType::kInt32);
  const InferInput three = of_type({3}, DataType::kInt32);
  CHECK(infer("CTCLoss", {{5, kAny, 4}, kIndices, kValues, three}) ==
        "[3][5,3,4]");
  CHECK(infer("CTCLossV2", {kUnknownShape, kIndices, kValues, unknown}) ==
        "[?][?,?,?]");
  CHECK(infer("CTCLoss", {{5, 2, 4}, kIndices, kValues, three})
            .starts_with("InvalidArgument"));
}

TEST_CASE("decoders give sparse tensors of unknown sizes") {
  const InferInput three = of_type({3}, DataType::kInt32);
  CHECK(infer("CTCGreedyDecoder", {{5, kAny, 4}, three}) == "[?,2][?][2][3,1]");
  CHECK(infer("CTCBeamSearchDecoder", {{5, kAny, 4}, three},
              {{"beam_width", 4}, {"top_paths", 2}}) ==
        "[?,2][?,2][?][?][2][2][3,2]");
}

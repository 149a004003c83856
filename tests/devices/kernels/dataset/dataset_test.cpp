// Datasets as values.
#include "devices/kernels/dataset/dataset.h"

#include <doctest/doctest.h>

namespace tagflow::devices {

TEST_CASE("datasets that refer to each other end without recursion") {
  constexpr int kMany = 300'000;
  DatasetRef last;
  for (int i = 0; i < kMany; ++i) {
    // Through a tensor, as what a dataset has of its elements.
    Tensor held;
    if (last) {
      held = Tensor::make(DataType::kVariant, {});
      *held.mutable_data<Variant>() =
          Variant(Ref<VariantValue>(const_cast<Dataset*>(last.get())));
    }
    DatasetParts parts{0, [held](Segment&, const Dataset&) -> Result<StagePtr> {
                         return error(Code::kInternal, "it is not iterated");
                       }};
    last = DatasetRef(make_ref_counted<Dataset>("TensorDataset", "one",
                                                ElementSpec(), parts));
  }
  CHECK(last->depth() == 0);
  last = {};
}

}  // namespace tagflow::devices

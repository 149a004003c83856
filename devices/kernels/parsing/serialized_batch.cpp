#include "devices/kernels/parsing/serialized_batch.h"

#include <algorithm>

#include "devices/kernels/text/pieces.h"

namespace tagflow::devices {

Result<SerializedBatch> SerializedBatch::make(const KernelContext& context,
                                              int names) {
  const Tensor& serialized = context.input(0);
  if (serialized.rank() > 1)
    return context.fail("serialized must be a scalar or a vector, not {}",
                        serialized.describe());
  std::span<const std::string> texts;
  if (names >= 0) {
    const Tensor& given = context.input(names);
    if (given.num_elements() > 0 && given.shape() != serialized.shape())
      return context.fail("there are names {} for examples {}",
                          given.describe(), serialized.describe());
    texts = given.flat<std::string>();
  }
  return SerializedBatch(context, serialized.flat<std::string>(), texts,
                         serialized.is_scalar());
}

SerializedBatch::SerializedBatch(const KernelContext& context,
                                 std::span<const std::string> examples,
                                 std::span<const std::string> names,
                                 bool is_single)
    : context_(context),
      examples_(examples),
      names_(names),
      is_single_(is_single) {
  constexpr double kPerExample = 300, kPerByte = 0.3;
  size_t bytes = 0;
  for (const std::string& example : examples) bytes += example.size();
  row_cost_ = kPerExample + kPerByte * double(bytes) /
                                double(std::max<size_t>(examples.size(), 1));
}

std::string SerializedBatch::describe(int64_t row) const {
  std::string text = "example";
  if (!is_single_) text += fmt::format(" {}", row);
  if (!names_.empty()) text += fmt::format(" {:?}", shown(names_[size_t(row)]));
  return text;
}

Status SerializedBatch::damaged(int64_t row) const {
  const std::string_view bytes = (*this)[row];
  return context_.fail("{}, {} bytes which begin with {:?}, cannot be parsed",
                       describe(row), bytes.size(), shown(bytes));
}

}  // namespace tagflow::devices

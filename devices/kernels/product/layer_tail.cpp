#include "devices/kernels/product/layer_tail.h"

namespace tagflow::devices {
namespace {

constexpr int64_t kElement = sizeof(float);

}  // namespace

bool LayerTail::add_others(std::span<const Tensor> others,
                           const Shape& result) {
  row_ = result.rank() == 0 ? 1 : result.dim(result.rank() - 1);
  for (const Tensor& other : others) {
    const bool moves = other.shape() == result;
    if (!moves && (other.num_elements() != 1 || other.rank() > result.rank()))
      return false;
    others_.push_back(
        {static_cast<const std::byte*>(other.raw()), row_ * kElement, moves});
  }
  return true;
}

bool LayerTail::fits(const FusedTiles& tiles, int64_t segments) const {
  boost::container::static_vector<bool, kMost> moves(size_t(segments), true);
  for (const FusedRows& other : others_) moves.push_back(other.moves);
  return tiles.can_run_blocks({moves.data(), moves.size()});
}

void LayerTail::add_output(Tensor& output) {
  outputs_.push_back(static_cast<std::byte*>(output.mutable_raw()));
}

void LayerTail::run(const FusedTiles& tiles, const Values& values) const {
  boost::container::static_vector<FusedRows, kMost> inputs;
  const auto* first = reinterpret_cast<const std::byte*>(values.first);
  for (int64_t i = 0; i < values.segments; ++i)
    inputs.push_back({first + i * values.segment * kElement,
                      values.segments * values.segment * kElement, true});
  for (FusedRows other : others_) {
    if (other.moves) other.first += values.begin * kElement;
    inputs.push_back(other);
  }
  boost::container::static_vector<FusedPlace, kMost> outputs;
  for (std::byte* output : outputs_)
    outputs.push_back({output + values.begin * kElement, row_ * kElement});
  tiles.run_block({.rows = values.rows,
                   .columns = values.columns,
                   .inputs = {inputs.data(), inputs.size()},
                   .outputs = {outputs.data(), outputs.size()}});
}

}  // namespace tagflow::devices

#include "devices/broadcast.h"

#include <algorithm>

namespace tagflow::devices {

namespace {

// Dimension `from_end` (1 is the last) of a shape extended to a higher rank.
int64_t aligned_dim(const Shape& shape, int from_end) {
  return from_end <= shape.rank() ? shape.dim(shape.rank() - from_end) : 1;
}

}  // namespace

Result<Shape> broadcast_shapes(std::initializer_list<const Shape*> shapes) {
  int rank = 0;
  for (const Shape* shape : shapes) rank = std::max(rank, shape->rank());
  Shape::Dims dims(size_t(rank), 1);
  for (int from_end = 1; from_end <= rank; ++from_end) {
    const Shape* wide = nullptr;  // the first that is not 1 here
    for (const Shape* shape : shapes) {
      const int64_t dim = aligned_dim(*shape, from_end);
      if (dim == 1) continue;
      if (wide != nullptr && aligned_dim(*wide, from_end) != dim)
        return invalid_argument("incompatible shapes: {} and {}",
                                wide->to_string(), shape->to_string());
      wide = shape;
      dims[size_t(rank - from_end)] = dim;
    }
  }
  return Shape::make({dims.data(), dims.size()});
}

BroadcastPlan::BroadcastPlan(const Shape& result,
                             std::initializer_list<const Shape*> operands) {
  bool first = true;
  Offsets sizes;  // elements of each operand in the dimensions so far
  sizes.fill(1);
  for (int from_end = 1; from_end <= result.rank(); ++from_end) {
    const int64_t count = aligned_dim(result, from_end);
    if (count == 1) continue;
    Loop loop{count, {}};
    std::array<bool, kMaxOperands> moves{};
    size_t i = 0;
    for (const Shape* operand : operands) {
      moves[i] = aligned_dim(*operand, from_end) != 1;
      loop.strides[i] = moves[i] ? sizes[i] : 0;
      if (moves[i]) sizes[i] *= count;
      ++i;
    }
    // Merged if all operands continue to move, or to repeat, as in the loop
    // before.
    const auto same_kind = [&](const Loop& inner) {
      for (size_t k = 0; k < operands.size(); ++k)
        if (loop.strides[k] != inner.strides[k] * inner.count) return false;
      return true;
    };
    if (first) {
      first = false;
      row_size_ = count;
      moves_ = moves;
    } else if (loops_.empty() && moves == moves_) {
      row_size_ *= count;
    } else {
      rows_ *= count;
      if (!loops_.empty() && same_kind(loops_.back())) {
        loops_.back().count *= count;
      } else {
        loops_.push_back(loop);
      }
    }
  }
}

BroadcastPlan::Position BroadcastPlan::position_of(int64_t row) const {
  Position position;
  for (const Loop& loop : loops_) {
    const int64_t index = row % loop.count;
    row /= loop.count;
    position.indices.push_back(index);
    for (size_t i = 0; i < kMaxOperands; ++i)
      position.offsets[i] += index * loop.strides[i];
  }
  return position;
}

void BroadcastPlan::advance(Position& position) const {
  for (size_t d = 0; d < loops_.size(); ++d) {
    const Loop& loop = loops_[d];
    for (size_t i = 0; i < kMaxOperands; ++i)
      position.offsets[i] += loop.strides[i];
    if (++position.indices[d] < loop.count) return;
    position.indices[d] = 0;
    for (size_t i = 0; i < kMaxOperands; ++i)
      position.offsets[i] -= loop.count * loop.strides[i];
  }
}

}  // namespace tagflow::devices

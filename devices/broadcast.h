// Broadcasting: tensors of different shapes are read as if they had one shape.
//
// Dimensions are aligned at the last one; an operand that lacks a dimension,
// or has 1 there, repeats along it. Neighbouring dimensions along which every
// operand either moves or repeats are merged into one loop, so most broadcasts
// are two or three loops at any rank.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <initializer_list>

#include "graph/shape.h"

namespace tagflow::devices {

// The common shape of all. InvalidArgument names the two that do not fit.
Result<Shape> broadcast_shapes(std::initializer_list<const Shape*> shapes);

// The loops of one broadcast, for up to three operands.
class BroadcastPlan {
 public:
  static constexpr size_t kMaxOperands = 3;
  // An offset in elements for each operand.
  using Offsets = std::array<int64_t, kMaxOperands>;

  // A loop around the innermost one, and how far each operand moves in it.
  struct Loop {
    int64_t count;
    Offsets strides;
  };
  using Loops = boost::container::small_vector<Loop, 6>;

  // REQUIRES: at most kMaxOperands shapes; they broadcast to `result`, which
  // has elements.
  BroadcastPlan(const Shape& result,
                std::initializer_list<const Shape*> operands);

  // Elements of the innermost loop: `row_size` consecutive ones of the result;
  // each operand has as many, or one that repeats.
  int64_t row_size() const { return row_size_; }
  bool moves(size_t operand) const { return moves_[operand]; }
  // Repetitions of the innermost loop: row r computes result elements from r *
  // row_size() on.
  int64_t rows() const { return rows_; }

  // The loops around the rows, innermost first.
  const Loops& loops() const { return loops_; }

  // Calls f(row, offsets) for the rows [begin, end), with each operand's
  // offset of the row's first element.
  template <class F>
  void for_each_row(int64_t begin, int64_t end, F&& f) const {
    Position position = position_of(begin);
    for (int64_t row = begin; row < end; ++row) {
      f(row, position.offsets);
      advance(position);
    }
  }

 private:
  struct Position {
    boost::container::small_vector<int64_t, 6> indices;
    Offsets offsets{};
  };

  Position position_of(int64_t row) const;
  void advance(Position& position) const;

  Loops loops_;
  std::array<bool, kMaxOperands> moves_{};
  int64_t row_size_ = 1;
  int64_t rows_ = 1;
};

}  // namespace tagflow::devices

// How a product is cut into parts, which workers share.
#pragma once

#include <vector>

#include "devices/cpu/packed_product.h"

namespace tagflow::devices {

// What is computed at a time. Pieces of the same sizes are computed alike.
struct ProductPiece {
  int64_t images = 1, height = 1, width = 1;  // of the input
  int64_t out_height = 1;
  int64_t pad_top = 0, pad_bottom = 0;
  int64_t segments = 1;
  int64_t first_column = 0, columns = 0;  // of each segment of the weights

  auto operator<=>(const ProductPiece&) const = default;
};

struct ProductPart {
  ProductPiece piece;
  int64_t in = 0;              // where its input begins, in elements
  int64_t begin = 0, end = 0;  // of the output, where it has all columns
  int64_t first_row = 0;       // of a matrix
};

// Whether the product is one of rows by a matrix.
bool is_matrix_product(const WeightLayout& layout, const Geometry& geometry);

// Estimated nanoseconds of one thread.
double product_cost(const WeightLayout& layout, const Geometry& geometry);

// All parts, in the order of the output: Note [Parts of a product]. Where
// `segments` is not 0 they are blocks. REQUIRES: there are elements.
std::vector<ProductPart> cut_product(const WeightLayout& layout,
                                     const Geometry& geometry,
                                     int64_t segments);

}  // namespace tagflow::devices

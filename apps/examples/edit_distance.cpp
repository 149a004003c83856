// The edit distance of two words: a loop in a loop, row by row through the
// table of dynamic programming.
//
//          s i t t i n g          cell = min(above + 1, left + 1,
//        0 1 2 3 4 5 6 7                     diagonal + (letters differ))
//      k 1 1 2 3 4 5 6 7
//      i 2 2 1 2 3 4 5 6      scan over letters of a (rows)
//      t 3 3 2 1 2 3 4 5        scan over (letter of b, above, diagonal)
//      t 4 4 3 2 1 2 3 4          cell from left, the accumulator
//      e 5 5 4 3 2 2 3 4
//      n 6 6 5 4 3 3 2 3 <- the distance
//
// Each scan is a while_loop over TensorArrays. The outer one's accumulator is
// a row; the inner one goes along it.
#include <algorithm>
#include <string>

#include "apps/examples/run.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

// What a cell is made of, besides the one on its left.
struct Above {
  Output letter, above, diagonal;
  TAGFLOW_FIELDS(letter, above, diagonal)
};

Output edit_distance(const Scope& s, const Output& a, const Output& b) {
  const Output columns = size(s, b);
  const auto next_row = [&](const Scope& row, const Output& before,
                            const Output& letter) -> Output {
    const auto cell = [&](const Scope& in, const Output& left,
                          const Above& v) -> Output {
      const Output differs =
          cast(in, not_equal(in, v.letter, letter), DataType::kInt32);
      return minimum(in, add(in, minimum(in, v.above, left), 1),
                     add(in, v.diagonal, differs));
    };
    const Output first = add(row, gather(row, before, 0), 1);
    const Above rest = {b, slice(row, before, {1}, {-1}),
                        slice(row, before, {0}, expand_dims(row, columns, 0))};
    const Output cells = scan(row, cell, rest, first);
    return concat(row, {expand_dims(row, first, 0), cells}, 0);
  };
  const Output first_row = range(s, 0, add(s, columns, 1), 1);
  return gather(s, foldl(s, next_row, a, first_row), columns);
}

// The distance, computed in C++.
int edit_distance(const std::string& a, const std::string& b) {
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = int(j);
  for (const char letter : a) {
    int diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = diagonal + (letter != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

Tensor letters(const std::string& word) {
  const std::vector<int> codes(word.begin(), word.end());
  return Tensor::of<int>({int64_t(codes.size())}, std::span<const int>(codes));
}

}  // namespace

int main() {
  Graph graph;
  const Scope s(graph);
  const Output a = placeholder(s.named("a"), DataType::kInt32, {-1});
  const Output b = placeholder(s.named("b"), DataType::kInt32, {-1});
  const Output distance = edit_distance(s, a, b);
  bool right = true;
  for (const auto& [x, y] :
       {std::pair("kitten", "sitting"), std::pair("dataflow", "overflow"),
        std::pair("", "empty"), std::pair("same", "same")}) {
    const int edits =
        examples::run(s, {{"a", letters(x)}, {"b", letters(y)}}, {distance})[0]
            .item<int>()
            .value();
    std::printf("\"%s\" becomes \"%s\" by %d edits\n", x, y, edits);
    right = right && edits == edit_distance(std::string(x), std::string(y));
  }
  return right ? 0 : 1;
}

// Conway's game of life, on a torus, until a generation repeats the one before
// last: a pattern that stands still or blinks.
//
//                   +------- (next, now) <---------+
//                   v                              |
//   (now, before) --> next = rule(now) --> next == before ? --no--+
//                                               |
//                                               yes--> generations, the board
//
//   rule: 3 neighbours, or alive and 2 neighbours
//
// The neighbours are eight rolled copies of the board, added up. Whether the
// loop goes on is decided by a comparison of whole boards.
#include <string>

#include "apps/examples/run.h"

using namespace tagflow;              // NOLINT: an example
using namespace tagflow::graph;       // NOLINT
using namespace tagflow::graph::ops;  // NOLINT

namespace {

constexpr int kSize = 22;

struct State {
  Output board, before, generation;
  TAGFLOW_FIELDS(board, before, generation)
};

Output next_generation(const Scope& s, const Output& board) {
  Outputs rolled;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      if (dy != 0 || dx != 0)
        rolled.push_back(s.op("Roll", {board, {dy, dx}, {0, 1}}));
  const Output neighbours = add_n(s, rolled);
  const Output stays =
      logical_and(s, equal(s, neighbours, 2), equal(s, board, 1));
  return cast(s, logical_or(s, stays, equal(s, neighbours, 3)),
              DataType::kInt32);
}

State play(const Scope& s, const Output& board) {
  return while_loop(
      s,
      [](const Scope& in, const State& v) {
        const Output next = next_generation(in, v.board);
        return reduce_any(in, not_equal(in, next, v.before));
      },
      [](const Scope& in, const State& v) {
        return State{next_generation(in, v.board), v.board,
                     add(in, v.generation, 1)};
      },
      State{board, fill(s, {kSize, kSize}, -1), constant(s, 0)},
      {.maximum_iterations = 1000});
}

}  // namespace

int main() {
  // An R-pentomino: five cells that live long, if they have room.
  std::vector<int> cells(kSize * kSize, 0);
  for (const int cell : {4 * kSize + 5, 4 * kSize + 6, 5 * kSize + 4,
                         5 * kSize + 5, 6 * kSize + 5})
    cells[size_t(cell)] = 1;

  Graph graph;
  const Scope s(graph);
  const Output start =
      constant(s, Tensor::of<int>({kSize, kSize}, std::span<const int>(cells)));
  const State last = play(s, start);
  const Output again = next_generation(s, next_generation(s, last.board));
  const auto results =
      examples::run(s, {}, {last.board, last.generation, again});
  for (int y = 0; y < kSize; ++y) {
    for (int x = 0; x < kSize; ++x)
      std::printf("%c ", results[0].flat<int>()[size_t(y * kSize + x)] == 1
                             ? '#'
                             : '.');
    std::printf("\n");
  }
  const int generations = results[1].item<int>().value();
  std::printf("settled after %d generations\n", generations);
  const auto board = results[0].flat<int>(), later = results[2].flat<int>();
  return generations < 1000 &&
                 std::equal(board.begin(), board.end(), later.begin())
             ? 0
             : 1;
}

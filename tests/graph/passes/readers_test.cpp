// Outputs with a single reader, and constants that only go on lists.
#include "graph/passes/readers.h"

#include <doctest/doctest.h>

#include "tests/graph/hand_made_loops.h"
#include "tests/graph/passes/whole_program.h"

using namespace tagflow;
using namespace tagflow::graph;
using namespace tagflow::graph::testing;

namespace {

using Waits = Readers::Waits;

// A loop of a list and a value: t = Tanh(value) is read by one op, `reader`,
// and waited for by a constant, which goes on the list.
struct Waiting {
  Graph graph;
  Lists lists{graph, DataType::kInt32};
  Node* t = nullptr;
  Node* reader = nullptr;

  Program build(const std::function<Endpoint(const Endpoint& t)>& read,
                const std::function<Endpoint(Node* waits)>& also = nullptr) {
    const Endpoint x{placeholder(graph, "x", DataType::kFloat, {2, 3}), 0};
    const Endpoint p{placeholder(graph, "p", DataType::kBool, {}), 0};
    const Endpoint inside{add(graph, "p_in", "Enter", {p},
                              {{"frame_name", "l"}, {"is_constant", true}}),
                          0};
    predicate = inside;
    const Loop made =
        loop(graph, "l", {lists.empty("empty"), x}, [&](const Values& in) {
          t = add(graph, "t", "Tanh", {in[1]});
          Node* waits = number(graph, "waits", 1, {t});
          const Endpoint next = read({t, 0});
          Endpoint list = lists.push("push", in[0], {waits, 0});
          if (also != nullptr) list = lists.push("more", list, also(waits));
          return Values{list, next};
        });
    return program_of(graph, {made.exits[0]->name(), made.exits[1]->name()});
  }
  Endpoint plain(const Endpoint& of) {
    return {add(graph, "reader", "Sigmoid", {of}), 0};
  }
  Endpoint predicate;
};

bool has_one_reader(const Program& program, Waits waits) {
  const Readers readers(program, waits);
  const Node* t = program.graph.find("t");
  const auto reader = readers.only_reader(*t);
  CHECK((readers.only_reading_node(*t) != nullptr) == reader.has_value());
  if (reader) CHECK(reader->node->name() == "reader");
  return reader.has_value();
}

}  // namespace

TEST_CASE("readers: a constant that goes on a list does not count as one") {
  Waiting w;
  const Program program =
      w.build([&](const Endpoint& t) { return w.plain(t); });
  CHECK(LastWaits(program).contains(*program.graph.find("waits")));
  CHECK_FALSE(has_one_reader(program, Waits::kAll));
  CHECK(has_one_reader(program, Waits::kNotLast));
}

TEST_CASE("readers: a constant that the iteration reads counts as one") {
  Waiting w;
  const Program program =
      w.build([&](const Endpoint& t) { return w.plain(t); },
              [&](Node* waits) {
                return Endpoint{
                    add(w.graph, "use", "AddV2", {{waits, 0}, {waits, 0}}), 0};
              });
  CHECK_FALSE(LastWaits(program).contains(*program.graph.find("waits")));
  CHECK_FALSE(has_one_reader(program, Waits::kNotLast));
}

TEST_CASE("readers: an op that is not equally live is not the only reader") {
  Waiting w;
  const Program program = w.build([&](const Endpoint& t) {
    Node* side = add(w.graph, "side", "Switch", {t, w.predicate});
    Node* pivot = add(w.graph, "pivot", "Identity", {{side, 1}});
    w.reader = add(w.graph, "reader", "Sigmoid", {t}, {}, {pivot});
    return Endpoint{add(w.graph, "both", "Merge", {{w.reader, 0}, {side, 0}}),
                    0};
  });
  CHECK(LastWaits(program).contains(*program.graph.find("waits")));
  CHECK_FALSE(has_one_reader(program, Waits::kNotLast));
}

TEST_CASE("readers: every wait counts if something waits without an edge") {
  Waiting w;
  const Program program = w.build([&](const Endpoint& t) {
    Node* random =
        add(w.graph, "random", "RandomStandardNormal",
            {{constant(w.graph, "size", Tensor::vector<int32_t>({2, 3})), 0}},
            {{"dtype", DataType::kFloat}});
    Node* inside = add(w.graph, "random_in", "Enter", {{random, 0}},
                       {{"frame_name", "l"}, {"is_constant", true}});
    return Endpoint{add(w.graph, "reader", "AddV2", {t, {inside, 0}}), 0};
  });
  CHECK_FALSE(has_one_reader(program, Waits::kNotLast));
}

// What a tensor list may hold, as far as its graph shows it.
#pragma once

#include <optional>
#include <vector>

#include "graph/graph.h"

namespace tagflow::graph {

// Every element of a list is one of these. Valid while the graph is unchanged.
struct ListElements {
  std::vector<Endpoint> tensors;  // that were put in
  std::vector<Endpoint> stacked;  // whose rows were
  // What made the list. Of a TensorListReserve, elements may not be set: these
  // are zeros, whose shape the reader and this node say together, or else the
  // elements that are set.
  std::vector<const Node*> makers;
  std::vector<const Node*> next_iterations;  // that the list came through
};

// Follows the list back to where it was made, through loops and conditionals.
// Nothing where an op in between is none that it knows, or they are more than
// 128.
std::optional<ListElements> find_list_elements(const Endpoint& list);

// An op that gives an element of a list, or several on top of each other.
struct ListReading {
  int list = 0;           // the input
  int element_shape = 0;  // the input that says what zeros look like
  int output = 0;
  bool is_stacked = false;
};
// Nothing where the node is none.
std::optional<ListReading> list_reading(const Node& node);

// The elements of the reader's list, where it gives one of their `tensors`, and
// there are some. Nothing where it may give a row of one, several, or an
// element that is not set. REQUIRES: `reading` is the reader's.
std::optional<ListElements> tensors_read(const Node& reader,
                                         const ListReading& reading);

// The shape of each element, by what is known of theirs at the moment. Nothing
// where that is not enough. REQUIRES: `reading` is the reader's, and `elements`
// those of its list.
std::optional<PartialShape> element_shape(const Node& reader,
                                          const ListReading& reading,
                                          const ListElements& elements);

}  // namespace tagflow::graph

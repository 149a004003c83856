// The possible elements of a tensor list, derived from its graph.
#pragma once

#include <optional>
#include <vector>

#include "graph/node.h"

namespace tagflow::graph {

// Every element of a list is one of these. Valid while the graph is unchanged.
struct ListElements {
  std::vector<Endpoint> tensors;  // were put in as elements
  std::vector<Endpoint> stacked;  // their rows were put in as elements
  // The nodes that made the list. Elements of a TensorListReserve may be unset:
  // they are zeros, whose shape comes from the reader and this node together,
  // or else from the elements that are set.
  std::vector<const Node*> makers;
  std::vector<const Node*> next_iterations;  // on the way of the list
};

// Finds the makers of the list, through loops and conditionals. Nothing if an
// op on the way is unknown, or there are more than 128.
std::optional<ListElements> find_list_elements(const Endpoint& list);

// An op that returns one element of a list, or several stacked ones.
struct ListReading {
  int list = 0;           // the input
  int element_shape = 0;  // the input with the shape of zeros
  int output = 0;
  bool is_stacked = false;
};
// Nothing if the node is not such an op.
std::optional<ListReading> list_reading(const Node& node);

// The elements of the reader's list, if the reader returns one of their
// `tensors`, and there are some. Nothing if it may return a row, several
// elements, or an unset one. REQUIRES: `reading` is the reader's.
std::optional<ListElements> tensors_read(const Node& reader,
                                         const ListReading& reading);

// The shape of each element, from the present shapes of `elements`. Nothing if
// they are not sufficient. REQUIRES: `reading` is the reader's, and `elements`
// those of its list.
std::optional<PartialShape> element_shape(const Node& reader,
                                          const ListReading& reading,
                                          const ListElements& elements);

}  // namespace tagflow::graph

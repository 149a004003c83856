// GraphIntake: adds what a client sends of its graph to a session.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/session/session.h"
#include "graph/function.h"
#include "graph/node.h"
#include "graph/status.h"

namespace tensorflow {
class GraphDef;
}

namespace tagflow::net {

// Note [Nodes set aside]
// A client sends its whole graph, of which its runs may need a small part. So a
// node whose op or attributes do not exist here, or whose inputs have shapes
// that do not fit, is no error: it is set aside, and so is whatever reads it. A
// run that needs one of them is told why. An extension is refused, as a whole,
// if it has an error of another kind, as a name that is taken, or more than 64
// nodes with such inputs, since each of them costs a copy of the graph. Then a
// client sends all of it again with its next run, so that an error that stays
// would end its session.

// Note [Private containers]
// Clients expect that sessions share variables by the names of their nodes, but
// queues, barriers and tables only if a `shared_name` or a container says so.
// So the others are in a container of the session, which is emptied when it
// ends.

// Thread-compatible.
class GraphIntake {
 public:
  // `container`: that of the session, which nobody else has.
  GraphIntake(actors::Session& session, std::string container)
      : session_(session), container_(std::move(container)) {}

  // Adds the nodes and functions, all or none. `bytes` gets the memory of their
  // constants. Errors of graph_from_proto() and Session::extend();
  // AlreadyExists for a node that is there.
  Status add(const tensorflow::GraphDef& proto, uint64_t* bytes);
  // Why a node was set aside; OK if it was not. The name may have a port.
  Status reason(std::string_view name) const;

 private:
  using Aside = std::map<std::string, Status, std::less<>>;

  // What its state is called, and what becomes of others of that name.
  void adapt(graph::NodeDef& node) const;
  // The functions as a graph without nodes.
  Result<graph::Graph> adapted(const graph::FunctionLibrary& library) const;
  // Takes those out that cannot be added.
  Status sort_out(const tensorflow::GraphDef& proto,
                  std::vector<graph::NodeDef>& nodes,
                  graph::FunctionLibrary& library, Aside& aside) const;
  // Whether the node could be added if the shapes of its inputs were unknown.
  bool fits_but_for_shapes(const graph::NodeDef& node,
                           const std::vector<graph::NodeDef>& nodes,
                           const graph::Graph& functions) const;
  void set_unknown_ops_aside(const std::vector<graph::NodeDef>& nodes,
                             const graph::FunctionLibrary& library,
                             Aside& aside) const;
  // Sets what reads them aside, too, and takes all of them out.
  void spread(std::vector<graph::NodeDef>& nodes, Aside& aside) const;
  const Status* find(const Aside& aside, std::string_view input) const;

  actors::Session& session_;
  const std::string container_;
  Aside aside_;
};

}  // namespace tagflow::net

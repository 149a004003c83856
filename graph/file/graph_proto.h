// Nodes, functions and graphs to and from their messages in files.
#pragma once

#include "graph/file/attr_proto.h"
#include "graph/file/graphdef.h"

namespace tensorflow {
class FunctionDef;
class GraphDef;
class MetaGraphDef;
class NodeDef;
class SavedObjectGraph;
}  // namespace tensorflow

namespace tagflow::graph {

// Each is refused with InvalidArgument, DataLoss, ResourceExhausted or
// Unimplemented where an attribute is, or where a limit is passed; the message
// names the function, node and attribute.
Result<NodeDef> node_from_proto(const tensorflow::NodeDef& proto,
                                ReadBudget& budget);
Result<FunctionDef> function_from_proto(const tensorflow::FunctionDef& proto,
                                        ReadBudget& budget);
Result<GraphFile> graph_from_proto(const tensorflow::GraphDef& proto,
                                   const Limits& limits);
// Its graph, its signatures, and what it says of its state.
Result<GraphFile> meta_graph_from_proto(const tensorflow::MetaGraphDef& proto,
                                        const Limits& limits);
// DataLoss or InvalidArgument for a variable or an object that is not whole.
Result<SavedState> state_from_proto(const tensorflow::MetaGraphDef& proto);
// InvalidArgument where an object refers to another that is not there.
Result<ObjectGraph> objects_from_proto(
    const tensorflow::SavedObjectGraph& proto);

// Unimplemented for a constant of handles.
Status node_to_proto(const NodeDef& node, tensorflow::NodeDef* proto);
Status function_to_proto(const FunctionDef& function,
                         tensorflow::FunctionDef* proto);
Status graph_to_proto(const Graph& graph, tensorflow::GraphDef* proto);

}  // namespace tagflow::graph

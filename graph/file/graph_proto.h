// Conversion of nodes, functions and graphs to and from their file messages.
#pragma once

#include "graph/file/attr_proto.h"
#include "graph/file/graphdef.h"

namespace tensorflow {
class FunctionDef;
class FunctionDefLibrary;
class GraphDef;
class MetaGraphDef;
class NodeDef;
class SavedObjectGraph;
}  // namespace tensorflow

namespace tagflow::graph {

// InvalidArgument, DataLoss, ResourceExhausted or Unimplemented if an attribute
// is invalid or a limit is exceeded. The message names the function, node and
// attribute.
Result<NodeDef> node_from_proto(const tensorflow::NodeDef& proto,
                                LimitsLeft& left);
Result<FunctionDef> function_from_proto(const tensorflow::FunctionDef& proto,
                                        LimitsLeft& left);
Result<FunctionLibrary> library_from_proto(
    const tensorflow::FunctionDefLibrary& proto, LimitsLeft& left);
Result<GraphFile> graph_from_proto(const tensorflow::GraphDef& proto,
                                   const Limits& limits);
// Its graph, its signatures, and the description of its state.
Result<GraphFile> meta_graph_from_proto(const tensorflow::MetaGraphDef& proto,
                                        const Limits& limits);
// DataLoss or InvalidArgument if a variable or an object is incomplete.
Result<SavedState> state_from_proto(const tensorflow::MetaGraphDef& proto);
// InvalidArgument if an object refers to one that does not exist.
Result<ObjectGraph> objects_from_proto(
    const tensorflow::SavedObjectGraph& proto);

// Unimplemented for a constant of handles; ResourceExhausted for a node with
// more inputs than can run.
Status node_to_proto(const NodeDef& node, tensorflow::NodeDef* proto);
Status function_to_proto(const FunctionDef& function,
                         tensorflow::FunctionDef* proto);
Status library_to_proto(const FunctionLibrary& library,
                        tensorflow::FunctionDefLibrary* proto);
Status graph_to_proto(const Graph& graph, tensorflow::GraphDef* proto);

// Reads what is about to be written to a file of that name, as load_file()
// does: no file is written that its readers refuse.
Status check_readable(const std::filesystem::path& name,
                      std::string_view bytes);

}  // namespace tagflow::graph

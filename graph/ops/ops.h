// Definitions of the built-in ops: one registration function and file per
// family.
#pragma once

namespace tagflow::graph {

class OpRegistry;

// Registers all families below.
void register_ops(OpRegistry& registry);

void register_control_flow_ops(OpRegistry& registry);  // control_flow.cpp
void register_functional_ops(OpRegistry& registry);    // functional.cpp
void register_math_ops(OpRegistry& registry);          // math.cpp: element-wise
void register_array_ops(OpRegistry& registry);         // array.cpp, array_*.cpp
void register_reduction_ops(OpRegistry& registry);     // reduction.cpp
void register_nn_ops(OpRegistry& registry);            // nn.cpp, dense products
void register_random_ops(OpRegistry& registry);        // random.cpp, random_*
void register_fused_ops(OpRegistry& registry);         // fused.cpp
void register_container_ops(OpRegistry& registry);     // container.cpp
void register_state_ops(OpRegistry& registry);         // state.cpp, state_*.cpp
void register_checkpoint_ops(OpRegistry& registry);    // checkpoint.cpp
void register_sparse_ops(OpRegistry& registry);        // sparse.cpp
void register_linalg_ops(OpRegistry& registry);        // linalg.cpp
void register_recurrent_ops(OpRegistry& registry);     // recurrent.cpp
void register_text_ops(OpRegistry& registry);          // text.cpp
void register_file_ops(OpRegistry& registry);          // file.cpp
void register_summary_ops(OpRegistry& registry);       // summary.cpp

}  // namespace tagflow::graph

// The rules of the built-in ops, one registering function per family and file.
#pragma once

namespace tagflow::autodiff {

class RuleContext;
class RuleTable;

void add_call_rules(RuleTable& table);           // control_flow_call.cpp
void add_elementwise_rules(RuleTable& table);    // elementwise.cpp
void add_binary_rules(RuleTable& table);         // elementwise_binary.cpp
void add_special_rules(RuleTable& table);        // special.cpp
void add_complex_rules(RuleTable& table);        // elementwise_complex.cpp
void add_reduction_rules(RuleTable& table);      // reduction.cpp
void add_scan_rules(RuleTable& table);           // reduction_scan.cpp
void add_segment_rules(RuleTable& table);        // segment.cpp
void add_array_rules(RuleTable& table);          // array.cpp
void add_array_index_rules(RuleTable& table);    // array_index.cpp
void add_array_layout_rules(RuleTable& table);   // array_layout.cpp
void add_product_rules(RuleTable& table);        // product.cpp
void add_activation_rules(RuleTable& table);     // activation.cpp
void add_loss_rules(RuleTable& table);           // activation_loss.cpp
void add_convolution_rules(RuleTable& table);    // convolution.cpp
void add_pooling_rules(RuleTable& table);        // pooling.cpp
void add_normalization_rules(RuleTable& table);  // normalization.cpp
void add_linalg_rules(RuleTable& table);         // linalg.cpp
void add_recurrent_rules(RuleTable& table);      // recurrent.cpp
void add_container_rules(RuleTable& table);      // containers.cpp
void add_state_rules(RuleTable& table);          // variable.cpp
void add_sparse_rules(RuleTable& table);         // sparse.cpp
// The rule for a node whose op is a library function with a gradient function.
void function_rule(RuleContext& r);  // control_flow_call.cpp
// Ops without a derivative, each with its reason.
void add_constant_rules(RuleTable& table);  // none.cpp
// Rules of forward mode, for ops that have rules already.
void add_forward_rules(RuleTable& table);            // forward.cpp
void add_recurrent_forward_rules(RuleTable& table);  // recurrent_forward.cpp

}  // namespace tagflow::autodiff

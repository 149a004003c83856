// The rules of the built-in ops: each family of ops has one registering
// function, in the file of rules/ that is named after it. It adds the family's
// rules, those of forward mode included, and why other ops have none.
#pragma once

namespace tagflow::autodiff {

class RuleTable;

void add_control_flow_rules(RuleTable& table);
void add_elementwise_rules(RuleTable& table);
void add_special_rules(RuleTable& table);
void add_gradient_rules(RuleTable& table);
void add_array_rules(RuleTable& table);
void add_order_rules(RuleTable& table);
void add_reduction_rules(RuleTable& table);
void add_segment_rules(RuleTable& table);
void add_product_rules(RuleTable& table);
void add_linalg_rules(RuleTable& table);
void add_activation_rules(RuleTable& table);
void add_convolution_rules(RuleTable& table);
void add_pooling_rules(RuleTable& table);
void add_normalization_rules(RuleTable& table);
void add_image_rules(RuleTable& table);
void add_recurrent_rules(RuleTable& table);
void add_random_rules(RuleTable& table);
void add_containers_rules(RuleTable& table);
void add_variable_rules(RuleTable& table);
void add_queue_rules(RuleTable& table);
void add_coordination_rules(RuleTable& table);
void add_table_rules(RuleTable& table);
void add_training_rules(RuleTable& table);
void add_sparse_rules(RuleTable& table);
void add_text_rules(RuleTable& table);
void add_file_rules(RuleTable& table);
void add_summary_rules(RuleTable& table);

}  // namespace tagflow::autodiff

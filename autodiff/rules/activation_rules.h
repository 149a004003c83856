// Rules of activations and losses, which add_activation_rules() adds.
#pragma once

namespace tagflow::autodiff {

class RuleTable;

void add_activation_loss_rules(RuleTable& table);

}  // namespace tagflow::autodiff

// Expressions of fused recurrent cells and their gradient ops, for gradients
// that no fused op computes (set_by_expression).
#pragma once

#include "autodiff/rule.h"

namespace tagflow::autodiff {

// The outputs of LSTM ops.
enum LstmPort { kI, kCs, kF, kO, kCi, kCo, kH };

// LSTMBlockCell, BlockLSTM, BlockLSTMV2.
Outputs express_lstm(const Scope& s, const Node& node, const Outputs& inputs);
// LSTMBlockCellGrad, BlockLSTMGrad, BlockLSTMGradV2.
Outputs express_lstm_grad(const Scope& s, const Node& node,
                          const Outputs& inputs);
Outputs express_gru_cell(const Scope& s, const Node& node,
                         const Outputs& inputs);
Outputs express_gru_cell_grad(const Scope& s, const Node& node,
                              const Outputs& inputs);

// Called by add_recurrent_rules().
void add_recurrent_forward_rules(RuleTable& table);

}  // namespace tagflow::autodiff

// SymbolicGradient nodes of graphs from TensorFlow.
#pragma once

namespace tagflow::autodiff {

// From now on graphs of this process may have SymbolicGradient nodes, whose
// gradients are made when a signature is compiled. gradients() enables them,
// too. Thread-safe.
void enable_symbolic_gradients();

}  // namespace tagflow::autodiff

// Makes Eigen's decompositions look for a cancellation. The build includes this
// first in the sources that decompose matrices.
//
// Note [Interrupted decompositions]
// Eigen may work on one large matrix for minutes, and calls nothing of ours
// meanwhile, except the macro eigen_assert, which a program may define. Eigen
// asserts that indices are right whenever it takes a row, a column or a block
// of a matrix: in every step of a decomposition, but not in its innermost
// loops. So the macro is where a large decomposition looks for a cancellation
// (Note [Interruption] in devices/kernel.h). The linker may use the functions
// compiled here in other sources, too: there no matrix is decomposed, and the
// macro only reads a variable.
#pragma once

#include <cassert>

namespace tagflow::devices {

class KernelContext;

// The kernel that decomposes a large matrix on this thread, or null.
inline constinit thread_local const KernelContext* decomposing = nullptr;
// decomposing->check_cancelled()
void check_decomposition();

}  // namespace tagflow::devices

#ifndef eigen_assert  // Eigen came first where no matrix is decomposed
#define eigen_assert(condition)                     \
  ((::tagflow::devices::decomposing != nullptr      \
        ? ::tagflow::devices::check_decomposition() \
        : void()),                                  \
   assert(condition))
#endif

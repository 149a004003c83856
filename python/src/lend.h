// Memory that Python owns, lent to tensors.
#pragma once

#include <Python.h>

#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/status.h"
#include "graph/tensor.h"

namespace tagflow::python {

// Note [Lent memory]
// A lent buffer has one reference more than there are tensors, which the list
// of lenders holds. So no kernel ever is the last one that holds it, and none
// writes to it in place. It also means that engine threads never free it: that
// would need the GIL, for which they must not wait. When only the list holds it
// any more, sweep() frees it and drops the reference to the owner.
//
// All functions REQUIRE that the thread holds the GIL.

// Whether memory can be lent: kernels expect buffers at 64 bytes, and small
// tensors are cheaper to copy.
bool can_lend(const void* data, size_t bytes, DataType dtype);
// A tensor of `owner`'s memory, which must not change while any tensor has it.
// Takes a reference to the owner. REQUIRES: can_lend(), for the bytes that the
// shape has.
Result<Tensor> lend(PyObject* owner, const void* data, DataType dtype,
                    const Shape& shape);
// Frees what is not in use any more. Cheap if nothing is lent.
void sweep() noexcept;

}  // namespace tagflow::python

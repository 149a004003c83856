// Gathers of rows and of slices, from a tensor or from a variable's buffer.
#pragma once

#include "devices/kernels/array/gather_plan.h"
#include "devices/kernels/array/scatter.h"

namespace tagflow::devices {

// Sets output 0 to the slices of `params` that input 1 selects, as the plan
// says. InvalidArgument if an index is out of range.
Status gather_rows(KernelContext& context, const Tensor& params,
                   const GatherPlan& plan);
// As gather_rows(), if each vector along the last dimension of input 1 is an
// index.
Status gather_by_vectors(KernelContext& context, const Tensor& params,
                         BadIndices policy);

// Whether input 0 of a Gather or a GatherNd is a reference.
bool gathers_of_reference(const KernelInfo& info);
// The kernels for these, which hold the variable while they copy.
Result<std::unique_ptr<Kernel>> make_reference_gather(const KernelInfo& info);
Result<std::unique_ptr<Kernel>> make_reference_gather_nd(
    const KernelInfo& info);

}  // namespace tagflow::devices

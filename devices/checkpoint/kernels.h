// The CPU kernels that save and restore tensors.
#pragma once

namespace tagflow::devices {

class KernelRegistry;

// SaveV2, RestoreV2, MergeV2Checkpoints, ShardedFilename, ShardedFilespec, and
// the V1 ops, which are rejected.
void register_checkpoint_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices

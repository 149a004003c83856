// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_whole_file_kernels(KernelRegistry& registry);  // files.cpp
void register_checkpoint_kernels(KernelRegistry& registry);  // checkpoint.cpp
void register_shard_kernels(KernelRegistry& registry);       // shard.cpp

void register_file_kernels(KernelRegistry& registry) {
  register_whole_file_kernels(registry);
  register_checkpoint_kernels(registry);
  register_shard_kernels(registry);
}

}  // namespace tagflow::devices

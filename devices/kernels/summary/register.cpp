// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_scalar_summary_kernels(KernelRegistry& registry);  // summary.cpp
void register_media_summary_kernels(KernelRegistry& registry);   // media.cpp
void register_summary_writer_kernels(KernelRegistry& registry);  // writer.cpp

void register_summary_kernels(KernelRegistry& registry) {
  register_scalar_summary_kernels(registry);
  register_media_summary_kernels(registry);
  register_summary_writer_kernels(registry);
}

}  // namespace tagflow::devices

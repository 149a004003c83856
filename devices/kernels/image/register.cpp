// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_resize_kernels(KernelRegistry& registry);  // resize.cpp

void register_image_kernels(KernelRegistry& registry) {
  register_resize_kernels(registry);
}

}  // namespace tagflow::devices

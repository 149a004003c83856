// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_linalg_solve_kernels(KernelRegistry& registry);  // solve.cpp
void register_linalg_cholesky_kernels(KernelRegistry& registry);
void register_linalg_determinant_kernels(KernelRegistry& registry);
void register_linalg_eigen_kernels(KernelRegistry& registry);  // eigen.cpp
void register_linalg_svd_kernels(KernelRegistry& registry);    // svd.cpp
void register_linalg_cross_kernels(KernelRegistry& registry);  // cross.cpp

void register_linalg_kernels(KernelRegistry& registry) {
  register_linalg_solve_kernels(registry);
  register_linalg_cholesky_kernels(registry);
  register_linalg_determinant_kernels(registry);
  register_linalg_eigen_kernels(registry);
  register_linalg_svd_kernels(registry);
  register_linalg_cross_kernels(registry);
}

}  // namespace tagflow::devices

// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_random_seed_kernels(KernelRegistry& registry);     // seed.cpp
void register_random_uniform_kernels(KernelRegistry& registry);  // uniform.cpp
void register_random_normal_kernels(KernelRegistry& registry);   // normal.cpp
void register_random_truncated_kernels(KernelRegistry& registry);
void register_random_gamma_kernels(KernelRegistry& registry);    // gamma.cpp
void register_random_poisson_kernels(KernelRegistry& registry);  // poisson.cpp
void register_random_binomial_kernels(KernelRegistry& registry);
void register_random_multinomial_kernels(KernelRegistry& registry);
void register_random_shuffle_kernels(KernelRegistry& registry);  // shuffle.cpp
void register_random_candidate_kernels(KernelRegistry& registry);
void register_generator_kernels(KernelRegistry& registry);  // generator.cpp

void register_random_kernels(KernelRegistry& registry) {
  register_random_seed_kernels(registry);
  register_random_uniform_kernels(registry);
  register_random_normal_kernels(registry);
  register_random_truncated_kernels(registry);
  register_random_gamma_kernels(registry);
  register_random_poisson_kernels(registry);
  register_random_binomial_kernels(registry);
  register_random_multinomial_kernels(registry);
  register_random_shuffle_kernels(registry);
  register_random_candidate_kernels(registry);
  register_generator_kernels(registry);
}

}  // namespace tagflow::devices

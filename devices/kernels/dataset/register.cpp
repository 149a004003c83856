// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_dataset_source_kernels(KernelRegistry& registry);
void register_dataset_counting_kernels(KernelRegistry& registry);
void register_dataset_checking_kernels(KernelRegistry& registry);
void register_dataset_batch_kernels(KernelRegistry& registry);
void register_dataset_padded_batch_kernels(KernelRegistry& registry);
void register_dataset_window_kernels(KernelRegistry& registry);
void register_dataset_map_kernels(KernelRegistry& registry);
void register_dataset_interleave_kernels(KernelRegistry& registry);
void register_dataset_directed_interleave_kernels(KernelRegistry& registry);
void register_dataset_parse_example_kernels(KernelRegistry& registry);
void register_dataset_shuffle_kernels(KernelRegistry& registry);
void register_dataset_buffer_kernels(KernelRegistry& registry);
void register_dataset_file_kernels(KernelRegistry& registry);
void register_dataset_iterator_kernels(KernelRegistry& registry);
void register_dataset_whole_kernels(KernelRegistry& registry);
void register_dataset_record_input_kernels(KernelRegistry& registry);

void register_dataset_kernels(KernelRegistry& registry) {
  register_dataset_source_kernels(registry);
  register_dataset_counting_kernels(registry);
  register_dataset_checking_kernels(registry);
  register_dataset_batch_kernels(registry);
  register_dataset_padded_batch_kernels(registry);
  register_dataset_window_kernels(registry);
  register_dataset_map_kernels(registry);
  register_dataset_interleave_kernels(registry);
  register_dataset_directed_interleave_kernels(registry);
  register_dataset_parse_example_kernels(registry);
  register_dataset_shuffle_kernels(registry);
  register_dataset_buffer_kernels(registry);
  register_dataset_file_kernels(registry);
  register_dataset_iterator_kernels(registry);
  register_dataset_whole_kernels(registry);
  register_dataset_record_input_kernels(registry);
}

}  // namespace tagflow::devices

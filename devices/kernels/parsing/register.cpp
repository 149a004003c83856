// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_parsing_example_kernels(KernelRegistry& registry);  // example.cpp
void register_parsing_sequence_kernels(
    KernelRegistry& registry);                                   // sequence.cpp
void register_parsing_csv_kernels(KernelRegistry& registry);     // csv.cpp
void register_parsing_bytes_kernels(KernelRegistry& registry);   // bytes.cpp
void register_parsing_tensor_kernels(KernelRegistry& registry);  // tensor.cpp
void register_parsing_json_kernels(KernelRegistry& registry);    // json.cpp
void register_decode_proto_kernels(KernelRegistry& registry);
void register_encode_proto_kernels(KernelRegistry& registry);

void register_parsing_kernels(KernelRegistry& registry) {
  register_parsing_example_kernels(registry);
  register_parsing_sequence_kernels(registry);
  register_parsing_csv_kernels(registry);
  register_parsing_bytes_kernels(registry);
  register_parsing_tensor_kernels(registry);
  register_parsing_json_kernels(registry);
  register_decode_proto_kernels(registry);
  register_encode_proto_kernels(registry);
}

}  // namespace tagflow::devices

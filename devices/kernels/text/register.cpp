// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_text_string_kernels(KernelRegistry& registry);    // string.cpp
void register_text_format_kernels(KernelRegistry& registry);    // format.cpp
void register_text_encoding_kernels(KernelRegistry& registry);  // encoding.cpp
void register_text_regex_kernels(KernelRegistry& registry);     // regex.cpp
void register_text_hash_kernels(KernelRegistry& registry);      // hash.cpp
void register_text_ngram_kernels(KernelRegistry& registry);     // ngrams.cpp

void register_text_kernels(KernelRegistry& registry) {
  register_text_string_kernels(registry);
  register_text_format_kernels(registry);
  register_text_encoding_kernels(registry);
  register_text_regex_kernels(registry);
  register_text_hash_kernels(registry);
  register_text_ngram_kernels(registry);
}

}  // namespace tagflow::devices

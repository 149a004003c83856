#include "devices/cpu/text/kernels.h"

#include "devices/cpu/kernels.h"

namespace tagflow::devices {

void register_text_kernels(KernelRegistry& registry) {
  register_text_string_kernels(registry);
  register_text_format_kernels(registry);
  register_text_encoding_kernels(registry);
  register_text_regex_kernels(registry);
  register_text_hash_kernels(registry);
  register_text_ngram_kernels(registry);
}

}  // namespace tagflow::devices

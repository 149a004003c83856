// The parts of register_text_kernels(), one per file.
#pragma once

namespace tagflow::devices {

class KernelRegistry;

void register_text_regex_kernels(KernelRegistry& registry);
void register_text_hash_kernels(KernelRegistry& registry);
void register_text_ngram_kernels(KernelRegistry& registry);

}  // namespace tagflow::devices

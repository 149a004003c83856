// The parts of register_text_kernels(), one per file, and a shared helper.
#pragma once

#include <string_view>

namespace tagflow::devices {

class KernelRegistry;

void register_text_string_kernels(KernelRegistry& registry);
void register_text_format_kernels(KernelRegistry& registry);
void register_text_encoding_kernels(KernelRegistry& registry);
void register_text_regex_kernels(KernelRegistry& registry);
void register_text_hash_kernels(KernelRegistry& registry);
void register_text_ngram_kernels(KernelRegistry& registry);

// The text without the white space around it.
std::string_view stripped(std::string_view text);  // string.cpp

}  // namespace tagflow::devices

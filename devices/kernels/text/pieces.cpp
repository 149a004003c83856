#include "devices/kernels/text/pieces.h"

#include <cstring>
#include <functional>

namespace tagflow::devices {

size_t find_text(std::string_view text, std::string_view wanted, size_t at) {
  if (at > text.size()) return text.npos;
  const void* const found =
      memmem(text.data() + at, text.size() - at, wanted.data(), wanted.size());
  return found == nullptr
             ? text.npos
             : size_t(static_cast<const char*>(found) - text.data());
}

size_t find_text(const KernelContext& context, std::string_view text,
                 std::string_view wanted, size_t at) {
  // A search first reads all that is wanted: so a long one has long pieces.
  const size_t piece = std::max(kPieceBytes, 4 * wanted.size());
  for (; at <= text.size(); at += piece) {
    context.check_cancelled();
    const size_t size = std::min(piece - 1 + wanted.size(), text.size() - at);
    const size_t found = find_text(text.substr(at, size), wanted, 0);
    if (found != text.npos) return at + found;
  }
  return text.npos;
}

size_t count_characters(const KernelContext& context, std::string_view text) {
  size_t count = 0;
  for_pieces(context, text, [&](std::string_view piece) {
    count += size_t(std::ranges::count_if(piece, std::not_fn(continues)));
  });
  return count;
}

std::string shown(std::string_view text) {
  constexpr size_t kMost = 100;
  if (text.size() <= kMost) return std::string(text);
  size_t end = kMost;
  while (end > 0 && continues(text[end])) --end;
  return std::string(text.substr(0, end)) + "...";
}

std::string_view stripped(const KernelContext& context, std::string_view text) {
  text.remove_prefix(find_byte(context, text, 0, std::not_fn(is_space)));
  size_t end = text.size();
  while (end > 0 && is_space(text[end - 1]))
    if (--end % kPieceBytes == 0) context.check_cancelled();
  return text.substr(0, end);
}

}  // namespace tagflow::devices

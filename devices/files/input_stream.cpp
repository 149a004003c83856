#include "devices/files/input_stream.h"

#include <algorithm>
#include <cstring>

namespace tagflow::checkpoint {

InputStream::InputStream(std::unique_ptr<ReadableFile> file,
                         Compression compression, size_t piece_bytes)
    : file_(std::move(file)),
      // A larger buffer than the file would be made for nothing.
      piece_bytes_(
          size_t(std::clamp<uint64_t>(file_->size() + 1, 512, piece_bytes))) {
  if (compression != Compression::kNone)
    inflater_ = std::make_unique<Inflater>(compression);
}

Status InputStream::check_expanded(uint64_t bytes) const {
  if (inflater_ == nullptr || bytes <= kMostExpanded) return {};
  return error(Code::kResourceExhausted,
               "what begins at byte {} has at least {} bytes, more than the {} "
               "that a compressed file may have at once",
               position_, bytes, kMostExpanded);
}

Result<std::string_view> InputStream::peek(size_t bytes) {
  TAGFLOW_RETURN_IF_ERROR(check_expanded(bytes));
  while (end_ - begin_ < bytes && !at_end_) TAGFLOW_RETURN_IF_ERROR(fill());
  return std::string_view(buffer_).substr(begin_, end_ - begin_);
}

Result<bool> InputStream::skip_ahead(uint64_t bytes) {
  const uint64_t held = end_ - begin_, size = file_->size();
  if (inflater_ == nullptr && bytes > held && size > offset_) {
    const uint64_t skipped = std::min(bytes, size - position_);
    begin_ = end_ = 0;
    position_ += skipped;
    offset_ = position_;
    bytes -= skipped;
  }
  while (bytes > 0) {
    TAGFLOW_ASSIGN(const std::string_view next, peek(1));
    if (next.empty()) return false;
    const uint64_t taken = std::min<uint64_t>(bytes, next.size());
    skip(size_t(taken));
    bytes -= taken;
  }
  return true;
}

Result<bool> InputStream::read_line(std::string_view& line) {
  size_t searched = 0;
  for (;;) {
    const auto left = std::string_view(buffer_).substr(begin_, end_ - begin_);
    const size_t found = left.find('\n', searched);
    if (found != left.npos) {
      line = left.substr(0, found);
      skip(found + 1);
      return true;
    }
    if (at_end_) {
      line = left;
      skip(left.size());
      return !left.empty();
    }
    searched = left.size();
    TAGFLOW_RETURN_IF_ERROR(check_expanded(searched));
    TAGFLOW_RETURN_IF_ERROR(fill());
  }
}

void InputStream::make_room() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // Doubling keeps the copies of a long record few.
  if (buffer_.size() - end_ < piece_bytes_)
    buffer_.resize(std::max(end_ + piece_bytes_, 2 * end_));
}

Status InputStream::fill() {
  make_room();
  return inflater_ == nullptr ? fill_plain() : fill_inflated();
}

Status InputStream::fill_plain() {
  TAGFLOW_ASSIGN(const size_t count,
                 file_->read(offset_, std::span(buffer_).subspan(end_)));
  at_end_ = count == 0;
  offset_ += count;
  end_ += count;
  return {};
}

Status InputStream::fill_inflated() {
  for (;;) {
    TAGFLOW_ASSIGN(
        const size_t made,
        inflater_->inflate(packed_, std::span(buffer_).subspan(end_)));
    end_ += made;
    if (made > 0) return {};
    compressed_.resize(piece_bytes_);
    TAGFLOW_ASSIGN(const size_t count, file_->read(offset_, compressed_));
    offset_ += count;
    packed_ = std::string_view(compressed_).substr(0, count);
    if (count > 0) continue;
    at_end_ = true;
    // An empty file has no stream.
    if (offset_ == 0 || inflater_->at_end()) return {};
    return error(Code::kDataLoss, "the compressed bytes end too early");
  }
}

}  // namespace tagflow::checkpoint

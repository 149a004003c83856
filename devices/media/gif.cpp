#include "devices/media/gif.h"

#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace tagflow::media {
namespace {

template <class... Args>
Status bad_gif(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kInvalidArgument,
                "the GIF cannot be decoded: " +
                    fmt::format(format, std::forward<Args>(args)...));
}

// The sizes of the frames, read before any of them is decoded.
class GifOutline {
 public:
  // Up to `most_frames` frames whose heads are whole.
  GifOutline(std::string_view bytes, int64_t most_frames) : rest_(bytes) {
    constexpr size_t kHeadBytes = 13, kFlagsAt = 10;
    if (bytes.size() < kHeadBytes) return;
    const auto flags = uint8_t(bytes[kFlagsAt]);
    if (!skip(kHeadBytes) || !skip_colors(flags)) return;
    while (shape_.frames < most_frames && !rest_.empty()) {
      const char kind = rest_[0];
      if (kind == '\x2c') {
        if (!add_frame()) return;
      } else if (kind == '\x21') {
        if (!skip(2) || !skip_blocks()) return;
      } else {
        return;
      }
    }
  }

  // No frames if there is none.
  const PictureShape& shape() const { return shape_; }

 private:
  bool skip(size_t count) {
    if (rest_.size() < count) return false;
    rest_.remove_prefix(count);
    return true;
  }
  bool skip_colors(uint8_t flags) {
    constexpr unsigned kHasColors = 0x80, kSize = 7;
    return (flags & kHasColors) == 0 ||
           skip(size_t{3} << ((flags & kSize) + 1));
  }
  bool skip_blocks() {
    for (;;) {
      if (rest_.empty()) return false;
      const auto size = size_t(uint8_t(rest_[0]));
      if (!skip(size + 1)) return false;
      if (size == 0) return true;
    }
  }
  int64_t short_at(size_t at) const {
    return uint8_t(rest_[at]) | uint8_t(rest_[at + 1]) << 8;
  }
  bool add_frame() {
    constexpr size_t kFrameBytes = 10, kWidthAt = 5, kHeightAt = 7,
                     kFlagsAt = 9;
    if (rest_.size() < kFrameBytes) return false;
    shape_.width = std::max(shape_.width, short_at(kWidthAt));
    shape_.height = std::max(shape_.height, short_at(kHeightAt));
    ++shape_.frames;
    const auto flags = uint8_t(rest_[kFlagsAt]);
    return skip(kFrameBytes) && skip_colors(flags) && skip(1) && skip_blocks();
  }

  std::string_view rest_;
  PictureShape shape_{0, 0, 3, 0};
};

int read_gif(GifFileType* gif, GifByteType* to, int count) {
  auto& rest = *static_cast<std::string_view*>(gif->UserData);
  const size_t size = std::min(size_t(count), rest.size());
  std::memcpy(to, rest.data(), size);
  rest.remove_prefix(size);
  return int(size);
}

class GifReader {
 public:
  explicit GifReader(std::string_view bytes) : rest_(bytes) {
    gif_ = DGifOpen(&rest_, read_gif, &error_);
  }
  GifReader(const GifReader&) = delete;
  GifReader& operator=(const GifReader&) = delete;
  ~GifReader() {
    if (gif_ != nullptr) DGifCloseFile(gif_, nullptr);
  }

  bool is_open() const { return gif_ != nullptr; }
  GifFileType& file() { return *gif_; }
  Status failed() const {
    const char* const text =
        GifErrorString(gif_ == nullptr ? error_ : gif_->Error);
    return bad_gif("{}", text == nullptr ? "it is damaged" : text);
  }

  // Goes to the next frame, and finds its transparent colour, or
  // NO_TRANSPARENT_COLOR. False at the end, or after an error.
  bool next_frame(int& transparent) {
    transparent = NO_TRANSPARENT_COLOR;
    for (;;) {
      GifRecordType kind = UNDEFINED_RECORD_TYPE;
      if (DGifGetRecordType(gif_, &kind) == GIF_ERROR) return false;
      if (kind == IMAGE_DESC_RECORD_TYPE)
        return DGifGetImageDesc(gif_) != GIF_ERROR;
      if (kind != EXTENSION_RECORD_TYPE) return false;
      if (!read_extension(transparent)) return false;
    }
  }

 private:
  bool read_extension(int& transparent) {
    int code = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif_, &code, &block) == GIF_ERROR) return false;
    while (block != nullptr) {
      GraphicsControlBlock control{};
      // The first byte of a block is its length.
      if (code == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        transparent = control.TransparentColor;
      if (DGifGetExtensionNext(gif_, &block) == GIF_ERROR) return false;
    }
    return true;
  }

  std::string_view rest_;
  int error_ = 0;
  GifFileType* gif_ = nullptr;
};

// Calls row(i) for each row of a frame, in the order in which they are stored.
template <class F>
Status for_gif_rows(int64_t height, bool is_interlaced, const F& row) {
  struct Pass {
    int64_t first, step;
  };
  static constexpr std::array<Pass, 4> kInterlaced = {
      {{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  static constexpr std::array<Pass, 1> kPlain = {{{0, 1}}};
  const std::span<const Pass> passes = is_interlaced
                                           ? std::span<const Pass>(kInterlaced)
                                           : std::span<const Pass>(kPlain);
  for (const Pass& pass : passes)
    for (int64_t i = pass.first; i < height; i += pass.step)
      TAGFLOW_RETURN_IF_ERROR(row(i));
  return {};
}

// Decodes the reader's frame into `to`, which has the frame before it.
Status decode_gif_frame(GifReader& reader, const PictureShape& shape,
                        int transparent, const Interruption& interrupt,
                        std::vector<GifPixelType>& line, uint8_t* to) {
  GifFileType& file = reader.file();
  const GifImageDesc& frame = file.Image;
  const ColorMapObject* const colors =
      frame.ColorMap != nullptr ? frame.ColorMap : file.SColorMap;
  if (colors == nullptr) return bad_gif("a frame has no colours");
  line.resize(size_t(std::max(1, frame.Width)));
  return for_gif_rows(frame.Height, frame.Interlace, [&](int64_t row) {
    interrupt();
    if (DGifGetLine(&file, line.data(), frame.Width) == GIF_ERROR)
      return reader.failed();
    const int64_t y = frame.Top + row;
    for (int64_t i = 0; i < frame.Width; ++i) {
      const int64_t x = frame.Left + i;
      const int pixel = line[size_t(i)];
      if (pixel == transparent || x >= shape.width || y >= shape.height)
        continue;
      if (pixel >= colors->ColorCount)
        return bad_gif("colour {} of {} does not exist", pixel,
                       colors->ColorCount);
      const GifColorType& color = colors->Colors[pixel];
      uint8_t* const out = to + 3 * (y * shape.width + x);
      out[0] = color.Red;
      out[1] = color.Green;
      out[2] = color.Blue;
    }
    return Status();
  });
}

// As decode_gif(), of the first `intact` frames, of which `most` are decoded.
Status decode_gif_frames(std::string_view bytes, int64_t intact, int64_t most,
                         const PixelMemory& memory,
                         const Interruption& interrupt) {
  PictureShape shape = GifOutline(bytes, intact).shape();
  if (shape.frames == 0) return bad_gif("it has no frame");
  shape.frames = std::min(shape.frames, most);
  TAGFLOW_RETURN_IF_ERROR(check_picture("GIF", shape));
  GifReader reader(bytes);
  if (!reader.is_open()) return reader.failed();
  TAGFLOW_ASSIGN(void* const pixels, memory(shape));
  const int64_t frame_bytes = shape.height * shape.width * shape.channels;
  std::vector<GifPixelType> line;
  for (int64_t i = 0; i < shape.frames; ++i) {
    uint8_t* const frame = static_cast<uint8_t*>(pixels) + i * frame_bytes;
    if (i == 0) {
      std::memset(frame, 0, size_t(frame_bytes));
    } else {
      std::memcpy(frame, frame - frame_bytes, size_t(frame_bytes));
    }
    int transparent = NO_TRANSPARENT_COLOR;
    Status status = reader.next_frame(transparent)
                        ? decode_gif_frame(reader, shape, transparent,
                                           interrupt, line, frame)
                        : reader.failed();
    if (status.ok()) continue;
    // What is intact is kept, as if the file ended here.
    return i == 0 ? status
                  : decode_gif_frames(bytes, i, most, memory, interrupt);
  }
  return {};
}

}  // namespace

bool is_gif(std::string_view bytes) { return bytes.starts_with("GIF8"); }

Status decode_gif(std::string_view bytes, bool only_first,
                  const PixelMemory& memory, const Interruption& interrupt) {
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  return decode_gif_frames(bytes, kAll, only_first ? 1 : kAll, memory,
                           interrupt);
}

}  // namespace tagflow::media

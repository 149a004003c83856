#include "devices/media/png.h"

#include <png.h>

#include <algorithm>
#include <bit>
#include <csetjmp>
#include <cstring>
#include <vector>

namespace tagflow::media {
namespace {

// What libpng's calls share. Its errors come back by longjmp: between setjmp
// and the calls there must be no object with a destructor.
struct PngState {
  std::string_view rest;       // to read
  std::string* out = nullptr;  // written
  std::string error;
  png_structp png = nullptr;
  png_infop info = nullptr;
};

void keep_error(png_structp png, png_const_charp text) {
  auto* const state = static_cast<PngState*>(png_get_error_ptr(png));
  // Nothing may be thrown through the library.
  try {
    state->error = text;
  } catch (...) {
    state->error.clear();
  }
  png_longjmp(png, 1);
}

void drop_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, png_size_t count) {
  auto* const state = static_cast<PngState*>(png_get_io_ptr(png));
  if (state->rest.size() < count) png_error(png, "the file ends too early");
  std::memcpy(to, state->rest.data(), count);
  state->rest.remove_prefix(count);
}

void write_bytes(png_structp png, png_bytep from, png_size_t count) {
  auto* const state = static_cast<PngState*>(png_get_io_ptr(png));
  bool is_full = false;
  try {
    state->out->append(reinterpret_cast<const char*>(from), count);
  } catch (...) {
    is_full = true;
  }
  if (is_full) png_error(png, "out of memory");
}

void flush_nothing(png_structp) {}

class PngReader {
 public:
  PngReader() = default;
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&state.png, &state.info, nullptr); }

  PngState state;
};

class PngWriter {
 public:
  PngWriter() = default;
  PngWriter(const PngWriter&) = delete;
  PngWriter& operator=(const PngWriter&) = delete;
  ~PngWriter() { png_destroy_write_struct(&state.png, &state.info); }

  PngState state;
};

Status failed(const PngState& state, std::string_view what) {
  return error(Code::kInvalidArgument, "the PNG cannot be {}: {}", what,
               state.error.empty() ? "out of memory" : state.error);
}

// Deflate makes at most 1032 bytes of one.
constexpr int64_t kMostInflation = 1032;
// Of colours that become grey.
constexpr double kRedWeight = 0.299, kGreenWeight = 0.587;
// Of a chunk of text or of a profile, which are not used.
constexpr png_alloc_size_t kMostChunkBytes = 1 << 20;

// Calls libpng, and returns false after an error of it.
template <class F>
bool run_png(PngState& state, const F& calls) {
  if (setjmp(png_jmpbuf(state.png)) != 0) return false;
  calls();
  return true;
}

struct PngHeader {
  png_uint_32 width = 0, height = 0;
  int bits = 0, color = 0, interlace = 0;
  int channels = 0;  // of the file, before it is transformed
  bool has_transparency = false;
};

bool read_header(PngState& state, PngHeader& header) {
  return run_png(state, [&] {
    png_set_read_fn(state.png, &state, read_bytes);
    png_set_user_limits(state.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(state.png, kMostChunkBytes);
    png_read_info(state.png, state.info);
    png_get_IHDR(state.png, state.info, &header.width, &header.height,
                 &header.bits, &header.color, &header.interlace, nullptr,
                 nullptr);
    header.channels = png_get_channels(state.png, state.info);
    header.has_transparency =
        png_get_valid(state.png, state.info, PNG_INFO_tRNS) != 0;
  });
}

// Rows of the result have as many channels as `wanted`, whose numbers have
// `bits`; returns false after an error.
bool set_transforms(PngState& state, const PngHeader& header, int wanted,
                    int bits) {
  const bool has_alpha = (header.color & PNG_COLOR_MASK_ALPHA) != 0;
  const bool is_grey = (header.color & PNG_COLOR_MASK_COLOR) == 0;
  const bool wants_alpha = wanted == 2 || wanted == 4;
  const bool wants_color = wanted >= 3;
  return run_png(state, [&] {
    png_structp png = state.png;
    if (header.color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (is_grey && header.bits < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (header.bits == 16 && bits == 8) png_set_strip_16(png);
    if (bits == 16 && std::endian::native == std::endian::little)
      png_set_swap(png);
    if (wants_alpha) {
      if (header.has_transparency) {
        png_set_tRNS_to_alpha(png);
      } else if (!has_alpha) {
        // As TensorFlow does: of a file with fewer bits per number, this is not
        // 255.
        png_set_add_alpha(png, (1u << header.bits) - 1, PNG_FILLER_AFTER);
      }
    } else if (has_alpha || header.has_transparency) {
      png_set_strip_alpha(png);
    }
    if (wants_color && is_grey) png_set_gray_to_rgb(png);
    if (!wants_color && !is_grey)
      png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, kRedWeight, kGreenWeight);
    if (header.interlace != PNG_INTERLACE_NONE) png_set_interlace_handling(png);
    png_read_update_info(png, state.info);
  });
}

// Makes 16 bits of 8, from the end of the memory that has room for all of them:
// white stays white.
void widen(uint8_t* bytes, int64_t count) {
  constexpr int kScale = 257;
  for (int64_t i = 0; i < count; ++i) {
    const auto wide = uint16_t(bytes[count + i] * kScale);
    std::memcpy(bytes + 2 * i, &wide, sizeof wide);
  }
}

// Rows between two interruptions: about a MiB.
int64_t rows_at_once(int64_t row_bytes) {
  return std::max<int64_t>(
      1, (int64_t{1} << 20) / std::max<int64_t>(1, row_bytes));
}

}  // namespace

bool is_png(std::string_view bytes) {
  return bytes.starts_with("\x89PNG\r\n\x1a\n");
}

Status decode_png(std::string_view bytes, const PngOptions& options,
                  const PixelMemory& memory, const Interruption& interrupt) {
  PngReader reader;
  PngState& state = reader.state;
  state.rest = bytes;
  state.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &state, keep_error,
                                     drop_warning);
  if (state.png == nullptr) return Status::out_of_memory();
  state.info = png_create_info_struct(state.png);
  if (state.info == nullptr) return Status::out_of_memory();
  PngHeader header;
  if (!read_header(state, header)) return failed(state, "decoded");
  int channels = options.channels;
  if (channels == 0) {
    const bool has_palette = header.color == PNG_COLOR_TYPE_PALETTE;
    channels = !has_palette ? header.channels : header.has_transparency ? 4 : 3;
  }
  const PictureShape shape{header.height, header.width, channels};
  TAGFLOW_RETURN_IF_ERROR(check_picture("PNG", shape));
  const int64_t stored_bits =
      int64_t(header.width) * header.channels * header.bits;
  if ((stored_bits + 7) / 8 * shape.height >
      kMostInflation * int64_t(bytes.size()))
    return error(Code::kInvalidArgument,
                 "the PNG cannot be decoded: {} bytes are too few for {} x {} "
                 "pixels",
                 bytes.size(), header.height, header.width);
  const bool is_widened = options.bits == 16 && header.bits < 16;
  const int bits = is_widened ? 8 : options.bits;
  if (!set_transforms(state, header, channels, bits))
    return failed(state, "decoded");
  const int64_t row_bytes = shape.width * channels * (bits / 8);
  if (int64_t(png_get_rowbytes(state.png, state.info)) != row_bytes)
    return error(Code::kInvalidArgument,
                 "the PNG cannot be decoded to {} channels", channels);
  TAGFLOW_ASSIGN(void* const pixels, memory(shape));
  // Narrow numbers go to the end of the memory.
  auto* const to =
      static_cast<png_bytep>(pixels) + (is_widened ? shape.elements() : 0);
  const int passes = header.interlace != PNG_INTERLACE_NONE ? 7 : 1;
  const int64_t chunk = rows_at_once(row_bytes);
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t row = 0; row < shape.height; row += chunk) {
      interrupt();
      const int64_t end = std::min(row + chunk, shape.height);
      const bool is_read = run_png(state, [&] {
        for (int64_t i = row; i < end; ++i)
          png_read_row(state.png, to + i * row_bytes, nullptr);
      });
      if (!is_read) return failed(state, "decoded");
    }
  }
  if (!run_png(state, [&] { png_read_end(state.png, nullptr); }))
    return failed(state, "decoded");
  if (is_widened) widen(static_cast<uint8_t*>(pixels), shape.elements());
  return {};
}

Result<std::string> encode_png(const PictureShape& shape, int bits,
                               const void* pixels, int compression,
                               const Interruption& interrupt) {
  TAGFLOW_RETURN_IF_ERROR(check_picture("PNG", shape));
  static constexpr int kColors[] = {PNG_COLOR_TYPE_GRAY,
                                    PNG_COLOR_TYPE_GRAY_ALPHA,
                                    PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA};
  if (shape.channels > 4)
    return error(Code::kInvalidArgument, "a PNG has 1 to 4 channels, not {}",
                 shape.channels);
  std::string out;
  PngWriter writer;
  PngState& state = writer.state;
  state.out = &out;
  state.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &state, keep_error,
                                      drop_warning);
  if (state.png == nullptr) return Status::out_of_memory();
  state.info = png_create_info_struct(state.png);
  if (state.info == nullptr) return Status::out_of_memory();
  const bool begun = run_png(state, [&] {
    png_set_write_fn(state.png, &state, write_bytes, flush_nothing);
    png_set_user_limits(state.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_compression_level(state.png, compression);
    png_set_IHDR(state.png, state.info, png_uint_32(shape.width),
                 png_uint_32(shape.height), bits, kColors[shape.channels - 1],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(state.png, state.info);
    if (bits == 16 && std::endian::native == std::endian::little)
      png_set_swap(state.png);
  });
  if (!begun) return failed(state, "encoded");
  const int64_t row_bytes = shape.width * shape.channels * (bits / 8);
  const auto* from = static_cast<png_const_bytep>(pixels);
  const int64_t chunk = rows_at_once(row_bytes);
  for (int64_t row = 0; row < shape.height; row += chunk) {
    interrupt();
    const int64_t end = std::min(row + chunk, shape.height);
    const bool is_written = run_png(state, [&] {
      for (int64_t i = row; i < end; ++i)
        png_write_row(state.png, from + i * row_bytes);
    });
    if (!is_written) return failed(state, "encoded");
  }
  if (!run_png(state, [&] { png_write_end(state.png, state.info); }))
    return failed(state, "encoded");
  return out;
}

}  // namespace tagflow::media

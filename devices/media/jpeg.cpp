#include "devices/media/jpeg.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "devices/media/jpeg_state.h"

namespace tagflow::media {
namespace {

constexpr std::array<JOCTET, 2> kEndOfImage = {0xff, JPEG_EOI};

// Bytes in memory. At their end the library waits for more, or is given the end
// of a picture.
struct JpegSource {
  jpeg_source_mgr base;
  bool recovers = false;
};

void begin_source(j_decompress_ptr) {}

boolean fill_source(j_decompress_ptr jpeg) {
  auto* const source = reinterpret_cast<JpegSource*>(jpeg->src);
  if (!source->recovers) return FALSE;
  source->base.next_input_byte = kEndOfImage.data();
  source->base.bytes_in_buffer = kEndOfImage.size();
  return TRUE;
}

void skip_source(j_decompress_ptr jpeg, long count) {
  jpeg_source_mgr& source = *jpeg->src;
  if (count <= 0) return;
  const size_t skipped = std::min(size_t(count), source.bytes_in_buffer);
  source.next_input_byte += skipped;
  source.bytes_in_buffer -= skipped;
}

// What the library frees.
class JpegReader {
 public:
  JpegReader(std::string_view bytes, bool recovers,
             const Interruption& interrupt) {
    set_jpeg_errors(errors);
    jpeg.err = &errors.base;
    source_.recovers = recovers;
    source_.base.next_input_byte =
        reinterpret_cast<const JOCTET*>(bytes.data());
    source_.base.bytes_in_buffer = bytes.size();
    source_.base.init_source = begin_source;
    source_.base.fill_input_buffer = fill_source;
    source_.base.skip_input_data = skip_source;
    source_.base.resync_to_restart = jpeg_resync_to_restart;
    source_.base.term_source = begin_source;
    is_made_ = run_jpeg(errors, progress, [&] {
      jpeg_create_decompress(&jpeg);
      jpeg.src = &source_.base;
    });
    set_jpeg_progress(reinterpret_cast<j_common_ptr>(&jpeg), progress,
                      interrupt);
  }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
  ~JpegReader() {
    if (is_made_) jpeg_destroy_decompress(&jpeg);
  }

  // Whether it could be made, and has a whole head.
  bool read_header() {
    if (!is_made_) return false;
    int answer = 0;
    return run_jpeg(errors, progress,
                    [&] { answer = jpeg_read_header(&jpeg, TRUE); }) &&
           answer == JPEG_HEADER_OK;
  }
  Status failed() const {
    return error(
        Code::kInvalidArgument, "the JPEG cannot be decoded: {}",
        errors.text[0] == '\0' ? "it ends too early" : errors.text.data());
  }

  jpeg_decompress_struct jpeg{};
  JpegErrors errors{};
  JpegProgress progress{};

 private:
  JpegSource source_{};
  bool is_made_ = false;
};

// A block of a picture takes a bit at least, except by arithmetic coding.
bool has_bytes_for_blocks(const jpeg_decompress_struct& jpeg, size_t bytes) {
  if (jpeg.arith_code != FALSE) return true;
  uint64_t most = 0;
  for (int i = 0; i < jpeg.num_components; ++i) {
    const jpeg_component_info& part = jpeg.comp_info[i];
    most = std::max(
        most, uint64_t(part.width_in_blocks) * uint64_t(part.height_in_blocks));
  }
  return most <= 8 * uint64_t(bytes);
}

// A picture in several scans has all of its coefficients in memory. By
// arithmetic coding, a few bytes could ask for any number of these. Others have
// a bit for each block.
Status check_coefficients(jpeg_decompress_struct& jpeg, size_t bytes) {
  constexpr uint64_t kAlways = uint64_t{64} << 20, kPerByte = 4096;
  if (jpeg_has_multiple_scans(&jpeg) == FALSE) return {};
  uint64_t wanted = 0;
  for (int i = 0; i < jpeg.num_components; ++i) {
    const jpeg_component_info& part = jpeg.comp_info[i];
    wanted +=
        uint64_t(part.width_in_blocks) * part.height_in_blocks * sizeof(JBLOCK);
  }
  if (wanted <= std::max(kAlways, kPerByte * bytes)) return {};
  return error(Code::kResourceExhausted,
               "the JPEG cannot be decoded: {} bytes ask for {} bytes of "
               "coefficients",
               bytes, wanted);
}

// Inks, which an Adobe file has inverted, to colours.
void to_colors(const uint8_t* from, int64_t pixels, bool is_inverted,
               uint8_t* to) {
  for (int64_t i = 0; i < pixels; ++i) {
    const uint8_t* const ink = from + 4 * i;
    const int black = is_inverted ? ink[3] : 255 - ink[3];
    for (int c = 0; c < 3; ++c)
      to[3 * i + c] =
          uint8_t(black * (is_inverted ? ink[c] : 255 - ink[c]) / 255);
  }
}

Status check_crop(const Crop& crop, const PictureShape& shape) {
  if (crop.top >= 0 && crop.left >= 0 && crop.height > 0 && crop.width > 0 &&
      crop.top <= shape.height - crop.height &&
      crop.left <= shape.width - crop.width)
    return {};
  return error(Code::kInvalidArgument,
               "the window of {} x {} pixels at row {}, column {} is not in a "
               "JPEG of {} x {}",
               crop.height, crop.width, crop.top, crop.left, shape.height,
               shape.width);
}

}  // namespace

bool is_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xff\xd8\xff");
}

Result<PictureShape> jpeg_shape(std::string_view bytes) {
  const Interruption never = [] {};
  JpegReader reader(bytes, /*recovers=*/false, never);
  if (!reader.read_header()) return reader.failed();
  return PictureShape{reader.jpeg.image_height, reader.jpeg.image_width,
                      reader.jpeg.num_components};
}

Status decode_jpeg(std::string_view bytes, const JpegOptions& options,
                   const PixelMemory& memory, const Interruption& interrupt) {
  JpegReader reader(bytes, options.recovers_truncated, interrupt);
  if (!reader.read_header()) return reader.failed();
  jpeg_decompress_struct& jpeg = reader.jpeg;
  const bool has_inks =
      jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  const int channels = options.channels != 0 ? options.channels
                                             : std::min(jpeg.num_components, 3);
  if (channels != 1 && channels != 3)
    return error(Code::kInvalidArgument,
                 "a JPEG is decoded to 1 or 3 channels, not {}", channels);
  jpeg.out_color_space = channels == 1 ? JCS_GRAYSCALE
                         : has_inks    ? JCS_CMYK
                                       : JCS_RGB;
  jpeg.do_fancy_upsampling = options.smooths_colors ? TRUE : FALSE;
  jpeg.scale_num = 1;
  jpeg.scale_denom = unsigned(options.ratio);
  jpeg.dct_method = options.is_fast ? JDCT_IFAST : JDCT_ISLOW;
  if (!run_jpeg(reader.errors, reader.progress,
                [&] { jpeg_calc_output_dimensions(&jpeg); }))
    return reader.failed();
  const PictureShape whole{jpeg.output_height, jpeg.output_width, channels};
  TAGFLOW_RETURN_IF_ERROR(check_picture("JPEG", whole));
  TAGFLOW_RETURN_IF_ERROR(
      check_picture("JPEG", {jpeg.image_height, jpeg.image_width, channels}));
  if (!has_bytes_for_blocks(jpeg, bytes.size()))
    return error(Code::kInvalidArgument,
                 "the JPEG cannot be decoded: {} bytes are too few for {} x {} "
                 "pixels",
                 bytes.size(), jpeg.image_height, jpeg.image_width);
  TAGFLOW_RETURN_IF_ERROR(check_coefficients(jpeg, bytes.size()));
  const Crop crop =
      options.crop.value_or(Crop{0, 0, whole.height, whole.width});
  TAGFLOW_RETURN_IF_ERROR(check_crop(crop, whole));
  boolean started = FALSE;
  if (!run_jpeg(reader.errors, reader.progress,
                [&] { started = jpeg_start_decompress(&jpeg); }) ||
      started == FALSE)
    return reader.failed();
  std::vector<uint8_t> line(size_t(jpeg.output_width) *
                            size_t(jpeg.output_components));
  std::vector<uint8_t> colors(
      has_inks && channels == 3 ? size_t(jpeg.output_width) * 3 : 0);
  TAGFLOW_ASSIGN(void* const pixels,
                 memory({crop.height, crop.width, channels}));
  auto* const to = static_cast<uint8_t*>(pixels);
  const auto row_bytes = size_t(crop.width * channels);
  const size_t first_byte = size_t(crop.left * channels);
  const bool is_whole_line = colors.empty() && row_bytes == line.size();
  int64_t read = 0;
  while (read < crop.top + crop.height) {
    const bool is_kept = read >= crop.top;
    uint8_t* const kept_row =
        is_kept ? to + size_t(read - crop.top) * row_bytes : nullptr;
    JSAMPROW row = is_kept && is_whole_line ? kept_row : line.data();
    JDIMENSION lines = 0;
    if (!run_jpeg(reader.errors, reader.progress,
                  [&] { lines = jpeg_read_scanlines(&jpeg, &row, 1); }))
      return reader.failed();
    if (lines == 0) break;
    const uint8_t* from = line.data();
    if (!colors.empty()) {
      to_colors(from, whole.width, jpeg.saw_Adobe_marker != FALSE,
                colors.data());
      from = colors.data();
    }
    if (is_kept && row != kept_row)
      std::memcpy(kept_row, from + first_byte, row_bytes);
    ++read;
  }
  const int64_t wanted = crop.top + crop.height;
  if (float(read) / float(wanted) < std::min(1.0F, options.acceptable_fraction))
    return reader.failed();
  const int64_t kept = std::max<int64_t>(0, read - crop.top);
  std::memset(to + size_t(kept) * row_bytes, 0,
              size_t(crop.height - kept) * row_bytes);
  return {};
}

}  // namespace tagflow::media

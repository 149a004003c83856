#include <cstdlib>
#include <cstring>

#include "devices/media/jpeg.h"
#include "devices/media/jpeg_state.h"

namespace tagflow::media {
namespace {

// What the library frees, or leaves to be freed.
class JpegWriter {
 public:
  explicit JpegWriter(const Interruption& interrupt) {
    set_jpeg_errors(errors);
    jpeg.err = &errors.base;
    is_made_ = run_jpeg(errors, progress, [&] {
      jpeg_create_compress(&jpeg);
      jpeg_mem_dest(&jpeg, &bytes_, &size_);
    });
    set_jpeg_progress(reinterpret_cast<j_common_ptr>(&jpeg), progress,
                      interrupt);
  }
  JpegWriter(const JpegWriter&) = delete;
  JpegWriter& operator=(const JpegWriter&) = delete;
  ~JpegWriter() {
    if (is_made_) jpeg_destroy_compress(&jpeg);
    std::free(bytes_);
  }

  bool is_made() const { return is_made_; }
  Status failed() const {
    return error(Code::kInvalidArgument, "the JPEG cannot be encoded: {}",
                 errors.text.data());
  }
  std::string take() const {
    return {reinterpret_cast<const char*>(bytes_), size_t(size_)};
  }

  jpeg_compress_struct jpeg{};
  JpegErrors errors{};
  JpegProgress progress{};

 private:
  unsigned char* bytes_ = nullptr;
  unsigned long size_ = 0;
  bool is_made_ = false;
};

void set_encoding(jpeg_compress_struct& jpeg, const PictureShape& shape,
                  const JpegEncoding& options) {
  jpeg.image_width = JDIMENSION(shape.width);
  jpeg.image_height = JDIMENSION(shape.height);
  jpeg.input_components = int(shape.channels);
  jpeg.in_color_space = shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  if (options.is_progressive) jpeg_simple_progression(&jpeg);
  jpeg.optimize_coding = options.is_small ? TRUE : FALSE;
  if (!options.halves_colors)
    for (int i = 0; i < jpeg.num_components; ++i) {
      jpeg.comp_info[i].h_samp_factor = 1;
      jpeg.comp_info[i].v_samp_factor = 1;
    }
  constexpr UINT8 kPerInch = 1, kPerCentimetre = 2;
  jpeg.density_unit = options.is_per_inch ? kPerInch : kPerCentimetre;
  jpeg.X_density = UINT16(options.x_density);
  jpeg.Y_density = UINT16(options.y_density);
}

}  // namespace

Result<std::string> encode_jpeg(const PictureShape& shape,
                                const uint8_t* pixels,
                                const JpegEncoding& options,
                                const Interruption& interrupt) {
  // The name that marks this metadata, with a zero at its end.
  static constexpr std::string_view kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  constexpr size_t kMostMarkerBytes = 65533;
  TAGFLOW_RETURN_IF_ERROR(check_picture("JPEG", shape));
  if (shape.channels != 1 && shape.channels != 3)
    return error(Code::kInvalidArgument, "a JPEG has 1 or 3 channels, not {}",
                 shape.channels);
  const std::string marker =
      options.xmp.empty() ? "" : std::string(kXmp) + options.xmp;
  if (marker.size() > kMostMarkerBytes)
    return error(Code::kInvalidArgument,
                 "{} bytes of metadata do not fit into a JPEG",
                 options.xmp.size());
  JpegWriter writer(interrupt);
  if (!writer.is_made()) return writer.failed();
  jpeg_compress_struct& jpeg = writer.jpeg;
  const auto row_bytes = size_t(shape.width * shape.channels);
  const bool written = run_jpeg(writer.errors, writer.progress, [&] {
    set_encoding(jpeg, shape, options);
    jpeg_start_compress(&jpeg, TRUE);
    if (!marker.empty())
      jpeg_write_marker(&jpeg, JPEG_APP0 + 1,
                        reinterpret_cast<const JOCTET*>(marker.data()),
                        unsigned(marker.size()));
    while (jpeg.next_scanline < jpeg.image_height) {
      // The library reads it only.
      auto* row =
          const_cast<JSAMPROW>(pixels + size_t(jpeg.next_scanline) * row_bytes);
      jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
  });
  if (!written) return writer.failed();
  return writer.take();
}

}  // namespace tagflow::media

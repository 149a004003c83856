#include "devices/media/webp.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>
#include <memory>

namespace tagflow::media {
namespace {

Status bad_webp() {
  return error(Code::kInvalidArgument,
               "the WebP cannot be decoded: it is damaged or incomplete");
}

const uint8_t* unsigned_bytes(std::string_view bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

Status decode_animation(std::string_view bytes, bool only_first,
                        const PixelMemory& memory,
                        const Interruption& interrupt) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0) return bad_webp();
  options.color_mode = MODE_RGBA;
  const WebPData data = {unsigned_bytes(bytes), bytes.size()};
  const std::unique_ptr<WebPAnimDecoder, decltype(&WebPAnimDecoderDelete)>
      decoder(WebPAnimDecoderNew(&data, &options), &WebPAnimDecoderDelete);
  WebPAnimInfo info;
  if (decoder == nullptr || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0)
    return bad_webp();
  const PictureShape shape{info.canvas_height, info.canvas_width, 4,
                           only_first ? 1 : int64_t(info.frame_count)};
  TAGFLOW_RETURN_IF_ERROR(check_picture("WebP", shape));
  TAGFLOW_ASSIGN(void* const pixels, memory(shape));
  const int64_t frame_bytes = shape.height * shape.width * shape.channels;
  for (int64_t i = 0; i < shape.frames; ++i) {
    interrupt();
    uint8_t* frame = nullptr;
    int time = 0;
    if (WebPAnimDecoderGetNext(decoder.get(), &frame, &time) == 0)
      return bad_webp();
    std::memcpy(static_cast<uint8_t*>(pixels) + i * frame_bytes, frame,
                size_t(frame_bytes));
  }
  return {};
}

}  // namespace

bool is_webp(std::string_view bytes) {
  return bytes.starts_with("RIFF") && bytes.size() >= 12 &&
         bytes.substr(8, 4) == "WEBP";
}

Status decode_webp(std::string_view bytes, int channels, bool only_first,
                   const PixelMemory& memory, const Interruption& interrupt) {
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(unsigned_bytes(bytes), bytes.size(), &features) !=
      VP8_STATUS_OK)
    return bad_webp();
  const bool is_animation = features.has_animation != 0;
  const int has = features.has_alpha != 0 || is_animation ? 4 : 3;
  if (channels != 0 && channels != has)
    return error(Code::kInvalidArgument,
                 "a WebP of {} channels is not decoded to {}", has, channels);
  const PictureShape shape{features.height, features.width, has};
  TAGFLOW_RETURN_IF_ERROR(check_picture("WebP", shape));
  if (is_animation)
    return decode_animation(bytes, only_first, memory, interrupt);
  TAGFLOW_ASSIGN(void* const pixels, memory(shape));
  interrupt();
  auto* const to = static_cast<uint8_t*>(pixels);
  const auto decode = has == 4 ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  const uint8_t* const decoded =
      decode(unsigned_bytes(bytes), bytes.size(), to, size_t(shape.elements()),
             int(shape.width * has));
  return decoded == nullptr ? bad_webp() : Status();
}

}  // namespace tagflow::media

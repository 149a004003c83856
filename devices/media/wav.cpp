#include "devices/media/wav.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tagflow::media {
namespace {

constexpr size_t kSampleBytes = 2;
constexpr float kSampleScale = 32768;
constexpr int64_t kFramesAtOnce = int64_t{1} << 18;

uint32_t number_at(std::string_view bytes, size_t at, size_t size) {
  uint32_t number = 0;
  for (size_t i = 0; i < size; ++i)
    number |= uint32_t(uint8_t(bytes[at + i])) << (8 * i);
  return number;
}

void add_number(std::string& to, uint64_t number, size_t size) {
  for (size_t i = 0; i < size; ++i) to += char(uint8_t(number >> (8 * i)));
}

template <class... Args>
Status bad_wav(fmt::format_string<Args...> format, Args&&... args) {
  return Status(Code::kInvalidArgument,
                "the WAV cannot be decoded: " +
                    fmt::format(format, std::forward<Args>(args)...));
}

Status read_format(std::string_view chunk, SoundShape& shape) {
  if (chunk.size() != 16 && chunk.size() != 18)
    return bad_wav("its format takes {} bytes, not 16 or 18", chunk.size());
  const uint32_t kind = number_at(chunk, 0, 2);
  if (kind != 1) return bad_wav("its samples are of kind {}, not 1", kind);
  shape.channels = number_at(chunk, 2, 2);
  shape.rate = number_at(chunk, 4, 4);
  const uint32_t bits = number_at(chunk, 14, 2);
  if (bits != 8 * kSampleBytes)
    return bad_wav("its samples have {} bits, not 16", bits);
  if (shape.channels == 0) return bad_wav("it has no channel");
  const auto frame_bytes = uint32_t(shape.channels * kSampleBytes);
  if (number_at(chunk, 12, 2) != (frame_bytes & 0xffff) ||
      number_at(chunk, 8, 4) != frame_bytes * shape.rate)
    return bad_wav("the bytes of its format contradict its channels and rate");
  return {};
}

int16_t sample_of(float value) {
  // NaN is silence.
  if (!(std::abs(value) > 0)) return 0;
  return int16_t(std::clamp(std::round(value * kSampleScale), -kSampleScale,
                            kSampleScale - 1));
}

}  // namespace

Status decode_wav(std::string_view bytes, const SampleMemory& memory,
                  const Interruption& interrupt) {
  if (bytes.size() < 12 || !bytes.starts_with("RIFF") ||
      bytes.substr(8, 4) != "WAVE")
    return bad_wav("it does not begin as one");
  std::string_view rest = bytes.substr(12);
  SoundShape shape;
  std::string_view data;
  bool has_data = false;
  while (!rest.empty()) {
    if (rest.size() < 8) return bad_wav("it ends within a chunk's head");
    const std::string_view kind = rest.substr(0, 4);
    const size_t size = number_at(rest, 4, 4);
    rest.remove_prefix(8);
    if (size > rest.size())
      return bad_wav("{} bytes of a chunk are missing", size - rest.size());
    const std::string_view chunk = rest.substr(0, size);
    rest.remove_prefix(size);
    // Some programs leave out the byte that makes a chunk's length even.
    if (size % 2 != 0 && rest.starts_with('\0')) rest.remove_prefix(1);
    if (kind == "fmt ") {
      if (shape.channels != 0) return bad_wav("it has two formats");
      TAGFLOW_RETURN_IF_ERROR(read_format(chunk, shape));
    } else if (shape.channels == 0) {
      return bad_wav("its format is not its first chunk");
    } else if (kind == "data") {
      if (has_data) return bad_wav("it has two chunks of data");
      has_data = true;
      data = chunk;
    }
  }
  if (!has_data) return bad_wav("it has no data");
  const size_t frame_bytes = size_t(shape.channels) * kSampleBytes;
  if (data.size() % frame_bytes != 0)
    return bad_wav("{} bytes of data are not a multiple of {}", data.size(),
                   frame_bytes);
  shape.frames = int64_t(data.size() / frame_bytes);
  TAGFLOW_ASSIGN(float* to, memory(shape));
  for (size_t at = 0; at < data.size(); at += kSampleBytes) {
    if (at % (size_t(kFramesAtOnce) * kSampleBytes) == 0) interrupt();
    *to++ = float(int16_t(number_at(data, at, kSampleBytes))) / kSampleScale;
  }
  return {};
}

Result<std::string> encode_wav(const SoundShape& shape, const float* samples,
                               const Interruption& interrupt) {
  constexpr int64_t kHeadBytes = 44;
  if (shape.channels <= 0 || shape.channels > 0xffff)
    return error(Code::kInvalidArgument,
                 "a WAV has 1 to 65535 channels, not {}", shape.channels);
  if (shape.rate == 0)
    return error(Code::kInvalidArgument, "a WAV has a rate of at least 1");
  const int64_t frame_bytes = shape.channels * int64_t(kSampleBytes);
  if (shape.frames >
      (int64_t{std::numeric_limits<uint32_t>::max()} - kHeadBytes) /
          frame_bytes)
    return error(Code::kResourceExhausted,
                 "a WAV has room for 4 GiB, not for {} frames of {} channels",
                 shape.frames, shape.channels);
  const auto data_bytes = uint64_t(shape.frames * frame_bytes);
  std::string out;
  out.reserve(data_bytes + kHeadBytes);
  out += "RIFF";
  add_number(out, data_bytes + kHeadBytes - 8, 4);
  out += "WAVEfmt ";
  add_number(out, 16, 4);
  add_number(out, 1, 2);
  add_number(out, uint64_t(shape.channels), 2);
  add_number(out, shape.rate, 4);
  add_number(out, uint64_t(frame_bytes) * shape.rate, 4);
  add_number(out, uint64_t(frame_bytes), 2);
  add_number(out, 8 * kSampleBytes, 2);
  out += "data";
  add_number(out, data_bytes, 4);
  const int64_t count = shape.frames * shape.channels;
  for (int64_t i = 0; i < count; ++i) {
    if (i % kFramesAtOnce == 0) interrupt();
    add_number(out, uint16_t(sample_of(samples[i])), kSampleBytes);
  }
  return out;
}

}  // namespace tagflow::media

#include "devices/media/summary_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "devices/media/png.h"
#include "devices/media/wav.h"
#include "graph/dtype_visit.h"
#include "graph/file/tensor_proto.h"
#include "graph/proto/summary.pb.h"

namespace tagflow::media {
namespace {

constexpr int64_t kElementsAtOnce = int64_t{1} << 20;

// The right ends of all buckets, in order.
const std::vector<double>& bucket_limits() {
  static const std::vector<double> limits = [] {
    constexpr double kFirst = 1e-12, kLast = 1e20, kGrowth = 1.1;
    std::vector<double> positive;
    for (double limit = kFirst; limit < kLast; limit *= kGrowth)
      positive.push_back(limit);
    positive.push_back(std::numeric_limits<double>::max());
    std::vector<double> all;
    for (size_t i = positive.size(); i-- > 0;) all.push_back(-positive[i]);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return limits;
}

class Histogram {
 public:
  Histogram() : buckets_(bucket_limits().size(), 0) {}

  void add(double value) {
    const std::vector<double>& limits = bucket_limits();
    const auto at = std::ranges::upper_bound(limits, value) - limits.begin();
    ++buckets_[std::min(size_t(at), buckets_.size() - 1)];
    min_ = std::min(min_, value);
    max_ = std::max(max_, value);
    ++count_;
    sum_ += value;
    sum_squares_ += value * value;
  }

  // A run of empty buckets becomes one.
  void write(tensorflow::HistogramProto& message) const {
    const std::vector<double>& limits = bucket_limits();
    message.set_min(min_);
    message.set_max(max_);
    message.set_num(count_);
    message.set_sum(sum_);
    message.set_sum_squares(sum_squares_);
    for (size_t i = 0; i < buckets_.size(); ++i) {
      const bool is_run_inside =
          buckets_[i] == 0 && i + 1 < buckets_.size() && buckets_[i + 1] == 0;
      if (is_run_inside) continue;
      message.add_bucket_limit(limits[i]);
      message.add_bucket(buckets_[i]);
    }
  }

 private:
  std::vector<double> buckets_;
  double min_ = std::numeric_limits<double>::max();
  double max_ = std::numeric_limits<double>::lowest();
  double count_ = 0, sum_ = 0, sum_squares_ = 0;
};

// Numbers and bools.
template <class F>
bool visit_numbers(DataType t, F&& f) {
  return visit_real(t, f) || tagflow::detail::visit_among<bool>(t, f);
}

Status not_numbers(const Tensor& tensor) {
  return error(Code::kInvalidArgument, "{} has no real numbers",
               tensor.describe());
}

std::string numbered_tag(const std::string& tag, std::string_view kind,
                         int64_t most, int64_t i) {
  return most > 1 ? fmt::format("{}/{}/{}", tag, kind, i)
                  : fmt::format("{}/{}", tag, kind);
}

template <class T>
bool is_finite_pixel(const T* pixel, int64_t channels) {
  return std::all_of(pixel, pixel + channels,
                     [](T value) { return std::isfinite(double(value)); });
}

// Scales finite values to 0 ... 255. Each step rounds to T, as TensorFlow's do.
template <class T>
void scale_picture(const T* from, int64_t pixels, int64_t channels,
                   const uint8_t* bad_color, uint8_t* to) {
  constexpr float kBlack = 1e-6F;
  float low = std::numeric_limits<float>::infinity(), high = -low;
  for (int64_t i = 0; i < pixels; ++i) {
    const T* const pixel = from + i * channels;
    if (!is_finite_pixel(pixel, channels)) continue;
    for (int64_t j = 0; j < channels; ++j) {
      low = std::min(low, float(pixel[j]));
      high = std::max(high, float(pixel[j]));
    }
  }
  const bool has_negative = low < 0;
  const float range =
      has_negative ? std::max(std::abs(low), std::abs(high)) : high;
  const float span = has_negative ? 127 : 255;
  const T scale(range < kBlack ? 0 : span / range);
  const T offset(has_negative ? 128.0F : 0.0F);
  for (int64_t i = 0; i < pixels; ++i) {
    const T* const pixel = from + i * channels;
    uint8_t* const out = to + i * channels;
    if (!is_finite_pixel(pixel, channels)) {
      std::copy_n(bad_color, channels, out);
      continue;
    }
    for (int64_t j = 0; j < channels; ++j) {
      const T scaled(pixel[j] * scale);
      const T moved(scaled + offset);
      out[j] = uint8_t(std::clamp(double(moved), 0.0, 255.0));
    }
  }
}

Status check_pictures(const Tensor& pictures, const PictureValues& options) {
  const DataType type = pictures.dtype();
  if (type != DataType::kUInt8 && type != DataType::kFloat &&
      type != DataType::kHalf && type != DataType::kDouble)
    return error(Code::kInvalidArgument,
                 "pictures are of uint8, float, half or double, not {}",
                 dtype_name(type));
  if (pictures.rank() != 4)
    return error(Code::kInvalidArgument,
                 "pictures must be [batch, height, width, channels], not {}",
                 pictures.describe());
  const int64_t channels = pictures.dim(3);
  if (channels != 1 && channels != 3 && channels != 4)
    return error(Code::kInvalidArgument,
                 "pictures have 1, 3 or 4 channels, not {}", channels);
  const Tensor& color = options.bad_color;
  if (color.dtype() != DataType::kUInt8 || color.rank() != 1 ||
      color.dim(0) < channels)
    return error(Code::kInvalidArgument,
                 "bad_color must be a vector of at least {} uint8, not {}",
                 channels, color.describe());
  return {};
}

}  // namespace

Status add_scalar_value(const std::string& tag, const Tensor& scalar,
                        tensorflow::Summary& summary) {
  if (scalar.num_elements() == 0)
    return error(Code::kInvalidArgument, "{} has no element",
                 scalar.describe());
  float number = 0;
  const bool known = visit_numbers(scalar.dtype(), [&]<class T>(TypeTag<T>) {
    number = float(scalar.scalar_value<T>());
  });
  if (!known) return not_numbers(scalar);
  auto* const value = summary.add_value();
  value->set_tag(tag);
  value->set_simple_value(number);
  return {};
}

Status add_histogram_value(const std::string& tag, const Tensor& values,
                           const Interruption& interrupt,
                           tensorflow::Summary& summary) {
  Histogram histogram;
  Status status;
  const bool known = visit_numbers(values.dtype(), [&]<class T>(TypeTag<T>) {
    int64_t i = 0;
    for (const T element : values.flat<T>()) {
      if (i++ % kElementsAtOnce == 0) interrupt();
      const auto value = double(element);
      if (!std::isfinite(value)) {
        status = error(Code::kInvalidArgument,
                       "{} at element {}: a histogram has finite values only",
                       std::isnan(value) ? "NaN" : "an infinity", i - 1);
        return;
      }
      histogram.add(value);
    }
  });
  if (!known) return not_numbers(values);
  TAGFLOW_RETURN_IF_ERROR(status);
  auto* const value = summary.add_value();
  value->set_tag(tag);
  histogram.write(*value->mutable_histo());
  return {};
}

Status add_picture_values(const std::string& tag, const Tensor& pictures,
                          const PictureValues& options,
                          const Interruption& interrupt,
                          tensorflow::Summary& summary) {
  TAGFLOW_RETURN_IF_ERROR(check_pictures(pictures, options));
  const PictureShape shape{pictures.dim(1), pictures.dim(2), pictures.dim(3)};
  const int64_t count = std::min(options.most, pictures.dim(0));
  if (count <= 0) return {};
  TAGFLOW_RETURN_IF_ERROR(check_picture("picture", shape));
  const int64_t size = shape.elements();
  const auto* const bad_color = options.bad_color.data<uint8_t>();
  const bool is_scaled = pictures.dtype() != DataType::kUInt8;
  std::vector<uint8_t> scaled(is_scaled ? size_t(size) : 0);
  tensorflow::Summary added;
  for (int64_t i = 0; i < count; ++i) {
    interrupt();
    const void* pixels = scaled.data();
    if (is_scaled) {
      tagflow::detail::visit_among<float, Half, double>(
          pictures.dtype(), [&]<class T>(TypeTag<T>) {
            scale_picture(pictures.data<T>() + i * size,
                          shape.height * shape.width, shape.channels, bad_color,
                          scaled.data());
          });
    } else {
      pixels = pictures.data<uint8_t>() + i * size;
    }
    TAGFLOW_ASSIGN(std::string bytes,
                   encode_png(shape, 8, pixels, -1, interrupt));
    auto* const value = added.add_value();
    value->set_tag(numbered_tag(tag, "image", options.most, i));
    auto* const image = value->mutable_image();
    image->set_height(int32_t(shape.height));
    image->set_width(int32_t(shape.width));
    image->set_colorspace(int32_t(shape.channels));
    *image->mutable_encoded_image_string() = std::move(bytes);
  }
  summary.MergeFrom(added);
  return {};
}

Status add_sound_values(const std::string& tag, const Tensor& sounds,
                        float rate, int64_t most, const Interruption& interrupt,
                        tensorflow::Summary& summary) {
  if (sounds.dtype() != DataType::kFloat || sounds.rank() < 2 ||
      sounds.rank() > 3)
    return error(Code::kInvalidArgument,
                 "sounds must be floats [batch, frames, channels] or [batch, "
                 "frames], not {}",
                 sounds.describe());
  constexpr float kMostRate = 4294967296.0F;
  if (!(rate > 0) || rate >= kMostRate)
    return error(Code::kInvalidArgument,
                 "the rate must be more than 0 and less than 2^32, not {}",
                 rate);
  SoundShape shape;
  shape.frames = sounds.dim(1);
  shape.channels = sounds.rank() == 3 ? sounds.dim(2) : 1;
  shape.rate = uint32_t(std::max(1LL, std::llrint(rate)));
  tensorflow::Summary added;
  const int64_t count = std::min(most, sounds.dim(0));
  for (int64_t i = 0; i < count; ++i) {
    interrupt();
    TAGFLOW_ASSIGN(
        std::string bytes,
        encode_wav(shape,
                   sounds.data<float>() + i * shape.frames * shape.channels,
                   interrupt));
    auto* const value = added.add_value();
    value->set_tag(numbered_tag(tag, "audio", most, i));
    auto* const audio = value->mutable_audio();
    audio->set_sample_rate(rate);
    audio->set_num_channels(shape.channels);
    audio->set_length_frames(shape.frames);
    audio->set_content_type("audio/wav");
    *audio->mutable_encoded_audio_string() = std::move(bytes);
  }
  summary.MergeFrom(added);
  return {};
}

Status add_tensor_value(const Tensor& tensor, tensorflow::Summary& summary) {
  tensorflow::TensorProto message;
  if (tensor.dtype() == DataType::kString ||
      !visit_dtype(tensor.dtype(), [](auto) {})) {
    TAGFLOW_RETURN_IF_ERROR(graph::tensor_to_proto(tensor, &message));
  } else {
    message.set_dtype(tensorflow::DataType(tensor.dtype()));
    graph::shape_to_proto(PartialShape(tensor.shape()),
                          message.mutable_tensor_shape());
    message.set_tensor_content(tensor.raw(), tensor.bytes());
  }
  *summary.add_value()->mutable_tensor() = std::move(message);
  return {};
}

}  // namespace tagflow::media

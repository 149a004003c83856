// Files of pictures and sounds, as strings.
#include "graph/known_value.h"
#include "graph/op_registry.h"
#include "graph/shape_context.h"

namespace tagflow::graph {
namespace {

constexpr int64_t kUnknown = PartialShape::kUnknown;

// The number of channels that the attribute asks for.
Result<int64_t> wanted_channels(ShapeContext& c) {
  TAGFLOW_ASSIGN(const int64_t channels, c.attr<int64_t>("channels"));
  if (channels == 0) return kUnknown;
  if (channels == 1 || channels == 3 || channels == 4) return channels;
  return c.fail(
      fmt::format("`channels` must be 0, 1, 3 or 4, not {}", channels));
}

Status decoded_picture_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  TAGFLOW_ASSIGN(const int64_t channels, wanted_channels(c));
  c.set_output(0, {kUnknown, kUnknown, channels});
  return {};
}

Status decoded_animation_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  c.set_output(0, {kUnknown, kUnknown, kUnknown, 3});
  return {};
}

// Of a WebP: it may have frames.
Status decoded_frames_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  return wanted_channels(c).status();
}

Status decoded_image_shape(ShapeContext& c) {
  TAGFLOW_ASSIGN(const bool expands, c.attr<bool>("expand_animations"));
  return expands ? decoded_frames_shape(c) : decoded_picture_shape(c);
}

// The window's size, if it is known.
Status cropped_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 1).status());
  TAGFLOW_RETURN_IF_ERROR(decoded_picture_shape(c));
  TAGFLOW_ASSIGN(const PartialShape window, c.constant_as_shape(1));
  if (!window.has_rank()) return {};
  if (window.rank() != 4)
    return c.fail(
        fmt::format("crop_window has {} numbers, not 4", window.rank()));
  TAGFLOW_ASSIGN(const int64_t channels, wanted_channels(c));
  c.set_output(0, {window.dim(2), window.dim(3), channels});
  return {};
}

Status jpeg_size_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  c.set_output(0, {3});
  return {};
}

// A picture for each of the dimensions before the last three.
Status encoded_pictures_shape(ShapeContext& c) {
  const PartialShape& pictures = c.input(0);
  if (!pictures.has_rank()) return {};
  if (pictures.rank() < 3)
    return c.fail(fmt::format("a picture has at least 3 dimensions, not {}",
                              pictures.to_string()));
  PartialShape shape = PartialShape::scalar();
  for (int i = 0; i + 3 < pictures.rank(); ++i) shape.add_dim(pictures.dim(i));
  c.set_output(0, std::move(shape));
  return {};
}

Status encoded_picture_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 3).status());
  if (c.num_inputs() > 1) TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  c.set_output(0, PartialShape::scalar());
  return {};
}

Status decoded_sound_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 0).status());
  int64_t sizes[2] = {};
  const char* const names[] = {"desired_samples", "desired_channels"};
  for (int i = 0; i < 2; ++i) {
    TAGFLOW_ASSIGN(sizes[i], c.attr<int64_t>(names[i]));
    if (sizes[i] < -1)
      return c.fail(fmt::format("{} must not be {}", names[i], sizes[i]));
  }
  c.set_output(0, {sizes[0], sizes[1]});
  c.set_output(1, PartialShape::scalar());
  return {};
}

Status encoded_sound_shape(ShapeContext& c) {
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(0, 2).status());
  TAGFLOW_RETURN_IF_ERROR(c.with_rank(1, 0).status());
  c.set_output(0, PartialShape::scalar());
  return {};
}

OpDefBuilder decoder(const char* name) {
  OpDefBuilder op(name);
  op.input("contents: string").work(Work::kTranscendental);
  return op;
}

void register_decoders(OpRegistry& registry) {
  const auto add_jpeg_attrs = [](OpDefBuilder& op) -> OpDefBuilder& {
    return op.output("image: uint8")
        .attrs({"channels: int = 0", "ratio: int = 1",
                "fancy_upscaling: bool = true",
                "try_recover_truncated: bool = false",
                "acceptable_fraction: float = 1", "dct_method: string = ''"});
  };
  OpDefBuilder jpeg = decoder("DecodeJpeg");
  registry.add(add_jpeg_attrs(jpeg).shape(decoded_picture_shape));
  OpDefBuilder crop = decoder("DecodeAndCropJpeg");
  crop.input("crop_window: int32");
  registry.add(add_jpeg_attrs(crop).shape(cropped_shape));
  registry.add(
      decoder("DecodePng")
          .output("image: dtype")
          .attrs({"channels: int = 0", "dtype: {uint8, uint16} = uint8"})
          .shape(decoded_picture_shape));
  registry.add(decoder("DecodeBmp")
                   .output("image: uint8")
                   .attr("channels: int = 0")
                   .shape(decoded_picture_shape));
  registry.add(decoder("DecodeGif")
                   .output("image: uint8")
                   .shape(decoded_animation_shape));
  registry.add(decoder("DecodeWebP")
                   .output("image: dtype")
                   .attrs({"channels: int = 0", "dtype: {uint8} = uint8"})
                   .shape(decoded_frames_shape));
  registry.add(
      decoder("DecodeImage")
          .output("image: dtype")
          .attrs({"channels: int = 0", "dtype: {uint8, uint16, float} = uint8",
                  "expand_animations: bool = true"})
          .shape(decoded_image_shape));
  registry.add(OpDefBuilder("ExtractJpegShape")
                   .input("contents: string")
                   .output("image_shape: output_type")
                   .attr("output_type: {int32, int64} = int32")
                   .shape(jpeg_size_shape));
  registry.add(
      decoder("DecodeWav")
          .outputs({"audio: float", "sample_rate: int32"})
          .attrs({"desired_channels: int = -1", "desired_samples: int = -1"})
          .shape(decoded_sound_shape));
}

void register_encoders(OpRegistry& registry) {
  registry.add(
      OpDefBuilder("EncodePng")
          .input("image: T")
          .output("contents: string")
          .attrs({"compression: int = -1", "T: {uint8, uint16} = uint8"})
          .shape(encoded_pictures_shape)
          .work(Work::kSort));
  registry.add(
      OpDefBuilder("EncodeJpeg")
          .input("image: uint8")
          .output("contents: string")
          .attrs({"format: {'', 'grayscale', 'rgb'} = ''", "quality: int = 95",
                  "progressive: bool = false", "optimize_size: bool = false",
                  "chroma_downsampling: bool = true",
                  "density_unit: {'in', 'cm'} = 'in'", "x_density: int = 300",
                  "y_density: int = 300", "xmp_metadata: string = ''"})
          .shape(encoded_picture_shape)
          .work(Work::kTranscendental));
  registry.add(OpDefBuilder("EncodeJpegVariableQuality")
                   .inputs({"images: uint8", "quality: int32"})
                   .output("contents: string")
                   .shape(encoded_picture_shape)
                   .work(Work::kTranscendental));
  registry.add(OpDefBuilder("EncodeWav")
                   .inputs({"audio: float", "sample_rate: int32"})
                   .output("contents: string")
                   .shape(encoded_sound_shape));
}

}  // namespace

void register_codec_ops(OpRegistry& registry) {
  register_decoders(registry);
  register_encoders(registry);
}

}  // namespace tagflow::graph

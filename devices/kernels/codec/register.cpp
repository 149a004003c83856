// The kernels of the family, which each file registers.
namespace tagflow::devices {

class KernelRegistry;

void register_picture_decoder_kernels(KernelRegistry& registry);  // decode.cpp
void register_picture_encoder_kernels(KernelRegistry& registry);  // encode.cpp
void register_sound_codec_kernels(KernelRegistry& registry);      // sound.cpp

void register_codec_kernels(KernelRegistry& registry) {
  register_picture_decoder_kernels(registry);
  register_picture_encoder_kernels(registry);
  register_sound_codec_kernels(registry);
}

}  // namespace tagflow::devices

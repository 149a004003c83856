// Files of pictures and sounds.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_codec_rules(RuleTable& table) {
  no_gradient(table,
              "DecodeAndCropJpeg DecodeBmp DecodeGif DecodeImage DecodeJpeg "
              "DecodePng DecodeWav DecodeWebP EncodeJpeg "
              "EncodeJpegVariableQuality EncodePng EncodeWav ExtractJpegShape",
              "it is about strings");
}

}  // namespace tagflow::autodiff

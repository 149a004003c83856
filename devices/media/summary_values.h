// What summary ops and writers say: values of event files, made of tensors.
#pragma once

#include <string>

#include "devices/media/picture.h"
#include "graph/tensor.h"

namespace tensorflow {
class Summary;
}

namespace tagflow::media {

// Each adds values to `summary`, and nothing after an error. Elements are those
// of any real type, unless it says otherwise. Thread-safe.

// The first element, as a float. InvalidArgument if there is none.
Status add_scalar_value(const std::string& tag, const Tensor& scalar,
                        tensorflow::Summary& summary);

// How often the elements, or bools, fall into the buckets that TensorFlow uses:
// their limits grow by a tenth. InvalidArgument for NaN and infinities.
Status add_histogram_value(const std::string& tag, const Tensor& values,
                           const Interruption& interrupt,
                           tensorflow::Summary& summary);

struct PictureValues {
  int64_t most = 3;  // pictures
  // The colour of pixels that are not finite: a vector of uint8, with at least
  // as many elements as a pixel.
  Tensor bad_color;
};

// The first pictures of a batch, [batch, height, width, channels] of 1, 3 or 4
// channels: uint8 as it is; the finite values of a float, half or double
// picture are scaled to 0 ... 255, around 128 if some are negative.
Status add_picture_values(const std::string& tag, const Tensor& pictures,
                          const PictureValues& options,
                          const Interruption& interrupt,
                          tensorflow::Summary& summary);

// The first `most` sounds of a batch: floats [batch, frames, channels] or
// [batch, frames], as WAV.
Status add_sound_values(const std::string& tag, const Tensor& sounds,
                        float rate, int64_t most, const Interruption& interrupt,
                        tensorflow::Summary& summary);

// The tensor itself, without a tag or metadata. Unimplemented for handles.
Status add_tensor_value(const Tensor& tensor, tensorflow::Summary& summary);

}  // namespace tagflow::media
